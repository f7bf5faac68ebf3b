"""Verification: names, records, a quick run that passes, broken formulas that do not, and runs that resume."""

import json
import math
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import rfsim.verify as verify
from rfsim import stationary
from rfsim.checks import InputError
from rfsim.routes import recursion
from rfsim.verify import registry, runner
from rfsim.verify.check import Check, above, near, same


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """All families at scale quick, once; kept in a cache folder."""
    folder = tmp_path_factory.mktemp("verify")
    told = []
    checks = verify.run("quick", cache=folder, progress=told.append)
    return checks, folder, told


# --- names and records -----------------------------------------------------------------------------------------------


def test_families_cover_what_was_promised():
    assert verify.names() == (
        "recursion",
        "groupings",
        "montecarlo",
        "stability",
        "terminal",
        "sandwich",
        "tauberian",
        "counterexamples",
        "exponents",
        "gaps",
        "schedules",
        "equivalent",
        "regimes",
        "response",
        "surrogates",
    )
    every = [name for family in verify.names() for name in verify.check_names(family)]
    assert len(every) == len(set(every))
    for regime in ("LM1", "LM2", "LM3", "IM1", "IM2", "IM3", "FB1", "FB2"):
        assert {f"exponents/forcing-{regime}", f"exponents/memory-{regime}"} <= set(every)


def test_names_do_not_import_jax():
    code = "import sys, rfsim.verify as v; v.names(); v.check_names('gaps'); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("only", "told"),
    [("BAD", "counterexamples"), ("recursion/none", "recursion/volterra"), ("", "gaps"), ("/", "gaps"), (3, "gaps")],
)
def test_an_unknown_name_is_an_input_error_that_lists_the_known_ones(only, told):
    with pytest.raises(InputError, match="allowed: ") as caught:
        verify.run(only=only)
    assert told in str(caught.value)


def test_an_unknown_scale_is_an_input_error():
    with pytest.raises(InputError, match="scale must be one of full, quick, standard"):
        verify.run("huge")


def test_decisions():
    assert near("a/b", "s", 1.0, 1.1, 0.2).passed
    assert not near("a/b", "s", 1.0, 1.3, 0.2).passed
    lost = near("a/b", "s", 1.0, math.nan, 0.2)
    assert not lost.passed
    assert lost.measured == "nan"
    assert not near("a/b", "s", 1.0, 1.0, math.nan).passed
    assert not near("a/b", "s", math.nan, math.nan, 1.0).passed
    assert not near("a/b", "s", math.inf, math.inf, math.inf).passed
    assert above("a/b", "s", 4.0, 5.0).passed
    assert not above("a/b", "s", 4.0, 4.0).passed
    assert not above("a/b", "s", 4.0, math.nan).passed
    assert same("a/b", "s", "LM1", "LM1").passed
    assert not same("a/b", "s", "LM1", "LM2").passed


# --- the quick run ---------------------------------------------------------------------------------------------------


def test_every_quick_check_passes(quick):
    checks, _, _ = quick
    assert [(check.name, check.predicted, check.measured) for check in checks if not check.passed] == []


def test_every_declared_check_is_reported_once_with_all_fields(quick):
    checks, _, told = quick
    declared = [name for family in verify.names() for name in verify.check_names(family)]
    assert sorted(check.name for check in checks) == sorted(declared)
    for check in checks:
        assert check.family == check.name.split("/")[0]
        assert len(check.statement) > 20
        assert isinstance(check.passed, bool)
        assert check.seconds >= 0.0
        assert isinstance(check.predicted, float | str)
        assert isinstance(check.measured, float | str)
        assert any(check.name in line for line in told)
        json.dumps(check._asdict(), allow_nan=False)
        if check.tolerance is not None:
            in_units = check.name in ("tauberian/stretched-forcing", "tauberian/rapid")  # of the next term of a series
            # no tolerance is so wide that anything passes
            assert 0.0 < check.tolerance < (6.0 if check.family == "montecarlo" else 1.001 if in_units else 0.06)
            assert abs(check.measured - check.predicted) <= check.tolerance


def test_a_second_run_reads_the_cache_and_one_check_can_be_picked(quick, monkeypatch):
    checks, folder, _ = quick
    stored = json.loads((folder / "verify-gaps-quick.json").read_text())
    monkeypatch.setattr(runner, "source_digest", lambda: stored["source"])  # files may be edited while tests run
    monkeypatch.setattr(runner, "_family", lambda family, *rest: pytest.fail(f"{family} was run again"))
    again = verify.run("quick", cache=folder)
    assert again == checks
    (one,) = verify.run("quick", "gaps/published", cache=folder)
    assert one in checks


# --- broken formulas -------------------------------------------------------------------------------------------------


def _failed(checks):
    return {check.name for check in checks if not check.passed}


def test_a_recursion_without_the_term_1_over_batch_fails(monkeypatch):
    def advance(eigenvalues, multiplicity, systems, lr, inverse_batch):
        def step(carry, now):
            energy, totals = carry
            eta, inverse = now
            x = eta * eigenvalues
            source = (systems.feedback * totals[None, :]).sum(axis=1) + systems.constant
            count = 1.0 if multiplicity is None else multiplicity
            noise = (x * x * inverse * count)[None, :] * source[:, None]
            energy = jnp.square(1.0 - x)[None, :] * energy + noise
            totals = energy.sum(axis=1)
            return (energy, totals), totals

        (energy, totals), history = lax.scan(step, (systems.energy, systems.totals), (lr, inverse_batch))
        return recursion.Systems(energy, totals, systems.feedback, systems.constant), history

    monkeypatch.setattr(recursion, "_advance_compiled", jax.jit(advance))
    failed = _failed(verify.run("quick", "recursion"))
    assert {"recursion/rational", "recursion/isotropic", "recursion/dense", "recursion/volterra"} <= failed
    assert {"groupings/memory", "groupings/small-noise"} <= _failed(verify.run("quick", "groupings"))


def test_a_kappa_without_the_term_1_over_batch_fails(monkeypatch):
    def kappa(spectrum, lr, batch):
        lam = np.asarray(spectrum.eigenvalues)
        return float(lr / batch * np.sum(np.asarray(spectrum.multiplicity) * lam / np.maximum(2.0 - lr * lam, 1e-300)))

    monkeypatch.setattr(stationary, "kappa", kappa)
    assert {"stability/kappa"} <= _failed(verify.run("quick", "stability"))
    assert {"terminal/run", "terminal/gap", "terminal/fixed-point"} <= _failed(verify.run("quick", "terminal"))


def test_wrong_constants_of_joint_schedules_fail(monkeypatch):
    """Limits in place of windows, one factor 1/(1 - kappa) too few, an edge without feedback, unequal clocks."""
    from rfsim.gap_laws import gap_law
    from rfsim.verify import schedules

    right, edge, pair = schedules.renewal_risk, schedules.lm_edge, schedules.pair

    def renewal(*args):
        found = right(*args)
        return found._replace(risk=found.risk * (1.0 - found.kernel_mass))

    def unequal(*args, **options):
        made = pair(*args, **options)
        return made._replace(lr_decay=made.lr_decay.replace(lr=1.01 * made.lr_decay.lr))

    monkeypatch.setattr(schedules, "unit_local_exponent", lambda q, v, time: gap_law(q, v).exponent)
    monkeypatch.setattr(schedules, "renewal_risk", renewal)
    monkeypatch.setattr(
        schedules, "lm_edge", lambda q, s: edge(q, s)._replace(plateau_factor=edge(q, s).constant, exponent=0.75)
    )
    monkeypatch.setattr(schedules, "lm_edge_forcing_factor", lambda *args: 1.0)
    monkeypatch.setattr(schedules, "pair", unequal)
    failed = _failed(verify.run("quick", "schedules"))
    parts = ("local-exponents", "local-quadrature", "renewal", "renewal-limit", "edge-plateau", "edge-exponent")
    assert {f"schedules/{part}" for part in (*parts, "edge-factor")} <= failed
    assert {"schedules/pair-wsd-order", "schedules/pair-8-1-1-order"} <= failed
    assert not {"schedules/anneal-parts", "schedules/iteration-time", "schedules/finite-bulk"} & failed


def test_an_equivalent_of_another_width_fails(monkeypatch):
    from rfsim.sources import equivalent

    right = equivalent.equivalent_details
    monkeypatch.setattr(equivalent, "equivalent_details", lambda problem, width: right(problem, width + 1))
    failed = _failed(verify.run("quick", "equivalent"))
    assert {
        f"equivalent/{part}" for part in ("floor", "kappa", "moments", "contour-forcing", "contour-memory")
    } <= failed


def test_a_wrong_regime_label_is_named(monkeypatch):
    from rfsim import regimes

    right = regimes.regime

    def wrong(alpha, beta):
        told = right(alpha, beta)
        return told._replace(label="LM2") if told.label == "LM3" else told

    monkeypatch.setattr(regimes, "regime", wrong)
    (check,) = verify.run("quick", "regimes/labels")
    assert not check.passed
    assert "LM2, measured LM3" in check.measured


# --- accidents and resuming ------------------------------------------------------------------------------------------


@pytest.fixture
def made_up(monkeypatch):
    """Two families, first and second, with what they do in a dictionary, and a count of how often each was run."""
    calls = {"first": 0, "second": 0}
    acts = {}
    for name in calls:

        def checks(scale, name=name):
            calls[name] += 1
            for part, act in acts[name].items():
                if isinstance(act, BaseException):
                    raise act
                yield near(f"{name}/{part}", f"{part} at {scale}", 1.0, act, 0.1)

        module = types.ModuleType(f"rfsim.verify.made_up_{name}")
        module.checks = checks
        monkeypatch.setitem(sys.modules, module.__name__, module)
    families = {name: registry.Family(f"made_up_{name}", "made up", ("a", "b")) for name in calls}
    monkeypatch.setattr(registry, "FAMILIES", families)
    monkeypatch.setattr(runner, "FAMILIES", families)
    acts["first"], acts["second"] = {"a": 1.0, "b": 1.05}, {"a": 1.0, "b": 1.0}
    return acts, calls


def test_a_crash_becomes_failed_checks_and_the_run_goes_on(made_up):
    acts, calls = made_up
    acts["first"] = {"a": 1.0, "b": ZeroDivisionError("nothing to divide by")}
    checks = verify.run()
    assert [(check.name, check.passed) for check in checks] == [
        ("first/a", True),
        ("first/b", False),
        ("second/a", True),
        ("second/b", True),
    ]
    assert checks[1].measured == "ZeroDivisionError: nothing to divide by"
    assert checks[1].family == "first"
    assert calls == {"first": 1, "second": 1}


def test_a_check_that_is_never_reported_fails(made_up):
    acts, _ = made_up
    acts["second"] = {"a": 1.0}
    (check,) = verify.run(only="second/b")
    assert not check.passed
    assert check.measured == "the family did not report this check"


def test_an_interrupted_run_resumes(made_up, tmp_path):
    acts, calls = made_up
    good = acts["second"]
    acts["second"] = {"a": 1.0, "b": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        verify.run(cache=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["verify-first-quick.json"]
    acts["second"] = good
    resumed = verify.run(cache=tmp_path)
    assert calls == {"first": 1, "second": 2}
    assert [check.passed for check in resumed] == [True] * 4
    assert verify.run(cache=tmp_path) == resumed
    assert calls == {"first": 1, "second": 2}
    assert all(isinstance(check, Check) for check in resumed)


def test_what_was_kept_holds_for_the_same_scale_and_source_only(made_up, tmp_path, monkeypatch):
    _, calls = made_up
    verify.run(only="first", cache=tmp_path)
    stored = json.loads((tmp_path / "verify-first-quick.json").read_text())
    assert {"family", "scale", "seed", "versions", "source", "checks"} == set(stored)
    verify.run("standard", "first", cache=tmp_path)
    assert calls["first"] == 2
    monkeypatch.setattr(runner, "source_digest", lambda: "another source")
    verify.run(only="first", cache=tmp_path)
    assert calls["first"] == 3


def test_failures_and_single_checks_are_not_kept_and_a_damaged_file_is_no_harm(made_up, tmp_path):
    acts, calls = made_up
    assert [check.name for check in verify.run(only="second/a", cache=tmp_path)] == ["second/a"]
    assert list(tmp_path.iterdir()) == []
    acts["first"] = {"a": 1.0, "b": 2.0}
    verify.run(only="first", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []
    acts["first"] = {"a": 1.0, "b": 1.0}
    (tmp_path / "verify-first-quick.json").write_text('{"family": "first", "checks": [{"na')
    assert all(check.passed for check in verify.run(only="first", cache=tmp_path))
    assert calls["first"] == 2
    verify.run(only="first", cache=tmp_path)
    assert calls["first"] == 2
