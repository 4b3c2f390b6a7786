"""Remarks: the facts of a fit as sentences.

A remark is a tuple of texts and options (`errors.Option`), so that each front end can spell the options its own way.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.document.words import counted, percent, times
from fairmaxent.errors import Option
from fairmaxent.fairness.measure import ByGrouping
from fairmaxent.fit.costs import FEWEST_ROWS, MOST_TIMES, GroupCost
from fairmaxent.fit.estimate import ModelEstimate, ModelScores, Range, Remedy
from fairmaxent.fit.facts import Facts
from fairmaxent.fit.relabel import DecidedRate, Decisions
from fairmaxent.fit.statements import REACHED

Remark = tuple[object, ...]

FEW_ROWS = 0.25  # share of the rows that the fair weights should be worth
STRATA_SHOWN = 6
SLACK = 0.1  # how far below the wanted rate a model's decisions may stay without a remark
_SHOWN = 3  # groups warned about one by one; the rest is counted

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
    for name, bins in facts.binned_columns.items():
        yield (f"column {name!r} is compared in {len(bins)} bins: {', '.join(bins[:3])}, …",)
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


# ---------------------------------------------------------------- costs


def cost_remarks(facts: Facts) -> Iterator[Remark]:
    """Warn of the groups beyond the line, worst first; a person who is in two of them is named once."""
    groups = _beyond_line(facts)
    said: list[Remark] = []
    for group in groups[:_SHOWN]:
        remedy = _remedy(group, facts)
        yield (_statement(group, facts.rows), *(["."] if remedy in said else remedy))
        said.append(remedy)
    more = len(groups) - _SHOWN
    if more > 0:
        rest = "group rests" if more == 1 else "groups rest"
        yield (
            f"{more:,} more {rest} on fewer than {FEWEST_ROWS} effective rows, or on a person who counts more than "
            f"{MOST_TIMES} times.",
        )


def _beyond_line(facts: Facts) -> list[GroupCost]:
    listed: list[GroupCost] = []
    for group in sorted(facts.costs.groups if facts.costs else (), key=lambda group: group.effective_rows):
        known = any(abs(group.times - other.times) <= 1e-9 * group.times for other in listed)
        if group.beyond_line and not (known and group.effective_rows >= FEWEST_ROWS):
            listed.append(group)
    return listed


def _statement(group: GroupCost, rows: int) -> str:
    if not group.rows:
        return f"{group.name} is {percent(group.after)} of the result, but nobody in the data is in this group"
    people = "a single row" if group.rows == 1 else f"{group.rows:,} rows"
    if _grows(group):
        text = f"{group.name}: {percent(group.after)} of the result rests on {people}"
        text += f" ({percent(group.before)} of the data)"
    else:
        text = f"{group.name}: all that the result says about this group rests on {people}"
    if round(group.effective_rows) < group.rows:
        text += f", which carry as much information as {times(group.effective_rows)} equally weighted ones"
    if group.times > MOST_TIMES:
        text += f"; one person has {times(group.largest_weight)} times the average weight"
        if group.most_copies >= 1:
            text += f", and is expected {times(group.most_copies)} times among {rows:,} drawn rows"
    return text


def _remedy(group: GroupCost, facts: Facts) -> Remark:
    merge = "merge it with another group"
    if not _grows(group) and group.times <= MOST_TIMES:
        return (f". To do better, {merge}, or collect more rows.",)
    size = _keep_size(group, facts)
    # A limit that was asked for is met already, so a lower one would only lower the rates.
    cap = ("limit the weight of one person with ", Option("largest_weight"))
    ways = [way for way in (size, (merge,), () if facts.largest_weight or not group.rows else cap) if way]
    return (". To avoid this, ", *_alternatives(ways), ".")


def _alternatives(ways: list[Remark]) -> Remark:
    """Join ways to go: "this", "this, or that", "this, that, or another"."""
    *others, last = ways
    return (*(part for way in others for part in (*way, ", ")), *(["or "] if others else []), *last)


def _keep_size(group: GroupCost, facts: Facts) -> Remark:
    """How to let a group grow less; nothing if its size was not asked for."""
    wanted = facts.wanted["representation_rate"]
    if not _grows(group) or (wanted.get(group.grouping) is None and not group.targeted):
        return ()
    if group.targeted:
        return ("ask for a smaller share of the group in ", Option("target"))
    rates = {name: wanted[name] for name, _ in facts.measure.of_first_outcome} | {group.grouping: None}
    by_column = {facts.measure.columns_of(name): rate for name, rate in rates.items()}
    joint = " × " in group.grouping and len(by_column) == 1
    return ("leave the group at its size with ", Option("representation_rate", None if joint else by_column))


def _grows(group: GroupCost) -> bool:
    return group.after > group.before * (1 + 1e-6)


def _uncompared_missing(facts: Facts) -> Iterator[Remark]:
    """Name the missing values that are not compared: most keep their share, unless the wanted shares say otherwise."""
    kept = [one for one in facts.kept_missing if percent(one.after) == percent(one.share)]
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
    for grouping, names in facts.single_groups.items():
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


# ---------------------------------------------------------------- models


def decision_remarks(decisions: Decisions | None) -> Iterator[tuple[object, ...]]:
    """Say where parity means nothing, and where it was not reached."""
    if decisions is None:
        return
    for rate in decisions.rates:
        if rate.vacuous:
            yield _vacuous(decisions, rate)
        elif rate.wanted is not None and rate.rate is not None and rate.rate < rate.wanted - SLACK:
            yield (
                f"the decisions of {decisions.student} for {rate.grouping} have a statistical rate of {rate.rate:.2f} "
                f"(wanted {rate.wanted:.2f}), the best of {counted(decisions.rounds, 'round')}. Try another ",
                Option("student"),
                ", or check the smallest groups",
            )


def _vacuous(decisions: Decisions, rate: DecidedRate) -> tuple[object, ...]:
    outcomes = sorted({share.outcome for share in decisions.shares if share.grouping == rate.grouping})
    nobody = all(share.share == 0 for share in decisions.shares if share.grouping == rate.grouping)
    return (
        f"{decisions.student} decides for {' or '.join(outcomes)} for {'nobody' if nobody else 'everybody'} at a "
        f"probability of {decisions.threshold:g}, so that equal decisions for {rate.grouping} say nothing. Choose a "
        f"{'lower' if nobody else 'higher'} ",
        Option("threshold"),
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
        if rate is not None and (least := wanted[name]) is not None and rate < least - SLACK
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


# ---------------------------------------------------------------- privacy


def privacy_remarks(facts: Facts) -> Iterator[Remark]:
    """What a reader of a private result should know."""
    ledger = facts.privacy
    if ledger is None:
        return
    yield ("a second private fit of the same table reveals as much again: the ε and the δ of both add up",)
    if ledger.privacy.delta * facts.rows >= 1:
        yield (
            f"δ = {ledger.privacy.delta:g} is not below 1 divided by the number of rows (about {facts.rows:,}), so the "
            "promise may fail for somebody; choose a smaller ",
            Option("delta"),
        )
