"""The one protocol that carries the mathematics: a prior can be *tilted*.

Every feature ⟨λ, φ(α)⟩ is a sum over blocks of a number that depends on the block's
level only. So a tilt is given by one *potential* per level, evidence is a potential of
−∞ on the levels it excludes, and a prior never sees features, multipliers or evidence:
only potentials.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import Generator

from fairmaxent.data.table import Blocks, Codes, Indices, Reals, Table

_MOST_POINTS = 20_000  # that a check enumerates
_DRAWS = 20_000
_STEP = 1e-5  # of finite differences
_EXPECTED = 5  # draws of a point at which χ² counts it


@dataclass(frozen=True, eq=False)
class Drawn:
    """Drawn rows of block codes.

    ``codes`` has the level of each block, a row for each row drawn; ``places`` says
    which row of the data it copies: -1, none, if the prior keeps no rows.
    """

    codes: Codes
    places: Indices


class Tilted(Protocol):
    """q(α)·e^{potential(α)}, normalised: exact sums over the domain, exact draws."""

    @property
    def log_partition(self) -> float:
        """log Σ q(α) e^{potential(α)}; −∞ if nothing is left.

        Then every probability below is zero.
        """

    @property
    def levels(self) -> Reals:
        """Probability of each level of each block."""

    def pairs(self) -> Reals:
        """Probability of each pair of levels."""

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Exact joint table of a few blocks, one axis per wanted block."""

    def draw(
        self,
        roots: Indices,
        rng: Generator,
        *,
        spread: bool = False,
    ) -> Drawn:
        """Draw one row for each wanted level of the root.

        ``spread``: rows of the data as often as they weigh, if the prior keeps rows.
        """


class Prior(Protocol):
    """A distribution q over the domain."""

    @property
    def blocks(self) -> Blocks:
        """The blocks it is defined on."""

    def tilt(self, potentials: Reals) -> Tilted:
        """Tilt by one potential per level."""

    def log_probability(self, codes: Codes) -> Reals:
        """log q(α) for rows of block codes."""

    def thinned(self, rows: int) -> "Prior":
        """Return a prior of similar curvature with at most this many rows.

        It is itself if it has no more.
        """

    @property
    def rows(self) -> int:
        """How many rows it has."""

    @property
    def full_support(self) -> bool:
        """Whether every point of the domain has positive probability."""

    def log_floor(self) -> float:
        """Bound log q(α) from below on the support: −L_q in the proof of Lemma 4.2."""


class Tabular:
    """A prior that is made of tables and has no rows."""

    rows = 0

    def thinned(self, rows: int) -> Self:
        """Return itself."""
        return self


@dataclass(frozen=True, eq=False)
class Density:
    """The probability of single rows under a tilted prior."""

    prior: Prior
    potentials: Reals
    log_partition: float

    def log_probability(self, codes: Codes) -> Reals:
        """Return log of q(α)·e^{potential(α)}, normalised, for rows of block codes."""
        result = self.prior.log_probability(codes) - self.log_partition
        parts = self.prior.blocks.split(self.potentials)
        for column, part in zip(codes.T, parts, strict=True):
            result += part.take(column)
        return result


def divergence_in_memory(rows: Table, density: Density) -> float:
    """KL(rows‖p) of distinct rows in memory."""
    counts = rows.counts
    codes = rows.codes
    kept = counts > 0
    if not kept.all():
        counts = counts[kept]
        codes = codes[kept]
    share = counts / rows.total
    return float(share @ (np.log(share) - density.log_probability(codes)))


# ---------------------------------------------------------------- conformance


def check_prior(prior: Prior, *, unpack: Any = None, seed: int = 0) -> None:
    """Compare a prior with the enumeration of a small domain.

    It must be normalised, and its tilts must have the right sums, derivatives (by
    finite differences), tables and draws (by χ²). With ``unpack``, what ``pack``
    returns must give the same prior again. AssertionError says what is wrong. Check
    what ``build`` returns when two or three columns are fitted: keep it in a list.
    """
    blocks = prior.blocks
    if np.prod(blocks.levels) > _MOST_POINTS:
        raise ValueError(
            f"check it on a domain of at most {_MOST_POINTS:,} points: of fewer columns"
        )
    rng = np.random.default_rng(seed)
    points = np.indices(blocks.levels).reshape(len(blocks.levels), -1).T
    logs = prior.log_probability(points)
    chances = np.exp(logs)
    possible = chances > 0
    _agree("the probabilities of all points", chances.sum(), 1.0)
    _agree("full_support", prior.full_support, possible.all())
    above = prior.log_floor() - logs[possible].min()
    _agree("log_floor", max(above, 0.0), 0.0)
    _agree("thinned(1)", prior.thinned(1).blocks.levels, blocks.levels)
    if unpack is not None:
        again = unpack(blocks, prior.pack())  # type: ignore[attr-defined]
        _agree("unpack(blocks, pack())", again.log_probability(points), logs)

    free = rng.normal(size=blocks.width)
    excluding = free.copy()
    excluding[blocks.slices[-1].start] = -np.inf  # evidence
    for potentials in (np.zeros(blocks.width), free, excluding):
        lifted = Density(prior, potentials, 0.0).log_probability(points)
        tilted = prior.tilt(potentials)
        drawn = _check_tilt(tilted, blocks, points, np.exp(lifted), rng)
        if not prior.rows:
            _agree("places of draws", drawn.places, -1)
    nothing = prior.tilt(np.full(blocks.width, -np.inf))
    _agree("log_partition if nothing is left", nothing.log_partition, -np.inf)
    levels = prior.tilt(free).levels
    for step, level in zip(_STEP * np.eye(blocks.width), levels, strict=True):
        rise = prior.tilt(free + step).log_partition
        rise -= prior.tilt(free - step).log_partition
        _agree("levels, by finite differences", level, rise / (2 * _STEP))


def _check_tilt(
    tilted: Tilted, blocks: Blocks, points: Codes, lifted: Reals, rng: Generator
) -> Drawn:
    """Sums, tables and draws of a tilt with these weights of all points."""
    exact = lifted / lifted.sum()
    starts = np.array([part.start for part in blocks.slices])
    indicators = np.zeros((len(points), blocks.width))
    np.put_along_axis(indicators, points + starts, 1.0, axis=1)
    _agree("log_partition", tilted.log_partition, np.log(lifted.sum()))
    _agree("levels", tilted.levels, exact @ indicators)
    _agree("pairs()", tilted.pairs(), indicators.T @ (exact[:, None] * indicators))
    for wanted in ([0], [len(blocks.levels) - 1, 0][: len(blocks.levels)]):
        expected = np.zeros([blocks.levels[block] for block in wanted])
        np.add.at(expected, tuple(points[:, wanted].T), exact)
        _agree(f"joint({wanted})", tilted.joint(wanted), expected)

    root = int(tilted.levels[blocks.slices[0]].argmax())
    expected = np.where(points[:, 0] == root, exact, 0.0)
    expected *= _DRAWS / expected.sum()
    drawn = tilted.draw(np.full(_DRAWS, root), rng)
    cells = np.ravel_multi_index(tuple(drawn.codes.T), blocks.levels)
    seen = np.bincount(cells, minlength=len(points))
    _agree("draws of what is impossible", seen[expected == 0].sum(), 0)
    many = expected >= _EXPECTED
    chi_square = ((seen - expected)[many] ** 2 / expected[many]).sum()
    freedom = int(many.sum())
    surprising = freedom + 5 * np.sqrt(2 * freedom) + 5
    _agree("χ² of draws", max(chi_square - surprising, 0.0), 0.0)
    return drawn


def _agree(what: str, found: Any, expected: Any) -> None:
    np.testing.assert_allclose(
        found, expected, rtol=1e-6, atol=1e-8, err_msg=f"{what} of the prior"
    )
