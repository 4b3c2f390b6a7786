"""Where the numbers of a fit come from: exact rows, or noisy counts of them."""

import math
from dataclasses import dataclass, replace

from fairmaxent.privacy.budget import Ledger, Privacy


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What may be shown of rows, whose noise numbers have, and what a seed repeats.

    By default, all is known: numbers are those of exact rows.
    """

    # what it costs to make such a fit again
    epsilon: float = 0.0
    delta: float = 0.0
    # how far from the truth counts are at most, with 95% confidence: that of an outcome
    # in a group, and that of all rows
    noise_of_count: float = 0.0
    noise_of_rows: float = 0.0

    @classmethod
    def asked(cls, privacy: Privacy | None) -> "Provenance":
        """That of what is asked for; what was not measured may have any noise."""
        if privacy is None:
            return cls()
        return cls(
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            noise_of_count=math.inf,
            noise_of_rows=math.inf,
        )

    @classmethod
    def measured(cls, ledger: Ledger | None) -> "Provenance":
        """That of a fit, whose noise is known."""
        if ledger is None:
            return cls()
        count, rows = ledger.count_ranges
        asked = cls.asked(ledger.privacy)
        return replace(asked, noise_of_count=count, noise_of_rows=rows)

    @property
    def spends(self) -> bool:
        """Whether making such a fit again reveals more, which adds up."""
        return self.epsilon > 0

    @property
    def shows_rows(self) -> bool:
        """Whether rows, their values, notes and digests of their file may be shown."""
        return not self.spends

    @property
    def has_real_rows(self) -> bool:
        """Whether its rows are those of people: others are drawn from noisy counts."""
        return not self.spends

    @property
    def is_noisy(self) -> bool:
        """Whether counts, and all numbers before, are noisy estimates."""
        return self.noise_of_count > 0

    @property
    def repeats_with_seed(self) -> bool:
        """Whether a seed makes the same fit again: noise has none."""
        return not self.is_noisy
