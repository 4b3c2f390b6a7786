"""Mutated model files: each is refused with the library's own error, or is as good as one that was never touched.

``FUZZ_MODELS=100000 FUZZ_SEED=1 pytest tests/fuzz/test_models.py`` tries more of them.
"""

import os
import warnings

import numpy as np
import pytest
from call_ends import soon
from command_ends import run

import fairmaxent
from fairmaxent import Estimate, Privacy, Relabel, debias
from fairmaxent.errors import StorageError
from fairmaxent.fit import pipeline
from model_mutants import flipped, mutant
from model_use import use
from modelfiles import members_of
from quiet import DOMAIN, Seeded, people

MUTANTS = int(os.environ.get("FUZZ_MODELS", "96"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
KINDS = {
    "polars": {},
    "pandas": {"table": "pandas", "forbid": [{"job": "a", "town": "x"}], "favourable": "yes"},
    "pyarrow": {"table": "pyarrow", "base": "product", "target": {"sex": {"f": 0.5, "m": 0.5}}},
    "lazy": {"table": "lazy"},
    "relabelled": {"relabel": Relabel(labeller="tree"), "estimate": Estimate(student="tree"), "favourable": "yes"},
    "paper": {"paper": True},
    "within": {"within": {"job": ["a", "b"]}, "favourable": "yes"},
    "several": {"outcome": ["hired", "town"], "favourable": {"hired": "yes"}, "groups": "joint"},
    "means": {"outcome": "age", "means": "equal", "within": "town"},
    "private": {"privacy": Privacy(epsilon=1.0), "domain": DOMAIN},
    "shared": {"release": True, "representation_rate": 0.8},
}
NAMES = list(KINDS)


def original(name, folder):
    """A model file of every kind of fit."""
    made(**KINDS[name]).save(folder / "original")
    return (folder / "original").read_bytes()


def made(*, table="polars", paper=False, **options):
    rows = people(120)
    rows = {"pandas": lambda: rows.to_pandas(), "pyarrow": lambda: rows.to_arrow(), "lazy": lambda: rows.lazy()}.get(
        table, lambda: rows
    )()
    if paper:
        return fairmaxent.paper.fit(rows, outcome="hired", protected="sex", C=0.3, theta="b", tau=0.9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "OpenDP", lambda: Seeded(0))  # so that the mutants are the same each time
        return debias(rows, **{"outcome": "hired", "protected": "sex", "estimate": None} | options)


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_is_refused_or_harmless(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = original(name, tmp_path)
    members, path = members_of(content), tmp_path / "mutant"
    refused = 0
    for number in range(MUTANTS // len(NAMES)):
        rng = np.random.default_rng([SEED, NAMES.index(name), number])
        path.write_bytes(flipped(content, rng) if number % 10 == 0 else mutant(members, rng))
        verified = run(["verify", path.name], tmp_path).exit_code if number % 10 == 1 else None
        try:
            fit = fairmaxent.load(path)
        except StorageError:
            assert verified in (None, 5)
            refused += 1
            continue
        assert verified in (None, 0)
        with soon(), warnings.catch_warnings():
            warnings.simplefilter("error")
            use(fit)
    assert refused


@pytest.mark.parametrize("name", NAMES)
def test_an_untouched_file_passes_the_same_use(name, tmp_path):
    (tmp_path / "model").write_bytes(original(name, tmp_path))
    use(fairmaxent.load(tmp_path / "model"))
