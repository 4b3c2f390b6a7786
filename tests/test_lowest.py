"""scripts/lowest.py: the lower bounds of pyproject.toml, as pip takes them."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_library_has_a_lower_bound():
    path = ROOT / "scripts" / "lowest.py"
    spec = importlib.util.spec_from_file_location("lowest", path)
    lowest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lowest)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bounds = lowest.lower_bounds(text)
    assert {"numpy", "scipy", "narwhals", "polars", "click", "dask", "pandas"} <= bounds.keys()
    assert all(f"{name}>=" in text or f"{name}[" in text for name in bounds)
    known = 'dependencies = ["a>=1.2", "b-c[x,y]>=3"]\noptional-dependencies = {all = ["own[all]", "a>=1.10"]}\n'
    assert lowest.lower_bounds(f"[project]\n{known}") == {"a": "1.10", "b-c": "3"}
