"""A raking: the weights that known margins ask for, and `rake`, which finds them."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.random import Generator

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import RandomState, check_count, generator, is_whole
from fairmaxent.data.limits import need_memory
from fairmaxent.data.reading import encode_table
from fairmaxent.data.roles import LARGEST_ROOT, check_weight_name
from fairmaxent.data.table import (
    Blocks,
    Names,
    Reals,
    Table,
    match_rows,
    tally,
)
from fairmaxent.distribution import Distribution, Evidence
from fairmaxent.engines.lazy_counts import Coding, count_rows, join_weights
from fairmaxent.engines.lazy_frame import (
    check_column,
    engine_errors,
    fresh_name,
    learn_domain,
    names_of,
    open_lazy,
)
from fairmaxent.errors import (
    InfeasibleError,
    InputError,
    Option,
    Remark,
    WeightError,
    did_you_mean,
    unfit,
)
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.raking.certificate import RakingCertificate, certify
from fairmaxent.raking.factors import Factors, find_factors
from fairmaxent.raking.margins import Margin, match_margin, read_margins, scale_of
from fairmaxent.raking.problem import (
    RakingProblem,
    Survey,
    columns_of,
    read_bounds,
    read_survey,
)

WEIGHT_NAME = "raked_weight"
ALL = "all"
_TRIES = 2  # draws for each replicate wanted, before it is given up
_LOST = 1e-12  # share of the old weights below which a level is lost in rounding
Relax = str | Sequence[str | Names] | None


@dataclass(frozen=True, eq=False, repr=False)
class Raking:
    """What `fairmaxent.rake` found: weights that give the table the known margins.

    The :attr:`certificate` shows what was reached and what it costs.
    """

    survey: Survey
    # by what the share of a row in the total changes, for each cell of the survey
    factors: Reals
    certificate: RakingCertificate
    random_state: RandomState = None
    # the weights of each row in each replicate, 1 on average; None: nobody asked
    replicated: Reals | None = None

    def __repr__(self) -> str:
        return f"<Raking of {self.survey.table.size:,} rows>\n{self.certificate}"

    def weights(self) -> Reals:
        """One weight per row.

        They are 1 on average if the margins are shares, and else add up to the total.
        """
        return self._scaled(self.factors[self._rows_kept()], self.survey.design)

    def replicate_weights(self) -> Reals:
        """One column of weights per replicate, as many as were asked for."""
        if self.replicated is None:
            raise InputError(
                "no replicate weights were asked for; rake the table again with ",
                Option("replicates"),
            )
        return self.replicated * self._per_row

    def weigh(self, frame: Any, *, weight_name: str = WEIGHT_NAME) -> Any:
        """Return the table with a column of weights added, and one per replicate.

        The latter are called ``raked_weight_1``, ``raked_weight_2``, …

        The rows may come in any order, unless there are replicates. A lazy frame is
        joined with its weights inside its engine; nothing is computed until it is
        collected.
        """
        lazy = open_lazy(frame)
        if lazy is not None:
            return self._weigh_lazily(lazy, weight_name)
        opened = frames.open_frame(frame)
        cells = self._cells_of(opened)
        design = frames.read_weights(opened, self.survey.weight)
        if design is not None:
            design = design / self.survey.weight_scale
        columns = {weight_name: self._scaled(self.factors[cells], design)}
        if self.replicated is not None:
            if not np.array_equal(cells, self.survey.table.inverse):
                raise InputError(
                    "replicate weights belong to single rows; pass the raked table,"
                    " with its rows in the same order"
                )
            for number, column in enumerate(self.replicate_weights().T, 1):
                columns[f"{weight_name}_{number}"] = column

        like = opened.get_column(opened.columns[0])
        added = []
        for title, numbers in columns.items():
            check_weight_name(title, opened.columns)
            added.append(frames.number_column(title, numbers, like))
        return opened.with_columns(*added).to_native()

    def sample(
        self,
        n: int,
        *,
        given: Evidence | None = None,
        random_state: RandomState = None,
        iid: bool = False,
    ) -> Any:
        """Draw ``n`` rows by their weights: a table of the same kind without weights.

        Each combination of the margins' levels comes as often as its share, up to one
        row (quota); ``iid=True`` draws rows independently. ``given`` fixes columns,
        e.g. ``{"sex": "Female"}``. Columns that look like identifiers are left out, and
        a column of design weights comes back as ones.
        """
        count = check_count(n)
        rng = generator(self.random_state if random_state is None else random_state)
        drawn = self.distribution.sample(
            count,
            given=given,
            random_state=rng,
            iid=iid,
        )
        weight = self.survey.weight
        ones = None
        if weight is not None:
            first = nw.from_native(self.survey.frame).select(weight).head(1)
            if isinstance(first, nw.LazyFrame):
                first = first.collect()
            ones = frames.one_like(first.get_column(weight))

        present = (*nw.from_native(drawn, eager_only=True).columns, weight)
        names = [name for name in columns_of(self.survey.frame) if name in present]
        return frames.arrange(drawn, names, ones)

    @cached_property
    def distribution(self) -> Distribution:
        """The population that the weights describe: exact marginals and draws."""
        lazy = open_lazy(self.survey.frame)
        if lazy is not None:
            return self._distribution_of(lazy)
        opened = frames.open_frame(self.survey.frame)
        weights = self.weights() / self._per_row
        encoded = encode_table(
            opened,
            None,
            weight=self.survey.weight,
            weights=weights,
            keep=self.survey.domain.names,
        )
        domain = encoded.domain
        blocks = self._blocks(domain)
        table = Table.compress(blocks.pool(encoded.codes), blocks.levels, weights)
        weighted = Distribution(
            domain, blocks, Rows.of(blocks, table), np.zeros(blocks.width)
        )
        return weighted.detailed(encoded.positions, table, weights)

    def _distribution_of(self, lazy: Any) -> Distribution:
        """The same if an engine counts the rows."""
        name = fresh_name(WEIGHT_NAME, names_of(lazy))
        weighed: Any = open_lazy(self._weigh_lazily(lazy, name))
        with engine_errors(weighed):
            if self.survey.weight is not None:
                weighed = weighed.drop(self.survey.weight)
            learned = learn_domain(weighed, weight=name)
            domain, _ = learned.without_identifiers(self.survey.domain.names)
            blocks = self._blocks(domain)
            coding = Coding.of(domain, blocks, name, taken=names_of(weighed))
            rows = Rows.of(blocks, count_rows(weighed, coding))
            return Distribution(domain, blocks, rows, np.zeros(blocks.width))

    def _blocks(self, domain: Domain) -> Blocks:
        """Pool as many columns of the margins as a table in memory can have.

        Rows are drawn by quota from it.
        """
        root: list[int] = []
        for index in map(domain.index, self.survey.domain.names):
            size = math.prod(domain.sizes[other] for other in (*root, index))
            if not root or size <= LARGEST_ROOT:
                root.append(index)
        return Blocks.rooted(domain.sizes, root)

    @property
    def _per_row(self) -> float:
        """The average weight."""
        return self.certificate.total / self.survey.table.size

    def _scaled(self, factors: Reals, design: Reals | None) -> Reals:
        if design is not None:
            factors = factors * design
        return factors * self._per_row

    def _rows_kept(self) -> Any:
        if not self.survey.table.keeps_rows:
            raise InputError(
                "an engine counted the rows, so there is no list of their weights; use"
                " weigh(lazy_frame), or rake a table in memory"
            )
        return self.survey.table.inverse

    def _cells_of(self, opened: frames.Frame) -> Any:
        """The cell of each row, found by its levels."""
        if opened.to_native() is nw.to_native(self.survey.frame, pass_through=True):
            return self._rows_kept()
        domain = self.survey.domain
        for column in domain.names:
            frames.column(opened, column)
        cells = match_rows(self.survey.table.codes, domain.encode(opened), domain.sizes)
        if (cells < 0).any():
            raise InputError(
                f"row {int(np.argmax(cells < 0))} has a combination of levels that was"
                " not in the raked table; pass that table, with its rows in any order"
            )
        return cells

    def _weigh_lazily(self, lazy: Any, name: str) -> Any:
        survey = self.survey
        for column in (*survey.domain.names, survey.weight):
            if column is not None:
                check_column(lazy, column)

        if self.replicated is not None:
            raise InputError(
                "replicate weights belong to rows in memory; collect the table first"
            )

        check_weight_name(name, names_of(lazy))
        blocks = Blocks.rooted(survey.domain.sizes, (0,))
        weights = self.factors * self._per_row
        return join_weights(
            lazy,
            survey.domain,
            blocks,
            survey.table,
            weights,
            weight=survey.weight,
            scale=survey.weight_scale,
            name=name,
        )


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
    """Find weights that give a table known margins, and change as little as possible.

    Raises :class:`fairmaxent.errors.ConflictError` if no weights meet the margins; it
    names the smallest set of margins that contradict each other.

    Parameters
    ----------
    frame : a pandas DataFrame, polars DataFrame or pyarrow Table; or a polars, DuckDB,
        Dask or PySpark lazy frame, whose engine counts the rows.
    margins : what is known: a share or a total for each level of a column,
        ``{"sex": {"Female": 0.51, "Male": 0.49}}``, or of crossed columns,
        ``{("sex", "age"): {("Female", "young"): 120_000, ...}}``; margins may overlap.
        Or a table whose column ``value`` stands beside ``columns`` and ``level``, or
        beside columns of the data. If margins are totals, the weights add up to that
        total, and otherwise to the number of rows.
    weight : a column of design weights, which the weights are to stay close to.
    bounds : the smallest and the largest factor by which the share of a row in the
        total may change, such as ``(0.3, 3)``; they hold exactly.
    relax : if margins contradict each other, come as close as possible instead of
        refusing: ``"all"`` margins may be missed, or some,
        ``["region", ("sex", "age")]``. Closest means the smallest sum of squared errors
        of shares.
    replicates : how many bootstrap replicates of the weights to make, each raked to the
        same margins.
    domain : how columns are read, such as numbers in bins, by ``Domain.infer``; by
        default each value is a level.
    random_state : seed of the replicates and of :meth:`Raking.sample`.
    """
    limits = read_bounds(bounds)
    generator(random_state)  # refuses what is no seed, before any work
    asked = read_margins(margins, columns_of(frame))
    total, rounded = scale_of(asked)
    relaxed = _relaxed(relax, asked)
    columns = list(dict.fromkeys(name for margin in asked for name in margin.columns))
    survey = read_survey(
        frame,
        columns,
        weight=weight,
        domain=domain,
    )
    _check_replicates(replicates, survey)
    targets = tuple(
        match_margin(margin, survey.domain, survey.table) for margin in asked
    )
    masses = survey.table.counts / survey.table.total
    problem = RakingProblem(targets, masses, limits, relaxed)
    _refuse_lost_levels(problem)
    factors = find_factors(problem)
    if total is None:
        total = float(survey.table.size)
    notes = (*rounded, *(note for target in targets for note in target.notes))
    certificate = certify(
        problem,
        survey,
        factors.values,
        total,
        conflict=factors.conflict,
        notes=notes,
    )
    if not replicates:
        return Raking(survey, factors.values, certificate, random_state)
    replicated, failed = _replicated(
        problem, survey, factors, replicates, generator(random_state)
    )
    if failed:
        note = _replaced(problem, failed, replicates)
        certificate = replace(certificate, notes=(*notes, note))
    return Raking(survey, factors.values, certificate, random_state, replicated)


def _refuse_lost_levels(problem: RakingProblem) -> None:
    """Refuse a level whose weights vanish beside those of other rows.

    No arithmetic could raise them again.
    """
    for margin in problem.margins:
        shares = np.bincount(margin.cells, problem.masses, minlength=len(margin.wanted))
        lost = np.flatnonzero((shares > 0) & (shares < _LOST) & (margin.wanted > 0))
        if len(lost):
            raise WeightError(
                "nearly all weight is on other rows than those with"
                f" {margin.describe(int(lost[0]))}; check ",
                Option("weight"),
            )


def _relaxed(relax: Relax, asked: Sequence[Margin]) -> frozenset[int]:
    """Positions of the margins that may be missed."""
    relax = frames.plain_option("relax", relax)
    if relax is None:
        return frozenset()
    if relax == ALL:
        return frozenset(range(len(asked)))
    wishes = [relax] if isinstance(relax, str) else relax
    if not isinstance(wishes, list | tuple) or not all(
        isinstance(wish, str | list | tuple) for wish in wishes
    ):
        raise unfit(
            "relax", relax, "pass 'all', or a list of margins such as ['region']"
        )

    columns = [margin.columns for margin in asked]
    chosen = set()
    for wish in wishes:
        names = (wish,) if isinstance(wish, str) else tuple(map(str, wish))
        if names not in columns:
            name = " × ".join(names)
            hint = did_you_mean(name, [margin.name for margin in asked])
            raise InputError(
                Option("relax"), f" names {name!r}, which has no margin; {hint}"
            )
        chosen.add(columns.index(names))
    return frozenset(chosen)


# ------------------------------------------- weights of bootstrap samples


def _check_replicates(replicates: int, survey: Survey) -> None:
    """Refuse what cannot be drawn."""
    if not is_whole(replicates, most=2**31 - 1):
        raise unfit("replicates", replicates, "give a whole number, 200 is usual")

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


def _replicated(
    problem: RakingProblem,
    survey: Survey,
    factors: Factors,
    count: int,
    rng: Generator,
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


def _replaced(problem: RakingProblem, failed: int, count: int) -> str:
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
    widen: Remark = ()
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
