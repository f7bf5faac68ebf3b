"""The house: imports point down, routes do not know each other, modules stay small, public names are as promised."""

import ast
import importlib
import types
from pathlib import Path

import pytest

import rfsim

ROOT = Path(rfsim.__file__).parent
LONGEST = 400  # lines

# floor of a module or of everything in a package; the longest matching name counts
FLOORS = {
    "checks": 0,
    "double_double": 0,
    "version": 0,
    "precision": 0,
    "progress": 0,
    "provenance": 0,
    "curves": 1,
    "problems": 1,
    "schedules": 1,
    "spectra": 1,
    "stretches": 1,
    "secular": 2,
    "smooth": 2,
    "compress": 2,
    "accumulation": 2,
    "amplitudes": 2,
    "identification": 2,
    "logs": 2,
    "continuum": 2,
    "exponents": 2,
    "gap_laws": 2,
    "memory_edge": 2,
    "rational_gauss": 1,
    "regimes": 2,
    "renewal": 2,
    "sources": 2,
    "stationary": 2,
    "measure": 3,
    "routes": 3,
    "anneal": 4,
    "exact": 4,
    "propagation": 4,
    "response": 4,
    "surrogates": 4,
    "sweep": 4,
    "figures": 5,
    "verify": 5,
    "report": 6,
    "cli": 6,
    "__main__": 6,
}
# modules that answer without jax, so that the command line is quick
JAX_FREE = (
    "checks",
    "version",
    "provenance",
    "progress",
    "accumulation",
    "amplitudes",
    "exponents",
    "gap_laws",
    "memory_edge",
    "regimes",
)

PUBLIC = {
    "__version__",
    "logs",
    "schedules",
    "surrogates",
    # errors and warnings
    "InputError",
    "RunError",
    "StabilityWarning",
    # records
    "Curve",
    "Ensemble",
    "Features",
    "Problem",
    "Schedule",
    "Spectrum",
    # problems and spectra
    "aligned_features",
    "feature_spectrum",
    "equivalent",
    "population",
    "power_law",
    "problem",
    "random_features",
    "read_spectrum",
    "sample_features",
    "spectrum",
    # dynamics
    "kappa",
    "kernel",
    "limiting_risk",
    "lr_limit",
    "risk",
    "row_mass",
    "simulate",
    "small_noise_response",
    "terminal_risk",
    # closed forms and measured exponents
    "fit_exponent",
    "gap_law",
    "local_exponents",
    "power_window",
    "regime",
    "schedule_effect",
}


def modules(root=ROOT):
    """Dotted names inside the package -> files, without the package's own __init__."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        if name != "__init__":
            found[name] = path
    return found


MODULES = modules()


def floor_of(name):
    fitting = [key for key in FLOORS if name == key or name.startswith(key + ".")]
    assert fitting, f"module rfsim.{name} has no floor; add it to FLOORS in {Path(__file__).name}"
    return FLOORS[max(fitting, key=len)]


def targets(node, names):
    """Modules inside the package that one import statement reaches; '' is the package itself."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name == "rfsim" or alias.name.startswith("rfsim."):
                yield alias.name[len("rfsim.") :]
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: imports inside the package are absolute"
        if node.module == "rfsim" or (node.module or "").startswith("rfsim."):
            base = node.module[len("rfsim.") :]
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                yield inner if inner in names else base or rfsim._HOME_OF.get(alias.name, "")


def imports_of(source, names):
    return {name for node in ast.walk(ast.parse(source)) for name in targets(node, names)}


GRAPH = {name: imports_of(path.read_text(encoding="utf-8"), MODULES) for name, path in MODULES.items()}


def violations(name, reached):
    """What is wrong with module `name` importing the modules `reached`."""
    wrong = []
    for target in reached:
        if target == "":
            if floor_of(name) < 5:
                wrong.append(f"{name} imports all of rfsim; import the module that it needs")
        elif floor_of(target) > floor_of(name):
            wrong.append(f"{name} (floor {floor_of(name)}) imports {target} (floor {floor_of(target)})")
        elif route_of(name) and route_of(target) and route_of(name) != route_of(target):
            wrong.append(f"route {name} imports route {target}")
    return wrong


def route_of(name):
    parts = name.split(".")
    return parts[1] if parts[0] == "routes" and len(parts) > 1 else None


def cycle_in(graph):
    """A list of modules that import each other in a ring, or None."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done or name not in graph:
            return None
        path.append(name)
        for target in sorted(graph[name] - {name}):
            ring = visit(target)
            if ring:
                return ring
        path.pop()
        done.add(name)
        return None

    for start in graph:
        ring = visit(start)
        if ring:
            return ring
    return None


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name):
    assert violations(name, GRAPH[name]) == []


def test_no_rings():
    assert cycle_in(GRAPH) is None


def test_the_import_test_sees_back_edges():
    names = set(MODULES)
    assert violations("spectra", imports_of("from rfsim.routes import recursion", names))
    assert violations("schedules", imports_of("def f():\n    from rfsim import risk", names))  # also inside functions
    assert violations("problems", imports_of("import rfsim.stationary", names))
    assert violations("exact", imports_of("import rfsim", names))
    assert violations("routes.recursion", imports_of("from rfsim.routes.volterra import kernel", names))
    assert violations("routes.volterra", imports_of("from rfsim.routes import recursion", names))
    assert not violations("exact", imports_of("from rfsim.routes import recursion", names))
    assert not violations("routes.volterra", imports_of("from rfsim.spectra import Spectrum", names))
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    with pytest.raises(AssertionError, match="absolute"):
        imports_of("from . import checks", names)
    with pytest.raises(AssertionError, match="no floor"):
        floor_of("unheard_of")


@pytest.mark.parametrize("name", FLOORS)
def test_floors_name_modules_that_exist(name):
    # report, figures, verify and cli grow last
    assert name in MODULES or any(module.startswith(name + ".") for module in MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_modules_stay_small(name):
    lines = MODULES[name].read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST, f"rfsim.{name} has {lines} lines; one idea per module, about 300 lines"


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_what_they_are(name):
    assert ast.get_docstring(ast.parse(MODULES[name].read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", JAX_FREE)
def test_quick_modules_reach_no_jax(name):
    reached, waiting = set(), [name]
    while waiting:
        module = waiting.pop()
        reached.add(module)
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        for node in tree.body:
            names = (
                [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "") or ""]
            )
            assert not any(n == "jax" or n.startswith("jax.") for n in names), f"{name} imports jax through {module}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                waiting.extend(t for t in targets(node, MODULES) if t in MODULES and t not in reached)


# --- public names ----------------------------------------------------------------------------------------------------


def test_public_names():
    assert set(rfsim.__all__) == PUBLIC
    assert len(rfsim.__all__) == len(PUBLIC)
    assert dir(rfsim) == sorted(rfsim.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_resolves(name):
    value = getattr(rfsim, name)
    if name not in (*rfsim._PACKAGES, "__version__"):
        assert not isinstance(value, types.ModuleType)
        assert value.__doc__
        assert value.__module__.startswith("rfsim.")


def test_no_public_name_is_hidden_by_a_module_of_the_same_name():
    for module in MODULES:
        if "__main__" not in module:
            importlib.import_module(f"rfsim.{module}")
    for name in PUBLIC - {*rfsim._PACKAGES, "__version__"}:
        assert not isinstance(getattr(rfsim, name), types.ModuleType), name


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match=r"'rfsim' has no attribute 'rsik'.*terminal_risk"):
        _ = rfsim.rsik


def test_static_names_match_the_lazy_ones():
    """The TYPE_CHECKING block that type checkers read names the same things from the same modules."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    static = {alias.asname: node.module for node in block.body for alias in node.names}
    lazy = {name: f"rfsim.{home}" for name, home in rfsim._HOME_OF.items()} | dict.fromkeys(rfsim._PACKAGES, "rfsim")
    assert static == lazy


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__", *rfsim._PACKAGES}))
def test_public_functions_are_typed(name):
    value = getattr(rfsim, name)
    if isinstance(value, types.FunctionType):
        hints = value.__annotations__
        code = value.__code__
        assert "return" in hints
        assert set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) <= set(hints)
