"""The cost of a fit: its size exactly, time and memory roughly."""

import sys
from dataclasses import dataclass
from typing import Any

from fairmaxent.data.domain import count_text
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Codes
from fairmaxent.document.words import counted

# on one core: seconds and bytes of a cell of the table, and of a pair of features
_CELL_SECONDS = 3e-7
_PAIR_SECONDS = 2e-6
_CELL_BYTES = 110
_PAIR_BYTES = 32
_DURATIONS = (
    (1, "under a second"),
    (10, "a few seconds"),
    (60, "under a minute"),
    (600, "minutes"),
)
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
        time = next(
            (words for bound, words in _DURATIONS if self.seconds < bound), _TOO_LONG
        )
        memory = "little memory"
        if self.megabytes > 100:
            memory = f"about {self.megabytes:,.0f} MB"
        return f"{time}, {memory}"

    @property
    def sentence(self) -> str:
        """Time, memory and size, for those who run the fit."""
        rows = counted(self.distinct_rows, "distinct row")
        return (
            f"Cost of a fit: {self.words} ({rows}, {self.features:,} features,"
            f" {count_text(self.domain_size)} possible rows)."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values.

        A size with dozens of digits is rounded, and one beyond all numbers of JSON is
        None.
        """
        size = self.domain_size
        rounded: float | None = size
        if size >= sys.float_info.max:
            rounded = None
        elif size >= _EXACT:
            rounded = float(size)
        return {
            **vars(self),
            "domain_size": rounded,
            "words": self.words,
        }


def cost(roles: Roles, codes: Codes) -> Cost:
    """Estimate what fitting these rows takes."""
    levels = roles.blocks.levels
    cells = codes.shape[0] * codes.shape[1]
    pairs = sum(levels) ** 2
    return Cost(
        distinct_rows=len(roles.compress(codes).codes),
        features=sum(levels),
        cells=levels[0],
        domain_size=roles.domain.size,
        seconds=cells * _CELL_SECONDS + pairs * _PAIR_SECONDS,
        megabytes=(cells * _CELL_BYTES + pairs * _PAIR_BYTES) / 1e6,
    )
