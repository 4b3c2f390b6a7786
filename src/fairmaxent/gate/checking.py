"""The check itself: rows are counted where they are, rates and intervals are those of
`metrics`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.engines import lazy_counts, lazy_frame
from fairmaxent.errors import InputError
from fairmaxent.files.formats import read_table
from fairmaxent.files.parquet import scan_table
from fairmaxent.gate.policy import PROJECT, Policy, read_policies
from fairmaxent.gate.result import Answer, CheckResult, Finding
from fairmaxent.metrics import representation_rate, statistical_rate
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.group_rates import Rate
from fairmaxent.metrics.groups import outcome_column
from fairmaxent.options import with_options_of

# of tables with as many people as are said to be needed, the share that will tell
_POWER = 0.8
_STEPS = 4  # to the number of people; the third is within a hundredth
_ROUNDING = 1e-12


@with_options_of(Policy)
def check(data: Any, policy: Policy) -> CheckResult:
    """Check whether a table, or a model's decisions about its rows, keep to the limits
    that you set.

    The answer is "pass", "fail" or "cannot tell"; ``check(…).raise_if_unfair()`` raises
    unless it is "pass". Without ``confident``, the rates of the table itself decide.
    With it, chance does not: if the interval of a rate holds the limit, the answer is
    "cannot tell", with the number of people that would be needed. `data` may be a lazy
    frame, whose engine counts the rows, or the name of a file.

    Parameters
    ----------
    """
    return checked(data, policy)


def checked(data: Any, policy: Policy, name: str = "check") -> CheckResult:
    """Check a table by a policy; the name is that of the result."""
    limits = list(policy.limits())
    # All intervals hold together, so that many limits are not failed by chance more
    # often than one.
    lines = sum(
        (limit is not None) + (policy.against is not None) for _, _, limit in limits
    )
    sure = 1 - (1 - policy.confidence) / lines
    now = _Counted.of(data, policy)
    before = None
    if policy.against is not None:
        before = _Counted.of(policy.against, policy)
    findings = []
    for kind, columns, limit in limits:
        rate = now.rate(kind, columns, sure)
        if limit is not None:
            answer = _answer(rate, limit, confident=policy.confident)
            ask = partial(now.needed, kind, rate, limit, sure)
            findings.append(Finding(kind, columns, limit, rate, answer, ask=ask))
        if before is not None:
            then = before.rate(kind, columns, sure)
            findings.append(
                Finding(
                    kind,
                    columns,
                    then.value,
                    rate,
                    "fail" if _is_worse(rate, then) else "pass",
                    then,
                )
            )
    file = None
    if isinstance(data, str | os.PathLike):
        file = os.fspath(data)
    return CheckResult(name, policy, tuple(findings), int(now.sums.rows.sum()), file)


def check_policies(
    path: str | os.PathLike[str] = PROJECT, data: Any = None
) -> list[CheckResult]:
    """Check the table of each policy in a file, or another one."""
    policies = read_policies(path)
    for name in (
        name for name, (file, _) in policies.items() if data is None and file is None
    ):
        raise InputError(
            f'the policy {name!r} of {path} names no table; add data = "FILE" to it'
        )
    return [
        checked(file if data is None else data, policy, name)
        for name, (file, policy) in policies.items()
    ]


def fair_test(path: str | os.PathLike[str] = PROJECT) -> Callable[..., None]:
    """Make a test of every policy in a file, for pytest: ``test_fairness =
    fair_test("pyproject.toml")``.
    """
    import pytest

    policies = read_policies(path)

    @pytest.mark.parametrize("name", policies)
    def test(name: str) -> None:
        checked(*policies[name], name).raise_if_unfair()

    return test


def _answer(rate: Rate, limit: float, *, confident: bool) -> Answer:
    """Judge a rate by its value, or by its interval; a single group can be compared
    with nobody.
    """
    if len({group.group for group in rate.groups}) < 2:
        return "cannot tell"
    if confident and rate.interval is not None:
        low, high = rate.interval
    else:
        low = rate.value
        high = rate.value
    if low >= limit - _ROUNDING:
        return "pass"
    return "fail" if high < limit - _ROUNDING else "cannot tell"


def _is_worse(now: Rate, then: Rate) -> bool:
    """Whether a rate fell by more than chance explains: the two intervals give one of
    the difference (MOVER).
    """
    (_, most), (least, _) = (
        now.interval or (now.value,) * 2,
        then.interval or (then.value,) * 2,
    )
    return bool(
        now.value + np.hypot(most - now.value, then.value - least)
        < then.value - _ROUNDING
    )


@dataclass(frozen=True, eq=False)
class _Counted:
    """Each combination of outcome, groups and strata once, with the sums of the rows
    that have it.
    """

    policy: Policy
    outcome: str
    frame: nw.DataFrame[Any]
    sums: WeightSums

    @classmethod
    def of(cls, data: Any, policy: Policy) -> "_Counted":
        """Count the rows where they are: in memory, or in the engine of a lazy
        frame.
        """
        if isinstance(data, str | os.PathLike):
            scanned = scan_table(data)
            if scanned is None:
                data = read_table(data).frame
            else:
                data = scanned
        lazy = lazy_frame.open_lazy(data)
        if lazy is None:
            table: Any = frames.open_frame(data)
        else:
            table = lazy
        if policy.predictions is None:
            outcome: Any = policy.outcome
        else:
            outcome = policy.predictions
        if not isinstance(outcome, str):
            if lazy is not None:
                raise InputError(
                    "predictions of a lazy frame are one of its columns; add them to"
                    " it, and name that"
                )
            values = outcome_column(table, outcome)
            outcome = lazy_frame.fresh_name("predictions", table.columns)
            table = table.with_columns(values.alias(outcome))
        if isinstance(policy.within, str):
            within = [policy.within]
        else:
            within = policy.within or ()
        names = list(dict.fromkeys([outcome, *policy.protected, *within]))
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
        return cls(
            policy, outcome, counted, WeightSums(mass / scale, squares / scale**2, rows)
        )

    def rate(self, kind: str, columns: tuple[str, ...], confidence: float) -> Rate:
        """A rate of the groups of some columns."""
        policy = self.policy
        protected = list(columns)
        how: Any = {
            name: getattr(policy, name) for name in ("within", "missing", "domain")
        }
        how |= {"groups": "joint", "weight": self.sums, "confidence": confidence}
        if kind == "representation_rate":
            return representation_rate(self.frame, protected, **how)
        return statistical_rate(
            self.frame, self.outcome, protected, favourable=policy.favourable, **how
        )

    def needed(self, kind: str, rate: Rate, limit: float, sure: float) -> int | None:
        """How many people like these would tell, with a chance of `_POWER`; None if no
        number would.
        """
        normal = NormalDist()
        apart = abs(rate.value - limit)
        surer = (
            2 * normal.cdf(normal.inv_cdf((1 + sure) / 2) + normal.inv_cdf(_POWER)) - 1
        )
        factor = 16.0
        for _ in range(_STEPS if apart > _ROUNDING else 0):
            sums = WeightSums(*(part * factor for part in vars(self.sums).values()))
            low, high = replace(self, sums=sums).rate(
                kind, rate.worst.columns, surer
            ).interval or (0.0, 0.0)
            # Of a rate that is not 0, the width of an interval falls with the root of
            # the number of people.
            width = abs(rate.value - (low if rate.value > limit else high)) / apart
            factor = max(factor * width ** (2 if rate.value else 1), 1.0)
        people = sum(
            group.count or 0
            for group in rate.groups
            if group.outcome == rate.worst.outcome
        )
        if apart > _ROUNDING and len(rate.groups) > 1:
            return int(np.ceil(factor * people))
        return None


def _aggregated(table: Any, names: list[str], weight: str | None) -> nw.DataFrame[Any]:
    """The distinct combinations of some columns, with their number of rows, and the
    sums of weights, if there are.
    """
    rows, mass, squares = (
        lazy_frame.fresh_name(name, names) for name in ("rows", "mass", "squares")
    )
    is_lazy = isinstance(table, nw.LazyFrame)
    sums = [nw.len().alias(rows)]
    if weight is not None:
        if is_lazy:
            refuse_odd_weights = lazy_counts.average_weight
        else:
            refuse_odd_weights = frames.read_weights
        refuse_odd_weights(table, weight)
        design = nw.col(weight).cast(nw.Float64)
        columns = (
            (design > 0).cast(nw.Float64).alias(rows),
            design.alias(mass),
            (design * design).alias(squares),
        )
        table = table.select(*names, *columns)
        sums = [nw.col(name).sum() for name in (rows, mass, squares)]
    counted = table.group_by(*names).agg(*sums)
    if is_lazy:
        return lazy_frame.collect(counted)
    return counted
