"""People with the probabilities of their groups: sorted, shared, added up, halved."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from fairmaxent.data.table import Indices, Reals, ratio, tally

DRAWN_FROM = 10_000  # people; of more, as many represent them where they are drawn
# People of similar p: how many cells at most, and how many people in each at least.
CELLS_TESTED = 8
MOST_CELLS = 32
_FEWEST_IN_A_CELL = 100
# Products that are added up at once: they fit into a cache, and to more of them, or of
# people, NumPy's `@` would send threads, which cost more than they help. Sums over all
# people are made by `einsum`, which sends none.
_PRODUCTS = 2**18
_FEWEST = 32  # products of each, at which there are 2^13 people at once
_MOST = 4096
_STEPS = 100  # of Newton's method; nearly always five will do
_SINGULAR = 1e-12  # of a singular value, relative to the largest, that is none
_ROUNDING = 1e-12  # of a value, relative to it

# x -> ψ(x) and its first and second derivatives
Curve = Callable[[Reals], tuple[Reals, Reals, Reals]]
S = TypeVar("S", bound="Slopes")


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
        """Sort people by their cells, of which there are combinations × outcomes.

        In a cell, their order depends on p alone, not on that of the data.
        """
        factors = np.random.default_rng(0).random(chances.shape[1])
        first, place = _sorted(cells + (chances * factors).sum(axis=1))
        if len(first) < len(cells) and (chances[first[place]] != chances).any():
            # others have such a number, too
            first, place = _sorted(cells + np.arange(len(cells)) / len(cells))
        return cls(
            shape=shape,
            place=place,
            starts=np.searchsorted(cells[first], np.arange(math.prod(shape) + 1)),
            chances=np.take(chances.T, first, axis=1).T,
            weight=tally(place, weight, len(first)),
            squares=tally(place, squares, len(first)),
        )

    def parts(self, combination: int) -> list[slice]:
        """Where the people of a combination are, by outcome."""
        _, outcomes = self.shape
        ends = self.starts[combination * outcomes :][: outcomes + 1].tolist()
        return [slice(*pair) for pair in pairwise(ends)]

    def everybody(self, combination: int) -> slice:
        """Where all the people of a combination are."""
        parts = self.parts(combination)
        return slice(parts[0].start, parts[-1].stop)

    @cached_property
    def similar(self) -> Indices:
        """The cell of similar p that each is in, of those of a combination."""
        return self._halved(np.zeros_like(self.weight, dtype=np.intp), CELLS_TESTED)

    @cached_property
    def very_similar(self) -> Indices:
        """The same, of more cells."""
        return self._halved(self.similar, MOST_CELLS)

    def _halved(self, cells: Indices, most: int) -> Indices:
        parts = [
            _halved(self.chances[one], self.informative[one], cells[one], most)
            for one in map(self.everybody, range(self.shape[0]))
        ]
        return np.concatenate(parts)

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

    def summed(self, values: Reals) -> Reals:
        """What values of those that were given add up to, for each of the people."""
        return tally(self.place, values, len(self.weight))

    def memberships(self, rates: Reals) -> Reals:
        """q_i(g) = P(g | p_i, y_i), given π of each cell."""
        joint = self.chances.copy(order="K")
        for cell, part in self.cells:
            joint[part] *= rates[cell]
        joint /= joint.sum(axis=1, keepdims=True)
        return joint

    def table(self, memberships: Reals, values: Reals) -> Reals:
        """Values of people, shared between their groups: cells × groups."""
        result = np.zeros((*self.shape, memberships.shape[1]))
        for cell, part in self.cells:
            result[cell] = np.einsum("i,ig->g", values[part], memberships[part])
        return result


def _sorted(numbers: Reals) -> tuple[Indices, Indices]:
    """The first of each of the numbers, which are sorted, and which one each is."""
    order = np.argsort(numbers)
    ordered = numbers[order]
    is_first = np.append(True, ordered[1:] > ordered[:-1])
    place = np.empty_like(order)
    place[order] = np.cumsum(is_first) - 1
    return order[is_first], place


def _halved(chances: Reals, people: Reals, cells: Indices, most: int) -> Indices:
    """Cells of similar p, up to so many: halves of halves, where p differs most.

    ``people``: how many each one stands for. Some of them show where to halve.
    """
    cell = cells.astype(np.uint8)
    found = cell.max(initial=0) + 1
    counted = np.flatnonzero(people)
    step = 1 + len(counted) // DRAWN_FROM
    few = counted[::step]
    seen = chances[few]
    weight = people[few] * step
    sizes = tally(cell[few], weight, most)
    while found < most and sizes.max() >= 2 * _FEWEST_IN_A_CELL:
        largest = int(sizes.argmax())
        own = np.flatnonzero(cell[few] == largest)
        mean = weight[own] @ seen[own] / sizes[largest]
        widest = int((weight[own] @ (seen[own] - mean) ** 2).argmax())
        is_above = (cell == largest) & (chances[:, widest] >= mean[widest])
        above = is_above[few]
        if 0 < np.count_nonzero(above) < len(own):
            cell += is_above * np.uint8(found - largest)
            sizes[found] = above @ weight
            sizes[largest] -= sizes[found]
            found += 1
        else:
            sizes[largest] = 0.0  # it stays as it is
    return cell.astype(np.intp)


def blocks(part: slice, products: int) -> Iterator[slice]:
    """People of a part, some at a time; so many products of each are added up."""
    people = _PRODUCTS // np.clip(products, _FEWEST, _MOST)
    for first in range(part.start, part.stop, people):
        yield slice(first, min(first + people, part.stop))


@dataclass(frozen=True, eq=False)
class Slopes:
    """A convex function at some place, and its derivatives there."""

    place: Reals
    value: float
    gradient: Reals
    hessian: Reals

    @classmethod
    def of(
        cls, shares: Reals, weights: Reals, multipliers: Reals, curve: Curve
    ) -> "Slopes":
        """Σ d·ψ(c·λ) over people with some shares c, by λ."""
        value = 0.0
        gradient = np.zeros(len(multipliers))
        hessian = np.zeros((len(multipliers), len(multipliers)))
        for block in blocks(slice(0, len(weights)), hessian.size):
            own = shares[block]
            weight = weights[block]
            height, slope, bend = curve(own @ multipliers)
            value += float(weight @ height)
            gradient += (weight * slope) @ own
            hessian += own.T @ (own * (weight * bend)[:, None])
        return cls(multipliers, value, gradient, hessian)


def lowest(
    at: Callable[[Reals], S], point: S, is_there: Callable[[S, Reals], Any]
) -> S:
    """Where a convex function is lowest, from some point on, by Newton's method.

    ``is_there`` says of a point and the next step whether that is not worth it.
    """
    for _ in range(_STEPS):
        # Groups may differ by orders of magnitude: scale the diagonal to one.
        steepness = np.sqrt(point.hessian.diagonal())
        scale = ratio(np.ones_like(steepness), steepness)
        scaled = point.hessian * scale * scale[:, None]
        solved, *_ = np.linalg.lstsq(scaled, -point.gradient * scale, _SINGULAR)
        step: Reals = solved * scale
        if is_there(point, step):
            break
        following = at(point.place + step)
        while following.value > point.value + _ROUNDING * abs(point.value):
            step /= 2
            following = at(point.place + step)
        point = following
    return point
