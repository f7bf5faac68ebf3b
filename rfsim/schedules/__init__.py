"""Joint schedules: learning rate and batch size of every step, and the clock they define.

Step t (0-based) uses lr[t] and the mean over batch[t] fresh samples; a schedule of N entries allows steps 0..N.
"""

from rfsim.schedules.clock import intrinsic_time, log_spaced_steps, recorded_steps
from rfsim.schedules.files import from_callable, read_schedule
from rfsim.schedules.record import Array, Schedule, from_arrays, is_constant, require_steps
from rfsim.schedules.shapes import _length as _length
from rfsim.schedules.shapes import constant, cosine, eight_one_one, power, wsd
from rfsim.schedules.spec import from_spec

__all__ = [
    "Array",
    "Schedule",
    "constant",
    "cosine",
    "eight_one_one",
    "from_arrays",
    "from_callable",
    "from_spec",
    "intrinsic_time",
    "is_constant",
    "log_spaced_steps",
    "power",
    "read_schedule",
    "recorded_steps",
    "require_steps",
    "wsd",
]
