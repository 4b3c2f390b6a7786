"""A mixture of priors: q = C·base + (1 − C)·rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmaxent.data.draws import Choice
from fairmaxent.data.table import Blocks, Codes, Indices, Reals
from fairmaxent.maxent.logspace import log_sum_exp, softmax
from fairmaxent.maxent.priors.protocol import Drawn, Prior, Tilted
from fairmaxent.maxent.priors.rows import Rows, TiltedRows


@dataclass(frozen=True, eq=False)
class Mixture:
    """Parts with shares.

    The tilted share of a part is ∝ its share times its partition function.
    """

    parts: tuple[Prior, ...]
    log_shares: Reals

    @classmethod
    def of(cls, shares: Sequence[float], parts: Sequence[Prior]) -> Prior:
        """Mix the parts of positive share; a single one needs no mixture."""
        pairs = zip(shares, parts, strict=True)
        kept = tuple(part for share, part in pairs if share > 0)
        if len(kept) == 1:
            return kept[0]
        return cls(kept, np.log([share for share in shares if share > 0]))

    @property
    def blocks(self) -> Blocks:
        """The blocks it is defined on."""
        return self.parts[0].blocks

    def tilt(self, potentials: Reals) -> "TiltedMixture":
        """Tilt by one potential per level."""
        tilted = tuple(part.tilt(potentials) for part in self.parts)
        partitions = [part.log_partition for part in tilted]
        log_partition, shares = softmax(self.log_shares + partitions)
        return TiltedMixture(self.blocks, log_partition, shares, tilted)

    def log_probability(self, codes: Codes) -> Reals:
        """log q(α)."""
        logs = [
            part.log_probability(codes) + share
            for part, share in zip(self.parts, self.log_shares, strict=True)
        ]
        return log_sum_exp(np.stack(logs), axis=0)

    def thinned(self, rows: int) -> "Mixture":
        """Thin every part."""
        parts = tuple(part.thinned(rows) for part in self.parts)
        if parts == self.parts:
            return self
        return Mixture(parts, self.log_shares)

    @property
    def rows(self) -> int:
        """The rows of its largest part."""
        return max(part.rows for part in self.parts)

    @property
    def full_support(self) -> bool:
        """Whether some part reaches everywhere."""
        return any(part.full_support for part in self.parts)

    def log_floor(self) -> float:
        """Bound log q(α) from below.

        By a part that reaches everywhere, or else by the lowest of all parts.
        """
        floors = self.log_shares + [part.log_floor() for part in self.parts]
        everywhere = [part.full_support for part in self.parts]
        if any(everywhere):
            return float(np.max(floors[everywhere]))
        return float(np.min(floors))


def rows_of(prior: Prior) -> Rows | None:
    """Return the rows component of a prior; None if it has none."""
    parts = prior.parts if isinstance(prior, Mixture) else (prior,)
    return next((part for part in parts if isinstance(part, Rows)), None)


def with_rows(prior: Prior, rows: Rows) -> Prior:
    """Return the prior with other weights on its rows component."""
    if not isinstance(prior, Mixture):
        return rows
    return Mixture(
        tuple(rows if isinstance(part, Rows) else part for part in prior.parts),
        prior.log_shares,
    )


def row_probabilities(tilted: Tilted) -> Reals | None:
    """Probability that a draw copies each row of the rows component; None without."""
    if isinstance(tilted, TiltedRows):
        return tilted.weights
    if isinstance(tilted, TiltedMixture):
        for share, part in zip(tilted.shares, tilted.parts, strict=True):
            if isinstance(part, TiltedRows):
                return share * part.weights
    return None


@dataclass(frozen=True, eq=False)
class TiltedMixture:
    """Tilted parts with their new shares, by the law of total probability."""

    blocks: Blocks
    log_partition: float
    shares: Reals
    parts: tuple[Tilted, ...]

    @cached_property
    def levels(self) -> Reals:
        """Probability of each level of each block."""
        return self._mix([part.levels for part in self.parts])

    def pairs(self) -> Reals:
        """Probability of each pair of levels."""
        return self._mix([part.pairs() for part in self.parts])

    def joint(self, wanted: Sequence[int]) -> Reals:
        """Joint table of a few blocks."""
        return self._mix([part.joint(wanted) for part in self.parts])

    def draw(
        self,
        roots: Indices,
        rng: np.random.Generator,
        *,
        spread: bool = False,
    ) -> Drawn:
        """Draw the part, given the root, then inside it."""
        chosen = self._part_given_root.draw(roots, rng)
        shape = (len(roots), len(self.blocks.levels))
        codes = np.empty(shape, dtype=np.intp, order="F")
        places = np.empty(len(roots), dtype=np.intp)
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(chosen == number)
            # How many rows come from each part is left to chance, so only copies of the
            # data are spread.
            copies = isinstance(part, TiltedRows)
            piece = part.draw(roots[rows], rng, spread=spread and copies)
            codes[rows] = piece.codes
            places[rows] = piece.places
        return Drawn(codes, places)

    @cached_property
    def _part_given_root(self) -> Choice:
        roots = [part.levels[self.blocks.slices[0]] for part in self.parts]
        return Choice.rows_of(self.shares * np.stack(roots, axis=-1))

    def _mix(self, values: Sequence[Reals]) -> Reals:
        return np.asarray(
            sum(share * value for share, value in zip(self.shares, values, strict=True))
        )
