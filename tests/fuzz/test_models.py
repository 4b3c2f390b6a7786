"""Mutated model files: each is refused with the library's own error, or is as good as one that was never touched.

``FUZZ_MODELS=100000 FUZZ_SEED=1 pytest tests/fuzz/test_models.py`` tries more of them.
"""

import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fairmaxent
from fairmaxent import StorageError
from model_mutants import flipped, members_of, mutant
from model_use import use

FOLDER = Path(__file__).parent.parent / "fit" / "version_2"
MUTANTS = int(os.environ.get("FUZZ_MODELS", "96"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.fme"))


@cache
def original(name, version, folder):
    """A model file of every kind of fit, of the format of today or of the one before."""
    path = FOLDER / f"{name}.fme"
    if version == 2:
        return path.read_bytes()
    fairmaxent.load(path).save(folder / "original")
    return (folder / "original").read_bytes()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_is_refused_or_harmless(name, version, tmp_path):
    content = original(name, version, tmp_path)
    members, path = members_of(content), tmp_path / "mutant"
    refused = 0
    for number in range(MUTANTS // (2 * len(NAMES))):
        rng = np.random.default_rng([SEED, version, NAMES.index(name), number])
        path.write_bytes(flipped(content, rng) if number % 10 == 0 else mutant(members, rng))
        try:
            fit = fairmaxent.load(path)
        except StorageError:
            refused += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            use(fit)
    assert refused


def test_untouched_files_pass_the_same_use(tmp_path):
    for name in NAMES:
        use(fairmaxent.load(FOLDER / f"{name}.fme"))
