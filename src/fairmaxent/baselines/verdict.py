"""Which of several methods to choose at the rate that was asked for, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairmaxent.baselines.cross_validation import RAW, Compared, Scores
from fairmaxent.fit.option_values import RateOption
from fairmaxent.fit.request import Request

# Rates and accuracies that differ by less are taken for the same: folds differ by more.
_SAME, _SAME_ACCURACY = 0.02, 0.005


@dataclass(frozen=True)
class Verdict:
    """The method to choose, and how it does beside the raw data; None: no method is worth its cost."""

    method: str | None
    wanted: float | None
    """The statistical rate that was asked for; None: none was, so that there is nothing to choose by."""
    rate: float | None
    """The rate of the method, or without one, the highest of all methods but the raw data."""
    raw_rate: float | None
    accuracy: float | None
    raw_accuracy: float | None
    of_decisions: bool
    """Whether rates are those of the decisions of trained models; otherwise of the data."""

    @property
    def is_reached(self) -> bool:
        """Whether the method has the rate that was asked for."""
        return self.method is not None and (self.rate or 0.0) >= (self.wanted or 0.0) - _SAME

    def __str__(self) -> str:
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if self.wanted is None:
            yield "You asked for no statistical rate, so the methods are not ranked."
        elif self.rate is None:
            yield "No method gave a result that can be compared."
        elif self.method is None:
            yield from self._nothing_better()
        else:
            if not self.is_reached:
                yield f"No method reaches the statistical rate {self.wanted:.2f}."
            verb = "Choose" if self.is_reached else "The closest is"
            raw = "" if self.raw_rate is None else f"; the raw data: {self.raw_rate:.2f}"
            yield f"{verb} {self.method!r}: {self._whose} it have the statistical rate {self.rate:.2f}{raw}."
            yield from self._cost()

    @property
    def _whose(self) -> str:
        return "the decisions of a model trained on" if self.of_decisions else "the outcomes in"

    def _nothing_better(self) -> Iterator[str]:
        if self.raw_rate is not None and self.raw_rate >= (self.wanted or 0.0) - _SAME:
            yield f"The raw data are good enough: {self._whose} them have the statistical rate {self.raw_rate:.2f}."
        else:
            raw = "no" if self.raw_rate is None else f"the statistical rate {self.raw_rate:.2f}"
            yield f"No method beats the raw data: {self._whose} them have {raw}; the best method has {self.rate:.2f}."

    def _cost(self) -> Iterator[str]:
        """What the method costs in accuracy."""
        if self.accuracy is not None and self.raw_accuracy is not None:
            lost = 100 * (self.raw_accuracy - self.accuracy)
            numbers = f"({self.accuracy:.3f} instead of {self.raw_accuracy:.3f})"
            cost = f"{abs(lost):.1f} points of accuracy {numbers}"
            yield "It costs no accuracy." if abs(lost) < 0.05 else f"It {'costs' if lost > 0 else 'gains'} {cost}."


def verdict(results: Sequence[Compared], request: Request) -> Verdict:
    """Choose the most accurate of the methods that reach the rate asked for, or else that come closest to it.

    With a classifier, the statistical rate of its decisions counts; without, that of the data. A method whose groups
    are not as equal in size as was asked for is not chosen, and neither is one that is no fairer than the raw data.
    """
    wanted, sizes = _least(request.statistical_rate), _sizes(request.representation_rate)
    scored = {one.method: one.scores for one in results if one.scores is not None}
    of_decisions = any(scores.accuracy is not None for scores in scored.values())
    raw = scored.pop(RAW, None)
    raw_rate = None if raw is None else _rate(raw, of_decisions=of_decisions)
    rates = {
        name: rate
        for name, scores in scored.items()
        if (rate := _rate(scores, of_decisions=of_decisions)) is not None
        and scores.representation_rate >= sizes - _SAME
    }
    raw_accuracy = None if raw is None else raw.accuracy
    if wanted is None or not rates:
        return Verdict(None, wanted, None, raw_rate, None, raw_accuracy, of_decisions)
    line = min(wanted, max(rates.values())) - _SAME
    close = {name: scored[name].accuracy or 0.0 for name, rate in rates.items() if rate >= line}
    # Of equals the first, which is fairmaxent's: the command line can use it on the whole table.
    name = next(name for name, accuracy in close.items() if accuracy >= max(close.values()) - _SAME_ACCURACY)
    raw_has_sizes = raw is not None and raw.representation_rate >= sizes - _SAME
    if raw_has_sizes and raw_rate is not None and (raw_rate >= wanted - _SAME or rates[name] <= raw_rate + _SAME / 2):
        return Verdict(None, wanted, max(rates.values()), raw_rate, None, raw_accuracy, of_decisions)
    return Verdict(name, wanted, rates[name], raw_rate, scored[name].accuracy, raw_accuracy, of_decisions)


def _rate(scores: Scores, *, of_decisions: bool) -> float | None:
    """The statistical rate that counts; None if a model gives nobody the favourable outcome."""
    return scores.predicted_rate if of_decisions else scores.statistical_rate


def _least(wanted: RateOption) -> float | None:
    """One rate for all columns: the lowest that was asked for."""
    rates = wanted.values() if isinstance(wanted, Mapping) else [wanted]
    return min((rate for rate in rates if rate is not None), default=None)


def _sizes(wanted: RateOption) -> float:
    """The representation rate that all columns must have; a rate by column is none for all of them."""
    return 0.0 if wanted is None or isinstance(wanted, Mapping) else wanted
