"""Routes from a Spectrum and a Schedule to a Curve; none imports another."""
