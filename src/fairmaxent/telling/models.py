"""Models: the one that a table was made for, and one that is trained on the result."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairmaxent.document import Blocks, Paragraph, Table
from fairmaxent.document.words import counted, percent
from fairmaxent.errors import Option, Remark
from fairmaxent.facts.fitted import Facts
from fairmaxent.facts.models import (
    DecidedRate,
    DecidedShare,
    Decisions,
    ModelEstimate,
    Range,
)
from fairmaxent.metrics.trial import OVERALL
from fairmaxent.telling.case import Case
from fairmaxent.telling.likely import known_for_certain
from fairmaxent.telling.rates import SLACK, is_short, rate_text

_GROUPS = 6  # in one sentence
_NEARLY_NONE = 0.1  # of a group
_OFF = 1e-9  # weights that differ by less are the same
# by the way of a table that was made for a student: what it does to the rows
_WAYS = {
    "none": "From no table that was tried would it decide more equally.",
    "tilt": "Each row keeps its outcome, and counts more or less.",
    "soft": (
        "Rows count partly for each outcome, by how likely it is: weights alone, or"
        " rows to add, teach this model less."
    ),
}
_FLATTERED = (
    "What is expected may be too favourable: what is likely was learned from the people"
    " who are compared."
)
_MEANINGS = {
    "accuracy": ("Accuracy", "share of people whose outcome it predicts correctly"),
    "auc": ("AUC", "how well it ranks people: 0.5 is chance, 1 is perfect"),
    "by_predictions": (
        "Statistical rate of its predictions",
        "lowest share of {} among its predictions in any group, divided by the highest",
    ),
    "by_probabilities": (
        "Statistical rate of its probabilities",
        "the same for the mean probability of {}",
    ),
    "equal_opportunity": (
        "Equal opportunity",
        "how equally often it recognises people who have {}, across groups",
    ),
    "equalised_odds": (
        "Equalised odds",
        "the same, and how equally often it mistakes other people for them",
    ),
    "calibration_gap": (
        "Calibration gap",
        (
            "how much groups differ in observed minus predicted rate; 0 means no"
            " difference"
        ),
    ),
}
# what is shown if there is little room
_MAIN = ("accuracy", "by_predictions", "auc", "by_probabilities")


# ---------------------------------------------------------------- made for a model


def made_for(case: Case) -> Blocks:
    """For which model a table was made, and what it teaches this model."""
    decisions = case.facts.decisions
    if decisions is None:
        return
    sees = "sees"
    need = "it needs them to decide"
    if decisions.hide_protected:
        sees = "does not see"
        need = "leave them out when you train it"
    made = "This table is made for a model"
    if decisions.way == "none":
        made = "No better table was found for this model"
    yield Paragraph(
        f"{made}: {decisions.student} that {sees} the protected"
        f" columns; {need}. Other models, and this one if it sees other columns, may"
        f" decide differently. {_WAYS[decisions.way]}"
    )
    if decisions.parity == "opportunity" and decisions.way == "soft":
        yield Paragraph(_FLATTERED)
    for rate in decisions.rates:
        taught = [one for one in decisions.shares if one.grouping == rate.grouping]
        taught.sort(key=lambda share: share.taught)
        if taught:
            least = taught[0]
            most = taught[-1]
            yield Paragraph(
                "What the table itself has is no decision of the model: there,"
                f" {most.outcome} is most common for {most.group}"
                f" ({percent(most.taught)}), least for {least.group}"
                f" ({percent(least.taught)})."
            )


def decisions(case: Case) -> Blocks:
    """What the model that a table was made for decides."""
    made = case.facts.decisions
    if made is None:
        return
    yield Paragraph(_decided_for(made))
    rows = [
        (
            f"rate of {rate.grouping}",
            rate_text(rate.wanted, nothing="any"),
            rate_text(rate.rate),
            _interval(rate),
            "",
        )
        for rate in made.rates
    ]
    rows += [
        (
            f"{share.outcome} for {share.group}",
            "",
            rate_text(share.share),
            _interval(share),
            rate_text(share.taught),
        )
        for share in made.shares
    ]
    heads = ("", "wanted", "expected", "95 % interval", "in the table")
    yield Table("Decisions about people it has not seen", heads, tuple(rows))


def less_exact(case: Case) -> Blocks:
    """That a model learns less from rows than from the weights it was tried with."""
    made = case.facts.decisions
    costs = case.facts.costs
    if made is None or case.output is None or costs is None:
        return
    are_equal = max(group.most_weight for group in costs.groups) <= 1 + _OFF
    is_as_before = made.way == "none" and are_equal
    if case.output.mode == "weights" or is_as_before:
        return
    yield from case.notes(
        [
            (
                "the model was tried with weights, and rows are less exact; to train"
                " it, use ",
                Option("mode", "weights"),
            )
        ]
    )


def _decided_for(made: Decisions) -> str:
    """For how many people it decides, before and after, and what that took."""
    whom = " whose outcome is good" if made.parity == "opportunity" else ""
    return (
        f"decisions of {made.student} about people of the data{whom} it did not learn"
        f" from: the good outcome for {percent(made.decided)} of them"
        f" ({percent(made.before)} if it learns from the data as they are). It was"
        f" trained {counted(made.trainings, 'time')} to find this table."
    )


def _interval(part: DecidedRate | DecidedShare) -> str:
    if part.low is None or part.high is None:
        return ""
    return f"{part.low:.4f} to {part.high:.4f}"


def decided_badly(case: Case) -> Blocks:
    """Say where a model's decisions mean nothing, or are less equal than was wanted."""
    made = case.facts.decisions
    if made is not None:
        yield from case.notes(_decision_remarks(made))


def _decision_remarks(made: Decisions) -> Iterator[Remark]:
    for rate in made.rates:
        if rate.vacuous:
            yield from _vacuous(made, rate)
        elif (
            rate.wanted is not None
            and rate.rate is not None
            and rate.rate < rate.wanted - SLACK
        ):
            yield (
                f"the decisions of {made.student} for {rate.grouping} are"
                f" expected to have a rate of {rate.rate:.2f} (wanted"
                f" {rate.wanted:.2f}) among other people. Try more rows, larger"
                " groups, or another ",
                Option("model"),
            )
    if made.unsure:
        groups = "; ".join(made.unsure[:_GROUPS])
        if len(made.unsure) > _GROUPS:
            groups += ", and others"
        yield (
            "too few people to promise anything about the decisions of"
            f" {made.student}: {groups}",
        )


def _vacuous(made: Decisions, rate: DecidedRate) -> Iterator[Remark]:
    """Say that equal decisions mean nothing if nearly all people get the same.

    Of groups that are only small, the remark on too few people says enough.
    """
    own = [share for share in made.shares if share.grouping == rate.grouping]
    outcomes = " or ".join(sorted({share.outcome for share in own}))
    shares = [share.share for share in own]
    hardly_anybody = max(shares, default=0.0) <= _NEARLY_NONE
    nearly_everybody = min(shares, default=0.0) >= 1 - _NEARLY_NONE
    if not hardly_anybody and not nearly_everybody:
        return
    threshold = "lower" if hardly_anybody else "higher"
    yield (
        f"{made.student} decides for {outcomes} for {_whom(shares)} at a probability of"
        f" {made.threshold:g}, so that equal decisions for {rate.grouping} say"
        f" nothing. Choose a {threshold} ",
        Option("threshold"),
    )


def _whom(shares: Sequence[float]) -> str:
    """Nobody, everybody, or the shares of the groups between which all others lie."""
    least = min(shares, default=0.0)
    most = max(shares, default=0.0)
    if most == 0:
        return "nobody"
    if least == 1:
        return "everybody"
    if percent(least) == percent(most):
        return f"{percent(most)} of each group"
    return f"between {percent(least)} and {percent(most)} of each group"


# -------------------------------------------- what a model trained on it will do


class Expected(NamedTuple):
    """A quantity before and after, with the ranges it will have on other people."""

    label: str
    grouping: str | None  # of those that compare groups
    meaning: str
    # before and after; None: there is nothing to compare
    values: tuple[float | None, ...]
    ranges: tuple[Range | None, ...]  # None: not known

    @property
    def texts(self) -> Iterator[str]:
        """Both numbers with their ranges."""
        for value, span in zip(self.values, self.ranges, strict=True):
            text = rate_text(value)
            if value is not None and span is not None:
                text += f" ({span[0]:.2f} to {span[1]:.2f})"
            yield text


def expected_lines(
    estimate: ModelEstimate,
    kinds: Sequence[str] = tuple(_MEANINGS),
    *,
    favourable: str = "the outcome",
) -> Iterator[Expected]:
    """Each quantity before and after; those that compare groups, for each grouping."""
    sides = (estimate.before, estimate.after)
    for kind in kinds:
        name, meaning = _MEANINGS[kind]
        before = getattr(estimate.before, kind)
        after = getattr(estimate.after, kind)
        groupings = [None] if kind in ("accuracy", "auc") else list(before)
        for grouping in groupings:
            label = name
            values = (before, after)
            if grouping is not None:
                label = f"{name}, {grouping}"
                values = (before[grouping], after[grouping])
            yield Expected(
                label=label,
                grouping=grouping,
                meaning=meaning.replace("{}", favourable),
                values=values,
                ranges=tuple(
                    scores.ranges[kind][grouping or OVERALL] for scores in sides
                ),
            )


def estimate(case: Case) -> Blocks:
    """What a model trained on the result is expected to do, if it was estimated."""
    found = case.facts.estimate
    if found is None:
        return
    yield Paragraph(
        f"expected of {found.student} trained on the {found.output}{_about(case)}; in"
        f" brackets: 95 % of measurements on {found.measured_on:,} other people:"
    )
    rows = tuple((line.label, *line.texts) for line in expected_lines(found, _MAIN))
    yield Table("A model trained on this", ("", "before", "after"), rows)


def _about(case: Case) -> str:
    """Which outcome a model predicts, if only one is compared."""
    compared = case.facts.outcomes_compared
    if len(case.facts.measure.favourable) != 1 or not compared:
        return ""
    return f", for {compared[0].outcome}"


def not_estimated(case: Case) -> Blocks:
    """How to estimate what a model will do, if that is possible and nobody did."""
    facts = case.facts
    if facts.estimate is not None or facts.decisions is not None:
        return
    if facts.likely is not None:
        yield Paragraph(
            "How a model trained on this will treat people was not estimated, because"
            f" {known_for_certain(facts.likely)}."
        )
        return
    if case.estimable is None or facts.measure.others:
        return
    how = "use"
    if facts.provenance.spends:
        how = "which spends nothing, write a report from its file with"
    output = "weights" if case.estimable == "weights" else "rows"
    option = case.spell(Option("estimate", output))
    yield Paragraph(
        "How a model trained on this will treat people was not estimated; to estimate"
        f" it, {how} {option}"
    )


def unfair_models(case: Case) -> Blocks:
    """Say for which groups a model is expected to stay less fair, and what helps."""
    yield from case.notes(_unfair(case.facts))


def _unfair(facts: Facts) -> Iterator[Remark]:
    found = facts.estimate
    if found is None:
        return
    if found.after.decided == 0:
        yield (
            "a model trained on the result is expected to decide for nobody in any"
            " group, so equal rates of its decisions mean nothing",
        )
    for name, rate in found.after.by_predictions.items():
        wanted = facts.wanted_of_decisions[name]
        if rate is None or wanted is None or rate >= wanted - SLACK:
            continue
        span = found.after.ranges["by_predictions"][name]
        between = "" if span is None else ", between {:.2f} and {:.2f}".format(*span)
        lead = "fair data are not enough: "
        if is_short(facts, "statistical_rate", name):  # then the data are not fair
            lead = ""
        yield (
            f"{lead}if a model is trained on them, the statistical rate of its"
            f" decisions for {name} is expected to be {rate:.2f}{between} (wanted"
            f" {wanted:.2f}). To make the table for your model, use ",
            Option("model"),
        )
