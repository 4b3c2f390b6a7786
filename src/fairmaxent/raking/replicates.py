"""Replicate weights: the survey as it might have been, raked to the same margins, for the variance of any estimate.

Rao and Wu's bootstrap: n − 1 of the n rows are drawn with replacement, and each counts n/(n − 1) times as often as it
was drawn. The variance of an estimate is the mean squared difference between its values with the replicate weights and
with the weights.

References
----------
J. N. K. Rao, C. F. J. Wu, "Resampling inference with complex survey data", JASA 83 (1988).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairmaxent.data.arrays import Reals
from fairmaxent.data.limits import need_memory
from fairmaxent.data.table import tally
from fairmaxent.errors import InfeasibleError, InputError, Option
from fairmaxent.raking.factors import Factors, find_factors
from fairmaxent.raking.problem import RakingProblem
from fairmaxent.raking.survey import Survey

_TRIES = 2  # draws for each replicate wanted, before it is given up


def check_replicates(replicates: int, survey: Survey) -> None:
    """Refuse what cannot be drawn."""
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 0:
        raise InputError(Option("replicates"), f" is {replicates!r}; give a whole number, 200 is usual")
    if replicates and not survey.table.keeps_rows:
        raise InputError(
            Option("replicates"), " needs the rows in memory, but an engine keeps them; collect the table first"
        )
    if replicates and survey.size < 2:
        raise InputError(Option("replicates"), " needs at least two rows")
    need_memory(
        8.0 * replicates * survey.size, f"{replicates:,} replicate weights for each row", "ask for fewer replicates"
    )


def replicate_weights(
    problem: RakingProblem, survey: Survey, factors: Factors, count: int, rng: np.random.Generator
) -> tuple[Reals, int]:
    """Return the weights of each row in each replicate, 1 on average, and how many draws could not be raked.

    A draw that misses a level altogether cannot have the margins; another one is drawn instead.
    """
    rows, cell = survey.size, survey.table.inverse
    result = np.empty((rows, count), order="F")
    done = failed = 0
    while done < count:
        if failed > _TRIES * count + 10:
            raise InfeasibleError(
                f"{failed:,} of {failed + done:,} replicates cannot have the margins, too many to be of use; merge "
                "levels with few rows, or leave out ",
                Option("replicates"),
            )
        drawn = tally(rng.integers(0, rows, rows - 1), None, rows) * (rows / (rows - 1))
        base = drawn if survey.design is None else drawn * survey.design
        masses = tally(cell, base, survey.table.distinct)
        if not masses.any():
            failed += 1
            continue
        try:
            raked = find_factors(replace(problem, masses=masses / masses.sum()), factors.multipliers)
        except InfeasibleError:
            failed += 1
            continue
        weights = base * raked.values[cell]
        result[:, done] = weights * (rows / weights.sum())
        done += 1
    return result, failed
