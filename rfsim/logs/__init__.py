"""Training logs: losses at steps and the schedule of every step, read from what trackers and scripts write.

A log becomes a `Run`: rows of (step, loss), the learning rate and batch size of all steps, and one line for each thing
that was found in the log and what was done about it.
"""

from rfsim.logs.formats import Log, Table, read_log
from rfsim.logs.norms import NormModel, weight_decay_norm
from rfsim.logs.read import read_run
from rfsim.logs.read_many import read_runs
from rfsim.logs.recognise import recognise
from rfsim.logs.record import Run, noise_floor, run
from rfsim.logs.shapes import Shape, Warmup

__all__ = [
    "Log",
    "NormModel",
    "Run",
    "Shape",
    "Table",
    "Warmup",
    "noise_floor",
    "read_log",
    "read_run",
    "read_runs",
    "recognise",
    "run",
    "weight_decay_norm",
]
