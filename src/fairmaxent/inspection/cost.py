"""What a fit takes: its size exactly, time and memory roughly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairmaxent.data.arrays import Codes
from fairmaxent.data.roles import Roles
from fairmaxent.fit.problem import compress

# Rough cost of a fit on one core: a cell of the table in seconds and bytes, a pair of features in both.
_CELL_SECONDS, _PAIR_SECONDS = 3e-7, 2e-6
_CELL_BYTES, _PAIR_BYTES = 110, 32
_DURATIONS = ((1, "under a second"), (10, "a few seconds"), (60, "under a minute"), (600, "minutes"))
_TOO_LONG = "very long: drop or merge columns with many levels"
_EXACT = 2**53  # larger whole numbers are no longer exact for many readers of JSON


@dataclass(frozen=True)
class Cost:
    """What a fit takes: its size exactly, time and memory roughly."""

    distinct_rows: int
    features: int
    cells: int
    domain_size: int
    seconds: float
    megabytes: float

    @property
    def words(self) -> str:
        """Time and memory in words."""
        time = next((words for bound, words in _DURATIONS if self.seconds < bound), _TOO_LONG)
        memory = f"about {self.megabytes:,.0f} MB" if self.megabytes > 100 else "little memory"
        return f"{time}, {memory}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values; a size with dozens of digits is rounded, and one beyond all numbers of JSON is None."""
        size = self.domain_size
        try:
            rounded = size if size < _EXACT else float(size)
        except OverflowError:
            rounded = None
        return {**vars(self), "domain_size": rounded, "words": self.words}


def cost(roles: Roles, codes: Codes) -> Cost:
    """Estimate what fitting these rows takes."""
    distinct = len(compress(roles, codes).codes)
    blocks = roles.blocks
    features = sum(blocks.levels)
    cells, pairs = codes.shape[0] * codes.shape[1], features**2
    return Cost(
        distinct_rows=distinct,
        features=features,
        cells=blocks.levels[0],
        domain_size=roles.domain.size,
        seconds=cells * _CELL_SECONDS + pairs * _PAIR_SECONDS,
        megabytes=(cells * _CELL_BYTES + pairs * _PAIR_BYTES) / 1e6,
    )
