"""Mutated model files: each is refused with the library's own error, or is as good as
one that was never touched.

``FUZZ_MODELS=100000 FUZZ_SEED=1 pytest tests/fuzz/test_models.py`` tries more of them.
"""

import contextlib
import copy
import io
import json
import os
import warnings
from collections.abc import Mapping

import narwhals as nw
import numpy as np
import pytest
from ends import SEED, mutated, run, soon

import fairmaxent
from fairmaxent import Estimate, FairMaxEntError, Privacy, debias
from fairmaxent.errors import StorageError
from fairmaxent.fit import pipeline
from modelfiles import array_bytes, members_of, sealed
from quiet import DOMAIN, Seeded, people
from tables import EQUAL_PROBABILITIES

pytestmark = pytest.mark.more

MUTANTS = int(os.environ.get("FUZZ_MODELS", "66"))
KINDS = {
    "polars": {},
    "pandas": {
        "table": "pandas",
        "forbid": [{"job": "a", "town": "x"}],
        "favourable": "yes",
    },
    "pyarrow": {
        "table": "pyarrow",
        "base": "product",
        "target": {"sex": {"f": 0.5, "m": 0.5}},
    },
    "lazy": {"table": "lazy"},
    "relabelled": {
        "model": EQUAL_PROBABILITIES,
        "estimate": Estimate(model="tree"),
        "favourable": "yes",
    },
    "within": {"within": {"job": ["a", "b"]}, "favourable": "yes"},
    "several": {
        "outcome": ["hired", "town"],
        "favourable": {"hired": "yes"},
        "groups": "joint",
    },
    "means": {"outcome": "age", "equal_means": True, "within": "town"},
    "private": {"privacy": Privacy(epsilon=1.0), "domain": DOMAIN},
    "shared": {"release": True, "representation_rate": 0.8},
}
NAMES = list(KINDS)


def original(name, folder):
    """A model file of every kind of fit."""
    options = {"outcome": "hired", "protected": "sex", "estimate": None, **KINDS[name]}
    rows, library = people(120), options.pop("table", None)
    rows = {"pandas": rows.to_pandas, "pyarrow": rows.to_arrow, "lazy": rows.lazy}.get(
        library, lambda: rows
    )()
    with pytest.MonkeyPatch.context() as patch:
        # so that the mutants are the same each time
        patch.setattr(pipeline, "OpenDP", lambda: Seeded(0))
        fit = debias(rows, **options)
    fit.save(folder / "original")
    return (folder / "original").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_is_refused_or_harmless(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = original(name, tmp_path)
    use(fairmaxent.load(tmp_path / "original"))
    members, path = members_of(content), tmp_path / "mutant"
    refused = 0
    for number in range(MUTANTS // len(NAMES)):
        rng = np.random.default_rng([SEED, NAMES.index(name), number])
        path.write_bytes(
            mutated(content, rng) if number % 10 == 0 else mutant(members, rng)
        )
        verified = run(["verify", path.name], tmp_path) if number % 10 == 1 else None
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


def use(fit):
    """Use a fit in every way; any exception that is not the library's, or number
    outside its range, is raised.
    """
    certificate = fit.certificate
    assert str(certificate)
    assert repr(fit)
    assert repr(fit.domain)
    # Rows drawn by quota come below; a thousand simulated quotas for each mutant would
    # take most of the time.
    rates = (
        certificate.wanted,
        certificate.before,
        certificate.achieved,
        certificate.interval(50, iid=True),
    )
    assert all(0 <= rate <= 1 + 1e-9 or np.isnan(rate) for rate in _numbers(rates))
    certificate.to_dict()
    check_shares(fit.distribution.root_table)
    rows = nw.from_native(fit.sample(40, random_state=1), eager_only=True)
    assert len(rows) == 40
    assert tuple(rows.columns) == fit.columns
    probabilities = fit.distribution.probability(rows.to_native())
    assert ((probabilities >= 0) & (probabilities <= 1 + 1e-9)).all()
    fit.sample(10, random_state=1, iid=True)
    with contextlib.suppress(FairMaxEntError):
        fit.top_up(random_state=1)
    with contextlib.suppress(FairMaxEntError):
        weights = fit.weights()
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert abs(weights.sum() / len(weights) - 1) < 1e-3
    for attribute in fit.domain.attributes:
        marginal = nw.from_native(
            fit.distribution.marginal(attribute.name), eager_only=True
        )
        check_shares(marginal.get_column("probability").to_numpy())
        with contextlib.suppress(FairMaxEntError):
            fit.distribution.condition({attribute.name: attribute.labels[0]})


def check_shares(shares):
    assert abs(shares.sum() - 1) < 1e-5
    assert shares.min() >= 0


def _numbers(value):
    for item in (
        value.values()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, list | tuple)
        else ()
    ):
        yield from _numbers(item)
    if isinstance(value, int | float):
        yield value


STRANGE = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    64,
    2**31,
    2**63,
    2**70,
    -(2**63),
    0.0,
    0.5,
    1.0,
    1.0000001,
    1.5,
    -0.25,
    1e-300,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
    "",
    "x",
    "1",
    "\0",
    "é",
    "a" * 300,
    "constructor",
    "sex",
    "hired",
    [],
    [1],
    [[]],
    {},
    {"map": []},
    {"list": []},
    {"map": [["a", 1]]},
    {"list": [1, "a"]},
    "CONVERGED",
    "STALLED",
    "rows",
    "tree",
    "product",
    "numeric",
    "categorical",
    "moment",
    "category",
    "objects",
    "stream",
    "text",
    "times",
    "polars",
    "pandas",
    "pyarrow",
    "int64",
    "datetime64[ns]",
    "datetime64[ns, UTC]",
    "str",
    "object",
    "free",
    "keep",
]


def mutant(members, rng):
    """One to three changes of a model's members, as text or numbers, with digests that
    match if it has any.
    """
    changed = dict(members)
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.55:
            record = json.loads(changed["header.json"])
            change_record(record, rng)
            changed["header.json"] = json.dumps(record).encode()
        else:
            name = picked([name for name in changed if name.endswith(".npy")], rng)
            array = np.load(io.BytesIO(changed[name]), allow_pickle=False)
            with np.errstate(all="ignore"):
                changed[name] = array_bytes(changed_array(array, rng))
    return sealed(changed)


def picked(values, rng):
    return values[int(rng.integers(len(values)))]


def places(value):
    """Every place in a record: what holds it, and its key there."""
    for key, item in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield value, key
        yield from places(item)


def change_record(record, rng):
    """Remove, copy, repeat or change one value."""
    (parent, key), (other, its_key) = (
        picked(list(places(record)), rng) for _ in range(2)
    )
    value, how = parent[key], int(rng.integers(8))
    if how == 0:
        del parent[key]
    elif how == 1:
        parent[key] = copy.deepcopy(other[its_key])
    elif how == 2 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(value))
    elif how < 5 or isinstance(value, bool | None | list | dict):
        parent[key] = copy.deepcopy(picked(STRANGE, rng))
    elif isinstance(value, str):
        parent[key] = value[: int(rng.integers(len(value) + 1))] + str(
            rng.choice(["", "x", "1", "\x1b[31m"])
        )
    else:
        changed = value * rng.choice(
            [-1, 0.5, 0.9, 1, 1, 1.1, 2, 1e9, 1e-9]
        ) + rng.choice([0, 0, 1e-3, 1, -1])
        parent[key] = type(value)(changed) if np.isfinite(changed) else changed


def changed_array(array, rng):
    """Shorter, longer, of another type, turned, emptied, in another order, or with one
    to three other numbers.
    """
    rows, how = np.atleast_1d(array), int(rng.integers(12))
    others = (
        *(
            rows[:-1],
            np.append(rows, rows[-1:], axis=0),
            rows[::-1],
            rows[rng.permutation(len(rows))],
        ),
        *(
            array.T,
            np.zeros_like(array),
            array.astype(rng.choice(["f8", "f4", "i8", "u1", "u2", "i4", "?"])),
        ),
    )
    if how < len(others) or not array.size:
        return others[how % len(others)]
    changed = array.copy(order="K")
    for _ in range(int(rng.integers(1, 4))):
        at = tuple(int(rng.integers(size)) for size in array.shape)
        old = float(array[at])
        numbers = [
            np.nan,
            np.inf,
            -np.inf,
            -1,
            0,
            1,
            255,
            2.0**63,
            1e300,
            1e-300,
            old * 1.5,
            old + 1e-3,
            old + 1,
        ]
        changed[at] = np.array(
            picked([*numbers, picked(array.ravel(), rng)], rng)
        ).astype(array.dtype)
    return changed
