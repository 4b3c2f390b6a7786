"""Mutated model files: each is refused with the library's own error, or is as good as one that was never touched.

``FUZZ_MODELS=100000 FUZZ_SEED=1 pytest tests/fuzz/test_models.py`` tries more of them.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from call_ends import soon
from command_ends import run

import fairmaxent
from fairmaxent import Privacy, StorageError, debias
from fairmaxent.fit import pipeline
from model_mutants import flipped, members_of, mutant
from model_use import use
from quiet import DOMAIN, Seeded, people

FOLDER = Path(__file__).parent.parent / "fit" / "version_2"
MUTANTS = int(os.environ.get("FUZZ_MODELS", "96"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.fme"))
# Fits of kinds that the format before could not store.
NEWER = {
    "within": {"within": {"job": ["a", "b"]}, "favourable": "yes"},
    "several": {"outcome": ["hired", "town"], "favourable": {"hired": "yes"}, "groups": "joint"},
    "means": {"outcome": "age", "means": "equal", "within": "town"},
    "private": {"privacy": Privacy(epsilon=1.0), "domain": DOMAIN},
    "shared": {"release": True, "representation_rate": 0.8},
}
KINDS = [*((name, version) for name in NAMES for version in (2, 3)), *((name, 3) for name in NEWER)]


def original(name, version, folder):
    """A model file of every kind of fit, of the format of today or of the one before."""
    if version == 2:
        return (FOLDER / f"{name}.fme").read_bytes()
    (newer_fit(NEWER[name]) if name in NEWER else fairmaxent.load(FOLDER / f"{name}.fme")).save(folder / "original")
    return (folder / "original").read_bytes()


def newer_fit(options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "OpenDP", lambda: Seeded(0))  # so that the mutants are the same each time
        return debias(people(120), **{"outcome": "hired", "protected": "sex", "estimate": None} | options)


@pytest.mark.parametrize(("name", "version"), KINDS)
def test_a_mutant_is_refused_or_harmless(name, version, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = original(name, version, tmp_path)
    members, path = members_of(content), tmp_path / "mutant"
    refused = 0
    for number in range(MUTANTS // len(KINDS)):
        rng = np.random.default_rng([SEED, KINDS.index((name, version)), number])
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


@pytest.mark.parametrize(("name", "version"), KINDS)
def test_an_untouched_file_passes_the_same_use(name, version, tmp_path):
    (tmp_path / "model").write_bytes(original(name, version, tmp_path))
    use(fairmaxent.load(tmp_path / "model"))
