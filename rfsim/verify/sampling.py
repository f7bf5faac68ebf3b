"""SGD itself against the exact mean risk at a stated rate of false alarms, and against a wrong theory.

Threshold: Student's t, Bonferroni over all recorded steps, schedules and both engines, so that a correct program
fails with a probability of about 1e-3 (means of some thousand skewed risks are normal to within a factor 2 in that
tail). The seed is fixed in advance, so a run either always passes or never.
"""

from collections.abc import Iterator

import jax
import numpy as np

from rfsim.measure import agreement
from rfsim.problems import power_law
from rfsim.routes import montecarlo, recursion
from rfsim.schedules import Schedule, constant, power, wsd
from rfsim.sources import features as sources
from rfsim.spectra import Spectrum
from rfsim.verify.check import Check, above, near
from rfsim.verify.registry import SEED

_RATE = 1e-3  # family-wise, over 2 engines x 3 schedules
_STEPS = 60
_AT = np.unique(np.rint(np.geomspace(1, _STEPS, 36)).astype(int))  # at least 20 recorded steps
_RUNS = {
    "quick": {"law": 8192, "literal": 2048},
    "standard": {"law": 65536, "literal": 32768},
    "full": {"law": 524288, "literal": 131072},
}
_EPS = float(np.finfo(float).eps)


def checks(scale: str) -> Iterator[Check]:
    """Checks of the family."""
    problem = power_law(0.5, 0.3, ambient=8, noise_var=0.4)
    drawn = sources.random_features(jax.random.key(SEED + 60), problem, 5)
    system = sources.feature_spectrum(drawn)
    top = float(np.max(np.asarray(system.eigenvalues)))
    schedules = {
        "constant": constant(_STEPS, 0.5 / top, 2.0),
        "lr decay": wsd(_STEPS, 0.7 / top, 4.0, decay=0.5, shape="linear", to=0.05),
        "batch growth": power(_STEPS, 0.6 / top, 2.0, vartheta=0.7),
    }
    exact = {name: recursion.risk(system, schedule, at=_AT).risk for name, schedule in schedules.items()}
    wrong = {name: loop_risk(system, schedule, drop=True)[_AT] for name, schedule in schedules.items()}
    rebuilt = max(
        float(np.max(np.abs(loop_risk(system, schedules[name])[_AT] / exact[name] - 1.0))) for name in schedules
    )
    for number, engine in enumerate(("law", "literal")):
        source = system if engine == "law" else drawn
        right_z, wrong_z, threshold = [], [], 0.0
        runs = _RUNS[scale][engine]
        for index, (name, schedule) in enumerate(schedules.items()):
            key = jax.random.key(SEED + 61 + 10 * number + index)
            sampled = montecarlo.simulate(key, source, schedule, runs=runs, engine=engine, at=_AT)
            judged = [
                agreement(sampled.mean, theory, sampled.stderr, runs=runs, false_alarm_rate=_RATE / 6.0)
                for theory in (exact[name], wrong[name])
            ]
            threshold = max(threshold, judged[0].threshold)
            right_z.append(judged[0].max_abs_z)
            wrong_z.append(judged[1].max_abs_z)
        told = f"{runs} runs, {_AT.size} recorded steps, schedules {', '.join(schedules)}"
        yield near(
            f"montecarlo/{engine}",
            f"the mean risk of {engine} SGD is the exact risk: largest |z| within the threshold of a "
            "family-wise false-alarm "
            f"rate of {_RATE:g} ({told})",
            0.0,
            max(right_z),
            threshold,
        )
        yield above(
            f"montecarlo/{engine}-rejects-wrong",
            "the same test rejects a theory without the eta^2 l^2/B of q on every schedule (smallest of the "
            f"largest |z|; {told})",
            threshold,
            min(wrong_z),
        )
    yield near(
        "montecarlo/wrong-loop",
        "the wrong theory differs from the exact one in that term alone: with it the same loop is the "
        "recursion (relative)",
        0.0,
        rebuilt,
        (16 * _STEPS + 24) * _EPS,
    )


def loop_risk(system: Spectrum, schedule: Schedule, *, drop: bool = False) -> np.ndarray:
    """Risk at steps 0..N by a plain loop; `drop` leaves the 1/B out of q and keeps it in the injected noise."""
    lam, rho = np.asarray(system.eigenvalues), np.array(system.forcing_energy)
    floor, noise = float(system.floor), float(system.noise_var)
    risk = [floor + rho.sum()]
    for lr, batch in zip(np.asarray(schedule.lr), np.asarray(schedule.batch), strict=True):
        spread = (lr * lam) ** 2 / batch
        rho = ((1.0 - lr * lam) ** 2 + (0.0 if drop else spread)) * rho + spread * (risk[-1] + noise)
        risk.append(floor + rho.sum())
    return np.array(risk)
