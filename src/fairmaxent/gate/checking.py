"""The check itself: rows are counted where they are; rates are those of `metrics`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.roles import read_within
from fairmaxent.engines import lazy_counts, lazy_frame
from fairmaxent.errors import FairMaxEntError, InputError
from fairmaxent.fairness.small_groups import SmallestGroupOption, SmallGroups
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
from fairmaxent.metrics import representation_rate, statistical_rate
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.group_rates import GroupRate, Rate
from fairmaxent.metrics.groups import levels_of_reference, outcome_column
from fairmaxent.options import with_options_of

_POWER = 0.8  # of tables with the number of people needed, the share that will tell
_STEPS = 4  # to the number of people; the third is within a hundredth
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
    tell". `data` may be a lazy frame, whose engine counts the rows, or the name of a
    file.

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
    sure = 1 - (1 - policy.confidence) / lines
    counted = _Counted.of(data, policy)
    before = None
    if compares:
        before = _Counted.of(policy.against, policy)

    findings = []
    for kind, columns, limit in limits:
        rate = counted.rate(kind, columns, sure)
        if limit is not None:
            answer = _answer(rate, limit, confident=policy.confident)
            ask = partial(counted.needed, kind, rate, limit, sure)
            findings.append(
                Finding(
                    kind,
                    columns,
                    limit,
                    rate,
                    answer,
                    ask=ask,
                )
            )
        if before is not None:
            then = before.rate(kind, columns, sure)
            lost = _lost(rate, then, policy.smallest_group)
            answer = _change(rate, then, lost)
            findings.append(
                Finding(kind, columns, then.value, rate, answer, then, lost)
            )

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


def _answer(rate: Rate, limit: float, *, confident: bool) -> Answer:
    """Judge a rate by its value, or by its interval."""
    if len({group.group for group in rate.groups}) < 2:
        return "cannot tell"  # a single group can be compared with nobody
    low = rate.value
    high = rate.value
    if confident and rate.interval is not None:
        low, high = rate.interval
    if low >= limit - _ROUNDING:
        return "pass"
    if high < limit - _ROUNDING:
        return "fail"
    return "cannot tell"


def _change(now: Rate, then: Rate, lost: Sequence[GroupRate]) -> Answer:
    """Judge what became of a rate; who is gone may have been worse off."""
    if _is_worse(now, then):
        return "fail"
    if lost or np.isnan(now.value + then.value):
        return "cannot tell"
    return "pass"


def _is_worse(now: Rate, then: Rate) -> bool:
    """Whether a rate fell by more than chance explains.

    The two intervals give one of the difference (MOVER).
    """
    _, most = now.interval or (now.value, now.value)
    least, _ = then.interval or (then.value, then.value)
    reach = np.hypot(most - now.value, then.value - least)
    return bool(now.value + reach < then.value - _ROUNDING)


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
    outcome: str
    frame: frames.Frame
    sums: WeightSums

    @classmethod
    def of(cls, data: Any, policy: Policy) -> "_Counted":
        """Count the rows where they are: in memory, or in a lazy frame's engine."""
        table = opened(data)
        outcome: Any = policy.outcome
        if policy.predictions is not None:
            outcome = policy.predictions
        if not isinstance(outcome, str):
            if isinstance(table, nw.LazyFrame):
                raise InputError(
                    "predictions of a lazy frame are one of its columns; add them to"
                    " it, and name that"
                )
            values = outcome_column(table, outcome)
            outcome = lazy_frame.fresh_name("predictions", table.columns)
            table = table.with_columns(values.alias(outcome))

        within = read_within(policy.within)
        roles = [outcome, *policy.protected, *within, policy.cluster]
        names = [name for name in dict.fromkeys(roles) if name is not None]
        for name in names:
            lazy_frame.check_column(table, name)
        counted = _aggregated(table, names, policy.weight)
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
        return cls(policy, outcome, counted, scaled)

    def rate(
        self,
        kind: str,
        columns: tuple[str, ...],
        confidence: float,
        factor: float = 1.0,
    ) -> Rate:
        """A rate of the groups of some columns, if there were so many times as many.

        The same groups are set apart then.
        """
        policy = self.policy
        protected = list(columns)
        levels = levels_of_reference(policy.reference, policy.protected)
        sums = WeightSums(*(part * factor for part in vars(self.sums).values()))
        how: Any = {
            "groups": "joint",
            "within": policy.within,
            "weight": sums,
            "compare_missing": policy.compare_missing,
            "domain": policy.domain,
            "smallest_group": SmallGroups.of(policy.smallest_group).times(factor),
            "reference": {name: levels[name] for name in columns if name in levels},
            "cluster": policy.cluster,
            "confidence": confidence,
        }
        if kind == "representation_rate":
            return representation_rate(self.frame, protected, **how)
        return statistical_rate(
            self.frame,
            self.outcome,
            protected,
            favourable=policy.favourable,
            **how,
        )

    def needed(
        self,
        kind: str,
        rate: Rate,
        limit: float,
        sure: float,
    ) -> int | None:
        """How many people like these would tell; None if no number would.

        As many as give an answer with a chance of `_POWER`.
        """
        apart = abs(rate.value - limit)
        if not apart > _ROUNDING or len(rate.groups) < 2:
            return None
        normal = NormalDist()
        quantile = normal.inv_cdf((1 + sure) / 2) + normal.inv_cdf(_POWER)
        surer = 2 * normal.cdf(quantile) - 1
        factor = 16.0
        steps = _STEPS
        if self.policy.cluster is not None:
            # More people in the same clusters would tell little more: what counts is
            # how many clusters there are.
            factor = 1.0
            steps = 1
        for _ in range(steps):
            many = self.rate(kind, rate.worst.columns, surer, factor)
            low, high = many.interval or (0.0, 0.0)
            end = low if rate.value > limit else high
            # Of a rate that is not 0, the width of an interval falls with the root of
            # the number of people.
            width = abs(rate.value - end) / apart
            factor = max(factor * width ** (2 if rate.value else 1), 1.0)
        people = sum(
            group.count or 0
            for group in rate.groups
            if group.outcome == rate.worst.outcome
        )
        return int(np.ceil(factor * people))


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


def _aggregated(table: Any, names: list[str], weight: str | None) -> Any:
    """The distinct combinations of some columns, with their rows and their weights."""
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
    if is_lazy:
        return lazy_frame.collect(table.group_by(*names).agg(*sums))
    with frames.library_errors(
        f"the rows cannot be counted by {', '.join(names)}",
        "convert lists, maps and other values with parts to text",
        TypeError,
        error=InputError,
    ):
        return table.group_by(*names).agg(*sums)
