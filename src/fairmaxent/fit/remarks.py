"""Remarks: the facts of a fit as sentences.

A remark is a tuple of texts and options (`errors.Option`), so that each front end can spell the options its own way.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.errors import Option
from fairmaxent.fairness.measure import ByGrouping
from fairmaxent.fit.cost_remarks import Remark, cost_remarks
from fairmaxent.fit.decision_text import decision_remarks
from fairmaxent.fit.estimate import ModelEstimate, ModelScores, Range, Remedy
from fairmaxent.fit.facts import Facts
from fairmaxent.fit.share_text import percent
from fairmaxent.fit.sharing_text import privacy_remarks

FEW_ROWS = 0.25  # share of the rows that the fair weights should be worth
STRATA_SHOWN = 6
REACHED = 1e-6  # solvers stop a little short of an exact rate
DOWNSTREAM_SLACK = 0.1  # how far below the wanted rate a model may be expected to stay without a remark

_REMEDIES: dict[Remedy, Remark] = {
    "relabel": (Option("relabel", "predictions"),),
    "predictions": (Option("relabel", "predictions"),),
    "weights": (Option("mode", "weights"), " instead of ", Option("mode", "rows")),
}


def remarks(facts: Facts) -> Iterator[Remark]:
    """Everything a careful reader should know: first what it costs, beyond a line."""
    yield from cost_remarks(facts)
    yield from other_remarks(facts)


def other_remarks(facts: Facts) -> Iterator[Remark]:
    """What is left to know after the warnings about costs."""
    yield from privacy_remarks(facts)
    if facts.costs is None:
        yield from _unmeasured_costs(facts)
    for number, cell in enumerate(facts.filled_cells):
        share = f", {percent(facts.filled_shares[number])} of the result" if facts.filled_shares else ""
        yield (f"no row in the data has {cell}: the base fills in this combination{share}",)
    for level in facts.removed_levels:
        yield (f"level removed, because its wanted share is 0: {level}",)
    if facts.left_out_columns:
        columns = ", ".join(map(repr, facts.left_out_columns))
        yield (
            f"left out, because they look like identifiers or notes about people: {columns}. To keep them, use ",
            Option("keep_columns", list(facts.left_out_columns)),
        )
    yield from ((note,) for note in facts.notes)
    if facts.redrawn is not None and facts.redrawn.reason is not None:
        columns = ", ".join(map(repr, facts.redrawn.columns))
        yield (
            f"values of {columns} are redrawn within their bins (",
            Option("detail", "bins"),
            f"), because {facts.redrawn.reason}",
        )
    for column in facts.binned_columns:
        shown = ", ".join(column.bins[:3])
        yield (f"column {column.column!r} is compared in {len(column.bins)} bins: {shown}, …",)
    for cell in facts.emptied_cells:
        yield (
            f"the rows with {cell} get weight zero: the wanted rates cannot be met with them. To keep them, lower ",
            Option("representation_rate"),
            " or ",
            Option("statistical_rate"),
        )
    yield from _uncompared_missing(facts)
    yield from _uncompared_strata(facts)
    for name in facts.compared_missing:
        yield (f"missing values of {name!r} are compared as a group of their own",)
    for forbidden in facts.forbidden_rows:
        yield (f"{forbidden.rows:,} rows have the forbidden combination {forbidden.combination}; they get weight zero",)
    yield from missed_rates(facts)
    yield from decision_remarks(facts.decisions)
    yield from unfair_decisions(facts)


def _uncompared_missing(facts: Facts) -> Iterator[Remark]:
    """Name the missing values that are not compared: most keep their share, unless the wanted shares say otherwise."""
    kept = [one for one in facts.kept_missing if one.after is None or percent(one.after) == percent(one.share)]
    moved = [one for one in facts.kept_missing if one not in kept]
    columns = ", ".join(f"{one.column!r} ({one.share:.1%} of the rows)" for one in kept)
    words = [f"missing values of {columns} keep their share and are not compared"] if kept else []
    words += [
        f"missing values of {one.column!r} are {percent(one.after)} of the result instead of {percent(one.share)} of "
        "the rows, and are not compared"
        for one in moved
    ]
    for text in words:
        yield (f"{text}; to compare them as a group, use ", Option("missing", "compare"))


def _uncompared_strata(facts: Facts) -> Iterator[Remark]:
    """Name the strata in which there is nothing to compare."""
    strata: dict[str, list[str]] = {}
    for single in facts.single_groups:
        strata.setdefault(single.grouping, []).append(single.stratum)
    for grouping, names in strata.items():
        more = f" and {len(names) - STRATA_SHOWN} more" if len(names) > STRATA_SHOWN else ""
        yield (
            f"{grouping}: not compared, because they have rows of a single group: "
            f"{'; '.join(names[:STRATA_SHOWN])}{more}",
        )


def _unmeasured_costs(facts: Facts) -> Iterator[Remark]:
    """What there is to say about costs if they were not measured group by group."""
    for group in facts.small_groups:
        yield (f"small group: {group.name} ({group.rows:,} rows)",)
    if facts.effective_rows < facts.rows * FEW_ROWS:
        yield (
            f"the fair weights carry as much information as {facts.effective_rows:,.0f} equally weighted rows (of "
            f"{facts.rows:,}), because small groups count many times over",
        )


def missed_rates(facts: Facts) -> Iterator[Remark]:
    """Say which rates the limit on weights leaves out of reach."""
    if facts.largest_weight is None:
        return
    for kind, name in facts.rates_shown:
        wanted, reached = facts.wanted[kind][name], facts.achieved[kind][name]
        if wanted is not None and reached is not None and reached < wanted - REACHED:
            yield (
                f"the {facts.measure.rate_name(kind, name)} is {reached:.3f}, not {wanted:.3f}, because no row may "
                f"count more than {facts.largest_weight:g} times (",
                Option("largest_weight"),
                ")",
            )


def unfair_decisions(facts: Facts) -> Iterator[Remark]:
    """Say for which groups a model is expected to stay less fair than the data are, and what helps."""
    known = facts.estimate
    if known is None:
        return
    if known.after.decided == 0:
        yield (
            "a model trained on the result is expected to decide for nobody in any group, so equal rates of its "
            "decisions mean nothing",
        )
    for name in less_fair(known.after, facts.wanted_of_decisions):
        rate, span = known.after.by_predictions[name], known.after.range_of("by_predictions", name)
        yield (
            f"the data are fair, but if a model is trained on them, the statistical rate of its decisions for {name} "
            f"is expected to be {rate:.2f}{_range_text(span)} (wanted {facts.wanted_of_decisions[name]:.2f})",
            *remedy_remark(known, name),
        )


def less_fair(scores: ModelScores, wanted: ByGrouping) -> list[str]:
    """Groupings for which a model's decisions are expected to stay well below the wanted rate."""
    return [
        name
        for name, rate in scores.by_predictions.items()
        if rate is not None and (least := wanted[name]) is not None and rate < least - DOWNSTREAM_SLACK
    ]


def remedy_remark(known: ModelEstimate, name: str) -> Remark:
    """Say what makes a model's decisions for a grouping fairer, or what to try; nothing if nothing does."""
    if known.remedy == "none":
        return ()
    if known.remedied is None:
        return ("; try whether it helps to use ", *_REMEDIES[known.remedy])
    expected = known.remedied.get(name)
    return () if expected is None else (f". A quick trial gave {expected:.2f} with ", *_REMEDIES[known.remedy])


def _range_text(span: Range | None) -> str:
    return "" if span is None else f", between {span[0]:.2f} and {span[1]:.2f}"
