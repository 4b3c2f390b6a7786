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

**Draws** of π, of all strengths, give tables that the true groups of *these people* may
have. What is left to chance then is who belongs to which group: q_i is a probability.
Of *people like these*, who is in the table is left to chance, too: a cell whose weight
is like that of k unweighted rows has a mass proportional to Gamma(k + ½), as in the
Bayesian bootstrap (Rubin, 1981) with Jeffreys' prior. Without its half row, a cell that
nobody is in would be certain to stay empty, and a rate of zero would have no interval.
What is said of either estimand names it.

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
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any

import numpy as np

from fairmaxent.data.likely import chance_beyond
from fairmaxent.data.table import Reals, ratio, tally
from fairmaxent.errors import SolverError
from fairmaxent.fairness.people import (
    CELLS_TESTED,
    DRAWN_FROM,
    MOST_CELLS,
    People,
    Slopes,
    blocks,
    lowest,
)

# α, and its prior: logarithms are normal around this one, with this deviation. Chosen
# by benchmarks/unrecorded.py: expected rates are unbiased, and intervals cover.
_STRENGTHS = 4.0 ** np.arange(1, 5)
_USUAL_STRENGTH = 16.0
_SPREAD_OF_STRENGTHS = 1.25

_DRAWS = 400
_HALF_A_ROW = 0.5
# streams of random numbers: of the groups of these people, and of other people
_THESE = 0
_OTHERS = 1

_LEAST_RATE = 1e-12  # of an outcome in a group; less is outside
_DECREMENT = 1e-9  # of the log-likelihood, at which it ends
_NOBODY = 0.5  # people, in place of none, who have an outcome
_RANK = 1e-8  # of an eigenvalue, relative to the largest, that counts
REFUTED = 0.05  # p-value below which data contradict that names say nothing else
_FEWEST_TELLING = 30.0  # people that a test is made of, at least
_EXACT = 1e-13  # relative error of a table that weights lead to
_ACCEPTED = 1e-10  # if rounding allows no better
_ALLOWANCE = 3.0  # standard errors by which true groups may differ from what p says

# ---------------------------------------------------------------- P(y | g)


def _surprise(chance: Reals) -> tuple[Reals, Reals, Reals]:
    """Minus its logarithm, and derivatives."""
    inverse = 1 / chance
    return -np.log(chance), -inverse, inverse**2


@dataclass(frozen=True, eq=False)
class _Point(Slopes):
    """Minus the logarithm of likelihood times prior at some π, and its slopes.

    Slopes are those by π of each outcome but the last, which is what is left.
    """

    rates: Reals  # π: outcomes × groups
    told: Sequence[Slopes]  # minus the logarithmic likelihood of each outcome

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
    def begin(self) -> _Point:
        """All groups alike, as the prior has them on average."""
        groups = self.chances[0].shape[1]
        return self.at(0.0, np.repeat(self.mean[:-1], groups))

    def at(self, strength: float, free: Reals) -> _Point:
        """What there is to know about some π, if the prior has this strength."""
        others = free.reshape(-1, self.chances[0].shape[1])
        rates = np.vstack([others, 1 - others.sum(axis=0)])
        inside = np.maximum(rates, _LEAST_RATE)
        told = map(Slopes.of, self.chances, self.weights, inside, repeat(_surprise))
        return self.with_prior(strength, free, rates, list(told))

    def with_prior(
        self, strength: float, free: Reals, rates: Reals, told: Sequence[Slopes]
    ) -> _Point:
        """Add the prior to what outcomes tell."""
        outcomes, groups = rates.shape
        prior = strength * self.mean[:, None]
        inside = np.maximum(rates, _LEAST_RATE)
        value = sum(one.value for one in told) - (prior * np.log(inside)).sum()
        gradient = np.stack([one.gradient for one in told]) - prior / inside
        *others, last = (
            one.hessian + np.diag(row)
            for one, row in zip(told, prior / inside**2, strict=True)
        )
        whole = np.tile(last, (outcomes - 1, outcomes - 1))
        for outcome, own in enumerate(others):
            place = slice(outcome * groups, (outcome + 1) * groups)
            whole[place, place] += own
        if rates.min() < _LEAST_RATE:
            value = math.inf
        slopes = (gradient[:-1] - gradient[-1]).ravel()
        return _Point(free, value, slopes, whole, rates, told)

    def mode(self, strength: float, begin: _Point) -> _Point:
        """The most probable π, from some π."""
        point = self.with_prior(strength, begin.place, begin.rates, begin.told)
        return lowest(
            partial(self.at, strength),
            point,
            lambda now, step: -now.gradient @ step < _DECREMENT,
        )

    def evidence(self, strength: float, mode: _Point) -> float:
        """log P(outcomes | α) but for a constant: Laplace, in logarithms of odds."""
        prior = strength * self.mean
        normalised = math.lgamma(strength) - sum(map(math.lgamma, prior))
        _, volume = np.linalg.slogdet(mode.hessian)
        volume += 2 * np.log(mode.rates).sum()
        return mode.rates.shape[1] * normalised - mode.value - volume / 2


@dataclass(frozen=True, eq=False)
class Membership:
    """Who belongs to which group, as far as anybody knows, and what chance leaves open.

    The same data have the same random numbers, whatever their order. Other data have
    others, as else what is by chance too narrow would be so for everybody.
    """

    people: People
    told_by: str
    modes: Sequence[Sequence[_Point]]  # by strength, then by combination
    chances: Reals  # of each strength

    @classmethod
    def of(cls, people: People, told_by: str = "names") -> "Membership":
        """Learn π of every combination, for each strength of the prior."""
        combinations = [_Combination.of(people, one) for one in range(people.shape[0])]
        found = [one.begin for one in combinations]
        modes = []
        evidence = []
        for strength in _STRENGTHS:
            found = list(map(_Combination.mode, combinations, repeat(strength), found))
            modes.append(found)
            evidence.append(
                sum(map(_Combination.evidence, combinations, repeat(strength), found))
            )
        deviation = np.log(_STRENGTHS / _USUAL_STRENGTH) / _SPREAD_OF_STRENGTHS
        likely = np.array(evidence) - deviation**2 / 2
        chances = np.exp(likely - likely.max())
        return cls(people, told_by, modes, chances / chances.sum())

    @property
    def rates(self) -> Reals:
        """π of the likeliest strength: combinations × outcomes × groups."""
        return np.stack([one.rates for one in self.modes[int(self.chances.argmax())]])

    @cached_property
    def by_any(self) -> Mapping[str, Reals]:
        """q of each of the people, by what tells the group."""
        by_names = self.people.memberships(self.rates)
        return {"names": by_names, "columns": self.people.chances}

    @property
    def shares(self) -> Reals:
        """q by what is assumed."""
        return self.by_any[self.told_by]

    def table(self, values: Reals) -> Reals:
        """Values of people, shared between groups."""
        return self.people.table(self.shares, values)

    def assumed(self, weight: Reals) -> Mapping[str, Reals]:
        """The same of weights, by each thing that may tell the group."""
        return {
            told_by: self.people.table(own, weight)
            for told_by, own in self.by_any.items()
        }

    def draws(self, count: int, rng: np.random.Generator) -> Reals:
        """π as it may be: the same, behind an axis for draws.

        All ones if columns tell the group, as outcomes then tell nothing about it.
        """
        if self.told_by == "columns":
            return np.ones((count, *self.rates.shape))
        times = rng.multinomial(count, self.chances)
        drawn = [
            np.stack([one.draws(often, rng) for one in modes], axis=1)
            for often, modes in zip(times, self.modes, strict=True)
        ]
        return np.concatenate(drawn)

    def true_tables(self, factor: Reals) -> Reals:
        """Tables that the true groups of these people may have, counting d·factor."""
        rng = self._generator(_THESE)
        draws = self.draws(_DRAWS, rng)
        return true_tables(self.people, self.shares, factor, draws, rng)

    def like_these(self, tables: Reals, weight: Reals, squares: Reals) -> Reals:
        """Such tables of people like these: who is in them is left to chance, too.

        ``weight`` and its ``squares`` are the sums that are seen in each cell.
        """
        # what a row that counts alone weighs, and how many such rows there are
        usual = squares.sum() / weight.sum()
        each = ratio(squares, weight, usual)
        return each * self._generator(_OTHERS).gamma(tables / each + _HALF_A_ROW)

    def _generator(self, stream: int) -> np.random.Generator:
        """One for data with so many people, and so many different p, in each cell."""
        alike = ratio(self.people.weight**2, self.people.squares)  # who stand together
        counts = [round(float(alike[part].sum())) for _, part in self.people.cells]
        return np.random.default_rng([stream, *counts, *self.people.starts.tolist()])


def true_tables(
    people: People,
    memberships: Reals,
    factor: Reals,
    draws: Reals,
    rng: np.random.Generator,
) -> Reals:
    """Tables that the true groups may have, one for each draw of π.

    People count d·factor. ``memberships``: q, by which they are left to chance.
    """
    weight = people.weight * factor
    squares = people.squares * factor**2  # Σw²
    table = people.table(memberships, weight)
    tables = np.repeat(table[None], len(draws), axis=0)
    for cell, part in people.cells:
        index = (slice(None), *cell)
        step = 1 + (part.stop - part.start) // DRAWN_FROM
        few = slice(part.start, part.stop, step)
        own = memberships[few]
        now = weight[few] @ own
        grown = _grown(people.chances[few], weight[few], draws[index])
        tables[index] *= ratio(grown, np.broadcast_to(now, grown.shape), 1.0)
        represented = squares[part].sum() / max(squares[few].sum(), _LEAST_RATE)
        shared = own * squares[few, None] * represented
        # Σw²·(diag q − q·qᵀ)
        left = np.diag(shared.sum(axis=0)) - np.einsum("ig,ih->gh", shared, own)
        tables[index] += rng.normal(size=(len(draws), len(left))) @ _root(left).T
    return np.maximum(tables, 0.0)


def ends_of(drawn: Reals, confidence: float = 0.95) -> Reals:
    """Where most of what is drawn (first axis) begins and ends.

    Of n draws, the k-th lowest is above k / (n + 1) of what may be drawn.
    """
    tail = (1 - confidence) / 2
    return np.quantile(drawn, [tail, 1 - tail], axis=0, method="weibull")


def _grown(chances: Reals, weight: Reals, draws: Reals) -> Reals:
    """Σ w·q of each group for each draw of π, where q = p·π / Σ_h p(h)·π(h)."""
    relative = np.zeros_like(draws)
    for block in blocks(slice(0, len(weight)), draws.size):
        mixed = draws @ chances[block].T  # draws × people
        relative += (weight[block] / mixed) @ chances[block]
    return draws * relative


# ---------------------------------------------------------------- weights


def likely_factors(
    people: People, memberships: Reals, table: Reals, most: float | None = None
) -> Reals:
    """Factors f on people that give their likely groups a table t, cell by cell.

    Of all with Σ d_i·f_i·q_i(g) = t(y, g) and f ≤ ``most``, those that are nearest to
    the weights d that people have (KL): f_i = e^{λ_y·q_i} where no limit is met.
    """
    factor = np.zeros_like(people.weight)
    limit = math.log(most or math.inf)
    for cell, part in people.cells:
        wanted = table[cell] > 0
        shares = memberships[part].T[wanted].T
        multipliers = _multipliers(
            shares, people.weight[part], table[cell][wanted], limit
        )
        exponent = np.einsum("ig,g->i", shares, multipliers)
        factor[part] = np.exp(np.minimum(exponent, limit))
    return factor


def _multipliers(shares: Reals, weight: Reals, table: Reals, limit: float) -> Reals:
    """λ of factors e^{λ·q} that give people a table t.

    It minimises Σ d·ψ(λ·q) − λ·t, where ψ' = e^x up to a limit, and constant beyond.
    """

    def curve(exponent: Reals) -> tuple[Reals, Reals, Reals]:
        below = np.minimum(exponent, limit)
        factor = np.exp(below)
        return factor * (1 + exponent - below), factor, factor * (exponent < limit)

    def at(multipliers: Reals) -> Slopes:
        point = Slopes.of(shares, weight, multipliers, curve)
        return replace(
            point,
            value=point.value - float(multipliers @ table),
            gradient=point.gradient - table,
        )

    def is_off(point: Slopes, error: float) -> Any:
        return (np.abs(point.gradient) > error * table).any()

    with np.errstate(over="ignore"):
        found = lowest(
            at, at(np.zeros_like(table)), lambda now, _: not is_off(now, _EXACT)
        )
    if is_off(found, _ACCEPTED):
        raise SolverError("no weights give people these shares of groups")
    return found.place


# ---------------------------------------------------------------- contradiction


def contradiction(people: People, rates: Reals) -> float | None:
    """How likely it is by chance that outcomes are so far from linear in p.

    A score test: do p(1 − p) of each group, and cells of similar p, say anything beyond
    p? What is linear in p is taken off (Neyman's C(α)), so that it does not matter how
    exactly π is known. None: too few people tell anything.
    """
    _, outcomes = people.shape
    terms = (outcomes - 1) * (people.chances.shape[1] + CELLS_TESTED)
    evidence = np.zeros(terms)
    covariance = np.zeros((terms, terms))
    size = 0.0
    concentration = 0.0
    for block, scores in _scores(people, rates):
        weight = people.weight[block]
        squares = people.squares[block]
        alike = ratio(weight**2, squares, 1.0)  # how many stand together
        own = squares * (scores**2).sum(axis=0)
        evidence += scores @ weight
        covariance += scores * squares @ scores.T
        size += own.sum()
        concentration += (own**2 / alike).sum()
    values, vectors = np.linalg.eigh(covariance)
    counts = values > _RANK * values.max(initial=0.0)
    if not counts.any() or size**2 < _FEWEST_TELLING * concentration:
        return None
    along = evidence @ vectors[:, counts]
    statistic = (along**2 / values[counts]).sum()
    return chance_beyond(statistic, int(counts.sum()))


def _scores(people: People, rates: Reals) -> Iterator[tuple[slice, Reals]]:
    """How much people (axis 1) speak for each term, of each outcome but the last."""
    outcomes = np.eye(people.shape[1])[:, :-1, None]
    groups = people.chances.shape[1]
    kinds = np.arange(CELLS_TESTED)[:, None]
    products = (outcomes.shape[1] * (groups + CELLS_TESTED)) ** 2

    def terms(block: slice) -> tuple[Reals, Reals]:
        """Of people: p, and what may say anything beyond it."""
        chances = people.chances[block].T
        return chances, np.vstack(
            [chances * (1 - chances), people.similar[block] == kinds]
        )

    for number in range(people.shape[0]):
        linear = np.zeros((groups, groups))
        beyond = np.zeros((groups, groups + CELLS_TESTED))
        for block in blocks(people.everybody(number), beyond.size):
            chances, own = terms(block)
            weighted = chances * people.informative[block]
            linear += weighted @ chances.T
            beyond += weighted @ own.T
        slopes, *_ = np.linalg.lstsq(linear, beyond, _RANK)
        for outcome, part in zip(outcomes, people.parts(number), strict=True):
            for block in blocks(part, products):
                chances, own = terms(block)
                surprise = outcome - rates[number, :-1] @ chances
                scores = surprise[:, None] * (own - slopes.T @ chances)
                yield block, scores.reshape(-1, scores.shape[-1])


# ---------------------------------------------------------------- bounds


def bounds(people: People, factor: Reals) -> tuple[Reals, Reals]:
    """How many may have each outcome and group, at least and at most (by cell).

    Whatever is assumed; with an allowance for chance in who belongs to which group.
    """
    weight = people.weight * factor
    squares = people.squares * factor**2
    least = np.zeros((*people.shape, people.chances.shape[1]))
    most = np.zeros_like(least)
    similar = people.very_similar
    for number in range(people.shape[0]):
        everybody = people.everybody(number)
        chances = people.chances[everybody].T
        having = np.stack(
            [
                tally(similar[part], weight[part], MOST_CELLS)[None]
                for part in people.parts(number)
            ]
        )
        group = np.stack(
            [
                tally(similar[everybody], weight[everybody] * own, MOST_CELLS)
                for own in chances
            ]
        )
        size = having.sum(axis=0)
        sure = np.maximum(having + group - size, 0.0).sum(axis=-1)
        possible = np.minimum(having, group).sum(axis=-1)
        varied = np.einsum("i,gi->g", squares[everybody], chances * (1 - chances))
        allowance = _ALLOWANCE * np.sqrt(varied)
        least[number] = sure - allowance
        most[number] = possible + allowance
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
