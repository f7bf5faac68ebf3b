"""Small-noise response: enumerated noise as exact witness, orders of the remainder, the linear identity, sampling.

Noise with finitely many values is enumerated, so those expectations are exact and no tolerance hides a wrong constant.
"""

from functools import lru_cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import every_step, random_case
from jax.flatten_util import ravel_pytree
from scipy import special

import rfsim
from rfsim import schedules
from rfsim.checks import InputError, RunError
from rfsim.measure import agreement
from rfsim.response import linear_response, probed_response, response_kernel, second_order, small_noise_response
from rfsim.routes import recursion

FALSE_ALARM = 1e-4  # of each sampled test


# --- models ----------------------------------------------------------------------------------------------------------


def quartic(x):
    return 0.25 * x**4 - 0.3 * x**3 + 0.5 * x**2


def slope(x):
    return x**3 - 0.9 * x**2 + x


def curve(x):
    return 3 * x**2 - 1.8 * x + 1


def draws(seed=3, examples=12):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((examples, 2))
    labels = np.sin(2.0 * inputs.sum(axis=1)) + 0.3 * rng.standard_normal(examples)
    network = {
        "in": rng.standard_normal((3, 2)),
        "bias": 0.3 * rng.standard_normal(3),
        "out": rng.standard_normal(3),
    }
    return network, (inputs, labels)


NETWORK, DATA = draws()
HELD_OUT = draws(4, 7)[1]
FLAT, UNFLATTEN = ravel_pytree(NETWORK)


def fit(network, example):
    x, y = example
    return 0.5 * (jnp.vdot(network["out"], jnp.tanh(network["in"] @ x + network["bias"])) - y) ** 2


def held_out(network):
    return jnp.mean(jax.vmap(lambda x, y: fit(network, (x, y)))(*HELD_OUT))


def mean_loss(network):
    return jnp.mean(jax.vmap(lambda x, y: fit(network, (x, y)))(*DATA))


SCHEDULE = schedules.from_arrays(np.linspace(0.7, 0.4, 9), np.array([4, 9, 2, 30, 5, 8, 3, 12, 6]))


LOSS, HELD = (lambda theta, f=f: f(UNFLATTEN(theta)) for f in (mean_loss, held_out))


@jax.jit
def dense(theta):
    """Gradient, Hessian, third derivatives and example gradients of the loss; two derivatives of the held-out one."""
    rows = jax.vmap(lambda x, y: jax.grad(lambda point: fit(UNFLATTEN(point), (x, y)))(theta))(*DATA)
    hessian = jax.hessian(LOSS)
    training = jax.grad(LOSS)(theta), hessian(theta), jax.jacfwd(hessian)(theta), rows
    return *training, jax.grad(HELD)(theta), jax.hessian(HELD)(theta)


def literal_kernel(n, lr, *, drift=True):
    """Row n of K for the held-out loss, from dense matrices backwards from step n; `drift` False leaves it out.

    Hess G_s = J^T Hess G_{s+1} J - eta_s D^3 L . grad G_{s+1} with J = 1 - eta_s Hess L, everything at theta_s.
    """
    path = [FLAT]
    for eta in lr:
        path.append(path[-1] - eta * dense(path[-1])[0])
    gradient, form = (np.asarray(found) for found in dense(path[n])[4:])
    row = np.zeros(n)
    for s in reversed(range(n)):
        _, hessian, third, rows, *_ = (np.asarray(found) for found in dense(path[s]))
        row[s] = 0.5 * np.sum(np.cov(rows.T, bias=True) * form)
        jacobian = np.eye(FLAT.size) - lr[s] * hessian
        form = jacobian.T @ form @ jacobian - (lr[s] * third @ gradient if drift else 0.0)
        gradient = jacobian.T @ gradient
    return row


@lru_cache
def moments():
    return small_noise_response(fit, NETWORK, SCHEDULE, data=DATA, validation=held_out, trace="moments")


@lru_cache
def kernel():
    return response_kernel(fit, NETWORK, SCHEDULE, data=DATA, validation=held_out)


# --- orders of the remainder -----------------------------------------------------------------------------------------

LR, STEPS, START = 0.15, 4, 0.9
SYMMETRIC = (np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
SKEWED = (np.array([2.0, -0.5]), np.array([0.2, 0.8]))  # mean 0, variance 1, third moment 1.5


def enumerated(law, scale, spread=lambda x: 1.0):
    """E quartic(x_n) over all sequences of noise scale * spread(x) * (a value of the law), n = 4."""
    values, chances = law
    total = 0.0
    for sequence in product(range(len(values)), repeat=STEPS):
        x, weight = START, 1.0
        for which in sequence:
            x = x - LR * (slope(x) + scale * spread(x) * values[which])
            weight *= chances[which]
        total += weight * quartic(x)
    return total


def expanded(scales, spread=lambda x: 1.0, value=quartic):
    schedule = schedules.constant(STEPS, LR, 1)

    def one(scale):
        def covariance(x, direction):
            return (scale * spread(x)) ** 2 * direction

        return small_noise_response(quartic, START, schedule, covariance=covariance, validation=value, at=[STEPS]).total

    return np.array(jax.vmap(one)(jnp.asarray(scales)))[:, 0]


def uneven(x):
    return 1.0 + 0.4 * x**2


@pytest.mark.parametrize(
    ("law", "spread", "order"),
    [(SYMMETRIC, lambda x: 1.0, 4), (SKEWED, lambda x: 1.0, 3), (SYMMETRIC, uneven, 4), (SKEWED, uneven, 3)],
    ids=["symmetric", "skewed", "symmetric-uneven", "skewed-uneven"],
)
def test_remainder_on_a_quartic_has_the_order_of_the_theory(law, spread, order):
    scales = 2.0 ** -np.arange(1, 8)
    exact = np.array([enumerated(law, scale, spread) for scale in scales])
    error = np.abs(exact - expanded(scales, spread))
    orders = np.log2(error[:-1] / error[1:])
    # the next term is smaller by one power (two if symmetric) of the scale, so orders approach their limit
    reached = orders[error[1:] > 1e-13]
    assert len(reached) >= 3
    np.testing.assert_allclose(reached[-1], order, atol=0.06)
    assert np.abs(reached[-1] - order) <= np.abs(reached[0] - order) + 1e-3


def test_without_curvature_drift_the_quartic_is_wrong_at_second_order():
    scales = 2.0 ** -np.arange(4, 8)
    path = [START]
    for _ in range(STEPS):
        path.append(path[-1] - LR * slope(path[-1]))
    gauss_newton = 0.0
    for s in range(STEPS):
        decay = np.prod([1 - LR * curve(path[u]) for u in range(s + 1, STEPS)])
        gauss_newton += LR**2 * 0.5 * curve(path[-1]) * decay**2
    exact = np.array([enumerated(SYMMETRIC, scale) for scale in scales])
    error = np.abs(exact - quartic(path[-1]) - scales**2 * gauss_newton)
    np.testing.assert_allclose(np.log2(error[:-1] / error[1:]), 2.0, atol=0.02)


WEIGHTS = np.array([2.0, -0.5, -1.5])  # mean 0, third moment not


def mixed(network, example):
    """Mean over the three examples is a common loss whatever the scale; the gradients differ in all parameters."""
    weight, scale = example
    return mean_loss(network) + scale * weight * jnp.sum(jnp.sin(ravel_pytree(network)[0]) ** 2)


def test_remainder_of_a_network_trained_on_batches_shrinks_as_the_cube():
    batch, lr = np.array([1, 2, 1, 2]), np.array([0.3, 0.2, 0.25, 0.15])
    schedule = schedules.from_arrays(lr, batch)
    choices = [list(product(range(3), repeat=size)) for size in batch]
    sequences = np.array([[WEIGHTS[list(one)].mean() for one in path] for path in product(*choices)])
    assert len(sequences) == 729

    def gradients(theta):
        return jax.grad(lambda t: mean_loss(UNFLATTEN(t)))(theta), jnp.sin(2.0 * theta)

    @jax.jit
    def literal(scale):
        def run(weights):
            theta = FLAT
            for t in range(len(lr)):
                common, apart = gradients(theta)
                theta = theta - lr[t] * (common + scale * weights[t] * apart)
            return mean_loss(UNFLATTEN(theta))

        return jnp.mean(jax.vmap(run)(jnp.asarray(sequences)))

    @jax.jit
    def expansion(scale):
        data = (jnp.asarray(WEIGHTS), jnp.broadcast_to(scale, (3,)))
        return small_noise_response(mixed, NETWORK, schedule, data=data, at=[4]).total[0]

    scales = 2.0 ** -np.arange(2, 8)
    error = np.array([abs(float(literal(s)) - float(expansion(s))) for s in scales])
    assert error[-1] > 1e-13
    orders = np.log2(error[:-1] / error[1:])
    np.testing.assert_allclose(orders[-1], 3.0, atol=0.06)


# --- the linear model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("whole", [True, False])
def test_linear_identity_is_the_exact_risk(seed, whole):
    case = random_case(seed, modes=5, steps=40, multiplicity=seed % 2 == 1, whole_batches=whole)
    at = every_step(case.schedule)
    exact = recursion.risk(case.spectrum, case.schedule, at=at)
    found = linear_response(case.spectrum, case.schedule, at=at)
    np.testing.assert_allclose(found.total, exact.risk, rtol=1e-12)
    np.testing.assert_allclose(found.intrinsic_time, exact.intrinsic_time, rtol=1e-15)
    lam, energy = np.asarray(case.spectrum.eigenvalues), np.asarray(case.spectrum.forcing_energy)
    decay = np.cumprod(np.vstack([np.ones_like(lam), (1 - case.schedule.lr[:, None] * lam) ** 2]), axis=0)
    np.testing.assert_allclose(found.baseline, case.spectrum.floor + decay @ energy, rtol=1e-12)
    # the baseline is noise-free gradient descent and not the forcing, whose factors are larger
    assert (np.asarray(exact.forcing) > found.baseline + 1e-12)[1:].any()
    np.testing.assert_array_equal(found.total, found.baseline + found.noise)


def linear_model(seed=5, ambient=7, width=4):
    rng = np.random.default_rng(seed)
    problem = rfsim.problem(rng.uniform(0.1, 1.0, ambient), rng.standard_normal(ambient), noise_var=0.4)
    features = rfsim.random_features(jax.random.key(seed), problem, width)
    root = np.sqrt(np.asarray(problem.eigenvalues))
    half, goal = root[:, None] * np.asarray(features.weights), root * np.asarray(problem.target)

    def risk(a):
        return jnp.sum(jnp.square(half @ a - goal))

    def loss(a):
        return 0.5 * risk(a)

    def covariance(a, direction):
        """Gaussian fourth moments: (|e|^2 + sigma^2) W^T Lambda W + g g^T with g = W^T Lambda^(1/2) e."""
        gradient = half.T @ (half @ a - goal)
        return (risk(a) + 0.4) * (half.T @ (half @ direction)) + jnp.vdot(gradient, direction) * gradient

    return rfsim.feature_spectrum(features), risk, loss, covariance


def test_general_machinery_on_the_linear_model():
    spectrum, risk, loss, covariance = linear_model()
    top = float(np.max(spectrum.eigenvalues))
    lr = np.random.default_rng(1).uniform(0.1, 0.9, 25) / top
    batch = np.random.default_rng(2).integers(2, 12, 25)
    schedule = schedules.from_arrays(lr, batch)
    at = every_step(schedule)
    found = small_noise_response(loss, np.zeros(4), schedule, covariance=covariance, validation=risk, at=at)
    frozen = linear_response(spectrum, schedule, at=at, frozen=True)
    np.testing.assert_allclose(found.baseline, frozen.baseline, rtol=1e-12)
    np.testing.assert_allclose(found.noise, frozen.noise, rtol=1e-12, atol=1e-14)
    exact = recursion.risk(spectrum, schedule, at=at).risk
    np.testing.assert_allclose(found.total[:2], exact[:2], rtol=1e-12)  # nothing is frozen before the first step
    # the loss 1/2 e^T H e is half the risk
    half = small_noise_response(loss, np.zeros(4), schedule, covariance=covariance, at=at)
    np.testing.assert_allclose(2.0 * half.total, found.total, rtol=1e-12)
    # freezing costs order four in the noise scale: second order in 1/B
    missing = []
    for growth in (1e3, 2e3, 4e3):
        larger = schedule.replace(batch=batch * growth)
        truth = linear_response(spectrum, larger, at=[25]).noise[0]
        missing.append(truth - linear_response(spectrum, larger, at=[25], frozen=True).noise[0])
    np.testing.assert_allclose(np.log2(np.array(missing[:-1]) / missing[1:]), 2.0, atol=0.01)


def test_a_response_to_gradient_descent_is_nothing():
    case = random_case(3, modes=3, steps=8)
    schedule = case.schedule.replace(batch=np.inf)
    found = linear_response(case.spectrum, schedule)
    np.testing.assert_array_equal(found.noise, 0.0)
    np.testing.assert_allclose(found.total, recursion.risk(case.spectrum, schedule).risk, rtol=1e-13)
    still = small_noise_response(fit, NETWORK, SCHEDULE.replace(batch=np.inf), data=DATA, validation=held_out)
    np.testing.assert_array_equal(still.noise, 0.0)
    np.testing.assert_array_equal(still.total, moments().baseline)


# --- a small network -------------------------------------------------------------------------------------------------


def test_kernel_is_the_trace_with_the_hessian_of_the_composed_map():
    lr = np.asarray(SCHEDULE.lr)
    for n in (1, 4, 9):
        np.testing.assert_allclose(kernel()[n, :n], literal_kernel(n, lr), rtol=1e-11)
        np.testing.assert_array_equal(kernel()[n, n:], 0.0)
    plain = literal_kernel(9, lr, drift=False)
    assert np.max(np.abs(plain[:-1] / kernel()[9, :8] - 1.0)) > 0.3  # drift matters here
    np.testing.assert_allclose(plain[-1], kernel()[9, 8], rtol=1e-11)  # nothing is composed after the last step

    def two_more_steps(theta):
        for u in (1, 2):
            theta = theta - lr[u] * jax.grad(LOSS)(theta)
        return HELD(theta)

    after = FLAT - lr[0] * dense(FLAT)[0]
    form, rows = jax.jit(jax.hessian(two_more_steps))(after), dense(FLAT)[3]
    np.testing.assert_allclose(0.5 * np.sum(np.cov(rows.T, bias=True) * form), kernel()[3, 0], rtol=1e-11)


def test_three_ways_to_the_trace_agree():
    found = moments()
    weights = np.asarray(SCHEDULE.lr) ** 2 / np.asarray(SCHEDULE.batch)
    np.testing.assert_allclose(found.noise, kernel() @ weights, rtol=1e-12, atol=1e-15)
    some = small_noise_response(fit, NETWORK, SCHEDULE, data=DATA, validation=held_out, at=[0, 3, 9], trace="columns")
    np.testing.assert_array_equal(some.step, [0, 3, 9])
    np.testing.assert_allclose(some.noise, found.noise[[0, 3, 9]], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(some.baseline, found.baseline[[0, 3, 9]], rtol=1e-14)
    np.testing.assert_array_equal(some.stderr, 0.0)
    # more probes keep the earlier ones; each is unbiased: z-test over the recorded steps
    probed = probed_response(jax.random.key(7), fit, NETWORK, SCHEDULE, data=DATA, validation=held_out, probes=3008)
    judged = agreement(probed.noise, found.noise, probed.stderr, runs=3008, false_alarm_rate=FALSE_ALARM)
    assert judged.passed, judged
    assert judged.points == 9
    assert (probed.stderr[1:] < 0.1 * np.abs(found.noise[1:])).all()
    np.testing.assert_allclose(probed.baseline, found.baseline, rtol=1e-14)
    assert not agreement(probed.noise, 1.1 * found.noise, probed.stderr, runs=3008, false_alarm_rate=FALSE_ALARM).passed


def valley(network):
    return jnp.sum(jnp.cos(network["a"]) * jnp.square(network["b"])) + 0.1 * jnp.sum(network["a"]) ** 2


def mixing(network, direction):
    """Sigma = 0.2 + g g^T with g = sin of the flat parameters: neither diagonal nor constant."""
    flat, unflatten = ravel_pytree(network)
    d = ravel_pytree(direction)[0]
    return unflatten(0.2 * d + jnp.vdot(jnp.sin(flat), d) * jnp.sin(flat))


def test_a_covariance_given_as_an_operator():
    start = {"a": np.array([0.4, -0.9]), "b": np.array([1.1, 0.7])}
    schedule = SCHEDULE.replace(lr=np.linspace(0.3, 0.1, 9))
    given = {"covariance": mixing, "at": [1, 2, 9]}
    exact = small_noise_response(valley, start, schedule, trace="moments", **given)
    columns = small_noise_response(valley, start, schedule, trace="columns", **given)
    np.testing.assert_allclose(exact.noise, columns.noise, rtol=1e-12)
    probed = probed_response(jax.random.key(8), valley, start, schedule, probes=3008, **given)
    judged = agreement(probed.noise, exact.noise, probed.stderr, runs=3008, false_alarm_rate=FALSE_ALARM)
    assert judged.passed, judged
    # after one step there is no drift: (1/2) Tr[Sigma Hess L] at theta_1, with Sigma at theta_0
    flat, unflatten = ravel_pytree(start)
    theta = flat - schedule.lr[0] * ravel_pytree(jax.grad(valley)(start))[0]
    sigma = 0.2 * np.eye(4) + np.outer(np.sin(flat), np.sin(flat))
    one = 0.5 * np.sum(sigma * np.asarray(jax.jit(jax.hessian(lambda t: valley(unflatten(t))))(theta)))
    np.testing.assert_allclose(exact.noise[0], schedule.lr[0] ** 2 / schedule.batch[0] * one, rtol=1e-12)


def tilted(x, example):
    return quartic(x) + example * jnp.sin(x)


def test_more_examples_and_probes_than_are_worked_on_at_once():
    """Blocks of 64: 70 examples leave a part of one over, in every sum, and so do 65 probes."""
    tilts = np.random.default_rng(2).standard_normal(70)
    schedule = schedules.from_arrays(np.array([0.2, 0.15, 0.1]), np.array([2, 5, 3]))
    lr, x, factors = schedule.lr, START, []
    for t in range(3):
        factors.append((np.cos(x), 1 - lr[t] * (curve(x) - tilts.mean() * np.sin(x)), x))
        x = x - lr[t] * (slope(x) + tilts.mean() * np.cos(x))
    first, second = slope(x) + tilts.mean() * np.cos(x), curve(x) - tilts.mean() * np.sin(x)
    expected = 0.0
    for t in reversed(range(3)):
        spread, jacobian, at = factors[t]
        expected += 0.5 * lr[t] ** 2 / schedule.batch[t] * tilts.var() * spread**2 * second
        third = 6 * at - 1.8 - tilts.mean() * np.cos(at)
        first, second = jacobian * first, jacobian**2 * second - lr[t] * third * first
    for trace in ("moments", "columns"):
        found = small_noise_response(tilted, START, schedule, data=tilts, at=[3], trace=trace)
        np.testing.assert_allclose(found.noise, [expected], rtol=1e-12)
    probed = probed_response(jax.random.key(5), tilted, START, schedule, data=tilts, at=[3], probes=65)
    assert abs(probed.noise[0] - expected) < 4.5 * probed.stderr[0]  # Student's t, 64: chance 3e-5


RUNS, SAMPLED = 8000, schedules.constant(9, 0.6, 240)


def sampled(key):
    """Held-out loss after SAMPLED, SGD on batches drawn with replacement, minus its linear response to the same noise.

    The response u <- J_t u - eta_t xi_t along the noise-free path has mean exactly zero, so the mean is unchanged and
    its error falls from first to second order in the noise.
    """
    lr, batch, examples = SAMPLED.lr[0], int(SAMPLED.batch[0]), len(DATA[1])

    def one(key):
        def step(carry, key):
            theta, still, linear = carry
            chosen = jax.random.randint(key, (batch,), 0, examples)
            counts = jnp.zeros(examples).at[chosen].add(1.0 / batch)

            def weighted(point):
                return jnp.vdot(counts, jax.vmap(lambda x, y: fit(UNFLATTEN(point), (x, y)))(*DATA))

            drawn, mean = jax.grad(weighted)(theta), jax.grad(LOSS)(theta)
            down, turn = jax.jvp(jax.grad(LOSS), (still,), (linear,))
            return (theta - lr * drawn, still - lr * down, linear - lr * turn - lr * (drawn - mean)), None

        start = (FLAT, FLAT, jnp.zeros_like(FLAT))
        (theta, still, linear), _ = jax.lax.scan(step, start, jax.random.split(key, SAMPLED.steps))
        return HELD(theta) - jnp.vdot(jax.grad(HELD)(still), linear)

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(key, RUNS)))


def test_sgd_on_a_network_has_the_mean_of_the_expansion_and_not_that_of_wrong_ones():
    """One z-test, false-alarm rate 1e-4; with batch 24 the remainder is 3 % of the noise, .3 % here, stderr 1.6 %."""
    found = small_noise_response(fit, NETWORK, SAMPLED, data=DATA, validation=held_out, trace="moments", at=[0, 9])
    samples = sampled(jax.random.key(11))
    stderr = samples.std(ddof=1) / np.sqrt(RUNS)
    threshold = -special.ndtri(FALSE_ALARM / 2)

    def z(noise):
        return abs(samples.mean() - float(found.baseline[1] + noise)) / stderr

    assert z(found.noise[1]) < threshold
    share = SAMPLED.lr[0] ** 2 / SAMPLED.batch[0]
    without_drift = share * literal_kernel(9, SAMPLED.lr, drift=False).sum()
    assert z(without_drift) > threshold
    assert z(0.0) > threshold
    assert z(2.0 * found.noise[1]) > threshold  # the factor 1/2 of a Taylor series


# --- as a jax function -----------------------------------------------------------------------------------------------


def growing(x, d):
    return (1.0 + x**2) * d


@pytest.mark.parametrize("trace", ["moments", "columns"])
def test_works_under_jit_and_grad(trace):
    def last(lr, size):
        schedule = schedules.from_arrays(lr, size)
        return small_noise_response(quartic, 0.7, schedule, covariance=growing, at=[3], trace=trace).total[0]

    lr, size = jnp.array([0.2, 0.15, 0.1]), jnp.array([2.0, 3.0, 4.0])
    value, gradients = jax.jit(jax.value_and_grad(last, argnums=(0, 1)))(lr, size)
    np.testing.assert_allclose(value, last(lr, size), rtol=1e-14)
    for argument, found in enumerate(gradients):
        for i in range(3):
            sides = []
            for sign in (1.0, -1.0):
                moved = [np.array(lr), np.array(size)]
                moved[argument][i] += sign * 1e-5
                sides.append(last(*moved))
            np.testing.assert_allclose(found[i], (sides[0] - sides[1]) / 2e-5, rtol=1e-7, atol=1e-10)


def test_a_repeated_call_compiles_nothing():
    moments()
    compiled = second_order.moments._cache_size()
    other = jax.tree.map(lambda leaf: leaf + 0.1, NETWORK)
    given = {"data": DATA, "validation": held_out, "trace": "moments"}
    moved = small_noise_response(fit, other, SCHEDULE.replace(lr=0.1), **given)
    assert second_order.moments._cache_size() == compiled
    assert moved.total[-1] != moments().total[-1]


def test_the_trace_is_taken_in_the_cheaper_way(monkeypatch):
    taken = []
    for name in ("moments", "kernel"):

        def stand_in(*arguments, name=name):
            taken.append(name)
            steps = len(arguments[3])
            return jnp.zeros(steps + 1), jnp.zeros((steps + 1, steps) if name == "kernel" else steps + 1)

        monkeypatch.setattr(second_order, name, stand_in)
    small_noise_response(fit, NETWORK, SCHEDULE, data=DATA)  # 12 parameters against 12 examples, 9 steps

    def wide(a, x):
        return jnp.vdot(a, a) * x

    small_noise_response(wide, np.ones(100), schedules.constant(2, 0.1, 1), data=np.ones(3))
    assert taken == ["moments", "kernel"]
    with pytest.raises(RunError, match=r"a covariance of 1000000 parameters needs .* take trace='columns'"):
        small_noise_response(wide, np.ones(10**6), SCHEDULE, data=np.ones(3), trace="moments")


def test_no_steps_is_the_first_loss():
    empty = schedules.from_arrays(np.zeros(0), np.zeros(0))
    found = small_noise_response(quartic, 0.9, empty, covariance=lambda x, d: d)
    assert found.total[0] == pytest.approx(quartic(0.9), rel=1e-15)
    assert found.noise[0] == 0.0
    assert response_kernel(quartic, 0.9, empty, covariance=lambda x, d: d).shape == (1, 0)


# --- what is refused -------------------------------------------------------------------------------------------------

SHORT = schedules.constant(3, 0.1, 2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"loss": 3}, "loss must be a function, got int"),
        ({"validation": "v"}, "validation must be a function, got str"),
        ({"covariance": lambda x, d: d}, "exactly one of data and covariance must be given, got both"),
        ({"data": None}, "got neither"),
        ({"parameters": {}}, "parameters must hold at least one number"),
        ({"parameters": {"w": [1.0, np.nan]}}, r"parameters\['w'\]\[1\] must be finite"),
        ({"parameters": {"w": jnp.ones(2, dtype=jnp.float32)}}, r"parameters\['w'\] came as float32"),
        ({"parameters": "weights"}, "parameters must hold real numbers"),
        ({"data": (np.ones((4, 2)), np.ones(3))}, r"same examples.*got shapes \[\(4, 2\), \(3,\)\]"),
        ({"data": 1.0}, "first axes run over the same examples"),
        ({"data": np.ones(0)}, "at least one"),
        ({"loss": lambda w, x: w * x}, r"loss of one example must return one real number, got float64\[2\]"),
        ({"loss": lambda w, x: jnp.float32(1.0)}, "loss of one example must return float64, got float32"),
        ({"validation": lambda w: w}, "validation must return one real number"),
        ({"schedule": 0.1}, "schedule must be a Schedule, got float"),
        ({"at": [4]}, r"at asks for step 4 but the schedule allows 0\.\.3"),
        ({"trace": "exact"}, "trace must be one of auto, columns, moments"),
        ({"data": None, "loss": lambda w: jnp.sum(w), "covariance": lambda w, d: d[0]}, "covariance must return Sigma"),
    ],
)
def test_bad_input_is_told(change, told):
    given = {"loss": lambda w, x: jnp.sum(w) * x, "parameters": np.ones(2), "schedule": SHORT, "data": np.ones(4)}
    given |= change
    with pytest.raises(InputError, match=told):
        small_noise_response(given.pop("loss"), given.pop("parameters"), given.pop("schedule"), **given)


def test_a_function_that_cannot_be_a_static_argument():
    class Unhashable:
        __hash__ = None

        def __call__(self, w):
            return jnp.sum(w)

    with pytest.raises(InputError, match="loss must be hashable"):
        small_noise_response(Unhashable(), np.ones(2), SHORT, covariance=lambda w, d: d)


def test_probes_need_a_key_and_two_of_them():
    with pytest.raises(InputError, match="key"):
        probed_response(3, fit, NETWORK, SHORT, data=DATA)
    with pytest.raises(InputError, match="probes must be at least 2, got 1"):
        probed_response(jax.random.key(0), fit, NETWORK, SHORT, data=DATA, probes=1)


def test_a_diverging_descent_is_told():
    with pytest.raises(RunError, match="not finite at recorded step 20: noise-free gradient descent diverges"):
        small_noise_response(
            quartic, 30.0, schedules.constant(20, 0.5, 1), covariance=lambda x, d: d, at=[0, 20], trace="moments"
        )
    case = random_case(1)
    wild = schedules.constant(3000, 9.0, 1)
    with pytest.raises(RunError, match="leaves the float64 range at recorded step 3000"):
        linear_response(case.spectrum, wild, at=[3000])
    with pytest.raises(InputError, match="needs a Spectrum and a Schedule, got int"):
        linear_response(3, wild)
