"""Joint schedules: learning rate and batch size of every step, and the clock they define.

Step t (0-based) uses lr[t] and the mean over batch[t] fresh samples; a schedule of N entries allows steps 0..N.
"""

from rfsim.schedules.clock import intrinsic_time, log_spaced_steps, recorded_steps
from rfsim.schedules.files import from_callable, read_schedule, write_schedule
from rfsim.schedules.pairs import Pair, pair
from rfsim.schedules.paths import Clock, Path, PathDistance, path, path_distance, power_clock, sgd_clock
from rfsim.schedules.powers import polynomial, power
from rfsim.schedules.record import Array, Schedule, from_arrays, is_constant, join, require_steps
from rfsim.schedules.shapes import _length as _length
from rfsim.schedules.shapes import (
    batch_ramp,
    constant,
    cosine,
    eight_one_one,
    exponential,
    linear,
    stages,
    warmed,
    wsd,
)
from rfsim.schedules.spec import from_spec, read_spec

__all__ = [
    "Array",
    "Clock",
    "Pair",
    "Path",
    "PathDistance",
    "Schedule",
    "batch_ramp",
    "constant",
    "cosine",
    "eight_one_one",
    "exponential",
    "from_arrays",
    "from_callable",
    "from_spec",
    "intrinsic_time",
    "is_constant",
    "join",
    "linear",
    "log_spaced_steps",
    "pair",
    "path",
    "path_distance",
    "polynomial",
    "power",
    "power_clock",
    "read_schedule",
    "read_spec",
    "recorded_steps",
    "require_steps",
    "sgd_clock",
    "stages",
    "warmed",
    "write_schedule",
    "wsd",
]
