"""Likely groups: what outcomes tell about groups that nobody wrote down.

Each person i has probabilities p_i(g) of groups, made from a proxy S such as a surname,
and an outcome y_i. If S tells nothing about the outcome but by the group ("names":
y is independent of S given g), then P(y | p_i) = Σ_g p_i(g)·π(y | g): linear in π. The
outcome in turn tells something about the group, by Bayes' rule:

    q_i(g) = P(g | p_i, y_i) ∝ p_i(g)·π(y_i | g).

**π** is learned within each combination c of what is known of people, such as a
stratum. Its logarithmic likelihood Σ d_i·log Σ_g p_i(g)·π(y_i | g) is concave. The
prior says that groups differ little: π(· | g, c) is Dirichlet with the mean that c has,
and a strength α of so many people. α is not known either, so it has a prior of its own,
and the evidence of each strength (Laplace) is its weight.

**Draws** of π, of all strengths, give tables that the true groups may have. What is
left to chance then is who belongs to which group: q_i is a probability.

**Contradiction.** If S tells more, the outcome is not linear in p. The score test asks
whether p_g(1 − p_g) say something about it beyond p.

**Bounds.** Whatever is assumed, the share of a cell of people that is in g and has y
lies between max(0, P(g) + P(y) − 1) and min(P(g), P(y)) (Fréchet).

References: J. Chen et al. (2019), Fairness under unawareness, FAT*; N. Kallus, X. Mao
and A. Zhou (2022), Assessing algorithmic fairness with unobserved protected class using
data combination, Management Science 68; C. McCartan et al. (2025), Estimating racial
disparities when race is not observed, JASA.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat

import numpy as np

from fairmaxent.data.table import Indices, Reals, ratio, tally
from fairmaxent.fairness.projection import Conditions, project

# α, and its prior: logarithms are normal around this one, with this deviation. Chosen
# by benchmarks/unrecorded.py: expected rates are unbiased, and intervals cover.
_STRENGTHS = np.array([2.0, 4, 8, 16, 32, 64, 128, 256, 1024, 4096])
_USUAL_STRENGTH = 16.0
_SPREAD_OF_STRENGTHS = 1.25

_LEAST_RATE = 1e-12  # of an outcome in a group; less is outside
_STEPS = 100  # of Newton's method; nearly always five will do
_DECREMENT = 1e-9  # of the log-likelihood, at which it ends
_NOBODY = 0.5  # people, in place of none, who have an outcome
_DRAWN_FROM = 20_000  # people; of more, as many represent them in draws
_RANK = 1e-8  # of an eigenvalue, relative to the largest, that counts
REFUTED = 0.05  # p-value below which data contradict that names say nothing else
_FEWEST_TELLING = 30.0  # people that a test is made of, at least
# People of similar p: how many cells at most, and how many people in each at least.
_CELLS_TESTED = 8
_MOST_CELLS = 32
_FEWEST_IN_A_CELL = 100
_ALLOWANCE = 3.0  # standard errors by which true groups may differ from what p says


@dataclass(frozen=True, eq=False)
class People:
    """People with the probabilities of their groups, one cell after the other.

    A cell is a combination of all that is known of people, and an outcome. People of a
    cell who have the same p stand together.
    """

    shape: tuple[int, int]  # combinations, outcomes
    place: Indices  # of those that were given, where each one is
    starts: Indices  # where each cell begins, and the end
    chances: Reals  # (people, groups): p_i(g); a group's lie one after the other
    weight: Reals  # Σd
    squares: Reals  # Σd²

    @classmethod
    def of(
        cls,
        chances: Reals,
        cells: Indices,
        shape: tuple[int, int],
        weight: Reals,
        squares: Reals,
    ) -> "People":
        """Sort people by their cells, of which there are combinations × outcomes."""
        first, alike = _alike(np.column_stack([chances, cells]))
        order = np.lexsort((first, cells[first]))
        place = np.argsort(order)[alike]
        first = first[order]
        return cls(
            shape=shape,
            place=place,
            starts=np.searchsorted(cells[first], np.arange(math.prod(shape) + 1)),
            chances=chances.T[:, first].T,
            weight=tally(place, weight, len(first)),
            squares=tally(place, squares, len(first)),
        )

    def parts(self, combination: int) -> list[slice]:
        """Where the people of a combination are, by outcome."""
        _, outcomes = self.shape
        ends = self.starts[combination * outcomes :][: outcomes + 1].tolist()
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def cells(self) -> Iterator[tuple[tuple[int, int], slice]]:
        """Each cell that has people, and where they are."""
        for combination in range(self.shape[0]):
            for outcome, part in enumerate(self.parts(combination)):
                if part.stop > part.start:
                    yield (combination, outcome), part

    @cached_property
    def informative(self) -> Reals:
        """Weights that add up to the number of equally weighted people (Kish)."""
        return self.weight * ratio(self.weight.sum(), self.squares.sum())

    def memberships(self, rates: Reals) -> Reals:
        """q_i(g) = P(g | p_i, y_i), given π of each cell."""
        joint = self.chances.copy(order="K")
        for cell, part in self.cells:
            joint[part] *= rates[cell]
        return joint / joint.sum(axis=1, keepdims=True)

    def table(self, memberships: Reals, values: Reals) -> Reals:
        """Values of people, shared between their groups: cells × groups."""
        result = np.zeros((*self.shape, memberships.shape[1]))
        for cell, part in self.cells:
            result[cell] = values[part] @ memberships[part]
        return result


def _alike(numbers: Reals) -> tuple[Indices, Indices]:
    """The first of each kind of equal rows of numbers, and everybody's kind.

    Equal rows have equal sums. If others do, too, everybody is one of a kind.
    """
    factors = np.random.default_rng(0).random(numbers.shape[1])
    sums = (numbers * factors).sum(axis=1)
    _, first, alike = np.unique(sums, return_index=True, return_inverse=True)
    if (numbers[first[alike]] != numbers).any():
        first = alike = np.arange(len(numbers))
    return first, alike


# ---------------------------------------------------------------- P(y | g)


@dataclass(frozen=True, eq=False)
class _Point:
    """Minus the logarithm of likelihood times prior at some π, and its slopes."""

    multipliers: Reals  # π of each outcome but the last, which is what is left
    value: float
    gradient: Reals
    hessian: Reals
    rates: Reals  # π: outcomes × groups

    def draws(self, count: int, rng: np.random.Generator) -> Reals:
        """π as it may be (count, outcomes, groups): normal in logarithms of odds."""
        root = _root(np.asarray(np.linalg.inv(self.hessian)))
        free = (len(self.rates) - 1, self.rates.shape[1])
        moves = (rng.normal(size=(count, len(root))) @ root.T).reshape(count, *free)
        moves = np.concatenate([moves, -moves.sum(axis=1, keepdims=True)], axis=1)
        logarithms = np.log(self.rates) + moves / self.rates
        odds = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)


def _root(covariance: Reals) -> Reals:
    """R with R² = a covariance, which may be singular.

    It is the symmetric one: rounding cannot turn that into another.
    """
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


@dataclass(frozen=True, eq=False)
class _Combination:
    """The people of one combination, by outcome, and the prior mean of π."""

    chances: Sequence[Reals]
    weights: Sequence[Reals]
    mean: Reals  # P(y)

    @classmethod
    def of(cls, people: People, number: int) -> "_Combination":
        parts = people.parts(number)
        weights = [people.informative[part] for part in parts]
        total = np.maximum([one.sum() for one in weights], _NOBODY)
        chances = [people.chances[part] for part in parts]
        return cls(chances, weights, total / total.sum())

    @property
    def begin(self) -> Reals:
        """All groups alike, as the prior has them on average."""
        groups = self.chances[0].shape[1]
        return np.repeat(self.mean[:-1], groups)

    def at(self, strength: float, multipliers: Reals) -> _Point:
        """What there is to know about some π, if the prior has this strength."""
        outcomes = len(self.mean)
        free = multipliers.reshape(outcomes - 1, self.chances[0].shape[1])
        rates = np.vstack([free, 1 - free.sum(axis=0)])
        prior = strength * self.mean[:, None]
        inside = np.maximum(rates, _LEAST_RATE)
        value = -float((prior * np.log(inside)).sum())
        gradient = -prior / inside
        hessian = [np.diag(row) for row in prior / inside**2]
        for outcome, rate in enumerate(inside):
            chances = self.chances[outcome]
            weights = self.weights[outcome]
            mixed = chances @ rate  # P(y | p)
            relative = weights / mixed
            value -= float(weights @ np.log(mixed))
            gradient[outcome] -= relative @ chances
            bent = chances * (relative / mixed)[:, None]
            hessian[outcome] += chances.T @ bent
        whole = np.tile(hessian[-1], (outcomes - 1, outcomes - 1))
        groups = rates.shape[1]
        for outcome, own in enumerate(hessian[:-1]):
            place = slice(outcome * groups, (outcome + 1) * groups)
            whole[place, place] += own
        if rates.min() < _LEAST_RATE:
            value = math.inf
        slopes = (gradient[:-1] - gradient[-1]).ravel()
        return _Point(multipliers, value, slopes, whole, rates)

    def mode(self, strength: float, multipliers: Reals) -> _Point:
        """The most probable π, by Newton's method from some π."""
        point = self.at(strength, multipliers)
        for _ in range(_STEPS):
            step = -np.linalg.solve(point.hessian, point.gradient)
            if -point.gradient @ step < _DECREMENT:
                break
            following = self.at(strength, point.multipliers + step)
            while following.value > point.value + 1e-12 * abs(point.value):
                step = step / 2
                following = self.at(strength, point.multipliers + step)
            point = following
        return point

    def evidence(self, strength: float, mode: _Point) -> float:
        """log P(outcomes | α) but for a constant: Laplace, in logarithms of odds."""
        prior = strength * self.mean
        normalised = math.lgamma(strength) - sum(map(math.lgamma, prior))
        _, volume = np.linalg.slogdet(mode.hessian)
        volume += 2 * np.log(mode.rates).sum()
        return mode.rates.shape[1] * normalised - mode.value - volume / 2


@dataclass(frozen=True, eq=False)
class Learned:
    """What outcomes tell about groups: π, and how sure that is."""

    people: People
    modes: Sequence[Sequence[_Point]]  # by strength, then by combination
    chances: Reals  # of each strength

    @classmethod
    def of(cls, people: People) -> "Learned":
        """Learn π of every combination, for each strength of the prior."""
        combinations = [_Combination.of(people, one) for one in range(people.shape[0])]
        begin = [one.begin for one in combinations]
        modes = []
        evidence = []
        for strength in _STRENGTHS:
            found = list(map(_Combination.mode, combinations, repeat(strength), begin))
            begin = [mode.multipliers for mode in found]
            modes.append(found)
            evidence.append(
                sum(map(_Combination.evidence, combinations, repeat(strength), found))
            )
        deviation = np.log(_STRENGTHS / _USUAL_STRENGTH) / _SPREAD_OF_STRENGTHS
        likely = np.array(evidence) - deviation**2 / 2
        chances = np.exp(likely - likely.max())
        return cls(people, modes, chances / chances.sum())

    @property
    def rates(self) -> Reals:
        """π of the likeliest strength: combinations × outcomes × groups."""
        return np.stack([one.rates for one in self.modes[int(self.chances.argmax())]])

    @cached_property
    def memberships(self) -> Mapping[str, Reals]:
        """q of each of the people, by what tells the group."""
        by_names = self.people.memberships(self.rates)
        return {"names": by_names, "columns": self.people.chances}

    def draws(
        self, count: int, rng: np.random.Generator, told_by: str = "names"
    ) -> Reals:
        """π as it may be: the same, behind an axis for draws.

        All ones if columns tell the group, as outcomes then tell nothing about it.
        """
        if told_by == "columns":
            return np.ones((count, *self.rates.shape))
        times = rng.multinomial(count, self.chances)
        drawn = [
            np.stack([one.draws(often, rng) for one in modes], axis=1)
            for often, modes in zip(times, self.modes, strict=True)
        ]
        return np.concatenate(drawn)


def true_tables(
    people: People, factor: Reals, draws: Reals, rng: np.random.Generator
) -> Reals:
    """Tables that the true groups may have, one for each draw of π.

    People count d·factor. In what is left to chance, π is its mean.
    """
    memberships = people.memberships(draws.mean(axis=0))
    weight = people.weight * factor
    squares = people.squares * factor**2  # Σw²
    table = people.table(memberships, weight)
    tables = np.repeat(table[None], len(draws), axis=0)
    for cell, part in people.cells:
        own = memberships[part]
        index = (slice(None), *cell)
        few = slice(part.start, part.stop, -(-len(own) // _DRAWN_FROM))
        now = weight[few] @ memberships[few]
        grown = _grown(people.chances[few], weight[few], draws[index])
        tables[index] *= ratio(grown, np.broadcast_to(now, grown.shape), 1.0)
        shared = own * squares[part, None]
        left = np.diag(shared.sum(axis=0)) - shared.T @ own  # Σw²·(diag q − q·qᵀ)
        tables[index] += rng.normal(size=(len(draws), len(left))) @ _root(left).T
    return np.maximum(tables, 0.0)


def _grown(chances: Reals, weight: Reals, draws: Reals) -> Reals:
    """Σ w·q of each group for each draw of π, where q = p·π / Σ_h p(h)·π(h)."""
    mixed = draws @ chances.T  # draws × people
    return draws * ((weight / mixed) @ chances)


# ---------------------------------------------------------------- weights


def likely_factors(
    people: People, memberships: Reals, table: Reals, most: float | None = None
) -> Reals:
    """Factors f on people that give their likely groups a table t, cell by cell.

    Of all with Σ d_i·f_i·q_i(g) = t(y, g) and f ≤ ``most``, those that are nearest to
    the weights d that people have (KL): f_i = e^{λ_y·q_i} where no limit is met.
    """
    factor = np.zeros_like(people.weight)
    nothing = np.zeros((0, 1))
    for cell, part in people.cells:
        counts = people.weight[part] > 0
        weight = people.weight[part][counts]
        wanted = table[cell] > 0
        rows = memberships[part][counts][:, wanted].T / table[cell][wanted, None]
        conditions = Conditions(
            rows=rows,
            values=np.ones(len(rows)),
            rates=nothing.repeat(len(weight), axis=1),
            block=np.zeros(0, dtype=np.intp),
            least=np.zeros(0),
            ceiling=None if most is None else most * weight,
        )
        found = np.zeros(len(counts))
        found[counts] = project(weight, conditions).point / weight
        factor[part] = found
    return factor


# ---------------------------------------------------------------- contradiction


def contradiction(people: People, rates: Reals) -> float | None:
    """How likely it is by chance that outcomes are so far from linear in p.

    A score test: do p(1 − p) of each group, and cells of similar p, say anything beyond
    p? What is linear in p is taken off (Neyman's C(α)), so that it does not matter how
    exactly π is known. None: too few people tell anything.
    """
    from scipy.special import gammaincc  # slow to import

    scores = _scores(people, rates)
    values, vectors = np.linalg.eigh(scores * people.squares @ scores.T)
    counts = values > _RANK * values.max(initial=0.0)
    size = people.squares * (scores**2).sum(axis=0)
    alike = ratio(people.weight**2, people.squares, 1.0)  # how many stand together
    if not counts.any() or size.sum() ** 2 < _FEWEST_TELLING * (size**2 / alike).sum():
        return None
    along = scores @ people.weight @ vectors[:, counts]
    statistic = (along**2 / values[counts]).sum()
    return float(gammaincc(counts.sum() / 2, statistic / 2))


def _scores(people: People, rates: Reals) -> Reals:
    """How much people (axis 1) speak for each term, of each outcome but the last."""
    combinations, outcomes = people.shape
    groups = people.chances.shape[1]
    scores = np.zeros((outcomes - 1, groups + _CELLS_TESTED, len(people.weight)))
    for number in range(combinations):
        parts = people.parts(number)
        everybody = slice(parts[0].start, parts[-1].stop)
        chances = people.chances[everybody].T
        weight = people.informative[everybody]
        terms = np.zeros((scores.shape[1], len(weight)))
        terms[:groups] = chances * (1 - chances)
        for cell, similar in enumerate(_similar(chances.T, weight, _CELLS_TESTED)):
            terms[groups + cell, similar] = 1.0
        weighted = chances * weight
        slopes, *_ = np.linalg.lstsq(weighted @ chances.T, weighted @ terms.T, _RANK)
        beyond = terms - slopes.T @ chances
        for level, part in enumerate(parts[:-1]):
            surprise = -rates[number, level] @ chances
            surprise[part.start - everybody.start : part.stop - everybody.start] += 1
            scores[level, :, everybody] = beyond * surprise
    return scores.reshape(math.prod(scores.shape[:2]), len(people.weight))


# ---------------------------------------------------------------- bounds


def bounds(people: People, factor: Reals) -> tuple[Reals, Reals]:
    """How many may have each outcome and group, at least and at most (by cell).

    Whatever is assumed; with an allowance for chance in who belongs to which group.
    """
    weight = people.weight * factor
    squares = people.squares * factor**2
    least = np.zeros((*people.shape, people.chances.shape[1]))
    most = np.zeros_like(least)
    for number in range(people.shape[0]):
        parts = people.parts(number)
        everybody = slice(parts[0].start, parts[-1].stop)
        chances = people.chances[everybody]
        own = weight[everybody]
        ends = [part.stop - everybody.start for part in parts]
        for cell in _similar(chances, people.informative[everybody], _MOST_CELLS):
            size = own[cell].sum()
            group = own[cell] @ chances[cell]
            outcome = np.searchsorted(ends, cell, side="right")
            having = np.bincount(outcome, own[cell], len(ends))[:, None]
            least[number] += np.maximum(having + group - size, 0.0)
            most[number] += np.minimum(having, group)
        varied = squares[everybody] @ (chances * (1 - chances))
        allowance = _ALLOWANCE * np.sqrt(varied)
        least[number] -= allowance
        most[number] += allowance
    return np.maximum(least, 0.0), most


def ratio_bounds(low: Reals, high: Reals) -> tuple[Reals, Reals]:
    """The lowest rate over the highest, if each group's (last axis) has such ends."""
    own = np.eye(low.shape[-1], dtype=bool)  # no group is compared with itself
    others = np.where(own, math.nan, low[..., None, :])
    lowest_start = np.fmin.reduce(others, axis=-1)
    least = np.fmin.reduce(ratio(lowest_start, high, 1.0), axis=-1, initial=1.0)
    # a group without a rate has no ends
    lowest_end = np.fmin.reduce(high, axis=-1)
    highest_start = np.fmax.reduce(low, axis=-1)
    most = ratio(lowest_end, highest_start, math.inf)
    return least, np.minimum(most, 1.0)


def _similar(chances: Reals, people: Reals, most: int) -> list[Indices]:
    """People in cells of similar p: halves of halves, where p differs most.

    ``people``: how many each one stands for.
    """
    cells = [np.flatnonzero(people > 0)]
    done: list[Indices] = []
    while cells and len(cells) + len(done) < most:
        cells.sort(key=lambda cell: people[cell].sum())
        cell = cells.pop()
        count = people[cell].sum()
        if count < 2 * _FEWEST_IN_A_CELL:
            done.append(cell)
            continue
        mean = people[cell] @ chances[cell] / count
        beyond = chances[cell] - mean
        below = beyond[:, (people[cell] @ beyond**2).argmax()] < 0
        if below.all() or not below.any():
            done.append(cell)
        else:
            cells += [cell[below], cell[~below]]
    return [*cells, *done]
