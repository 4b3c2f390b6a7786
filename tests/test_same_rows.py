"""One seed, one result: command line, pandas, polars, pyarrow, a lazy frame and the
estimator give the same rows.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from clifiles import ROLES, biased_table
from fairmaxent.cli.group import group
from tables import EQUAL_PROBABILITIES

SEED = 11
ROWS = 300


@pytest.fixture(scope="module")
def table():
    return biased_table()


@pytest.fixture(scope="module")
def expected(table):
    fit = fairmaxent.debias(table, "income", "sex", random_state=SEED)
    return fit.sample(ROWS).to_dicts()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_every_library(table, expected, library):
    frame = {
        "pandas": table.to_pandas,
        "polars": table.clone,
        "pyarrow": table.to_arrow,
    }[library]()
    drawn = fairmaxent.debias(frame, "income", "sex", random_state=SEED).sample(ROWS)
    assert type(drawn) is type(frame)
    records = (
        drawn.to_dict("records")
        if library == "pandas"
        else pl.DataFrame(drawn).to_dicts()
    )
    assert records == expected


def test_a_lazy_frame(table):
    """No row of a lazy frame is kept, so that its numbers are drawn inside their
    bins.
    """
    expected = fairmaxent.debias(
        table, "income", "sex", detail="bins", random_state=SEED
    ).sample(ROWS)
    drawn = fairmaxent.debias(table.lazy(), "income", "sex", random_state=SEED).sample(
        ROWS
    )
    assert drawn.to_dicts() == expected.to_dicts()


def test_the_command_line(table, expected, tmp_path):
    table.write_csv(tmp_path / "table.csv")
    arguments = [
        "debias",
        str(tmp_path / "table.csv"),
        *ROLES,
        "--seed",
        str(SEED),
        "--rows",
        str(ROWS),
    ]
    done = CliRunner().invoke(group, [*arguments, "-o", str(tmp_path / "fair.csv")])
    assert done.exit_code == 0, done.output
    assert pl.read_csv(tmp_path / "fair.csv").to_dicts() == expected


# a logistic regression adds up its columns in their order, so its last digits differ
@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("asked", "tolerance"),
    [({"base_share": 1}, 0), ({"model": EQUAL_PROBABILITIES}, 1e-7)],
)
def test_the_order_of_columns_changes_no_base_and_no_folds(asked, tolerance):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 600)
    frame = pd.DataFrame(
        {
            name: np.where(rng.random(600) < 0.6, first, rng.integers(0, 3, 600))
            for name in "dbca"
        }
    )
    frame = frame.assign(
        e=frame["a"], z=rng.choice(["p", "q"], 600), y=rng.choice(["0", "1"], 600)
    ).astype(str)
    fits = [
        fairmaxent.debias(frame[rng.permutation(frame.columns)], "y", "z", **asked)
        for _ in range(4)
    ]
    weights = fits[0].weights()
    chances = fits[0].distribution.probability(frame)
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.weights(), weights, rtol=tolerance)
        again = fit.distribution.probability(frame)
        np.testing.assert_allclose(again, chances, rtol=tolerance)
