"""Laws for measured loss curves: fit one schedule, predict another, with an error bar.

`law` names a form, `fit` fits it to runs, and the `FitResult` predicts.
"""

from rfsim.surrogates.comparison import Comparison, compare
from rfsim.surrogates.final_loss import FinalLoss, points, read_points
from rfsim.surrogates.final_loss_fit import fit_points
from rfsim.surrogates.fitting import fit
from rfsim.surrogates.forcing_memory import ForcingMemory
from rfsim.surrogates.functional_scaling import FunctionalScaling
from rfsim.surrogates.laws import Law, Parameter, law, law_names, law_record
from rfsim.surrogates.momentum import Momentum
from rfsim.surrogates.multi_power import MultiPower
from rfsim.surrogates.rate_scaling import EffectiveRateScaling, RateScaling
from rfsim.surrogates.result import FitResult, Prediction
from rfsim.surrogates.run_record import RunRecord
from rfsim.surrogates.schedule_design import Design, design
from rfsim.surrogates.synthetic import log_of_law, training_log, write_log
from rfsim.surrogates.uncertainty import FitWarning

__all__ = [
    "Comparison",
    "Design",
    "EffectiveRateScaling",
    "FinalLoss",
    "FitResult",
    "FitWarning",
    "ForcingMemory",
    "FunctionalScaling",
    "Law",
    "Momentum",
    "MultiPower",
    "Parameter",
    "Prediction",
    "RateScaling",
    "RunRecord",
    "compare",
    "design",
    "fit",
    "fit_points",
    "law",
    "law_names",
    "law_record",
    "log_of_law",
    "points",
    "read_points",
    "training_log",
    "write_log",
]
