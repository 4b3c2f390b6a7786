"""The package as a whole: its names, its imports, its promises to other libraries."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fairmaxent
from fairmaxent import errors

ROOT = Path(__file__).parent.parent
HEAVY = [
    *("numpy", "narwhals", "pandas", "polars", "pyarrow", "sklearn"),
    *("scipy", "cvxpy", "click", "rich", "jinja2", "matplotlib"),
]
WITHOUT_PANDAS = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import polars as pl
import fairmaxent
frame = pl.DataFrame({{"sex": ["f", "m", "m"] * 40, "y": ["no", "yes", "yes", "yes"] * 30, "x": [*range(60)] * 2}})
fit = fairmaxent.debias(frame, "y", "sex", representation_rate=1.0, base_share=0.5, random_state=0)
drawn = fit.sample(50)
assert type(drawn) is pl.DataFrame and drawn.schema == frame.schema
assert type(fit.distribution.marginal(["sex", "y"])) is pl.DataFrame
assert abs(float(fairmaxent.metrics.statistical_rate(fit.distribution, "y", "sex")) - 1) < 1e-8
assert len(fit.weights()) == 120 and len(fit.top_up()) > 0
print(drawn.write_csv())
"""


def run(code: str, hash_seed: str = "0") -> str:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names_exist_and_are_listed_in_order():
    assert sorted(fairmaxent.__all__) == fairmaxent.__all__
    for name in fairmaxent.__all__:
        assert getattr(fairmaxent, name) is not None
        assert name in dir(fairmaxent)
    public = {name for name in vars(fairmaxent) if not name.startswith("_")} - {"Any", "TYPE_CHECKING"}
    modules = {name for name in public if type(getattr(fairmaxent, name)).__name__ == "module"}
    assert public - modules <= set(fairmaxent.__all__)
    with pytest.raises(AttributeError, match="no attribute 'debiased'"):
        _ = fairmaxent.debiased


def test_no_module_hides_a_public_name():
    """A submodule of the name of a function would take its place once imported."""
    modules = {module.name for module in pkgutil.iter_modules(fairmaxent.__path__)}
    assert not modules & set(fairmaxent._HOMES)


FRONT_PAGE = {
    *("debias", "rake", "inspect", "check", "evaluate", "compare", "verify", "load"),
    *("FairMaxEnt", "Domain", "Privacy"),
}
BESIDE_IT = {"Model", "Relabel", "Estimate", "FairMaxEntError", "InputError", "InfeasibleError"}


def test_eleven_names_are_on_the_front_page():
    modules = {name for name in fairmaxent.__all__ if type(getattr(fairmaxent, name)).__name__ == "module"}
    assert set(fairmaxent.__all__) - modules == FRONT_PAGE | BESIDE_IT
    assert modules == {"aif360", "baselines", "datasets", "errors", "metrics", "paper", "report"}


def test_every_error_is_in_one_tree():
    tree = [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, Exception)]
    assert len(tree) > 10
    assert all(issubclass(item, fairmaxent.FairMaxEntError) for item in tree)


@pytest.mark.process
def test_importing_loads_no_other_library():
    loaded = run(f"import fairmaxent, sys; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.strip() == "[]"


@pytest.mark.process
def test_rows_are_the_same_without_pandas_and_pyarrow_and_with_any_hash_seed():
    assert run(WITHOUT_PANDAS.format(blocked=["pandas", "pyarrow"]), "1") == run(WITHOUT_PANDAS.format(blocked=[]), "2")


def test_the_version_stands_in_one_place():
    """The citation repeats it; no file of the source does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert fairmaxent.__version__ == project["version"]
    assert f"version: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert not [path for path in (ROOT / "src").rglob("*.py") if f'"{project["version"]}"' in path.read_text("utf-8")]
