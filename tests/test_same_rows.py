"""One seed, one result: command line, pandas, polars, pyarrow, a lazy frame and the estimator give the same rows."""

import polars as pl
import pytest
from click.testing import CliRunner

import fairmaxent
from clifiles import ROLES, biased_table
from fairmaxent.cli.group import group

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
    frame = {"pandas": table.to_pandas, "polars": table.clone, "pyarrow": table.to_arrow}[library]()
    drawn = fairmaxent.debias(frame, "income", "sex", random_state=SEED).sample(ROWS)
    assert type(drawn) is type(frame)
    records = drawn.to_dict("records") if library == "pandas" else pl.DataFrame(drawn).to_dicts()
    assert records == expected


def test_a_lazy_frame(table):
    """No row of a lazy frame is kept, so that its numbers are drawn inside their bins."""
    expected = fairmaxent.debias(table, "income", "sex", detail="bins", random_state=SEED).sample(ROWS)
    drawn = fairmaxent.debias(table.lazy(), "income", "sex", random_state=SEED).sample(ROWS)
    assert drawn.to_dicts() == expected.to_dicts()


def test_the_command_line(table, expected, tmp_path):
    table.write_csv(tmp_path / "table.csv")
    arguments = ["debias", str(tmp_path / "table.csv"), *ROLES, "--seed", str(SEED), "--rows", str(ROWS)]
    done = CliRunner().invoke(group, [*arguments, "-o", str(tmp_path / "fair.csv")])
    assert done.exit_code == 0, done.output
    assert pl.read_csv(tmp_path / "fair.csv").to_dicts() == expected
