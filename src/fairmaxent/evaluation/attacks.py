"""Attacks on new rows, and the risk that they stand for.

The framework is that of Giomi et al. 2023 ("A unified framework…"). An attack is tried
on n people. With k successes, its rate is that of Wilson's score interval at z standard
errors:

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
from typing import Literal

import numpy as np
from numpy.random import Generator

from fairmaxent.data.roles import ColumnNames, read_columns
from fairmaxent.data.table import Axes, Mask, NameList, Reals, row_keys, tally
from fairmaxent.errors import ColumnError
from fairmaxent.evaluation.pooled import Nearest, Pooled, Rows, TableName, nearest
from fairmaxent.metrics.intervals import deviate_of
from fairmaxent.metrics.trial import Score

Judgement = Literal["high", "low", "uncertain", "needs control"]

# A risk above this is called high: it is what regulators accept when patients' data
# are published (the European Medicines Agency's policy 0070, Health Canada).
LIMIT = 0.09
# A larger share of people who were copied, beyond those expected by chance, is too
# large.
MOST_COPIES = 0.01
# Small steps of a number: to the next value, or these shares of its range. With fewer
# values than these, no step is small.
_STEPS = (0.0, 0.002, 0.02)
_COARSE = 20
_FAR = -10.0  # where a missing number is, in steps
_MOST_PEOPLE = 100_000  # who are looked for among the new rows but for small steps
_ENOUGH = 0.25  # control rows for each real one, to tell what is chance
_SEVERAL = 3  # others with the same values: nobody is given away
TOLERANCE = 0.05  # of a number that is guessed
MOST_SECRETS = 40  # columns that are guessed if nobody says which


@dataclass(frozen=True)
class SuccessRate:
    """How often something happened: estimated with its error, and observed."""

    value: float
    error: float
    observed: float

    @classmethod
    def of(
        cls,
        successes: float,
        attempts: int,
        confidence: float,
    ) -> "SuccessRate":
        """Wilson's score interval; ``successes`` may be a mean over broken ties."""
        z = deviate_of(confidence)
        total = attempts + z**2
        spread = successes * (attempts - successes) / attempts
        error = z / total * math.sqrt(max(spread, 0.0) + z**2 / 4)
        return cls((successes + z**2 / 2) / total, error, successes / attempts)


@dataclass(frozen=True)
class Risk(Score):
    """How much more often an attack succeeds against the table's own people."""

    attempts: int  # how many people, or guesses, were tried
    rate: float  # how often it succeeded
    # against control rows; None: there are none, and `value` is at least the risk
    control_rate: float | None

    @classmethod
    def of_hits(cls, hits: Sequence[Mask | Reals], confidence: float) -> "Risk":
        """Estimate a risk from who was hit, or how likely.

        These are people of the real table and, if any, of the control.
        """
        rates = [
            SuccessRate.of(float(part.sum()), len(part), confidence) for part in hits
        ]
        return cls.beyond(*rates, attempts=len(hits[0]))

    @classmethod
    def beyond(
        cls,
        attack: SuccessRate,
        control: SuccessRate | None = None,
        *,
        attempts: int,
    ) -> "Risk":
        """Estimate a risk from two rates with their errors."""
        value = attack.value
        error = attack.error
        control_rate = None
        if control is not None:
            control_rate = control.observed
            room = max(1 - control.value, 1e-12)
            value = (attack.value - control.value) / room
            error = math.hypot(
                attack.error / room, control.error * (1 - attack.value) / room**2
            )
            # near 1, errors are not linear
            if attack.value - control.value <= math.hypot(attack.error, control.error):
                error = max(error, value)
        return cls(
            value=_within_one(value),
            low=_within_one(value - error),
            high=_within_one(value + error),
            attempts=attempts,
            rate=attack.observed,
            control_rate=control_rate,
        )

    def judged(self, limit: float = LIMIT) -> Judgement:
        """Whether the risk is above the limit, as far as that is known."""
        if self.high <= limit:
            return "low"
        if self.control_rate is None:
            return "needs control"
        return "high" if self.low > limit else "uncertain"


def _within_one(share: float) -> float:
    return min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class FoundPeople:
    """People of the real table who are found among the new rows."""

    people: int  # who are found
    by_chance: float  # how many people would be there if nobody was copied
    # so many people beyond chance are too many: 1 % of the people, or of the new rows
    # if they are fewer
    limit: float
    risk: Risk  # the share of the people who are there beyond chance

    def judged(self) -> Judgement:
        """Whether they are more than the limit, as far as that is known."""
        return self.risk.judged(self.limit / self.risk.attempts)


@dataclass(frozen=True)
class CopiedRows(FoundPeople):
    """People of the real table who are in the new rows with all their values."""

    copies: int  # the new rows that equal a real row
    # share of the control rows that equal a real row beyond chance; they should not
    control_overlap: Risk | None


def copied_rows(pooled: Pooled, *, confidence: float) -> CopiedRows:
    """Count the people of the real table whose whole row is among the new rows."""
    # Some are there by chance: as many as other people would be, the control rows, who
    # are drawn like them. Where those are few or none, rows that equal each other in
    # the same table tell, too, how common such luck is: of both, the one counts that
    # bounds chance more narrowly.
    numbers = pooled.row_numbers
    count = int(numbers.max()) + 1
    real = numbers[pooled.parts["real"]]
    new = numbers[pooled.parts["new"]]
    times_real = tally(real, None, count)
    times_new = tally(new, None, count)
    found = times_new > 0
    people = len(real)
    chances = []
    overlap = None
    if "control" in pooled.parts:
        control = numbers[pooled.parts["control"]]
        hits = int(found[control].sum())
        chances.append(SuccessRate.of(hits, len(control), confidence))
        # As many new rows should equal a real one as real rows do.
        doubles = [times_real[control] > 0, times_real[real] > 1]
        overlap = Risk.of_hits(doubles, confidence)
    if pooled.rows("control") < _ENOUGH * people:
        chances.append(
            _by_doubles(times_real[real] - 1, times_new[new] - 1, confidence)
        )
    chance = min(chances, key=lambda rate: rate.value + rate.error)
    copied = int(found[real].sum())
    attack = SuccessRate.of(copied, people, confidence)
    return CopiedRows(
        copies=int(np.count_nonzero(times_real[new])),
        people=copied,
        by_chance=chance.observed * people,
        limit=MOST_COPIES * min(people, len(new)),
        risk=Risk.beyond(attack, chance, attempts=people),
        control_overlap=overlap,
    )


def near_copies(
    pooled: Pooled, *, confidence: float, rng: Generator
) -> FoundPeople | None:
    """Find people whose row is among the new rows but for small steps in numbers.

    Those who are there with all their values are left out. How many are found by
    chance, the control rows say; there is no answer without them, or without numbers.
    Of several sizes of a small step, the one counts that tells most, at a confidence
    for all of them together.
    """
    numeric = [  # with so many values that a step can be small
        index
        for index, column in enumerate(pooled.columns)
        if column.numbers is not None and column.size > _COARSE
    ]
    if not numeric or "control" not in pooled.parts:
        return None
    people = [
        pooled.shuffled(table, rng, _MOST_PEOPLE) for table in ("real", "control")
    ]
    together = 1 - (1 - confidence) / len(_STEPS)
    by_step = [_nearly_found(pooled, numeric, step, people) for step in _STEPS]
    risks = [Risk.of_hits(hits, together) for hits in by_step]
    risk = max(risks, key=lambda risk: (risk.low, risk.value))
    of_people, of_others = by_step[risks.index(risk)]
    return FoundPeople(
        people=int(of_people.sum()),
        by_chance=float(of_others.mean()) * len(of_people),
        limit=MOST_COPIES * min(len(of_people), pooled.rows("new")),
        risk=risk,
    )


def _nearly_found(
    pooled: Pooled, numeric: Sequence[int], step: float, people: Sequence[Rows]
) -> list[Mask]:
    """Who has a new row at most a step away in every number, and equal otherwise."""
    from scipy.spatial import KDTree  # slow to import

    new = pooled.parts["new"]
    places = _places(pooled, numeric, step)
    tree = KDTree(places[new])
    is_copied = np.isin(pooled.row_numbers, pooled.row_numbers[new])
    hits = []
    for rows in people:
        distances, _ = tree.query(
            places[rows], p=math.inf, distance_upper_bound=1 + 1e-9
        )
        hits.append(np.isfinite(distances) & ~is_copied[rows])
    return hits


def _places(pooled: Pooled, numeric: Sequence[int], step: float) -> Reals:
    """Each row as a point; rows a step apart are at most 1 apart in every coordinate.

    A step is a share of the range of a number, or to the next value. Rows that differ
    in anything else are farther apart.
    """
    others = [index for index in range(len(pooled.columns)) if index not in numeric]
    coordinates = []
    for index in numeric:
        numbers = pooled.columns[index].numbers
        assert numbers is not None
        distinct = np.unique(numbers[~np.isnan(numbers)])
        length = max(step * np.ptp(distinct), float(np.median(np.diff(distinct))))
        steps = (numbers - distinct[0]) / length
        coordinates.append(np.where(np.isnan(steps), _FAR, steps))
    if others:
        sizes = [pooled.columns[index].size for index in others]
        keys, _ = row_keys(pooled.codes[:, others], sizes)
        kinds = np.unique(keys, return_inverse=True)[1]
        coordinates.append(2.0 * kinds)  # two steps apart, at least
    return np.column_stack(coordinates)


def _by_doubles(real: Reals, new: Reals, confidence: float) -> SuccessRate:
    """Bound how many people are in the new rows by chance.

    ``real`` and ``new`` say how many others of its table each row equals.
    """
    # If cells have shares p among n people and q among m new rows, Σ n·p·m·q people are
    # there at most; by Cauchy and Schwarz, that is at most √(n·m · Σ n·p² · Σ m·q²),
    # and these sums are the shares of rows with a double. That is for rare cells:
    # people who equal several others may all be there by chance.
    some = (real > 0) & (real < _SEVERAL)
    one = SuccessRate.of(float(np.count_nonzero(some)), len(real), confidence).value
    other = SuccessRate.of(float(np.count_nonzero(new)), len(new), confidence).value
    common = np.count_nonzero(real >= _SEVERAL)
    by_chance = common + math.sqrt(one * other * len(new) * len(real))
    return SuccessRate.of(min(by_chance, len(real)), len(real), confidence)


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
        risks = self.by_column
        return max(risks, key=lambda name: (risks[name].low, risks[name].value))

    def judged(self) -> Judgement:
        """High if one column surely is, otherwise as the average is."""
        has_control = self.average.control_rate is not None
        if has_control and max(self.surely.values()) > LIMIT:
            return "high"
        return self.average.judged()


def inference(
    pooled: Pooled,
    secrets: Sequence[int],
    attacked: Sequence[Nearest],
    *,
    confidence: float,
) -> Inference:
    """Guess each secret of somebody from the new row nearest in all other columns.

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
    return Inference(
        average=Risk.beyond(*rates, attempts=len(attacked[0].people)),
        by_column={
            name: Risk.of_hits(hits, confidence) for name, hits in right.items()
        },
        surely={name: Risk.of_hits(hits, together).low for name, hits in right.items()},
    )


def _average(right: Mask, confidence: float) -> SuccessRate:
    """The share of guesses that are right.

    The columns of one person go together, so that people are what varies.
    """
    from scipy.special import stdtrit  # slow to import

    by_person = right.mean(axis=1)
    people = len(right)
    mean = float(by_person.mean())
    error = 1.0
    if people > 1:
        spread = math.sqrt(by_person.var(ddof=1) / people)
        error = stdtrit(people - 1, (1 + confidence) / 2) * spread
        # a few may be the same by chance
        error = max(float(error), SuccessRate.of(0, people, confidence).error)
    return SuccessRate(mean, error, mean)


def read_secrets(pooled: Pooled, given: ColumnNames | None) -> Axes:
    """The columns to guess, by position: by default all, or the first of very many.

    There are none if there is only one column.
    """
    names: NameList = pooled.names[:MOST_SECRETS]
    if given is not None:
        names = list(dict.fromkeys(read_columns("secrets", given)))  # each once
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
    attempts: int

    @property
    def risk(self) -> Risk:
        """2·AUC − 1 with its interval: 0 is chance, 1 is certainty."""
        return Risk(
            value=max(0.0, 2 * self.auc - 1),
            low=max(0.0, 2 * self.low - 1),
            high=max(0.0, 2 * self.high - 1),
            attempts=self.attempts,
            rate=self.auc,
            control_rate=0.5,
        )


def membership(real: Reals, control: Reals, *, confidence: float) -> Membership:
    """Judge an attack by the distances of people to their nearest new row.

    People of the real table may be nearer to a new row than other people are, so that
    somebody can tell who was in it.
    """
    # The share of the other kind that is nearer gives the area and DeLong's error.
    others_nearer = _share_nearer(real, control)
    people_nearer = _share_nearer(control, real)
    auc = float(people_nearer.mean())
    variance = _variance_of_mean(others_nearer) + _variance_of_mean(people_nearer)
    # With few people, all of them may be on one side, which does not make the answer
    # certain.
    least = SuccessRate.of(0, min(len(real), len(control)), 0.95).error / 2
    z = deviate_of(confidence)
    error = z * max(math.sqrt(variance), least)
    return Membership(
        auc=auc,
        low=max(0.0, auc - error),
        high=min(1.0, auc + error),
        attempts=len(real) + len(control),
    )


def _share_nearer(distances: Reals, others: Reals) -> Reals:
    """Of each person, the share of others that are nearer, ties in half."""
    others = np.sort(others)
    below = others.searchsorted(distances, side="left")
    up_to = others.searchsorted(distances, side="right")
    return (below + up_to) / (2 * len(others))


def _variance_of_mean(shares: Reals) -> float:
    if len(shares) == 1:
        return 0.25
    return float(shares.var(ddof=1) / len(shares))


@dataclass(frozen=True)
class ClosestRecord:
    """Median distance of new rows, and of other people, to the closest real row.

    Each column counts at most 1.
    """

    new: float
    others: float | None  # of control rows; None: there are none
    why_not: str = (
        "Do not rely on this distance: it is an average over the table, so rows can be"
        " far from most people and still copy some of them. It misses leaks that the"
        " attacks above find (Yao et al., 2025)."
    )


def closest_record(pooled: Pooled, rows: int, *, rng: Generator) -> ClosestRecord:
    """Measure the distances of so many rows of either kind."""
    real = pooled.shuffled("real", rng)
    medians: dict[TableName, float] = {}
    for table in pooled.parts:
        if table != "real":
            people = pooled.shuffled(table, rng, rows)
            distance = nearest(pooled, people, real).distance
            medians[table] = float(np.median(distance))
    return ClosestRecord(new=medians["new"], others=medians.get("control"))
