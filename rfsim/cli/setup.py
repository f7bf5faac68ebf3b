"""Arguments that several commands share: problem, source of the spectrum, schedule, recorded steps."""

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rfsim.checks import InputError, positive_number, whole_number
from rfsim.cli.output import warn

if TYPE_CHECKING:
    import jax
    import numpy as np

    from rfsim.exact import AnySchedule
    from rfsim.problems import Problem
    from rfsim.schedules import Schedule
    from rfsim.sources.features import Features
    from rfsim.spectra import Spectrum


SPECS = (
    "constant | wsd:decay=0.2,shape=exp|linear|sqrt,to=0.1,warmup=0.01 | 8-1-1 | stages:at=0.5/0.75,lr_to=0.1/0.01 | "
    "cosine:to=0.1 | linear:to=0.1 | exponential:to=0.1 | power:vartheta=0.5,via=lr|batch | "
    "polynomial:lr_decay=0.5,batch_growth=0.5 | batch-ramp:to=10,start=0.8 | a file with columns step,lr,batch"
)


def add_source_arguments(parser: argparse.ArgumentParser, *, spectrum_file: bool = True) -> None:
    """Problem, source of the spectrum and label noise."""
    group = parser.add_argument_group("problem")
    group.add_argument("--alpha", type=float, help="eigenvalues are j^(-2 alpha)")
    group.add_argument("--beta", type=float, help="target coefficients are j^(-beta)")
    group.add_argument("--width", type=int, metavar="M", help="number of trained features")
    group.add_argument("--ambient", metavar="V", help="ambient dimension; default 2 M, inf for the population")
    if spectrum_file:
        group.add_argument(
            "--spectrum", metavar="FILE.csv", help="columns eigenvalue,target_energy; replaces alpha, beta and width"
        )
    group.add_argument(
        "--source",
        choices=("sampled", "equivalent", "population"),
        help="sampled W (default with --width), its deterministic equivalent, or infinite width (default without)",
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="S", help="drives W and, independently, the runs; default 0"
    )
    group.add_argument("--noise-var", type=float, default=0.0, metavar="S2", help="label-noise variance; default 0")


def add_schedule_arguments(parser: argparse.ArgumentParser) -> None:
    """Schedule and recorded steps."""
    group = parser.add_argument_group("schedule")
    group.add_argument("--lr", type=float, metavar="ETA", help="learning rate (peak)")
    group.add_argument("--batch", type=float, metavar="B", help="batch size (first); inf is gradient descent")
    group.add_argument(
        "--schedule",
        default="constant",
        metavar="SPEC|FILE.csv",
        help=SPECS,
    )
    length = group.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, metavar="N", help="number of steps; records about 200 of them")
    length.add_argument("--at", metavar="t1,t2,...", help="record exactly these steps; the largest is the horizon")
    group.add_argument("--allow-unstable", action="store_true", help="run an unstable schedule and flag its overflow")


_STEPPED = 2e9  # steps times modes (and what a step costs besides) that are stepped through: some seconds


class Source(NamedTuple):
    """A spectrum and where it came from."""

    spectrum: "Spectrum"
    name: str
    problem: "Problem | None"
    width: int | None
    runs_key: "jax.Array"
    features: "Callable[[], Features]"


def read_source(options: argparse.Namespace, *, every_mode: bool = False) -> Source:
    """Make the spectrum that the options ask for; with `every_mode` no node may stand for several modes."""
    import jax

    import rfsim
    from rfsim.problems import laid_out

    seed = whole_number("seed", options.seed, least=0)
    feature_key, runs_key = jax.random.split(jax.random.key(seed))
    if getattr(options, "spectrum", None) is not None:
        _refuse(options, ("alpha", "beta", "width", "ambient", "source"), "--spectrum already gives every mode")
        spectrum = rfsim.read_spectrum(options.spectrum, noise_var=options.noise_var)
        return Source(spectrum, "file", None, None, runs_key, lambda: rfsim.aligned_features(spectrum))
    for name in ("alpha", "beta"):
        if getattr(options, name) is None:
            raise InputError(f"{name} is missing; give --alpha and --beta, or --spectrum FILE.csv")
    source = options.source or ("sampled" if options.width is not None else "population")
    if source != "population":
        if options.width is None:
            raise InputError(f"width is missing; source {source} needs --width M (number of trained features)")
        width = whole_number("width", options.width)
        ambient = 2 * width if options.ambient is None else _ambient(options.ambient)
    if source == "equivalent":
        if every_mode:
            raise InputError("source equivalent has no modes to run SGD on; use --source sampled or population")
        problem = rfsim.power_law(options.alpha, options.beta, ambient=ambient, noise_var=options.noise_var)
        spectrum = rfsim.equivalent(problem, width)
        return Source(spectrum, source, problem, width, runs_key, lambda: rfsim.aligned_features(spectrum))
    if source == "sampled":
        if ambient == math.inf:
            raise InputError("ambient is inf, but W can only be sampled with finitely many rows; give --ambient V")
        from rfsim.sources.features import require_room

        require_room(int(ambient), width)  # before the problem itself is laid out
        problem = rfsim.power_law(options.alpha, options.beta, ambient=ambient, noise_var=options.noise_var)
        spectrum = rfsim.sample_features(feature_key, problem, width)
        return Source(
            spectrum, source, problem, width, runs_key, lambda: rfsim.random_features(feature_key, problem, width)
        )
    if options.width is not None:
        warn("--width is not used by source population, which is the limit of infinite width")
    ambient = math.inf if options.ambient is None else _ambient(options.ambient)
    if every_mode:
        if ambient == math.inf:
            raise InputError(
                "ambient is inf, but SGD can only be run on finitely many modes; give --width or --ambient V"
            )
        problem = laid_out(rfsim.power_law(options.alpha, options.beta, ambient=ambient, noise_var=options.noise_var))
        spectrum = rfsim.population(problem.replace(alpha=None, beta=None))
    else:
        problem = rfsim.power_law(options.alpha, options.beta, ambient=ambient, noise_var=options.noise_var)
        spectrum = rfsim.population(problem)
    return Source(spectrum, source, problem, None, runs_key, lambda: rfsim.aligned_features(spectrum))


def read_schedule(options: argparse.Namespace) -> "tuple[Schedule, np.ndarray | None]":
    """Make the schedule that the options ask for as arrays, and the recorded steps (None: about 200 log-spaced)."""
    from rfsim.schedules import Schedule as Arrays

    schedule, at = read_any_schedule(options)
    assert isinstance(schedule, Arrays)
    return schedule, at


def read_any_schedule(
    options: argparse.Namespace, *, modes: int | None = None
) -> "tuple[AnySchedule, np.ndarray | None]":
    """Make the schedule that the options ask for, and the recorded steps (None: about 200 log-spaced ones).

    With `modes`, the number of modes that the exact risk is computed for, a schedule too long to step through comes as
    stretches or as a smooth schedule, unless --route asks for the recursion.
    """
    import numpy as np

    from rfsim import schedules

    at = None if options.at is None else _steps("at", options.at)
    horizon = None if options.steps is None else whole_number("steps", options.steps, least=0)
    if at is not None:
        horizon = int(at[-1])
    spec = options.schedule
    if is_schedule_file(spec):
        for name in ("lr", "batch"):
            if getattr(options, name) is not None:
                warn(f"--{name} is not used: the schedule file has its own {name} for every step")
        schedule = schedules.read_schedule(spec)
        if horizon is not None and horizon > schedule.steps:
            asked = "at" if at is not None else "steps"
            raise InputError(
                f"{asked} asks for step {horizon} but {spec} has {schedule.steps} rows and so allows steps "
                f"0..{schedule.steps}; lengthen the file or ask within"
            )
        return schedule.part(0, schedule.steps if horizon is None else horizon), at
    for name in ("lr", "batch"):
        if getattr(options, name) is None:
            raise InputError(
                f"{name} is missing; give --lr and --batch, or --schedule FILE.csv with columns step,lr,batch"
            )
    lr, batch = positive_number("lr", options.lr), positive_number("batch", options.batch, allow_inf=True)
    if horizon is None:
        raise InputError("steps is missing; give --steps N, or --at t1,t2,... for chosen steps")
    route = getattr(options, "route", "recursion")
    if modes is not None and (route == "jump" or (route == "auto" and horizon * (modes + 500.0) > _STEPPED)):
        from rfsim.smooth import long_from_spec

        long = long_from_spec(spec, steps=horizon, lr=lr, batch=batch)
        if long is not None:
            return long, None if at is None else np.asarray(at)
    schedule = schedules.from_spec(spec, steps=horizon, lr=lr, batch=batch)
    return schedule, None if at is None else np.asarray(at)


def is_schedule_file(spec: str) -> bool:
    """True if a schedule is given as a file, not as a SPEC."""
    if Path(spec).is_dir():
        raise InputError(
            f"schedule {spec} is a folder; give a CSV file with columns step,lr,batch, or a named schedule"
        )
    return spec.lower().endswith(".csv") or Path(spec).is_file()


def parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The options as they came, for the record."""
    given = {name: value for name, value in vars(options).items() if name not in ("command", "json")}
    return {name: "inf" if value == math.inf else value for name, value in given.items()}


@contextmanager
def told_warnings(collected: list[str]) -> Iterator[None]:
    """Print warnings of the library on stderr in one line each, and collect them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        warn(str(one.message))
        collected.append(str(one.message))


def _ambient(text: str) -> int | float:
    if text.strip().lower() in ("inf", "infinity"):
        return math.inf
    try:
        return whole_number("ambient", int(text))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"ambient must be a whole number or inf, got {text!r}") from error


def _steps(name: str, text: str) -> "np.ndarray":
    """Parse `0,10,1000` into sorted different whole steps."""
    import numpy as np

    steps = set()
    for item in text.split(","):
        number: int | float
        try:
            number = int(item) if item.strip().lstrip("+-").isdigit() else float(item)
        except ValueError as error:
            raise InputError(f"{name} must list whole steps such as 0,10,1000; got {item[:40]!r}") from error
        steps.add(whole_number(name, number, least=0))
    return np.array(sorted(steps), dtype=np.int64)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    given = [f"--{name}" for name in names if getattr(options, name) is not None]
    if given:
        raise InputError(f"{', '.join(given)} cannot be combined with --spectrum: {why}; drop one of them")
