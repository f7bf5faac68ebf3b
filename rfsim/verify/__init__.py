"""Theorems checked with numbers: `run` evaluates families of checks, `names` lists them.

Families, and with them jax, are imported when they are run.
"""

from rfsim.verify.check import Check
from rfsim.verify.registry import FAMILIES, SEED, Family, check_names, names
from rfsim.verify.runner import SCALES, run

__all__ = ["FAMILIES", "SCALES", "SEED", "Check", "Family", "check_names", "names", "run"]
