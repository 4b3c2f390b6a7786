"""Attacks on new rows, and the risk that they stand for (Giomi et al. 2023, "A unified
framework…").

An attack is tried on n people. With k successes, its rate is that of Wilson's score
interval at z standard errors:

    rate = (k + z²/2) / (n + z²),   error = z / (n + z²) · √(k (n − k) / n + z²/4).

Somebody outside the real table can be attacked in the same way; what succeeds against
them comes from what the rows say of people in general. The risk is what is left: the
rate beyond that of the control, as a part of what is possible,

    risk = (rate − control) / (1 − control),

with the errors of both rates carried on, and cut to [0, 1]. Without control rows, the
rate itself is reported; the risk cannot be larger, as (a − c) / (1 − c) ≤ a.

Linkability, inference and membership start from the new rows that are nearest to
people: one search serves all three.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from fairmaxent.data.roles import read_columns
from fairmaxent.data.table import Mask, Reals, tally
from fairmaxent.errors import ColumnError, InputError
from fairmaxent.evaluation.pooled import Nearest, Pooled, nearest
from fairmaxent.metrics.trial import Score

Judgement = Literal["high", "low", "uncertain", "needs control"]

LIMIT = 0.09
"""A risk above this is called high: it is what regulators accept when patients' data
are published (the European Medicines Agency's policy 0070, Health Canada).
"""
# a larger share of people who were copied, beyond those expected by chance, is too
# large
MOST_COPIES = 0.01
_ENOUGH = 0.25  # control rows for each real one, to tell what is chance
_SEVERAL = 3  # others with the same values: nobody is given away
TOLERANCE = 0.05  # of a number that is guessed
MOST_SECRETS = 40  # columns that are guessed if nobody says which
RARE = 0.01  # of the people outside may be accused wrongly


@dataclass(frozen=True)
class SuccessRate:
    """How often something happened: an estimate with its error, and the share that was
    observed.
    """

    value: float
    error: float
    observed: float

    @classmethod
    def of(cls, successes: float, attempts: int, confidence: float) -> "SuccessRate":
        """Wilson's score interval; ``successes`` may be a mean over ways to break
        ties.
        """
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        total = attempts + z**2
        spread = successes * (attempts - successes) / attempts
        error = z / total * math.sqrt(max(spread, 0.0) + z**2 / 4)
        return cls((successes + z**2 / 2) / total, error, successes / attempts)


@dataclass(frozen=True)
class Risk(Score):
    """How much more often an attack succeeds against people in the real table than
    against other people.
    """

    attempts: int  # how many people, or guesses, were tried
    rate: float  # how often it succeeded
    # the same against control rows; None: there are none, and `value` is at least the
    # risk
    control_rate: float | None

    @classmethod
    def of_hits(cls, hits: Sequence[Mask | Reals], confidence: float) -> "Risk":
        """Estimate a risk from who was hit, or how likely: people of the real table
        and, if any, of the control.
        """
        attack, *control = (
            SuccessRate.of(float(part.sum()), len(part), confidence) for part in hits
        )
        return cls.beyond(attack, control[0] if control else None, len(hits[0]))

    @classmethod
    def beyond(
        cls, attack: SuccessRate, control: SuccessRate | None, attempts: int
    ) -> "Risk":
        """Estimate a risk from two rates with their errors."""
        value = attack.value
        error = attack.error
        if control is not None:
            room = max(1 - control.value, 1e-12)
            value = (attack.value - control.value) / room
            error = math.hypot(
                attack.error / room, control.error * (1 - attack.value) / room**2
            )
            # near 1, errors are not linear
            if attack.value - control.value <= math.hypot(attack.error, control.error):
                error = max(error, value)
        low, value, high = (
            min(max(number, 0.0), 1.0)
            for number in (value - error, value, value + error)
        )
        return cls(
            value,
            low,
            high,
            attempts,
            attack.observed,
            None if control is None else control.observed,
        )

    def judged(self, limit: float = LIMIT) -> Judgement:
        """Whether the risk is above the limit, as far as that is known."""
        if self.high <= limit:
            return "low"
        if self.control_rate is None:
            return "needs control"
        return "high" if self.low > limit else "uncertain"


@dataclass(frozen=True)
class CopiedRows:
    """People of the real table who are in the new rows with all their values."""

    copies: int  # the new rows that equal a real row
    people: int  # the people whose row is among the new rows
    by_chance: float  # how many people would be there if nobody was copied
    # so many people beyond chance are too many: 1 % of the people, or of the new rows
    # if they are fewer
    limit: float
    risk: Risk  # the share of the people who are there beyond chance
    # share of the control rows that equal a real row beyond chance; they should not
    control_overlap: Risk | None
    # columns with values in the new rows that only one real row has, and how many
    lone_values: dict[str, int]

    def judged(self) -> Judgement:
        """Whether they are more than the limit, as far as that is known."""
        return self.risk.judged(self.limit / self.risk.attempts)


def copied_rows(pooled: Pooled, *, confidence: float) -> CopiedRows:
    """Count the people of the real table whose row is among the new rows, in every
    column.
    """
    # Some are there by chance: as many as other people would be, the control rows, who
    # are drawn like them. Where those are few or none, rows that equal each other in
    # the same table tell, too, how common such luck is: of both, the one counts that
    # bounds chance more narrowly.
    numbers = pooled.row_numbers
    tables = {name: numbers[part] for name, part in pooled.parts.items()}
    times = {
        name: tally(rows, None, int(numbers.max()) + 1) for name, rows in tables.items()
    }
    real = tables["real"]
    new = tables["new"]
    found = times["new"] > 0
    people = len(real)
    chances = []
    overlap = None
    # as many should equal a real row as real rows another one
    if (control := tables.get("control")) is not None:
        chances.append(
            SuccessRate.of(int(found[control].sum()), len(control), confidence)
        )
        overlap = Risk.of_hits(
            [times["real"][control] > 0, times["real"][real] > 1], confidence
        )
    if pooled.rows("control") < _ENOUGH * people:
        chances.append(
            _by_doubles(times["real"][real] - 1, times["new"][new] - 1, confidence)
        )
    chance = min(chances, key=lambda rate: rate.value + rate.error)
    lone = {}
    for column in pooled.columns:
        met = np.unique(column.codes[pooled.parts["new"]])
        sharing = tally(column.codes[pooled.parts["real"]], None, column.size)
        lone[column.name] = int(np.count_nonzero(sharing[met] == 1))
    attack = SuccessRate.of(int(found[real].sum()), people, confidence)
    limit = MOST_COPIES * min(people, len(new))
    risk = Risk.beyond(attack, chance, people)
    copies = int(np.count_nonzero(times["real"][new]))
    lone = {name: count for name, count in lone.items() if count}
    return CopiedRows(
        copies,
        int(found[real].sum()),
        chance.observed * people,
        limit,
        risk,
        overlap,
        lone,
    )


def _by_doubles(real: Reals, new: Reals, confidence: float) -> SuccessRate:
    """Bound how many people are in the new rows by chance, from how many others of its
    table each row equals.
    """
    # If cells have shares p among n people and q among m new rows, Σ n·p·m·q people are
    # there at most; by Cauchy and Schwarz, that is at most √(n·m · Σ n·p² · Σ m·q²),
    # and these sums are the shares of rows with a double. That is for rare cells:
    # people who equal several others may all be there by chance.
    some = (real > 0) & (real < _SEVERAL)
    one, other = (
        SuccessRate.of(float(np.count_nonzero(rows)), len(rows), confidence).value
        for rows in (some, new)
    )
    by_chance = np.count_nonzero(real >= _SEVERAL) + math.sqrt(
        one * other * len(new) * len(real)
    )
    return SuccessRate.of(min(by_chance, len(real)), len(real), confidence)


def linkability(attacked: Sequence[Nearest], *, confidence: float) -> Risk:
    """Count the people who are linked with the help of the new rows: the same one is
    nearest to both parts.

    Somebody's columns are split into two parts, as if two tables about the same people
    held one part each.
    """
    return Risk.of_hits([near.linked for near in attacked], confidence)


def read_parts(
    pooled: Pooled, given: Sequence[Sequence[str]] | None
) -> tuple[tuple[int, ...], ...]:
    """The two parts of the columns, by position: every other one by default; nothing if
    there is only one column.
    """
    if given is None:
        every = range(len(pooled.columns))
        if len(every) > 1:
            return (tuple(every[::2]), tuple(every[1::2]))
        return ()
    if isinstance(given, list | tuple):
        listed = given
    else:
        listed = ()
    parts = tuple(pooled.positions(read_columns("parts", part)) for part in listed)
    if len(parts) != 2 or not all(parts) or set(parts[0]) & set(parts[1]):
        raise InputError(f"parts is {given!r}; pass two lists of different columns")
    return parts


@dataclass(frozen=True)
class Inference:
    """How well each column can be guessed from the others."""

    average: Risk  # over all columns that were guessed
    by_column: dict[str, Risk]
    # the least risk of each column, if the intervals of all columns are to hold
    # together
    surely: dict[str, float]

    @property
    def worst(self) -> str:
        """The column at the greatest risk, as far as that is sure."""
        return max(
            self.by_column,
            key=lambda name: (self.by_column[name].low, self.by_column[name].value),
        )

    def judged(self) -> Judgement:
        """High if one column surely is, otherwise as the average is."""
        is_sure = (
            self.average.control_rate is not None and max(self.surely.values()) > LIMIT
        )
        if is_sure:
            return "high"
        return self.average.judged()


def inference(
    pooled: Pooled,
    secrets: Sequence[int],
    attacked: Sequence[Nearest],
    *,
    confidence: float,
) -> Inference:
    """Guess each secret of somebody from the new row that is nearest in all other
    columns.

    A number counts as guessed if it is within 5 % of the guess, anything else if it is
    the same.
    """
    right: dict[str, list[Mask]] = {}
    for at, column in enumerate(pooled.columns[index] for index in secrets):
        for near in attacked:
            guessed = near.by_others[:, at]
            hits = column.codes[near.people] == column.codes[guessed]
            if column.numbers is not None:  # no comparison with NaN is true
                truth = column.numbers[near.people]
                guess = column.numbers[guessed]
                hits = hits | (np.abs(truth - guess) <= TOLERANCE * np.abs(guess))
            right.setdefault(column.name, []).append(hits)
    together = 1 - (1 - confidence) / len(right)
    rates = [
        _average(np.column_stack(hits), confidence)
        for hits in zip(*right.values(), strict=True)
    ]
    average = Risk.beyond(
        rates[0], rates[1] if len(rates) > 1 else None, len(attacked[0].people)
    )
    by_column = {name: Risk.of_hits(hits, confidence) for name, hits in right.items()}
    return Inference(
        average,
        by_column,
        {name: Risk.of_hits(hits, together).low for name, hits in right.items()},
    )


def _average(right: Mask, confidence: float) -> SuccessRate:
    """The share of guesses that are right; the columns of one person go together, so
    that people are what varies.
    """
    from scipy.special import stdtrit  # slow to import

    by_person = right.mean(axis=1)
    people = len(right)
    mean = float(by_person.mean())
    error = 1.0
    if people > 1:
        error = stdtrit(people - 1, (1 + confidence) / 2) * math.sqrt(
            by_person.var(ddof=1) / people
        )
        # a few may be the same by chance
        error = max(float(error), SuccessRate.of(0, people, confidence).error)
    return SuccessRate(mean, error, mean)


def read_secrets(pooled: Pooled, given: str | Sequence[str] | None) -> tuple[int, ...]:
    """The columns to guess, by position: by default all, or the first of very many;
    none if there is only one.
    """
    if given is None:
        names = pooled.names[:MOST_SECRETS]
    else:
        names = read_columns("secrets", given)
    if not names:
        raise ColumnError(
            "secrets is empty; name a column, or leave it out for every column"
        )
    if len(pooled.columns) > 1:
        return pooled.positions(names)
    return ()


@dataclass(frozen=True)
class Membership:
    """How well distances tell people of the real table from other people."""

    # how often somebody of the real table is nearer to a new row than somebody else is;
    # ½ is chance
    auc: float
    low: float
    high: float
    # share of the real table that is recognised, if one in a hundred others may be, too
    rarely_wrong: float
    attempts: int

    @property
    def risk(self) -> Risk:
        """2·AUC − 1 with its interval: 0 is chance, 1 is certainty, like the other
        risks.
        """
        value, low, high = (
            max(0.0, 2 * end - 1) for end in (self.auc, self.low, self.high)
        )
        return Risk(value, low, high, self.attempts, self.auc, 0.5)


def membership(real: Reals, control: Reals, *, confidence: float) -> Membership:
    """Judge an attack by the distances of people of both kinds to their nearest new
    row.

    People of the real table may be nearer to a new row than other people are, so that
    somebody can tell who was in it.
    """
    # Of each person: the share of the other kind that is nearer, ties in half; it gives
    # the area and DeLong's error.
    nearer = []
    for distances, others in ((real, np.sort(control)), (control, np.sort(real))):
        below, up_to = (
            others.searchsorted(distances, side=side) for side in ("left", "right")
        )
        nearer.append((below + up_to) / (2 * len(others)))
    auc = float(nearer[1].mean())
    variances = [
        part.var(ddof=1) / len(part) if len(part) > 1 else 0.25 for part in nearer
    ]
    # With few people, all of them may be on one side, which does not make the answer
    # certain.
    least = SuccessRate.of(0, min(len(real), len(control)), 0.95).error / 2
    error = NormalDist().inv_cdf((1 + confidence) / 2) * max(
        math.sqrt(sum(variances)), least
    )
    # The share of the real table within the distance that one in a hundred others has;
    # ties count in part.
    reached = np.unique(np.concatenate([real, control]))
    inside, outside = (
        np.sort(part).searchsorted(reached, side="right") / len(part)
        for part in (real, control)
    )
    rarely_wrong = float(
        np.interp(RARE, np.append(0.0, outside), np.append(0.0, inside))
    )
    return Membership(
        auc,
        max(0.0, auc - error),
        min(1.0, auc + error),
        rarely_wrong,
        len(real) + len(control),
    )


@dataclass(frozen=True)
class ClosestRecord:
    """Median distance of new rows, and of other people, to the closest real row; each
    column counts at most 1.
    """

    new: float
    others: float | None  # of control rows; None: there are none
    why_not: str = (
        "Do not rely on this distance: it is an average over the table, so rows can be"
        " far from most people and still copy some of them. It misses leaks that the"
        " attacks above find (Yao et al., 2025)."
    )


def closest_record(
    pooled: Pooled, rows: int, *, rng: np.random.Generator
) -> ClosestRecord:
    """Measure the distances of so many rows of either kind."""
    real = pooled.shuffled("real", rng)
    people = [
        pooled.shuffled(name, rng, rows) for name in pooled.parts if name != "real"
    ]
    new, *others = (
        float(np.median(nearest(pooled, rows, real).distance)) for rows in people
    )
    return ClosestRecord(new, others[0] if others else None)
