"""rfsim: the reference simulator for SGD learning curves on Gaussian random features.

Names are loaded on first use, so that `import rfsim` and `rfsim --help` do not import jax. Importing rfsim switches
float64 on (also for a jax that is imported later) unless the environment says JAX_ENABLE_X64=0, in which case exact
functions refuse to run.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from rfsim.version import __version__

if TYPE_CHECKING:
    from rfsim import logs as logs
    from rfsim import schedules as schedules
    from rfsim import surrogates as surrogates
    from rfsim.checks import InputError as InputError
    from rfsim.checks import RunError as RunError
    from rfsim.curves import Curve as Curve
    from rfsim.exact import StabilityWarning as StabilityWarning
    from rfsim.exact import risk as risk
    from rfsim.gap_laws import gap_law as gap_law
    from rfsim.gap_laws import schedule_effect as schedule_effect
    from rfsim.measure import fit_exponent as fit_exponent
    from rfsim.measure import local_exponents as local_exponents
    from rfsim.measure import power_window as power_window
    from rfsim.problems import Problem as Problem
    from rfsim.problems import power_law as power_law
    from rfsim.problems import problem as problem
    from rfsim.regimes import regime as regime
    from rfsim.response import small_noise_response as small_noise_response
    from rfsim.routes.montecarlo import Ensemble as Ensemble
    from rfsim.routes.montecarlo import simulate as simulate
    from rfsim.routes.recursion import row_mass as row_mass
    from rfsim.routes.recursion import terminal_risk as terminal_risk
    from rfsim.routes.volterra import kernel as kernel
    from rfsim.schedules import Schedule as Schedule
    from rfsim.sources.equivalent import equivalent as equivalent
    from rfsim.sources.features import Features as Features
    from rfsim.sources.features import aligned_features as aligned_features
    from rfsim.sources.features import feature_spectrum as feature_spectrum
    from rfsim.sources.features import random_features as random_features
    from rfsim.sources.features import sample_features as sample_features
    from rfsim.sources.population import population as population
    from rfsim.spectra import Spectrum as Spectrum
    from rfsim.spectra import read_spectrum as read_spectrum
    from rfsim.spectra import spectrum as spectrum
    from rfsim.stationary import kappa as kappa
    from rfsim.stationary import limiting_risk as limiting_risk
    from rfsim.stationary import lr_limit as lr_limit

_HOMES = {
    "checks": ("InputError", "RunError"),
    "problems": ("Problem", "power_law", "problem"),
    "schedules": ("Schedule",),
    "spectra": ("Spectrum", "read_spectrum", "spectrum"),
    "curves": ("Curve",),
    "regimes": ("regime",),
    "gap_laws": ("gap_law", "schedule_effect"),
    "measure": ("fit_exponent", "local_exponents", "power_window"),
    "sources.features": (
        "Features",
        "aligned_features",
        "feature_spectrum",
        "random_features",
        "sample_features",
    ),
    "sources.equivalent": ("equivalent",),
    "sources.population": ("population",),
    "stationary": ("kappa", "limiting_risk", "lr_limit"),
    "routes.recursion": ("row_mass", "terminal_risk"),
    "routes.volterra": ("kernel",),
    "routes.montecarlo": ("Ensemble", "simulate"),
    "exact": ("StabilityWarning", "risk"),
    "response": ("small_noise_response",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

_PACKAGES = ("logs", "schedules", "surrogates")

__all__ = ["__version__", *_PACKAGES, *sorted(_HOME_OF)]

if os.environ.setdefault("JAX_ENABLE_X64", "1") == "1" and "jax" in sys.modules:
    importlib.import_module("rfsim.precision")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"rfsim.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rfsim' has no attribute {name!r}; public names are {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"rfsim.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
