"""Attacks on new rows, and the risk that they stand for (Giomi et al. 2023, "A unified framework…").

An attack is tried on n people. With k successes, its rate is that of Wilson's score interval at z standard errors:

    rate = (k + z²/2) / (n + z²),   error = z / (n + z²) · √(k (n − k) / n + z²/4).

Somebody outside the real table can be attacked in the same way; what succeeds against them comes from what the rows
say of people in general. The risk is what is left: the rate beyond that of the control, as a part of what is possible,

    risk = (rate − control) / (1 − control),

with the errors of both rates carried on, and cut to [0, 1]. Without control rows, the rate itself is reported; the
risk cannot be larger, as (a − c) / (1 − c) ≤ a.

Linkability, inference and membership start from the new rows that are nearest to people: one search serves all three.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from fairmaxent.data.roles import read_columns
from fairmaxent.data.table import Mask, Reals, tally
from fairmaxent.errors import ColumnError, InputError
from fairmaxent.evaluation.pooled import Nearest, Pooled, Rows, TableName, nearest
from fairmaxent.metrics.trial import Score

Judgement = Literal["high", "low", "uncertain", "needs control"]

LIMIT = 0.09
"""A risk above this is called high: it is what regulators accept when patients' data are published (the European
Medicines Agency's policy 0070, Health Canada)."""
MOST_COPIES = 0.01  # a larger share of copies, beyond those expected by chance, is too large
TOLERANCE = 0.05  # of a number that is guessed
MOST_SECRETS = 40  # columns that are guessed if nobody says which
RARE = 0.01  # of the people outside may be accused wrongly


@dataclass(frozen=True)
class SuccessRate:
    """How often something happened: an estimate with its error, and the share that was observed."""

    value: float
    error: float
    observed: float

    @classmethod
    def of(cls, successes: float, attempts: int, confidence: float) -> "SuccessRate":
        """Wilson's score interval; ``successes`` may be a mean over ways to break ties."""
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        total = attempts + z**2
        spread = successes * (attempts - successes) / attempts
        error = z / total * math.sqrt(max(spread, 0.0) + z**2 / 4)
        return cls((successes + z**2 / 2) / total, error, successes / attempts)


@dataclass(frozen=True)
class Risk(Score):
    """How much more often an attack succeeds against people in the real table than against other people."""

    attempts: int
    """How many people, or guesses, were tried."""
    rate: float
    """How often it succeeded."""
    control_rate: float | None
    """How often it succeeded against control rows; None: there are none, and `value` is at least the risk."""

    @classmethod
    def of_hits(cls, hits: Sequence[Mask | Reals], confidence: float) -> "Risk":
        """Estimate a risk from who was hit, or how likely: people of the real table and, if any, of the control."""
        attack, *control = (SuccessRate.of(float(part.sum()), len(part), confidence) for part in hits)
        return cls.beyond(attack, control[0] if control else None, len(hits[0]))

    @classmethod
    def beyond(cls, attack: SuccessRate, control: SuccessRate | None, attempts: int) -> "Risk":
        """Estimate a risk from two rates with their errors."""
        value, error = attack.value, attack.error
        if control is not None:
            room = max(1 - control.value, 1e-12)
            value = (attack.value - control.value) / room
            error = math.hypot(attack.error / room, control.error * (1 - attack.value) / room**2)
        low, value, high = (min(max(number, 0.0), 1.0) for number in (value - error, value, value + error))
        return cls(value, low, high, attempts, attack.observed, None if control is None else control.observed)

    def judged(self, limit: float = LIMIT) -> Judgement:
        """Whether the risk is above the limit, as far as that is known."""
        if self.high <= limit:
            return "low"
        if self.control_rate is None:
            return "needs control"
        return "high" if self.low > limit else "uncertain"


@dataclass(frozen=True)
class CopiedRows:
    """New rows that equal a real row."""

    copies: int
    by_chance: float
    """The share of the new rows that would be copies if nobody was copied."""
    risk: Risk
    """The share of copies beyond those by chance."""
    control_overlap: Risk | None
    """The share of the control rows that equal a real row, beyond chance: they should be other people."""
    lone_values: dict[str, int]
    """Columns with values in the new rows that only one real row has, and how many such values."""


def copied_rows(pooled: Pooled, *, confidence: float) -> CopiedRows:
    """Count the new rows that are a real row, in every column.

    Some rows equal a real one by chance, so copies are compared with how many there would be if nobody was copied. With
    control rows, that is how many new rows equal a control row. A control of c rows beside n real ones has fewer of
    them; by Good and Toulmin, (n/c − 1) times as many as those that equal exactly one control row are added, which is
    at least as many as there would be. Without control rows, it is the share of rows that equal another one of the same
    table: of the new rows or of the real ones, whichever is smaller.
    """
    numbers = pooled.row_numbers
    tables = {name: numbers[part] for name, part in pooled.parts.items()}
    times = {name: tally(rows, None, int(numbers.max()) + 1) for name, rows in tables.items()}
    real, new = tables["real"], tables["new"]
    copies, by_chance = int(np.count_nonzero(times["real"][new])), _by_chance(tables, times)
    overlap = None
    if "control" in tables:  # by chance, as many of them would equal a real row as real rows equal another one
        overlap = Risk.of_hits([times["real"][tables["control"]] > 0, times["real"][real] > 1], confidence)
    lone = {}
    for column in pooled.columns:
        met = np.unique(column.codes[pooled.parts["new"]])
        people = tally(column.codes[pooled.parts["real"]], None, column.size)
        lone[column.name] = int(np.count_nonzero(people[met] == 1))
    attack, chance = (SuccessRate.of(number, len(new), confidence) for number in (copies, by_chance * len(new)))
    risk = Risk.beyond(attack, chance, len(new))
    return CopiedRows(copies, by_chance, risk, overlap, {name: count for name, count in lone.items() if count})


def _by_chance(tables: Mapping[TableName, Rows], times: Mapping[TableName, Reals]) -> float:
    real, new = tables["real"], tables["new"]
    if "control" in tables:
        met = times["control"][new]
        larger = max(len(real) / len(tables["control"]) - 1, 0.0)
        smaller = min(len(real) / len(tables["control"]), 1.0)  # only this part of a larger control
        return float(min(1.0, (1 - (1 - smaller) ** met).mean() + larger * (met == 1).mean()))
    shares = [(times["real"][real] > 1).mean()]
    if len(new) >= len(real):  # in fewer rows, fewer are equal to each other
        others = times["new"][new] - 1
        part = (len(real) - 1) / max(len(new) - 1, 1)
        shares.append((1 - (1 - part) ** others).mean())
    return float(min(shares))


def linkability(attacked: Sequence[Nearest], *, confidence: float) -> Risk:
    """Count the people who are linked with the help of the new rows: the same one is nearest to both parts.

    Somebody's columns are split into two parts, as if two tables about the same people held one part each.
    """
    return Risk.of_hits([near.linked for near in attacked], confidence)


def read_parts(pooled: Pooled, given: Sequence[Sequence[str]] | None) -> tuple[tuple[int, ...], ...]:
    """The two parts of the columns, by position: every other one by default; nothing if there is only one column."""
    if given is None:
        every = range(len(pooled.columns))
        return (tuple(every[::2]), tuple(every[1::2])) if len(every) > 1 else ()
    listed = given if isinstance(given, list | tuple) else ()
    parts = tuple(pooled.positions(read_columns("parts", part)) for part in listed)
    if len(parts) != 2 or not all(parts) or set(parts[0]) & set(parts[1]):
        raise InputError(f"parts is {given!r}; pass two lists of different columns")
    return parts


@dataclass(frozen=True)
class Inference:
    """How well each column can be guessed from the others."""

    average: Risk
    """Over all columns that were guessed."""
    by_column: dict[str, Risk]
    surely: dict[str, float]
    """The least risk of each column, if the intervals of all columns are to hold together."""

    @property
    def worst(self) -> str:
        """The column at the greatest risk, as far as that is sure."""
        return max(self.by_column, key=lambda name: (self.by_column[name].low, self.by_column[name].value))

    def judged(self) -> Judgement:
        """High if one column surely is, otherwise as the average is."""
        is_sure = self.average.control_rate is not None and max(self.surely.values()) > LIMIT
        return "high" if is_sure else self.average.judged()


def inference(pooled: Pooled, secrets: Sequence[int], attacked: Sequence[Nearest], *, confidence: float) -> Inference:
    """Guess each secret of somebody from the new row that is nearest in all other columns.

    A number counts as guessed if it is within 5 % of the guess, anything else if it is the same.
    """
    right: dict[str, list[Mask]] = {}
    for at, column in enumerate(pooled.columns[index] for index in secrets):
        for near in attacked:
            guessed = near.by_others[:, at]
            hits = column.codes[near.people] == column.codes[guessed]
            if column.numbers is not None:  # no comparison with NaN is true
                truth, guess = column.numbers[near.people], column.numbers[guessed]
                hits = hits | (np.abs(truth - guess) <= TOLERANCE * np.abs(guess))
            right.setdefault(column.name, []).append(hits)
    together = 1 - (1 - confidence) / len(right)
    rates = [_average(np.column_stack(hits), confidence) for hits in zip(*right.values(), strict=True)]
    return Inference(
        average=Risk.beyond(rates[0], rates[1] if len(rates) > 1 else None, len(attacked[0].people)),
        by_column={name: Risk.of_hits(hits, confidence) for name, hits in right.items()},
        surely={name: Risk.of_hits(hits, together).low for name, hits in right.items()},
    )


def _average(right: Mask, confidence: float) -> SuccessRate:
    """The share of guesses that are right; the columns of one person go together, so that people are what varies."""
    from scipy.special import stdtrit  # slow to import

    by_person, people = right.mean(axis=1), len(right)
    mean, error = float(by_person.mean()), 1.0
    if people > 1:
        error = stdtrit(people - 1, (1 + confidence) / 2) * math.sqrt(by_person.var(ddof=1) / people)
        error = max(float(error), SuccessRate.of(0, people, confidence).error)  # a few may be the same by chance
    return SuccessRate(mean, error, mean)


def read_secrets(pooled: Pooled, given: str | Sequence[str] | None) -> tuple[int, ...]:
    """The columns to guess, by position: by default all, or the first of very many; none if there is only one."""
    names = pooled.names[:MOST_SECRETS] if given is None else read_columns("secrets", given)
    if not names:
        raise ColumnError("secrets is empty; name a column, or leave it out for every column")
    return pooled.positions(names) if len(pooled.columns) > 1 else ()


@dataclass(frozen=True)
class Membership:
    """How well distances tell people of the real table from other people."""

    auc: float
    """How often somebody of the real table is nearer to a new row than somebody else is; ½ is chance."""
    low: float
    high: float
    rarely_wrong: float
    """Share of the real table that is recognised, if one in a hundred other people may be taken for members."""
    attempts: int

    @property
    def risk(self) -> Risk:
        """2·AUC − 1 with its interval: 0 is chance, 1 is certainty, like the other risks."""
        value, low, high = (max(0.0, 2 * end - 1) for end in (self.auc, self.low, self.high))
        return Risk(value, low, high, self.attempts, self.auc, 0.5)


def membership(real: Reals, control: Reals, *, confidence: float) -> Membership:
    """Judge an attack by the distances of people of both kinds to their nearest new row.

    People of the real table may be nearer to a new row than other people are, so that somebody can tell who was in it.
    """
    # Of each person: the share of the other kind that is nearer, ties in half; it gives the area and DeLong's error.
    nearer = []
    for distances, others in ((real, np.sort(control)), (control, np.sort(real))):
        below, up_to = (others.searchsorted(distances, side=side) for side in ("left", "right"))
        nearer.append((below + up_to) / (2 * len(others)))
    auc = float(nearer[1].mean())
    variances = [part.var(ddof=1) / len(part) if len(part) > 1 else 0.25 for part in nearer]
    # With few people, all of them may be on one side, which does not make the answer certain.
    least = SuccessRate.of(0, min(len(real), len(control)), 0.95).error / 2
    error = NormalDist().inv_cdf((1 + confidence) / 2) * max(math.sqrt(sum(variances)), least)
    # The share of the real table within the distance that one in a hundred others has; ties count in part.
    reached = np.unique(np.concatenate([real, control]))
    inside, outside = (np.sort(part).searchsorted(reached, side="right") / len(part) for part in (real, control))
    rarely_wrong = float(np.interp(RARE, np.append(0.0, outside), np.append(0.0, inside)))
    return Membership(auc, max(0.0, auc - error), min(1.0, auc + error), rarely_wrong, len(real) + len(control))


@dataclass(frozen=True)
class ClosestRecord:
    """Median distance of new rows, and of other people, to the closest real row; each column counts at most 1."""

    new: float
    others: float | None
    """Of control rows; None: there are none."""
    why_not: str = (
        "Do not rely on this distance: it is an average over the table, so rows can be far from most people and still "
        "copy some of them. It misses leaks that the attacks above find (Yao et al., 2025)."
    )


def closest_record(pooled: Pooled, rows: int, *, rng: np.random.Generator) -> ClosestRecord:
    """Measure the distances of so many rows of either kind."""
    real = pooled.shuffled("real", rng)
    people = [pooled.shuffled(name, rng, rows) for name in pooled.parts if name != "real"]
    new, *others = (float(np.median(nearest(pooled, rows, real).distance)) for rows in people)
    return ClosestRecord(new, others[0] if others else None)
