"""Likely groups: nobody wrote them down, but columns say how probable each one is.

Of some people the group may be known, e.g. of those who answered when they were asked.
They count as certain, and say whether the probabilities p of the others can be right.
Two things are often wrong with these: their level, because they were made from tables
of other people, and how sure they are. Both are mended by

    p'(g) ∝ e^{a_g}·p(g)^b,

with a level a_g for each group, and a power b: below 1 if p was too sure of itself, and
above if it could have been surer. With a = 0 and b = 1 they are as they were. What is
most probable is close to that if few people are known: a_g and b − 1 are normal with
deviation 1 beforehand. Swapped columns are not mended by it; if enough people are known
to show that, they are refused.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import narwhals as nw
import numpy as np

from fairmaxent.data.attribute import Attribute, learn_column
from fairmaxent.data.columns import factorize
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import (
    Frame,
    column,
    column_errors,
    new_frame,
    open_frame,
    to_numbers,
)
from fairmaxent.data.levels import ColumnOptions, value_text
from fairmaxent.data.limits import masses, sound
from fairmaxent.data.table import Indices, Mask, Names, Reals, Table
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    Option,
    check_choice,
    check_flag,
    checked_number,
    did_you_mean,
    unfit,
)
from fairmaxent.options import documented, option
from fairmaxent.options.refusals import MISSING, NEEDED, Refused

ToldBy = Literal["names", "columns"]
_SLACK = 1e-6
_LEAST = 1e-12  # a probability in place of 0, where its logarithm is taken
_MOST_OF_IT = 0.5  # of a probability that is 0 or 1, up to slack
_STEPS = 30  # of Newton's method
_FEWEST_EXPECTED = 5.0  # people of a group, to compare how many there are
_REFUTED = 1e-4  # p-value at which nobody believes probabilities
_OPTION = Option("likely")
TOLD_BY = {
    "names": (
        "names or addresses tell the group, and nothing else about the outcome: within"
        " a group, all names have it equally often"
    ),
    "columns": (
        "the group was predicted from the columns that decide the outcome: of people"
        " with the same probabilities, all groups have it equally often"
    ),
}


@documented
@dataclass(frozen=True)
class Likely:
    """A protected column that nobody has: the probability of each group, for each row.

    Such as from surname and address (BISG), from a first name, or from a model. Known
    groups are rows with 1 and 0; a row without any probability is a missing group. If
    all are known, they are the column that they would be.
    """

    name: str = option(
        doc="What they are groups of, e.g. ``race``: a name of your own."
    )
    columns: Mapping[str, str] = option(
        doc=(
            "By group, the column that holds its probability; in each row they add up"
            " to 1. The columns are no part of the result, unless ``keep_columns``"
            " names them."
        ),
    )
    _: KW_ONLY
    told_by: ToldBy = option(
        "",
        choices=get_args(ToldBy),
        label="What tells the group",
        choice_labels={
            "names": "names, which say nothing else about the outcome",
            "columns": "the columns that decide the outcome",
        },
        help=f"Names: {TOLD_BY['names']}. Columns: {TOLD_BY['columns']}.",
    )
    known_groups: str | None = option(
        None,
        metavar="COLUMN",
        label="Column of the groups that are known",
        help=(
            "Column with the true group of some people, otherwise missing: these count"
            " as certain."
        ),
    )
    recalibrated: bool = option(
        False,
        text="flag",
        label="Correct the probabilities by the groups that are known",
        help=(
            "Correct the probabilities of the others by what the known groups tell:"
            " p^b·e^a, divided by its sum, with an a for each group."
        ),
    )
    slack: float = option(
        _SLACK,
        text="number",
        label="How far from 1 they may add up to",
        help="How far from 1 those of a row may add up to, e.g. 0.01; they are scaled.",
    )

    def __post_init__(self) -> None:
        check_columns(self.name, self.columns)
        if not self.told_by:
            told = [
                part
                for word, what in TOLD_BY.items()
                for part in (" ", Option("told_by", word), f": {what}.")
            ]
            raise InputError(
                _OPTION,
                " needs to know what tells the group, as it says what outcomes tell"
                " about it.",
                *told,
            )
        check_choice("told_by", self.told_by, ToldBy)
        object.__setattr__(self, "columns", dict(self.columns))
        check_flag("recalibrated", self.recalibrated)
        if self.recalibrated and self.known_groups is None:
            raise InputError(
                Option("recalibrated", value=True),
                " needs people whose group is known; name the column of ",
                Option("known_groups"),
            )
        wanted = "lie between 0 and 0.5, e.g. 0.01"
        checked_number("slack", self.slack, wanted, lambda far: 0 <= far <= 0.5)

    @classmethod
    def typed(cls, columns: Mapping[str, Mapping[str, str]], **how: Any) -> Self:
        """From what is typed: columns by group, by the name of the groups."""
        if len(columns) > 1:
            raise unfit("likely", [*columns], "only one can be probabilities")
        ((name, groups),) = columns.items()
        return cls(name, groups, **how)

    @classmethod
    def among(cls, asked: dict[str, Any]) -> Self | None:
        """Take it, and what says how, out of the options that were typed."""
        columns = asked.pop("likely", None)
        values = {field.name: asked.pop(field.name, None) for field in fields(cls)}
        how = {
            name: value
            for name, value in values.items()
            if value is not None and value is not False
        }
        if columns is not None:
            return cls.typed(columns, **how)
        for name in how:
            raise Refused(name, "likely", NEEDED, beside=MISSING).error(how)
        return None

    @property
    def used(self) -> Names:
        """The columns that it is read from."""
        known = () if self.known_groups is None else (self.known_groups,)
        return (*self.columns.values(), *known)

    def attribute(self, library: str, shares: Reals) -> Attribute:
        """The groups as the levels of a column of a library; a missing one is last."""
        groups = [*self.columns, None][: shares.shape[1]]
        listed = open_frame(new_frame({self.name: groups}, library))
        options = ColumnOptions([self.name], order={self.name: list(self.columns)})
        return learn_column(listed.get_column(self.name), options, None).attribute

    def read(self, frame: Frame, rows: Reals | None = None) -> "ReadShares":
        """P(g) of each row; a missing group comes last, if there is one.

        The first row that makes no sense is refused. ``rows``: how many people each row
        stands for.
        """
        told = self.told(frame)
        absent: Mask = np.all(np.isnan(told), axis=1)
        total = told.sum(axis=1)
        self._refuse(told, np.isnan(total) & ~absent, "some are missing")
        outside = (told < 0) | (told > 1)
        self._refuse(told, np.any(outside, axis=1), "not from 0 to 1")
        off = np.abs(total - 1) > self.slack
        scaled = "they do not add up to 1; small misfits are scaled by "
        self._refuse(told, off, scaled, Option("slack", 0.01))
        shares = told / total[:, None]
        shares[absent] = 0.0
        truth = self.truth(frame)
        reliability = None
        known = truth >= 0
        checked = known & ~absent
        if checked.any():
            people = np.ones(len(truth)) if rows is None else rows
            sample = KnownPeople(shares[checked], truth[checked], people[checked])
            reliability = sample.reliability(tuple(self.columns))
            if self.recalibrated:
                shares[~absent] = sample.corrected(shares[~absent])
        if absent.any():
            shares = np.column_stack([shares, absent])
        shares[known] = np.eye(shares.shape[1])[truth[known]]
        for group, mass in zip(self.columns, shares.sum(axis=0), strict=False):
            if not mass:
                raise LevelError(
                    _OPTION,
                    f": nobody can be {group!r}; leave it out, as its column"
                    f" {self.columns[group]!r} is 0 in every row",
                )
        return ReadShares(shares, reliability)

    def are_known(self, shares: Reals) -> bool:
        """Whether all are certain: then groups are a column like any other.

        Of people whose group is known besides, the others may still be only likely.
        """
        is_certain = bool(((shares == 0) | (shares == 1)).all())
        return is_certain and self.known_groups is None

    @property
    def known(self) -> nw.Expr:
        """That column."""
        groups = nw.lit(None, dtype=nw.String)
        for group, name in self.columns.items():
            is_own = nw.col(name).cast(nw.Float64) > _MOST_OF_IT
            groups = nw.when(is_own).then(nw.lit(group)).otherwise(groups)
        return groups.alias(self.name)

    def described(
        self, domain: Domain | Declaration | None, known: Any
    ) -> Domain | Declaration | None:
        """A domain with that column of a table, too; None if there is no domain."""
        if domain is None:
            return None
        if isinstance(domain, Declaration):
            levels = {**domain.levels, self.name: list(self.columns)}
            missing = (*domain.missing, self.name)
            return replace(domain, levels=levels, missing=missing)
        column = known.select(self.name).lazy().collect().get_column(self.name)
        groups = learn_column(column, ColumnOptions([self.name]), None).attribute
        return replace(domain, attributes=(*domain.attributes, groups))

    def told(self, frame: Frame) -> Reals:
        """The columns as they are."""
        numbers = []
        for name in self.columns.values():
            values = column(frame, name)
            with column_errors(values):
                numbers.append(to_numbers(values))
        return np.stack(numbers).T  # a group's lie one after the other

    def truth(self, frame: Frame) -> Indices:
        """The number of the true group of each row where it is known, and −1."""
        if self.known_groups is None:
            return np.full(len(frame), -1)
        codes, values = factorize(column(frame, self.known_groups))
        groups = list(self.columns)
        texts = list(map(value_text, values.to_list()))
        for text in texts:
            if text not in groups:
                raise unfit(
                    "known_groups",
                    self.known_groups,
                    f"{text!r}: {did_you_mean(text, groups)}",
                )
        return np.array([*map(groups.index, texts), -1])[codes]

    def _refuse(self, told: Reals, wrong: Mask, why: str, *how: str | Option) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            shares = ", ".join(f"{share:g}" for share in told[row])
            raise InputError(
                _OPTION,
                f": row {row} has {shares} (such rows in all: {int(wrong.sum()):,}):"
                f" {why}",
                *how,
            )


def by_name(likely: Likely | None) -> Mapping[str, Likely]:
    """Groups that are probabilities, to be looked up and listed beside columns."""
    return {} if likely is None else {likely.name: likely}


def check_columns(name: object, columns: object) -> None:
    """Refuse what does not name a column for each of several groups."""
    if isinstance(columns, Mapping):
        names = [name, *columns, *columns.values()]
        are_text = all(isinstance(one, str) for one in names)
        if are_text and 1 < len(columns) == len({*columns.values()}):
            return
    raise ColumnError(
        unfit(
            "likely",
            (name, columns),
            "name the groups, and the column of each, e.g."
            " ('race', {'white': 'p_white', 'black': 'p_black'})",
        )
    )


def chance_beyond(statistic: float, free: int) -> float:
    """The chance of a larger χ² with so many degrees of freedom; 1 of none."""
    if not free:
        return 1.0
    from scipy.special import chdtrc  # slow to import

    return float(chdtrc(free, statistic))


@dataclass(frozen=True)
class Reliability:
    """How far probabilities agree with the groups of people whose group is known."""

    groups: Names
    expected: tuple[float, ...]  # people of each, by the probabilities
    observed: tuple[int, ...]
    chance: float  # p-value: that they are as far off, if they are right


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """People whose group is known, to correct the probabilities of the others.

    Right probabilities are of the form p'(g) ∝ e^{a_g}·p(g)^b with a = 0 and b = 1. In
    θ = (a, b), the logarithm of p' is linear, but for a constant.
    """

    shares: Reals  # p(g)
    truth: Indices
    people: Reals  # that each row stands for

    def reliability(self, groups: Names) -> Reliability:
        """Compare them."""
        observed = np.bincount(self.truth, self.people, len(groups))
        return Reliability(
            groups=groups,
            expected=tuple((self.people @ self.shares).tolist()),
            observed=tuple(np.rint(observed).astype(int).tolist()),
            chance=self._chance(self.shares),
        )

    def _chance(self, shares: Reals) -> float:
        """How likely groups are as far from some p as they are, if these are right.

        A χ² test among those whose likeliest group is the same: how many of them are in
        each group, beside how many there should be. Groups of which too few are
        expected there are left out, as χ² is no good approximation for them.
        """
        statistic = 0.0
        free = 0
        likeliest = shares.argmax(axis=1)
        for group in range(shares.shape[1]):
            own = likeliest == group
            people = self.people[own]
            weighted = shares[own] * people[:, None]
            expected = weighted.sum(axis=0)
            covariance = np.diag(expected) - weighted.T @ shares[own]
            observed = np.bincount(self.truth[own], people, len(expected))
            many = np.minimum(expected, people.sum() - expected) >= _FEWEST_EXPECTED
            if many.any():
                inverse = np.linalg.pinv(covariance[np.ix_(many, many)], hermitian=True)
                beyond = (observed - expected)[many]
                statistic += float(beyond @ inverse @ beyond)
                free += max(1, min(int(many.sum()), len(expected) - 1))
        return chance_beyond(statistic, free)

    def corrected(self, shares: Reals) -> Reals:
        """p' of other people; refused if it does not agree with what is known."""
        chance = self._chance(_corrected(self.shares, self.theta))
        if chance < _REFUTED:
            raise InputError(
                Option("recalibrated", value=True),
                ": even corrected probabilities contradict the groups that are known"
                f" (p = {chance:.2g}). Look whether columns are swapped, or about other"
                " people",
            )
        return _corrected(shares, self.theta)

    @cached_property
    def theta(self) -> Reals:
        """The most probable θ; a little is known of it beforehand."""
        start = np.append(np.zeros(self.shares.shape[1]), 1.0)
        theta = start
        for _ in range(_STEPS):
            score, information = self._slopes(theta)
            drawn_back = score - (theta - start)
            step = np.linalg.solve(information + np.eye(len(theta)), drawn_back)
            theta = theta + step / max(1.0, np.abs(step).max())
        return theta

    def _slopes(self, theta: Reals) -> tuple[Reals, Reals]:
        """The score of θ, and its information.

        The score is Σ n_i·(φ_i(g_i) − Σ_h p'_i(h)·φ_i(h)), where φ_i(g) holds the unit
        vector of group g and log p_i(g), g_i is the true group, and n_i how many people
        a row stands for.
        """
        now = _corrected(self.shares, theta)
        logarithms = np.log(np.maximum(self.shares, _LEAST))
        beyond = np.eye(now.shape[1])[self.truth] - now
        score = np.append(
            self.people @ beyond, self.people @ (beyond * logarithms).sum(axis=1)
        )
        # Σ n·Cov(φ, φ), where φ of a group is its unit vector, and log p
        centred = logarithms - (now * logarithms).sum(axis=1, keepdims=True)
        weighted = now * self.people[:, None]
        levels = np.diag(weighted.sum(axis=0)) - weighted.T @ now
        power = (weighted * centred**2).sum()
        both = (weighted * centred).sum(axis=0)
        information = np.block([[levels, both[:, None]], [both, power]])
        return score, information


def _corrected(shares: Reals, theta: Reals) -> Reals:
    """p'(g) ∝ e^{a_g}·p(g)^b; what is 0 stays 0."""
    *levels, power = theta
    odds = power * np.log(np.maximum(shares, _LEAST)) + np.array(levels)
    odds = np.where(shares > 0, odds, -np.inf)
    raised = np.exp(odds - odds.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class ReadShares:
    """P(g) of rows as they were read, and whether they agree with what is known."""

    shares: Reals
    reliability: Reliability | None  # None: no group is known

    @property
    def believed(self) -> Reals:
        """P(g), refused if the groups that are known contradict it."""
        if self.reliability is not None and self.reliability.chance < _REFUTED:
            raise InputError(
                Option("known_groups"),
                " contradict the probabilities: look whether columns are swapped, or"
                " correct them (recalibrated)",
            )
        return self.shares


@dataclass(frozen=True, eq=False)
class Chances:
    """The probabilities of people; several who are alike may stand together."""

    shares: Reals  # (entries, groups): p(g)
    row: Indices  # the distinct row of the table that each is behind
    rows: Reals  # input rows
    weight: Reals  # design weights summed
    squares: Reals  # and squared
    peaks: Reals  # the largest of them
    reliability: Reliability | None = None  # None: no group is known

    @classmethod
    def of_rows(cls, read: ReadShares, row: Indices, design: Reals | None) -> "Chances":
        """Those of input rows, each an entry; ``design`` are its design weights."""
        rows = np.ones(len(row))
        weight = rows if design is None else design
        return cls(read.shares, row, rows, weight, weight**2, weight, read.reliability)


def are_of_rows(chances: Chances | None, likely: Likely | None, table: Table) -> bool:
    """Whether what a file holds are the probabilities of the people of a table."""
    if chances is None or likely is None:
        return chances is None
    entries = len(chances.row)
    size = len(table.codes)
    groups = len(likely.columns)
    shares = masses(chances.shares, entries, max(groups, chances.shares.shape[1]))
    sound(chances.row, "i", (entries,), low=0, high=size - 1)
    masses(chances.squares, entries)
    masses(chances.peaks, entries)
    fits = shares.shape[1] <= groups + 1 and np.allclose(shares.sum(axis=1), 1)
    for own, rows in ((chances.rows, table.rows), (chances.weight, table.counts)):
        summed = np.bincount(chances.row, masses(own, entries), size)
        fits &= np.allclose(summed, rows, rtol=1e-6, atol=0)
    return bool(fits)
