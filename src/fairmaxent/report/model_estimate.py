"""What a student, a model trained on the result, is expected to do to people: the words of it.

Everything is taken from the ``downstream`` of a certificate as plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Line = tuple[str, str, float | None, float | None]  # what, what it means, before, after

WHY = (
    "Data are made fair so that what is learned from them is. That does not come by itself: a model sees the other "
    "columns too, and where they tell the old outcome, its decisions repeat it."
)
NOT_ESTIMATED = (
    "It was not estimated for this fit. Ask for it with downstream='rows' or 'weights' in Python, or --downstream on "
    "the command line."
)
ONE_NOTION = (
    "The statistical rate is one idea of fairness: all groups get the outcome equally often. It says nothing about "
    "mistakes. The other lines do, and where groups differ no model can be perfect in all of them. They are measured "
    'against the outcomes in the data, which may carry the old bias themselves. The page "Is statistical parity all of '
    'fairness?" of the documentation says what each is for.'
)

_MEANINGS = {
    "accuracy": ("Accuracy", "share of people whose outcome it tells right"),
    "auc": ("AUC", "how well it puts people in order: 0.5 is chance, 1 is perfect"),
    "by_predictions": ("Statistical rate of its predictions", "lowest group's share of yes over the highest's"),
    "by_probabilities": ("Statistical rate of its probabilities", "the same, of the mean probability of yes"),
    "equal_opportunity": ("Equal opportunity", "of those who have the outcome, how evenly they are found"),
    "equalised_odds": ("Equalised odds", "that, and how evenly the others are wrongly taken for them"),
    "calibration_gap": ("Calibration gap", "how differently groups get what was promised: 0 is alike"),
}
# What is shown where there is little room.
MAIN = ("accuracy", "auc", "by_predictions", "by_probabilities")
_BY_GROUPING = tuple(_MEANINGS)[2:]


def lines(known: Mapping[str, Any], kinds: tuple[str, ...] = tuple(_MEANINGS)) -> Iterator[Line]:
    """Each quantity before and after, those that compare groups once per grouping."""
    before, after = known["before"], known["after"]
    for kind in kinds:
        name, meaning = _MEANINGS[kind]
        if kind not in _BY_GROUPING:
            yield name, meaning, before[kind], after[kind]
            continue
        for grouping, value in before[kind].items():
            yield f"{name}, {grouping}", meaning, value, after[kind][grouping]


def number(value: float | None) -> str:
    """Write one of these numbers; a dash where there is nothing to compare."""
    return "–" if value is None else f"{value:.3f}"


def how(known: Mapping[str, Any]) -> str:
    """Say which model it is, and how this is known before anybody has trained it."""
    trained = "the drawn rows" if known["output"] == "rows" else "the weighted rows"
    return (
        f"Before: {known['student']} trained on the data as they are. After: the same trained on {trained}. Both "
        "decide about the people of the data as they are, with a yes from a probability of "
        f"{known['threshold']:g} on. This is an estimate: the people were parted into {known['folds']} sets, and each "
        "set was judged by models made without it. Another kind of model can come out differently."
    )
