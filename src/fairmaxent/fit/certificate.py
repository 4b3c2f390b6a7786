"""The certificate: what a fit promises and reached; `telling` words it."""

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.draws import check_count
from fairmaxent.data.levels import Notes
from fairmaxent.data.quotas import quotas
from fairmaxent.document import Blocks
from fairmaxent.document.text import to_text
from fairmaxent.facts.fitted import Facts, UnderivedFacts
from fairmaxent.facts.models import Range
from fairmaxent.fairness.rates import rates_of_many
from fairmaxent.fit.facts import facts_of
from fairmaxent.fit.solved import Solved
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.plain_text import Values, plain_json
from fairmaxent.telling.case import Case
from fairmaxent.telling.entries import told, warnings

Intervals = dict[str, dict[str, Range]]

_DRAWS = 2000
_QUOTAS = 100, 2000  # fewest and most simulated quotas
_CELLS = 200_000  # which have this many cells together, as they take some time


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate(Facts):
    """Rates wanted, before and exactly achieved, and all there is to know beside."""

    @property
    def warnings(self) -> Notes:
        """What a careful reader should know, as sentences: first what it costs."""
        return warnings(Case(facts=self))

    def interval(
        self,
        n: int,
        *,
        iid: bool = False,
        confidence: float = 0.95,
    ) -> Intervals:
        """The range that the rates of ``n`` drawn rows will fall into.

        Draws are simulated from the exact table, with a fixed seed. Groups of rows
        drawn by quota are within one row of their shares, for each outcome too, so
        their rates vary little. A rate is a minimum over pairs of groups, so drawn rows
        mostly have a lower one than the exact table.
        """
        count = check_count(n)
        measure = self.measure
        check_confidence(confidence)
        rng = np.random.default_rng(0)
        if iid or self.likely is not None:  # of a group nobody counts a quota
            tables = rng.multinomial(
                count, self.table.ravel() / self.table.sum(), size=_DRAWS
            )
        else:
            draws = int(np.clip(_CELLS // self.table.size, *_QUOTAS))
            tables = quotas(
                self.table,
                count,
                draws,
                rng,
                sums=measure.sums,
            )
        stack = tables.reshape(-1, *self.table.shape).astype(float)
        intervals: Intervals = {"representation_rate": {}, "statistical_rate": {}}
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        for name, axes in measure.named_groupings:
            outcomes = measure.favourable_of(axes)
            compared = (measure.groups_compared, measure.outcomes_compared)
            for index, kind in enumerate(intervals):
                drawn = compared[index](stack, axes)
                exact = compared[index](self.table, axes)
                rates = rates_of_many(
                    drawn,
                    exact,
                    axes,
                    outcomes,
                    strata=measure.strata,
                    apart=measure.apart_of(axes),
                )
                low, high = np.quantile(rates[index], ends)
                intervals[kind][name] = (float(low), float(high))
        return intervals

    def to_dict(self) -> Values:
        """Everything as plain values, for JSON; a number that is not finite is None."""
        stated = {
            key: plain_json(value)
            for key, value in vars(self).items()
            if key not in ("measure", "table", "privacy")
        }
        stated["privacy"] = None
        if self.privacy is not None:
            stated["privacy"] = plain_json(self.privacy.to_dict())
        return stated

    @property
    def digest(self) -> str:
        """The SHA-256 of what it states, to six digits; it names this fit in papers."""
        stated = json.loads(
            json.dumps(self.to_dict()),
            parse_float=lambda number: f"{float(number):.6g}",
        )
        return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        return to_text(self.blocks())

    def blocks(self) -> Blocks:
        """All that there is to say of it."""
        yield from told(Case(facts=self))


def certify(solved: Solved, told: UnderivedFacts) -> Certificate:
    """Take every promised quantity from the fitted distribution itself."""
    return Certificate(**vars(told), **facts_of(solved, told))
