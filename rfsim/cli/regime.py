"""`rfsim regime ALPHA BETA`."""

import argparse

from rfsim.cli.output import emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("alpha", metavar="ALPHA", type=float, help="eigenvalues are j^(-2 alpha); above 0")
    parser.add_argument(
        "beta", metavar="BETA", type=float, help="target coefficients are j^(-beta); 2 alpha + 2 beta above 1"
    )


def run(options: argparse.Namespace) -> int:
    """Print the regime."""
    from rfsim.regimes import regime

    found = regime(options.alpha, options.beta)
    result = {
        "alpha": found.alpha,
        "beta": found.beta,
        "regime": found.label,
        "default_regime": found.default_label,
        "q_forcing": found.q_forcing,
        "q_memory": found.q_memory,
        "compute_phase": found.compute_phase,
        "data_exponent": found.data_exponent,
        "compute_exponent": found.compute_exponent,
        "boundaries": list(found.boundaries),
        "in_source_range": found.in_source_range,
        "rate_lines": list(found.rate_lines),
    }
    reasons = {}
    if found.q_memory is None:
        why = "finite bulk (alpha <= 1/4): the memory kernel has no width-independent power law"
        reasons = {"q_forcing": why, "q_memory": why}
    emit(result, options.json, reasons=reasons)
    return 0
