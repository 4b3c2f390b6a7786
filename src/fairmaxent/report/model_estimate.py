"""How a student, a model trained on the result, is expected to treat people, in words.

Everything is taken from the ``estimate`` of a certificate as plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairmaxent.metrics.trial import OVERALL


@dataclass(frozen=True)
class Expected:
    """A number that is expected, and the range in which it will be measured on other people; None: not known."""

    value: float | None
    span: tuple[float, float] | None


Line = tuple[str, str, Expected, Expected]  # what, what it means, before, after

WHY = (
    "Data are made fair so that models trained on them are fair too. That is not automatic: a model also sees the "
    "other columns, and if they predict the old outcome, its decisions repeat it."
)
ONE_NOTION = (
    "The statistical rate is one idea of fairness: all groups get the outcome equally often. It says nothing about "
    "mistakes. The other lines do, but if groups differ, no model can be perfect in all of them. They are measured "
    "against the outcomes in the data, which may carry the old bias themselves. The documentation explains what each "
    'is for, on the page "Is statistical parity all there is to fairness?".'
)

_MEANINGS = {
    "accuracy": ("Accuracy", "share of people whose outcome it predicts correctly"),
    "auc": ("AUC", "how well it ranks people: 0.5 is chance, 1 is perfect"),
    "by_predictions": (
        "Statistical rate of its predictions",
        "lowest share of {} among its predictions in any group, divided by the highest",
    ),
    "by_probabilities": ("Statistical rate of its probabilities", "the same for the mean probability of {}"),
    "equal_opportunity": (
        "Equal opportunity",
        "how equally often it recognises people who have {}, across groups",
    ),
    "equalised_odds": ("Equalised odds", "the same, and how equally often it mistakes other people for them"),
    "calibration_gap": (
        "Calibration gap",
        "how much groups differ in observed minus predicted rate; 0 means no difference",
    ),
}
# What is shown if there is little room.
MAIN = ("accuracy", "auc", "by_predictions", "by_probabilities")
_BY_GROUPING = tuple(_MEANINGS)[2:]


def lines(
    known: Mapping[str, Any], kinds: tuple[str, ...] = tuple(_MEANINGS), *, favourable: str = "the outcome"
) -> Iterator[Line]:
    """Each quantity before and after, those that compare groups once per grouping; meanings name the outcome."""
    before, after = known["before"], known["after"]
    for kind in kinds:
        name, meaning = _MEANINGS[kind][0], _MEANINGS[kind][1].replace("{}", favourable)
        if kind not in _BY_GROUPING:
            yield name, meaning, _expected(before, kind), _expected(after, kind)
            continue
        for grouping in before[kind]:
            compared = (_expected(before, kind, grouping), _expected(after, kind, grouping))
            yield f"{name}, {grouping}", meaning, *compared


def _expected(scores: Mapping[str, Any], kind: str, grouping: str | None = None) -> Expected:
    value = scores[kind] if grouping is None else scores[kind][grouping]
    span = scores["ranges"].get(kind, {}).get(OVERALL if grouping is None else grouping)
    return Expected(value, None if span is None else (span[0], span[1]))


def number(expected: Expected) -> str:
    """Write one of these numbers, with its range; a dash if there is nothing to compare."""
    has_range = expected.value is not None and expected.span is not None
    return f"{short(expected)}{f' ({range_text(expected)})' if has_range else ''}"


def short(expected: Expected) -> str:
    """Write one of these numbers without its range."""
    return "–" if expected.value is None else f"{expected.value:.3f}"


def range_text(expected: Expected) -> str:
    """Write the range of a number."""
    return "–" if expected.span is None else f"{expected.span[0]:.2f} to {expected.span[1]:.2f}"


def how(known: Mapping[str, Any], *, favourable: str = "the outcome", private: bool = False) -> str:
    """Say which model it is, and how this can be known before anybody trains it."""
    people = "rows drawn from the private model, in place of people" if private else "people in the original data"
    original = "such rows before they were made fair" if private else "the original data"
    trained = "the drawn rows" if known["output"] == "rows" else "the weighted rows"
    blind = ", without the protected columns" if known["blind"] else ""
    again = f", {known['rounds']} times over" if known["rounds"] > 1 else ""
    labels = "" if known["refitted"] else " The outcomes it learned were those that the fit gave to everybody."
    return (
        f"Before: {known['student']} trained on {original}{blind}. After: the same model trained on {trained}. "
        f"Both decide about {people}: they predict {_decision(known, favourable)}. This "
        f"is an estimate: people were split into {known['folds']} folds{again}, and each fold was judged by "
        f"models that had not seen it.{labels} {_ranges(known)}Another kind of model may behave "
        "differently."
    )


def _decision(known: Mapping[str, Any], favourable: str) -> str:
    """What a model predicts; another threshold than a half is for one of two outcomes."""
    if known["threshold"] == 0.5:
        return "the likeliest outcome"
    return f"{favourable} if its probability is above {known['threshold']:g}"


def _ranges(known: Mapping[str, Any]) -> str:
    if not known["measured_on"]:
        return ""
    return (
        f"In brackets is the range that holds 95 of 100 measurements of such a model on {known['measured_on']:,} other "
        "people. "
    )
