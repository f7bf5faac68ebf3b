"""Sources of a Spectrum: a sampled W, or the population itself."""
