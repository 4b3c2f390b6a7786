"""The package as a whole: its names, its imports, its promises to other libraries."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fairmaxent
from fairmaxent import errors

ROOT = Path(__file__).parent.parent
HEAVY = [
    "numpy",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "sklearn",
    "scipy",
    "cvxpy",
    "click",
    "rich",
    "matplotlib",
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
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


MODULES = {"baselines", "datasets", "errors", "metrics", "paper", "report"}
FRONT_PAGE = {
    "debias",
    "rake",
    "inspect",
    "check",
    "evaluate",
    "compare",
    "verify",
    "load",
}
FRONT_PAGE |= {"FairClassifier", "FairMaxEnt", "Domain", "Privacy"}
BESIDE_IT = {
    "Model",
    "Estimate",
    "Likely",
    "FairMaxEntError",
    "InputError",
    "InfeasibleError",
}


def test_twelve_names_are_on_the_front_page_and_nothing_hides_or_adds_to_them():
    assert fairmaxent.__all__ == sorted({*MODULES, *FRONT_PAGE, *BESIDE_IT})
    assert all(
        getattr(fairmaxent, name) is not None and name in dir(fairmaxent)
        for name in fairmaxent.__all__
    )
    public = {name for name in vars(fairmaxent) if not name.startswith("_")} - {
        "Any",
        "TYPE_CHECKING",
    }
    modules = {
        name for name in public if type(getattr(fairmaxent, name)).__name__ == "module"
    }
    assert public - modules <= {*FRONT_PAGE, *BESIDE_IT}
    with pytest.raises(AttributeError, match="no attribute 'debiased'"):
        _ = fairmaxent.debiased
    # A submodule of the name of a function would take its place once imported.
    assert not {
        module.name for module in pkgutil.iter_modules(fairmaxent.__path__)
    } & set(fairmaxent._HOMES)
    tree = [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, Exception)
    ]
    assert len(tree) > 10
    assert all(issubclass(item, fairmaxent.FairMaxEntError) for item in tree)


@pytest.mark.process
def test_importing_loads_no_other_library():
    loaded = run(
        f"import fairmaxent, sys; print([name for name in {HEAVY!r} if name in"
        " sys.modules])"
    )
    assert loaded.strip() == "[]"


@pytest.mark.process
def test_raking_loads_nothing_of_fits():
    """The layers say the same of imports at the top of a module."""
    loaded = run(
        "import polars as pl, fairmaxent, sys\n"
        "frame = pl.DataFrame({'sex': ['f', 'm', 'm', 'm']})\n"
        "raking = fairmaxent.rake(frame, {'sex': {'f': .5, 'm': .5}})\n"
        "raking.weigh(frame), raking.sample(10), print(raking.certificate)\n"
        "wings = {name.split('.')[1] for name in sys.modules if name[:11] == 'fairmaxent.'}\n"
        "print(sorted(wings & {'raking', 'fit', 'fairness', 'metrics', 'privacy'}))"
    )
    assert loaded.splitlines()[-1] == "['raking']"


@pytest.mark.process
def test_rows_are_the_same_without_pandas_and_pyarrow_and_with_any_hash_seed():
    assert run(WITHOUT_PANDAS.format(blocked=["pandas", "pyarrow"]), "1") == run(
        WITHOUT_PANDAS.format(blocked=[]), "2"
    )


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_no_statement_of_the_paper_waits_for_make_test_more():
    assert "mark.more" not in text_of("tests/paper/test_paper.py")


def test_the_version_and_the_requirements_stand_in_one_place():
    """Others repeat them; no file of the source does."""
    project, version = (
        tomllib.loads(text_of("pyproject.toml"))["project"],
        fairmaxent.__version__,
    )
    assert version == project["version"]
    assert f"version: {version}\n" in text_of("CITATION.cff")
    assert f"\n## {version} (" in text_of("CHANGELOG.md")
    recipe = text_of("conda/recipe.yaml")
    assert f'version: "{version}"\n' in recipe
    run = re.findall(r"^    - (\S+) (>=\S+)$", recipe.partition("  run:\n")[2], re.M)
    assert ["".join(each) for each in run] == [
        *project["dependencies"],
        *project["optional-dependencies"]["cli"],
    ]
    assert not [
        path
        for path in (ROOT / "src").rglob("*.py")
        if f'"{version}"' in path.read_text("utf-8")
    ]


def test_what_the_wheel_has_from_others_is_listed_with_version_licence_and_origin():
    """Data, and scripts that nobody wrote by hand; the rest is ours."""
    folder, notice = ROOT / "src" / "fairmaxent", text_of("NOTICE")
    named = re.findall(
        r"^fairmaxent/(\S+)\n  What: +.+\n  Licence: +.+\n  Origin: +.+\n\n",
        notice,
        re.M,
    )
    data = [
        path for suffix in ("csv", "js", "xz") for path in folder.rglob(f"*.{suffix}")
    ]
    foreign = [
        path
        for path in data
        if path.suffix != ".js" or re.search(r".{500}", path.read_text("utf-8"))
    ]
    assert sorted(named) == sorted(
        path.relative_to(folder).as_posix() for path in foreign
    )
    # another kind is looked at by a person
    kinds = {path.suffix for path in folder.rglob("*.*")} - {"", ".pyc"}
    assert kinds == {
        ".css",
        ".html",
        ".js",
        ".md",
        ".py",
        ".toml",
        ".ts",
        ".txt",
        ".typed",
        ".xz",
    }
    assert re.search(r"Preact [\d.]+", notice)[0] in (
        folder / "app" / "static" / "NOTICE.txt"
    ).read_text("utf-8")


def test_the_places_that_wait_for_a_person_are_in_the_one_list_of_them():
    places = runpy.run_path(str(ROOT / "scripts" / "check_release.py"))["places"]()
    table = (
        text_of("docs/publishing.md")
        .partition("## What only a person can do")[2]
        .partition("\n## ")[0]
    )
    # and what machines read of the repository is what it should be
    assert len(places) > 3
    for name in ROOT.glob(".github/**/*.yml"):
        assert pytest.importorskip("yaml").safe_load(name.read_text(encoding="utf-8"))
    assert [name for name in places if f"`{name}`" not in table] == []


def test_the_paper_has_a_thousand_words_every_source_and_like_other_pages_the_numbers_of_the_benchmarks():
    sys.path.insert(0, str(ROOT))
    from benchmarks import claims

    records = json.loads(text_of("benchmarks/results.json"))
    assert [
        page
        for page in claims.PAGES
        if claims.filled(text_of(page), records) != text_of(page)
    ] == []
    words = re.sub(r"<!--.*?-->", "", text_of("paper.md").split("---\n", 2)[2])
    assert 750 <= len(words.split()) <= 1000
    cited, listed = (
        set(re.findall(r"@(\w+)", words)),
        set(re.findall(r"^@\w+\{(\w+),", text_of("paper.bib"), re.M)),
    )
    assert cited == listed
