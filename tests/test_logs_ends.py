"""The last row of a log: real drops of the lr there, fake ones, and losses of another evaluation, judged together."""

import numpy as np
import pytest

from rfsim.checks import RunError
from rfsim.logs import read_run

STEPS, PEAK = 10_000, 1e-3


def losses(lr, step, noise=0.0, seed=0):
    """A power of the clock and a tenth of the lr over its peak, so that a drop of the lr shows in the loss."""
    clock = np.append(0.0, np.cumsum(lr))[step]
    spread = 1.0 + noise * np.random.default_rng(seed).standard_normal(step.size)
    return (2.5 + 3.0 * (1.0 + 100.0 * clock) ** -0.6 + 0.1 * np.append(lr[0], lr)[step] / PEAK) * spread


def write(path, step, loss, lr):
    rows = zip(step.tolist(), loss.tolist(), lr.tolist(), strict=True)
    path.write_text("step,loss,lr\n" + "".join(f"{s},{a!r},{b!r}\n" for s, a, b in rows))
    return path


def lines_with(run, *words):
    return [line for line in run.findings if all(word in line for word in words)]


def decay(start, to, steps=STEPS):
    lr = PEAK * np.minimum(1.0, (np.arange(steps) + 1.0) / 500)
    lr[start:] = PEAK + (to - PEAK) * (np.arange(start, steps) - start) / (steps - start)
    return lr


@pytest.mark.parametrize("every", [100, 20])
def test_a_decay_in_the_last_interval_of_the_lr(tmp_path, every):
    lr, step = decay(9900, 0.0), np.arange(0, STEPS + 1, every)
    logged = np.append(lr, 0.0)[step]
    if every == 20:  # the lr has rows every 100 steps, the loss every 20
        text = "step,loss,lr\n" + "".join(
            f"{s},{loss!r},{'' if s % 100 else repr(b)}\n"
            for s, loss, b in zip(step.tolist(), losses(lr, step).tolist(), logged.tolist(), strict=True)
        )
        (tmp_path / "a.csv").write_text(text)
        path = tmp_path / "a.csv"
    else:
        path = write(tmp_path / "a.csv", step, losses(lr, step), logged)
    got = read_run(path)
    assert got.step[-1] == STEPS
    np.testing.assert_allclose(got.schedule.lr, lr, atol=1e-15)
    assert lines_with(got, "falls from 0.001 at step 9900 to 0 at its last row, step 10000, and the loss with it")
    assert not lines_with(got, "anneal")
    assert not lines_with(got, "another evaluation")


@pytest.mark.parametrize("seed", range(5))
def test_a_short_decay_with_few_noisy_rows(tmp_path, seed):
    lr, step = decay(9800, 1e-5), np.linspace(0, STEPS, 51).round().astype(int)
    got = read_run(write(tmp_path / "a.csv", step, losses(lr, step, 4e-4, seed), np.append(lr, 1e-5)[step]))
    assert got.step.size == step.size
    np.testing.assert_allclose(got.schedule.lr, lr, atol=1e-15)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_stage_between_the_last_two_rows(tmp_path, share):
    """Where it fell is not logged: the straight line has its integral to half an interval of the drop."""
    lr, step = np.where(np.arange(STEPS) < 9950, PEAK, share * PEAK), np.arange(0, STEPS + 1, 100)
    got = read_run(write(tmp_path / "a.csv", step, losses(lr, step, 4e-4), np.append(lr, lr[-1])[step]))
    assert got.step[-1] == STEPS
    assert abs(np.asarray(got.schedule.lr).sum() - lr.sum()) <= 50 * (1 - share) * PEAK
    assert lines_with(got, f"to {share * PEAK:g} at its last row")


@pytest.mark.parametrize("jump", [0.0, 0.033])
def test_a_last_lr_of_zero_that_the_loss_does_not_follow(tmp_path, jump):
    lr, step = decay(STEPS, 0.0), np.arange(0, STEPS + 1, 100)
    loss = losses(lr, step, 2e-4)
    loss[-1] += jump
    got = read_run(write(tmp_path / "a.csv", step, loss, np.append(lr, 0.0)[step]))
    assert lines_with(got, "last logged lr, 0 at step 10000", "no anneal took place; ignored")
    assert len(lines_with(got, "another evaluation")) == (jump > 0)
    assert got.step.size == step.size - (jump > 0)
    np.testing.assert_allclose(got.schedule.lr, lr[: got.schedule.steps], atol=1e-15)


@pytest.mark.parametrize("jump", [0.033, -0.033])
def test_a_last_loss_that_jumps_under_a_constant_lr(tmp_path, jump):
    lr, step = decay(STEPS, 0.0), np.arange(0, STEPS + 1, 100)
    loss = losses(lr, step, 2e-4)
    loss[-1] += jump
    got = read_run(write(tmp_path / "a.csv", step, loss, np.append(lr, PEAK)[step]))
    assert got.step[-1] == STEPS - 100
    assert lines_with(got, "the last point", "taken for another evaluation and left out")


@pytest.mark.parametrize("start", [8000, 8500, 9000])
def test_a_last_loss_that_jumps_up_behind_the_bend_of_a_decay(tmp_path, start):
    lr, step = decay(start, 0.0), np.arange(0, STEPS + 1, 100)
    loss = losses(lr, step, 4e-4, 1)
    plain = read_run(write(tmp_path / "a.csv", step, loss, np.append(lr, 0.0)[step]))
    assert plain.step[-1] == STEPS
    loss[-1] += 0.033
    got = read_run(write(tmp_path / "a.csv", step, loss, np.append(lr, 0.0)[step]))
    assert got.step[-1] == STEPS - 100
    assert lines_with(got, "the last point", "taken for another evaluation and left out")


def test_heavy_tailed_noise_is_no_jump(tmp_path):
    lr, step = decay(STEPS, 0.0), np.arange(0, STEPS + 1, 100)
    for seed in range(40):
        loss = losses(lr, step) + 0.01 * np.random.default_rng(seed).standard_t(3, step.size)
        assert read_run(write(tmp_path / "a.csv", step, loss, np.append(lr, PEAK)[step])).step[-1] == STEPS


@pytest.mark.parametrize("far", [1_000_000_000, 10**6 + 1])
def test_a_mistyped_step_makes_no_schedule(tmp_path, far):
    lr, step = decay(8000, 1e-4), np.arange(0, STEPS + 1, 100)
    loss, logged = losses(lr, step), np.append(lr, 1e-4)[step]
    plain = read_run(write(tmp_path / "a.csv", step, loss, logged))
    got = read_run(write(tmp_path / "a.csv", np.append(step, far), np.append(loss, 2.5), np.append(logged, 1e-4)))
    np.testing.assert_array_equal(got.schedule.lr, plain.schedule.lr)
    np.testing.assert_array_equal(got.loss, plain.loss)
    for column in ("loss", "lr"):
        assert lines_with(got, f"{column}: the last row", f"at step {far}", "mistyped step and left out")


def test_a_few_rows_far_apart_are_kept(tmp_path):
    step = np.array([0, 1, 500])
    got = read_run(write(tmp_path / "a.csv", step, np.array([5.0, 4.9, 3.0]), np.full(3, PEAK)))
    assert got.step.tolist() == step.tolist()


def test_rows_of_the_lr_behind_the_loss_count_for_the_memory(tmp_path):
    step = np.append(np.arange(0, STEPS + 1, 100), [10**11, 2 * 10**11])
    text = "".join(f"{s},{'' if s > STEPS else repr(3.0 + 1.0 / (1 + s))},{PEAK}\n" for s in step.tolist())
    (tmp_path / "a.csv").write_text(f"step,loss,lr\n{text}")
    with pytest.raises(RunError, match=r"schedule of a up to its last row at step 2e\+11 needs .* GiB"):
        read_run(tmp_path / "a.csv")
