"""`simulate`: chunks of runs, stretches of steps, statistics."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import numpy as np

from rfsim.checks import InputError, RunError, one_of, whole_number
from rfsim.precision import is_traced, jnp, require_float64
from rfsim.routes.montecarlo import law, literal
from rfsim.routes.montecarlo.checkpoints import Checkpoint, fingerprint
from rfsim.routes.montecarlo.ensemble import Ensemble, mean_and_error
from rfsim.routes.montecarlo.stretches import check_batches, stretches
from rfsim.schedules import Schedule, intrinsic_time, recorded_steps
from rfsim.sources.features import Features, aligned_features, check_key, feature_spectrum
from rfsim.spectra import Spectrum

ENGINES = ("law", "literal")
DRAWS = ("float64", "float32")
_MEMORY = 256 * 2**20  # bytes that a chunk of runs may keep alive
_CPU_CACHE = {"law": 2 * 2**20, "literal": 32 * 2**20}  # on a CPU runs are faster while their draws stay in cache


def simulate(
    key: jax.Array,
    source: Spectrum | Features,
    schedule: Schedule,
    *,
    runs: int,
    engine: str = "law",
    at: object = None,
    draws: str = "float64",
    chunk: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Ensemble:
    """Risk of independent SGD runs at recorded steps, R = ||Lambda^(1/2) (W a_t - theta*)||^2 for every run.

    Gaussian inputs and Gaussian label noise of variance sigma^2. Run i uses `fold_in(key, i)` and its step t the key
    folded with t, so a run depends on nothing but `key`, i, source, schedule, engine and draws: not on the number of
    runs, the chunks, the horizon, the recorded steps or an interruption (to rounding of sums).

    Parameters
    ----------
    key : jax random key of the threefry kind (the default).
    source : a Spectrum of real modes of multiplicity one, or Features. Each engine turns one into the other if needed.
    schedule : N steps; batches are whole numbers, or inf for gradient descent.
    runs : number of runs.
    engine : "law" moves the error vector by its exact law, O(modes) a step whatever the batch and ambient dimension;
        "literal" draws inputs and labels, forms features and takes the gradient.
    at : recorded steps in 0..N, strictly increasing; default about 200 log-spaced ones with 0 and N.
    draws : "float32" draws Gaussians in float32 (tails end near 5.4 deviations); all arithmetic stays float64.
    chunk : runs at once; default so that a chunk keeps at most 256 MiB alive (less on a CPU, for its caches).
    checkpoint : file for the runs finished so far, written whole or not at all after every chunk of runs; less often if
        writing would take over 5 % of the time, but always at the end and at an interruption. A file of the same call
        is resumed; it is never deleted.
    progress : called with (finished runs, runs) after every chunk.

    Returns
    -------
    Ensemble of k recorded steps. A run that leaves the float64 range has risk inf from there on, never NaN.

    Raises
    ------
    InputError : for bad arguments, a spectrum no SGD run has, fractional batches, or a checkpoint of other runs.
    RunError : inside jit, vmap or grad; or if the checkpoint cannot be written.
    """
    require_float64()
    if is_traced(key, source, schedule):
        raise RunError("simulate cannot run inside jit, vmap or grad; it is compiled and vectorised over runs itself")
    key = _threefry_key(key)
    runs = whole_number("runs", runs)
    one_of("engine", engine, ENGINES)
    one_of("draws", draws, DRAWS)
    check_batches(schedule)
    steps = recorded_steps(at, schedule.steps)
    start, advance, bytes_per_run = _engine(engine, source, schedule, single=draws == "float32")
    size = _chunk_size(chunk, runs, engine, bytes_per_run)

    samples = np.empty((runs, len(steps)))
    done = 0
    store = None
    if checkpoint is not None:
        marks = {"key": jax.random.key_data(key), "source": source, "schedule": schedule, "at": steps}
        store = Checkpoint(checkpoint, fingerprint(**marks, engine=engine, draws=draws, runs=runs))
        finished = store.load()
        if finished is not None:
            done = len(finished)
            samples[:done] = finished
    try:
        while done < runs:
            stop = min(done + size, runs)
            samples[done:stop] = _run_chunk(key, done, size, start, advance, schedule, steps)[: stop - done]
            done = stop
            if store is not None:
                store.save(samples[:done])
            if progress is not None:
                progress(done, runs)
    finally:
        if store is not None:
            store.close()
    mean, error = mean_and_error(samples)
    return Ensemble(steps, intrinsic_time(schedule.lr)[steps], mean, error, samples, runs, engine)


def _threefry_key(key: jax.Array) -> jax.Array:
    """Return `key` as a typed key, or raise InputError: other generators give vectorised runs other numbers."""
    check_key(key)
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        typed = key
    else:
        try:
            typed = jax.random.wrap_key_data(key, impl="threefry2x32")
        except (TypeError, ValueError) as error:
            raise InputError(f"key must be one jax random key, got {key.shape}; pass jax.random.key(seed)") from error
    if str(jax.random.key_impl(typed)) != "threefry2x32":
        raise InputError(
            f"key must be of the threefry2x32 kind, got {jax.random.key_impl(typed)}: with other kinds a run would "
            f"depend on how many run beside it; pass jax.random.key(seed, impl='threefry2x32')"
        )
    return typed


def _engine(
    engine: str, source: Spectrum | Features, schedule: Schedule, *, single: bool
) -> tuple[Callable[[int], jax.Array], Callable[..., tuple[jax.Array, jax.Array]], int]:
    """How this engine starts and advances runs of the source, and the bytes that one run takes."""
    if not isinstance(source, Spectrum | Features):
        raise InputError(f"source must be a Spectrum or Features, got {type(source).__name__}; see sample_features")
    if engine == "law":
        spectrum = source if isinstance(source, Spectrum) else feature_spectrum(source)
        model = law.law_model(spectrum)
        placed = jax.tree.map(jnp.asarray, model)
        return partial(law.start, placed), partial(law.advance, placed, single=single), law.bytes_per_run(model)
    literal.check_sizes(np.asarray(schedule.batch))
    if isinstance(source, Spectrum):
        law.law_model(source)  # the same spectra are refused
        source = aligned_features(source)
    model_ = literal.literal_model(source)
    placed_ = jax.tree.map(jnp.asarray, model_)
    advance = partial(literal.advance, placed_, single=single, sizes=literal.pieces(model_))
    return partial(literal.start, placed_), advance, literal.bytes_per_run(model_)


def _chunk_size(chunk: int | None, runs: int, engine: str, bytes_per_run: int) -> int:
    """Runs at once: what the memory allows, spread evenly over the chunks that are needed."""
    if chunk is not None:
        return min(whole_number("chunk", chunk), runs)
    room = _CPU_CACHE[engine] if jax.default_backend() == "cpu" else _MEMORY
    most = max(1, room // bytes_per_run)
    return -(-runs // -(-runs // most))


@partial(jax.jit, static_argnames="size")
def _run_keys(key: jax.Array, first: jax.Array, size: int) -> jax.Array:
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, first + jnp.arange(size, dtype=jnp.uint32))


def _run_chunk(
    key: jax.Array,
    first: int,
    size: int,
    start: Callable[[int], jax.Array],
    advance: Callable[..., tuple[jax.Array, jax.Array]],
    schedule: Schedule,
    steps: np.ndarray,
) -> np.ndarray:
    """Risk (size, k) of runs first..first+size-1."""
    keys = _run_keys(key, np.uint32(first), size)
    states = start(size)
    recorded = np.empty((size, len(steps)))
    for stretch, place in stretches(schedule, steps):
        states, records = advance(keys, states, stretch)
        if place.stop > place.start:
            recorded[:, place] = np.asarray(records)[:, : place.stop - place.start]
    gone = np.logical_or.accumulate(np.isinf(recorded), axis=1)
    return np.where(gone, np.inf, recorded)
