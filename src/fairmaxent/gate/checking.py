"""The check itself: rows are counted where they are; rates are those of `metrics`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.levels import value_text
from fairmaxent.data.likely import by_name
from fairmaxent.data.roles import listed, read_within
from fairmaxent.data.table import Reals
from fairmaxent.engines import lazy_counts, lazy_frame
from fairmaxent.errors import ColumnError, FairMaxEntError, InputError, Option
from fairmaxent.fairness.small_groups import SmallestGroupOption
from fairmaxent.files.formats import read_table
from fairmaxent.files.parquet import scan_table
from fairmaxent.files.reading import Name
from fairmaxent.gate.policy import (
    PROJECT,
    FilePolicy,
    Policy,
    read_policies,
)
from fairmaxent.gate.result import Answer, CheckResult, Finding, now
from fairmaxent.metrics import intervals
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.group_rates import GroupedTable, worst_rate
from fairmaxent.metrics.groups import Comparison
from fairmaxent.metrics.rates import GroupRate, Rate, group_text
from fairmaxent.metrics.rows import (
    MISSING,
    Columns,
    favourable_codes,
    levels_of,
    outcome_column,
    stratum_text,
)
from fairmaxent.metrics.surpluses import surplus_tables
from fairmaxent.options import with_options_of

# Of the chance to fail a fair table, what intervals are given: counts are whole, so the
# worst of the tables enumerated would fail in 5.9 % of draws where 5 % are allowed.
_GIVEN = 0.8
_POWER = 0.8  # of tables with the number of people needed, the share that will tell
_MOST_PEOPLE = 21.0  # and its logarithm at most
_STEP = 0.02  # in its logarithm
_QUARTER = 0.25
_ROUNDING = 1e-12
_FEW = 30  # rows: a group that had as many and has fewer now says little about a fall


@with_options_of(Policy)
def check(data: Any, policy: Policy) -> CheckResult:
    """Check whether a table, or a model's decisions, keep to the limits that you set.

    The answer is "pass", "fail" or "cannot tell"; ``check(…).raise_if_unfair()`` raises
    unless it is "pass". Without ``confident``, the rates of the table itself decide.
    With it, chance does not: if the interval of a rate holds the limit, the answer is
    "cannot tell", with the number of people that would be needed. Groups that are too
    small decide nothing, and are listed; so is, compared with an earlier table, a group
    that is gone or has become too small since then, and the answer is at best "cannot
    tell". Of groups that are only likely, what is assumed decides, and if the data
    contradict that, the answer is "cannot tell". `data` may be a lazy frame, whose
    engine counts the rows, or the name of a file.

    Parameters
    ----------
    """
    return checked(data, policy)


def checked(data: Any, policy: Policy, name: str = "check") -> CheckResult:
    """Check a table by a policy; the name is that of the result."""
    started = now()
    limits = list(policy.limits())
    # All intervals hold together, so that many limits are not failed by chance more
    # often than one.
    compares = policy.against is not None
    lines = sum((limit is not None) + compares for _, _, limit in limits)
    sure = 1 - _GIVEN * (1 - policy.confidence) / lines
    counted = _Counted.of(data, policy)
    before = None
    if compares:
        try:
            before = _Counted.of(policy.against, policy)
        except ColumnError as problem:
            raise ColumnError("in ", Option("against"), ": ", problem) from problem

    findings = []
    for kind, columns, limit in limits:
        tables = counted.tables(kind, columns)
        rate = worst_rate(tables, sure, may_be_none=True)
        found = Finding(kind=kind, columns=columns, limit=np.nan, rate=rate)
        if limit is not None:
            answer = _answer(found, limit, confident=policy.confident)
            ask = partial(people_needed, tables, sure, limit)
            findings.append(replace(found, limit=limit, answer=answer, ask=ask))
        if before is not None:
            tables = before.tables(kind, columns)
            then = worst_rate(tables, sure, may_be_none=True)
            found = replace(found, limit=then.value, before=then)
            found = replace(found, lost=_lost(rate, then, policy.smallest_group))
            findings.append(replace(found, answer=_change(found, then)))

    return CheckResult(
        name=name,
        policy=policy,
        findings=tuple(findings),
        rows=int(counted.sums.rows.sum()),
        file=os.fspath(data) if isinstance(data, str | os.PathLike) else None,
        started=started,
        seconds=(now() - started).total_seconds(),
    )


def check_policies(
    policies: Mapping[str, FilePolicy], data: Any = None
) -> list[CheckResult]:
    """Check the table of each policy of a file, or another one.

    If one cannot be checked, its result says why.
    """
    return [_by_file(read, name, data) for name, read in policies.items()]


def _by_file(read: FilePolicy, name: str, data: Any = None) -> CheckResult:
    """Check a table by a policy of a file; what is wrong is said with its line.

    What the table holds is not: who may write a policy may not be allowed to read all
    files, and the one that is named may be no table.
    """
    if read.policy is None or read.section is None:
        return CheckResult(name, file=read.table, problem=read.problem)
    table = read.table if data is None else data
    try:
        if table is None:
            raise InputError(
                f'the policy {name!r} names no table; add data = "FILE" to it'
            )
        return checked(table, read.policy, name)
    except FairMaxEntError as problem:
        placed = read.section.with_place(problem, "; known: ")
        return CheckResult(name, file=read.table, problem=placed)


def fair_test(path: Name = PROJECT) -> Callable[..., None]:
    """Make a test of every policy in a file, for pytest.

    ``test_fairness = fair_test("pyproject.toml")``
    """
    import pytest

    policies = read_policies(path)

    @pytest.mark.parametrize("name", policies)
    def test(name: str) -> None:
        _by_file(policies[name], name).raise_if_unfair()

    return test


def _answer(found: Finding, limit: float, *, confident: bool) -> Answer:
    """Judge a rate by its value, or by its interval."""
    rate = found.rate
    if rate.is_alone:
        return "cannot tell"  # a single group can be compared with nobody
    if rate.is_refuted:
        return "cannot tell"  # what tells the group is something else
    ends = (rate.value, rate.value)
    if confident and rate.interval is not None:
        ends = rate.interval
    kept = [found.sign * (end - limit) >= -_ROUNDING for end in ends]
    if not any(kept):
        return "fail"
    if all(kept) and not found.hollow:
        return "pass"
    return "cannot tell"


def _change(found: Finding, then: Rate) -> Answer:
    """Judge what became of a rate; who is gone may have been worse off.

    The two intervals give one of the change (MOVER).
    """
    now = found.rate
    change = found.sign * (now.value - then.value)
    if change + _reach(found.sign, now, then) < -_ROUNDING:
        return "fail"
    # what so few people may hide: half of a rate, or a quarter of a difference
    hidden = then.value / 2 if found.sign > 0 else _QUARTER
    is_known = change - _reach(-found.sign, now, then) >= -hidden
    if found.lost or found.hollow or then.is_alone or now.is_refuted or not is_known:
        return "cannot tell"
    return "pass"


def _reach(sign: int, now: Rate, then: Rate) -> float:
    """How far above the change (or with -1, below it) its interval ends."""
    ends = now.interval or (now.value, now.value)
    before = then.interval or (then.value, then.value)
    far = int(sign > 0)  # the high end of now, and the low one of then
    return float(np.hypot(ends[far] - now.value, before[1 - far] - then.value))


def people_needed(
    tables: Sequence[GroupedTable], sure: float, limit: float
) -> dict[str, int]:
    """How many people of each group would tell, where there are fewer.

    Small groups are filled up to a common size, at which four in five tables with the
    rates observed tell. Sizes themselves are compared by more of all.
    """
    compared = [table for table in tables if not table.is_alone]
    if not compared:
        return {}
    low = np.log(min(table.people.min() for table in compared) + 1)
    high = _MOST_PEOPLE
    if _telling(compared, np.exp(high), sure, limit) < _POWER:
        return {}
    while high - low > _STEP:
        middle = (low + high) / 2
        if _telling(compared, np.exp(middle), sure, limit) < _POWER:
            low = middle
        else:
            high = middle
    needed = {}
    for table in compared:
        times = _times(table, np.exp(high))
        for group in np.flatnonzero(table.is_large.any(axis=0) & (times > 1)):
            name = group_text(table.rows.labels[group]) + stratum_text(
                table.rows.stratum
            )
            needed[name] = int(float(f"{times[group] * table.people[group]:.2g}"))
    return needed


def _times(table: GroupedTable, size: float) -> Reals:
    """How many times as many people each group needs to have so many."""
    people = table.people
    if table.are_shares:
        people = np.full(people.shape, people.sum())
    return np.maximum(size / np.maximum(people, 1), 1.0)


def _telling(
    tables: Sequence[GroupedTable], size: float, sure: float, limit: float
) -> float:
    """The share of tables with so many people that tell whether a limit is kept."""
    comparisons = []
    for table in tables:
        scaled = table.scaled(_times(table, size))
        comparisons += [
            scaled.compare(outcome, groups, sure)
            for outcome, groups in table.peers  # who is compared stays the same
            if len(groups) > 1
        ]
    return intervals.chance_to_tell(comparisons, limit, sure)


def _lost(
    now: Rate, then: Rate, smallest: SmallestGroupOption
) -> tuple[GroupRate, ...]:
    """Groups that were compared then, and have vanished or become too small since.

    A size that was chosen decides what is too small.
    """
    people = {
        (group.group, group.outcome, group.stratum): group.count or 0
        for group in now.groups
    }
    lost = []
    for group in then.groups:
        left = people.get((group.group, group.outcome, group.stratum))
        has_shrunk = (left or 0) < _FEW <= (group.count or 0)
        if left is None or (smallest is None and has_shrunk):
            lost.append(group)
    return tuple(lost)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Each combination of outcome, groups and strata once, with sums of its rows."""

    policy: Policy
    outcome: str  # whose rates are compared: what happened, or was decided
    truth: str  # what happened, if decisions are compared with it
    score: str  # of which decisions are made
    frame: frames.Frame
    sums: WeightSums

    @classmethod
    def of(cls, data: Any, policy: Policy) -> "_Counted":
        """Count the rows where they are: in memory, or in a lazy frame's engine."""
        table = opened(data)
        outcome: Any = policy.outcome
        if policy.predictions is not None:
            outcome, table = _with_predictions(table, policy.predictions)
        score = outcome
        if policy.threshold is not None:
            outcome, table = _decided(table, score, policy)
        roles = [outcome, *listed(policy.protected), *read_within(policy.within)]
        for likely in by_name(policy.likely).values():
            roles += likely.used
        roles.append(policy.cluster)
        if policy.compares_outcomes:
            roles.append(policy.outcome)
        # probabilities are compared row by row
        in_rows = policy.calibration is not None or policy.likely is not None
        if policy.calibration is not None:
            roles.append(score)
        names = [name for name in dict.fromkeys(roles) if name is not None]
        for name in names:
            lazy_frame.check_column(table, name)
        counted = _aggregated(table, names, policy.weight, in_rows=in_rows)
        if not len(counted):
            raise InputError("the table has no rows; pass at least one")

        rows, *sums = (
            lazy_frame.numbers(counted, name)
            for name in counted.columns
            if name not in names
        )
        mass, squares = sums or (rows, rows)
        scale = mass.sum() / rows.sum()  # rates do not depend on it
        scaled = WeightSums(mass / scale, squares / scale**2, rows)
        truth = ""
        if policy.compares_outcomes:
            truth = lazy_frame.fresh_name(f"true {policy.outcome}", names)
            counted = _with_truth(counted, policy, truth)
        return cls(policy, outcome, truth, score, counted, scaled)

    def tables(self, kind: str, columns: Columns) -> list[GroupedTable]:
        """What is compared: the groups of some columns, by stratum."""
        within = read_within(self.policy.within)
        if kind == "equal_opportunity":
            within[self.truth] = self.policy.favourable
        if kind == "equalised_odds":
            within[self.truth] = None
        compare = replace(self.policy.compare, weight=self.sums, within=within)
        if kind == "representation_rate":
            return Comparison(compare, only=columns).share_tables(self.frame)
        if kind == "calibration":
            comparison = Comparison(compare, self.truth, columns)
            rows = comparison.open(self.frame)
            return surplus_tables(comparison, rows, rows.probabilities(self.score))
        tables = Comparison(compare, self.outcome, columns).rate_tables(self.frame)
        if kind == "statistical_difference":
            tables = [table.by_difference() for table in tables]
        return tables


def _with_predictions(table: Any, predictions: Any) -> tuple[str, Any]:
    """The column of predictions, and the table with it."""
    if isinstance(predictions, str):
        return predictions, table
    if isinstance(table, nw.LazyFrame):
        raise InputError(
            "predictions of a lazy frame are one of its columns; add them to it, and"
            " name that"
        )
    values = outcome_column(table, predictions)
    name = lazy_frame.fresh_name("predictions", table.columns)
    return name, table.with_columns(values.alias(name))


def _decided(table: Any, score: str, policy: Policy) -> tuple[str, Any]:
    """The column of decisions by a score, and the table with it."""
    lazy_frame.check_column(table, score)
    dtype = table.collect_schema()[score]
    if not dtype.is_numeric():
        raise InputError(
            Option("threshold"),
            f" is for numbers, and {score!r} has others; name a column of scores, or"
            " leave it out",
        )
    column = nw.col(score)
    good, other = map(nw.lit, _both(policy))
    decision = nw.when(column > policy.threshold).then(good).otherwise(other)
    known = nw.when(~lazy_frame.is_missing(column, dtype)).then(decision)
    name = lazy_frame.fresh_name("decided", lazy_frame.names_of(table))
    return name, table.with_columns(known.alias(name))


def _with_truth(frame: frames.Frame, policy: Policy, name: str) -> frames.Frame:
    """The frame with a column that says whether people had the favourable outcome."""
    codes, levels = levels_of(outcome_column(frame, policy.outcome), policy.domain)
    good, other = _both(policy)
    labels: list[str | None] = [other] * len(levels)
    for code in favourable_codes(levels, policy.favourable):
        labels[code] = good
    if levels[-1] is MISSING and not policy.compare_missing:
        labels[-1] = None
    values = [labels[code] for code in codes]
    return frame.with_columns(nw.new_series(name, values, backend=frame.implementation))


def _both(policy: Policy) -> tuple[str, str]:
    """The favourable outcome, and any other, as texts."""
    (level,) = listed(policy.favourable)
    good = value_text(level)
    return good, f"not {good}"


def opened(data: Any) -> Any:
    """A frame or a file as it can be counted: lazily where it can."""
    if isinstance(data, str | os.PathLike):
        scanned = scan_table(data)
        if scanned is None:
            scanned = read_table(data).frame
        data = scanned
    lazy = lazy_frame.open_lazy(data)
    if lazy is None:
        return frames.open_frame(data)
    return lazy


def _aggregated(
    table: Any, names: list[str], weight: str | None, *, in_rows: bool
) -> Any:
    """The distinct combinations of some columns, with their rows and their weights.

    Or each row as it is.
    """
    rows, mass, squares = (
        lazy_frame.fresh_name(name, names) for name in ("rows", "mass", "squares")
    )
    is_lazy = isinstance(table, nw.LazyFrame)
    sums = [nw.len().alias(rows)]
    if weight is not None:
        # both refuse odd weights
        if is_lazy:
            lazy_counts.average_weight(table, weight)
        else:
            frames.read_weights(table, weight)
        design = nw.col(weight).cast(nw.Float64)
        table = table.select(
            *names,
            (design > 0).cast(nw.Float64).alias(rows),
            design.alias(mass),
            (design * design).alias(squares),
        )
        sums = [nw.col(name).sum() for name in (rows, mass, squares)]
    elif in_rows:
        table = table.select(*names, nw.lit(1.0).alias(rows))
    if not in_rows:
        with frames.library_errors(
            f"the rows cannot be counted by {', '.join(names)}",
            "convert lists, maps and other values with parts to text",
            TypeError,
            error=InputError,
        ):
            table = table.group_by(*names).agg(*sums)
    if is_lazy:
        return lazy_frame.collect(table)
    return table
