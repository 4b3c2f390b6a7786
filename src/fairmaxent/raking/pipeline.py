"""The way from a frame and its known margins to a raking: `rake` is this path as code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import RandomState, generator
from fairmaxent.errors import InputError, Option, WeightError, did_you_mean
from fairmaxent.raking.bounds import read_bounds
from fairmaxent.raking.certificate import certify
from fairmaxent.raking.factors import find_factors
from fairmaxent.raking.margins import KnownMargin, read_margins, scale_of
from fairmaxent.raking.problem import RakingProblem
from fairmaxent.raking.raking import Raking
from fairmaxent.raking.replicates import check_replicates, replicate_weights
from fairmaxent.raking.survey import columns_of, read_survey
from fairmaxent.raking.targets import match_margin

ALL = "all"
Relax = str | Sequence[str | tuple[str, ...]] | None


_LOST = 1e-12  # share of the old weights below which a level is lost in rounding


def rake(
    frame: Any,
    margins: Any,
    *,
    weight: str | None = None,
    bounds: Sequence[float | None] | None = None,
    relax: Relax = None,
    replicates: int = 0,
    domain: Domain | None = None,
    random_state: RandomState = None,
) -> Raking:
    """Find weights that give a table known margins, and otherwise change as little as possible.

    Raises :class:`fairmaxent.ConflictError` if no weights meet the margins; it names the smallest set of margins that
    contradict each other.

    Parameters
    ----------
    frame : a pandas DataFrame, polars DataFrame or pyarrow Table; or a polars, DuckDB, Dask or PySpark lazy frame,
        whose engine counts the rows.
    margins : what is known: a share or a total for each level of a column, ``{"sex": {"Female": 0.51, "Male": 0.49}}``,
        or of crossed columns, ``{("sex", "age"): {("Female", "young"): 120_000, ...}}``; margins may overlap. Or a
        table whose column ``value`` stands beside ``columns`` and ``level``, or beside columns of the data. If margins
        are totals, the weights add up to that total, and otherwise to the number of rows.
    weight : a column of design weights, which the weights are to stay close to.
    bounds : the smallest and the largest factor by which the share of a row in the total may change, such as
        ``(0.3, 3)``; they hold exactly.
    relax : if margins contradict each other, come as close as possible instead of refusing: ``"all"`` margins may be
        missed, or some, ``["region", ("sex", "age")]``. Closest means the smallest sum of squared errors of shares.
    replicates : how many bootstrap replicates of the weights to make, each raked to the same margins.
    domain : how columns are read, such as numbers in bins, by ``Domain.infer``; by default each value is a level.
    random_state : seed of the replicates and of :meth:`Raking.sample`.
    """
    limits = read_bounds(bounds)
    generator(random_state)  # refuses what is no seed, before any work
    known = read_margins(margins, columns_of(frame))
    scale, relaxed = scale_of(known), _relaxed(relax, known)
    columns = list(dict.fromkeys(name for margin in known for name in margin.columns))
    survey = read_survey(frame, columns, weight=weight, domain=domain)
    check_replicates(replicates, survey)
    targets = tuple(match_margin(margin, survey.domain, survey.table) for margin in known)
    masses = survey.table.counts / survey.table.total
    problem = RakingProblem(targets, masses, limits, relaxed)
    _refuse_lost_levels(problem)
    factors = find_factors(problem)
    total = float(survey.size) if scale.total is None else scale.total
    notes = (*scale.notes, *(note for target in targets for note in target.notes))
    certificate = certify(problem, survey, factors.values, total, missed=factors.missed, notes=notes)
    if not replicates:
        return Raking(survey, factors.values, certificate, random_state)
    replicated, failed = replicate_weights(problem, survey, factors, replicates, generator(random_state))
    if failed:
        note = f"{failed:,} replicates could not have the margins, and were replaced by others"
        certificate = replace(certificate, notes=(*notes, note))
    return Raking(survey, factors.values, certificate, random_state, replicated)


def _relaxed(relax: Relax, known: Sequence[KnownMargin]) -> frozenset[int]:
    """Positions of the margins that may be missed."""
    columns = [margin.columns for margin in known]
    if relax is None or (relax == ALL and (ALL,) not in columns):
        return frozenset(() if relax is None else range(len(known)))
    wishes = [relax] if isinstance(relax, str) else relax
    if not isinstance(wishes, list | tuple) or not all(isinstance(wish, str | list | tuple) for wish in wishes):
        raise InputError(Option("relax"), f" is {relax!r}; pass 'all', or a list of margins such as ['region']")
    positions = []
    for wish in wishes:
        names = (wish,) if isinstance(wish, str) else tuple(map(str, wish))
        if names not in columns:
            hint = did_you_mean(" × ".join(names), [margin.name for margin in known])
            raise InputError(Option("relax"), f" names {' × '.join(names)!r}, which has no margin; {hint}")
        positions.append(columns.index(names))
    return frozenset(positions)


def _refuse_lost_levels(problem: RakingProblem) -> None:
    """Refuse weights beside which those of a level vanish, so that no arithmetic could raise them again."""
    for margin in problem.margins:
        shares = np.bincount(margin.cells, problem.masses, minlength=len(margin.wanted))
        lost = np.flatnonzero((shares > 0) & (shares < _LOST) & (margin.wanted > 0))
        if len(lost):
            raise WeightError(
                f"nearly all weight is on other rows than those with {margin.describe(int(lost[0]))}; check ",
                Option("weight"),
            )
