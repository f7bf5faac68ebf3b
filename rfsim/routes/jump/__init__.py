"""Jump route: closed forms across stretches of constant lr and batch, any number of steps in one go.

`risk` and `evolve` take a Schedule or Stretches, `minimum` finds the best stopping time of a constant schedule,
`smooth_risk` follows a smooth schedule over horizons that no loop over steps could reach. It needs real modes with
multiplicity >= 0.
"""

from rfsim.routes.jump.long import SmoothRun, smooth_risk
from rfsim.routes.jump.minima import Minimum, minimum
from rfsim.routes.jump.walk import evolve, risk

__all__ = ["Minimum", "SmoothRun", "evolve", "minimum", "risk", "smooth_risk"]
