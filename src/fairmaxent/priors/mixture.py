"""A mixture of priors: q = C·base + (1 − C)·rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairmaxent.blocks import Blocks
from fairmaxent.choice import Choice
from fairmaxent.priors.protocol import Prior, Sampler, Tilted, log_sum_exp, nothing_left
from fairmaxent.table import Codes, Reals


@dataclass(frozen=True)
class Mixture:
    """Parts with shares. The tilted share of a part is ∝ its share times its partition function."""

    parts: tuple[Prior, ...]
    log_shares: Reals

    @classmethod
    def of(cls, shares: Sequence[float], parts: Sequence[Prior]) -> Prior:
        """Mix the parts of positive share; a single one needs no mixture."""
        kept = [(share, part) for share, part in zip(shares, parts, strict=True) if share > 0]
        if len(kept) == 1:
            return kept[0][1]
        return cls(tuple(part for _, part in kept), np.log([share for share, _ in kept]))

    @property
    def blocks(self) -> Blocks:
        """The blocks it is defined on."""
        return self.parts[0].blocks

    def tilt(self, potentials: Reals, *, pairs: bool = False) -> Tilted:
        """Tilt by one potential per level."""
        tilted = [part.tilt(potentials, pairs=pairs) for part in self.parts]
        log_partition, shares = self._posterior(tilted)
        if np.isneginf(log_partition):
            return nothing_left(self.blocks, pairs=pairs)
        levels = sum(share * part.levels for share, part in zip(shares, tilted, strict=True))
        tables = [share * part.pairs for share, part in zip(shares, tilted, strict=True) if part.pairs is not None]
        return Tilted(log_partition, np.asarray(levels), np.asarray(sum(tables)) if pairs else None)

    def joint(self, potentials: Reals, wanted: Sequence[int]) -> Reals:
        """Tilt, and return the joint table of a few blocks."""
        _, shares = self._posterior([part.tilt(potentials) for part in self.parts])
        tables = [share * part.joint(potentials, wanted) for share, part in zip(shares, self.parts, strict=True)]
        return np.asarray(sum(tables))

    def log_probability(self, codes: Codes) -> Reals:
        """log q(α)."""
        logs = np.stack([part.log_probability(codes) for part in self.parts], axis=-1)
        return log_sum_exp(logs + self.log_shares)

    def sampler(self, potentials: Reals) -> MixtureSampler:
        """Tilt, and prepare for drawing."""
        tilted = [part.tilt(potentials) for part in self.parts]
        _, shares = self._posterior(tilted)
        roots = self.blocks.slices[0]
        given_root = np.stack([share * part.levels[roots] for share, part in zip(shares, tilted, strict=True)], axis=-1)
        return MixtureSampler(tuple(part.sampler(potentials) for part in self.parts), Choice.rows_of(given_root))

    def log_floor(self) -> float:
        """Bound log q(α) from below: any point of the support lies in the support of some part."""
        return min(
            float(log_share) + part.log_floor() for log_share, part in zip(self.log_shares, self.parts, strict=True)
        )

    def _posterior(self, tilted: Sequence[Tilted]) -> tuple[float, Reals]:
        scores = self.log_shares + np.array([part.log_partition for part in tilted])
        log_partition = float(log_sum_exp(scores))
        if np.isneginf(log_partition):
            return log_partition, np.zeros_like(scores)
        return log_partition, np.exp(scores - log_partition)


@dataclass(frozen=True)
class MixtureSampler:
    """Draws the part, given the root, then inside it."""

    samplers: tuple[Sampler, ...]
    part_given_root: Choice

    def draw(self, roots: NDArray[np.intp], rng: np.random.Generator) -> Codes:
        """Draw one row for each wanted root level."""
        part = self.part_given_root.draw(roots, rng)
        pieces = [sampler.draw(roots[part == number], rng) for number, sampler in enumerate(self.samplers)]
        codes = np.empty((len(roots), pieces[0].shape[1]), dtype=np.result_type(*pieces))
        for number, piece in enumerate(pieces):
            codes[part == number] = piece
        return codes
