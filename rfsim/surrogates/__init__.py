"""Laws for measured loss curves: fit one schedule, predict another, with an error bar.

`law` names a form, `fit` fits it to runs, and the `FitResult` predicts.
"""

from rfsim.surrogates.fitting import FitWarning, fit
from rfsim.surrogates.forcing_memory import ForcingMemory
from rfsim.surrogates.laws import Law, Parameter, law, law_names, law_record
from rfsim.surrogates.result import FitResult, Prediction, RunRecord

__all__ = [
    "FitResult",
    "FitWarning",
    "ForcingMemory",
    "Law",
    "Parameter",
    "Prediction",
    "RunRecord",
    "fit",
    "law",
    "law_names",
    "law_record",
]
