"""Training logs: losses at steps and the schedule of every step, read from what trackers and scripts write.

A log becomes a `Run`: rows of (step, loss), the learning rate and batch size of all steps, and one line for each thing
that was found in the log and what was done about it.
"""

from rfsim.logs.record import Run, noise_floor, run

__all__ = ["Run", "noise_floor", "run"]
