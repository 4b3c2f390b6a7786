"""Replicates: weights of bootstrap samples, each raked to the same margins."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from fairmaxent.data.limits import need_memory
from fairmaxent.data.table import Reals, tally
from fairmaxent.errors import InfeasibleError, InputError, Option, shown
from fairmaxent.raking.factors import Factors, find_factors
from fairmaxent.raking.problem import RakingProblem, Survey

_TRIES = 2  # draws for each replicate wanted, before it is given up


def check_replicates(replicates: int, survey: Survey) -> None:
    """Refuse what cannot be drawn."""
    if (
        isinstance(replicates, bool)
        or not isinstance(replicates, int | np.integer)
        or not 0 <= replicates < 2**31
    ):
        raise InputError(
            Option("replicates"),
            f" is {shown(replicates)}; give a whole number, 200 is usual",
        )

    if replicates and (survey.table.size < 2 or not survey.table.keeps_rows):
        raise InputError(
            Option("replicates"),
            " needs at least two rows in memory; collect a table that an engine keeps",
        )

    need_memory(
        8.0 * replicates * survey.table.size,
        f"{replicates:,} replicate weights for each row",
        "ask for fewer replicates",
    )


def replicate_weights(
    problem: RakingProblem,
    survey: Survey,
    factors: Factors,
    count: int,
    rng: np.random.Generator,
) -> tuple[Reals, int]:
    """Return the weights of each row in each replicate, and how many draws failed.

    The weights are 1 on average. The bootstrap of Rao and Wu (1988) draws n − 1 of the
    n rows with replacement, and each counts n/(n − 1) times as often as it was drawn. A
    draw that misses a level altogether cannot have the margins: another one is drawn
    instead.
    """
    rows = survey.table.size
    cell = survey.table.inverse
    result = np.empty((rows, count), order="F")
    done = failed = 0
    while done < count:
        if failed > _TRIES * count + 10:
            raise _too_many(problem, failed, failed + done)
        drawn = tally(rng.integers(0, rows, rows - 1), None, rows) * (rows / (rows - 1))
        if survey.design is not None:
            drawn = drawn * survey.design
        masses = tally(cell, drawn, survey.table.distinct)
        raked = None
        if masses.any():
            of_draw = replace(problem, masses=masses / masses.sum())
            with suppress(InfeasibleError):
                raked = find_factors(of_draw, factors.multipliers)
        if raked is None:
            failed += 1
            continue
        weights = drawn * raked.values[cell]
        result[:, done] = weights * (rows / weights.sum())
        done += 1
    return result, failed


def replaced(problem: RakingProblem, failed: int, count: int) -> str:
    """Say that draws were replaced, why, and what follows."""
    within = ""
    advice = "merge levels with few rows"
    if problem.bounds.given:
        within = f" with factors {problem.bounds.text}, the bounds"
        advice = "widen the bounds, or merge levels with few rows"
    return (
        f"{failed:,} of {failed + count:,} replicates could not have the margins"
        f"{within}, and were replaced by others: those that are left vary less than"
        f" samples do, and intervals from them may be too narrow; {advice}"
    )


def _too_many(problem: RakingProblem, failed: int, drawn: int) -> InfeasibleError:
    within = ""
    widen: tuple[object, ...] = ()
    if problem.bounds.given:
        within = f" with factors {problem.bounds.text}"
        widen = (", widen ", Option("bounds"))
    return InfeasibleError(
        f"{failed:,} of {drawn:,} replicates cannot have the margins{within}, too many"
        " to be of use; merge levels with few rows",
        *widen,
        ", or leave out ",
        Option("replicates"),
    )
