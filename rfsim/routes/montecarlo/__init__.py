"""Monte-Carlo SGD: the literal algorithm, and a shortcut with exactly its law."""

from rfsim.routes.montecarlo.ensemble import Ensemble
from rfsim.routes.montecarlo.runs import simulate

__all__ = ["Ensemble", "simulate"]
