"""A small table with a bias, as files, for the tests of the command line."""

from pathlib import Path

import numpy as np
import polars as pl
from click.testing import CliRunner

from fairmaxent.cli.group import group

ROWS = 240


def biased_table(seed=5):
    """Women rarer, and rarely of high income; nurses are mostly women."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], ROWS, p=[0.3, 0.7])
    high = rng.random(ROWS) < np.where(sex == "Male", 0.5, 0.2)
    job = np.where(
        (sex == "Female") & (rng.random(ROWS) < 0.7),
        "nurse",
        rng.choice(["clerk", "cook"], ROWS),
    )
    columns = {
        "sex": sex,
        "race": rng.choice(["Black", "Other", "White"], ROWS),
        "job": job,
    }
    columns |= {
        "age": rng.integers(17, 90, ROWS),
        "weight": rng.uniform(0.5, 1.5, ROWS).round(3),
    }
    return pl.DataFrame(columns | {"income": np.where(high, ">50K", "<=50K")})


ROLES = ["--outcome", "income", "--protected", "sex"]
# for processes, which estimate by default; that takes seconds
QUIET = ["--estimate", "none"]


def run(*args, code=0, **options):
    """Run the command, which must end with this code (None: with any)."""
    result = CliRunner().invoke(group, [str(arg) for arg in args], **options)
    assert code is None or result.exit_code == code, result.output
    return result


def listing(folder):
    """Every file below a folder with its content, to see that nothing changed."""
    found = Path(folder).rglob("*")
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in found
    }
