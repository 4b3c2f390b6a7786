"""Remarks: the facts of a fit as sentences.

A remark is a tuple of texts and options (`errors.Option`), so that each front end can spell the options its own way.
"""

from collections.abc import Iterator

from fairmaxent.document.words import counted, percent, times
from fairmaxent.errors import Option
from fairmaxent.fairness.rates import ByGrouping
from fairmaxent.fit.costs import FEWEST_ROWS, MOST_TIMES, GroupCost
from fairmaxent.fit.facts import Facts, ModelEstimate, ModelScores, Remedy
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


def other_remarks(facts: Facts) -> Iterator[Remark]:
    """What a careful reader should know after the warnings about costs."""
    yield from _privacy_remarks(facts)
    if facts.costs is None:
        yield from ((f"small group: {group.name} ({group.rows:,} rows)",) for group in facts.small_groups)
        if facts.effective_rows < facts.rows * FEW_ROWS:
            yield (
                f"the fair weights carry as much information as {facts.effective_rows:,.0f} equally weighted rows (of "
                f"{facts.rows:,}), because small groups count many times over",
            )
    yield from _changes_to_the_table(facts)
    yield from _uncompared(facts)
    for name in facts.compared_missing:
        yield (f"missing values of {name!r} are compared as a group of their own",)
    for forbidden in facts.forbidden_rows:
        yield (f"{forbidden.rows:,} rows have the forbidden combination {forbidden.combination}; they get weight zero",)
    yield from _missed_rates(facts)
    yield from _decision_remarks(facts)
    yield from unfair_decisions(facts)


def _changes_to_the_table(facts: Facts) -> Iterator[Remark]:
    """What was filled in, removed, left out, redrawn, binned or emptied."""
    for cell, share in zip(facts.filled_cells, facts.filled_shares, strict=True):
        yield (f"no row in the data has {cell}: the base fills in this combination, {percent(share)} of the result",)
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
        way = Option("detail", "bins")
        yield (f"values of {columns} are redrawn within their bins (", way, f"), because {facts.redrawn.reason}")
    for name, bins in facts.binned_columns.items():
        yield (f"column {name!r} is compared in {len(bins)} bins: {', '.join(bins[:3])}, …",)
    for cell in facts.emptied_cells:
        yield (
            f"the rows with {cell} get weight zero: the wanted rates cannot be met with them. To keep them, lower ",
            Option("representation_rate"),
            " or ",
            Option("statistical_rate"),
        )


def _uncompared(facts: Facts) -> Iterator[Remark]:
    """Name missing values and strata that are not compared; most missing values keep their share."""
    kept = [missing for missing in facts.kept_missing if percent(missing.after) == percent(missing.share)]
    columns = ", ".join(f"{missing.column!r} ({missing.share:.1%} of the rows)" for missing in kept)
    sentences = [f"missing values of {columns} keep their share and are not compared"] if kept else []
    sentences += [
        f"missing values of {missing.column!r} are {percent(missing.after)} of the result instead of "
        f"{percent(missing.share)} of the rows, and are not compared"
        for missing in facts.kept_missing
        if missing not in kept
    ]
    for sentence in sentences:
        yield (f"{sentence}; to compare them as a group, use ", Option("missing", "compare"))
    for grouping, names in facts.single_groups.items():
        more = f" and {len(names) - STRATA_SHOWN} more" if len(names) > STRATA_SHOWN else ""
        strata = "; ".join(names[:STRATA_SHOWN])
        yield (f"{grouping}: not compared, because they have rows of a single group: {strata}{more}",)


def _missed_rates(facts: Facts) -> Iterator[Remark]:
    """Say which rates the limit on weights leaves out of reach."""
    for kind, name in () if facts.largest_weight is None else facts.rates_shown:
        wanted, reached = facts.wanted[kind][name], facts.achieved[kind][name]
        if wanted is not None and reached is not None and reached < wanted - REACHED:
            yield (
                f"the {facts.measure.rate_name(kind, name)} is {reached:.3f}, not {wanted:.3f}, because no row may "
                f"count more than {facts.largest_weight:g} times (",
                Option("largest_weight"),
                ")",
            )


def _privacy_remarks(facts: Facts) -> Iterator[Remark]:
    if facts.privacy is None:
        return
    yield ("a second private fit of the same table reveals as much again: the ε and the δ of both add up",)
    delta = facts.privacy.privacy.delta
    if delta * facts.rows >= 1:
        yield (
            f"δ = {delta:g} is not below 1 divided by the number of rows (about {facts.rows:,}), so the promise may "
            "fail for somebody; choose a smaller ",
            Option("delta"),
        )


# ---------------------------------------------------------------- costs


def cost_remarks(facts: Facts) -> Iterator[Remark]:
    """Warn of the groups beyond the line, worst first; a person who is in two of them is named once."""
    groups: list[GroupCost] = []
    for group in sorted(facts.costs.groups if facts.costs else (), key=lambda group: group.effective_rows):
        named = any(abs(group.times - other.times) <= 1e-9 * group.times for other in groups)
        if group.beyond_line and not (named and group.effective_rows >= FEWEST_ROWS):
            groups.append(group)
    remedies: list[Remark] = []
    for group in groups[:_SHOWN]:
        remedy = _remedy(group, facts)
        yield (_statement(group, facts.rows), *(["."] if remedy in remedies else remedy))
        remedies.append(remedy)
    more = len(groups) - _SHOWN
    if more > 0:
        yield (
            f"{more:,} more {'group rests' if more == 1 else 'groups rest'} on fewer than {FEWEST_ROWS} effective "
            f"rows, or on a person who counts more than {MOST_TIMES} times.",
        )


def _statement(group: GroupCost, rows: int) -> str:
    if not group.rows:
        return f"{group.name} is {percent(group.after)} of the result, but nobody in the data is in this group"
    people = "a single row" if group.rows == 1 else f"{group.rows:,} rows"
    text = f"{group.name}: all that the result says about this group rests on {people}"
    if group.grows:
        text = f"{group.name}: {percent(group.after)} of the result rests on {people}"
        text += f" ({percent(group.before)} of the data)"
    if round(group.effective_rows) < group.rows:
        text += f", which carry as much information as {times(group.effective_rows)} equally weighted ones"
    if group.times > MOST_TIMES:
        text += f"; one person has {times(group.largest_weight)} times the average weight"
        if group.most_copies >= 1:
            text += f", and is expected {times(group.most_copies)} times among {rows:,} drawn rows"
    return text


def _remedy(group: GroupCost, facts: Facts) -> Remark:
    merge = "merge it with another group"
    if not group.grows and group.times <= MOST_TIMES:
        return (f". To do better, {merge}, or collect more rows.",)
    ways: list[Remark] = [_keep_size(group, facts), (merge,)]
    if not facts.largest_weight and group.rows:  # a limit that was asked for is met; a lower one would lower the rates
        ways.append(("limit the weight of one person with ", Option("largest_weight")))
    *others, last = filter(None, ways)
    joined = (part for way in others for part in (*way, ", "))
    return (". To avoid this, ", *joined, *(["or "] if others else []), *last, ".")


def _keep_size(group: GroupCost, facts: Facts) -> Remark:
    """How to let a group grow less; nothing if its size was not asked for."""
    wanted = facts.wanted["representation_rate"]
    if not group.grows or (wanted.get(group.grouping) is None and not group.targeted):
        return ()
    if group.targeted:
        return ("ask for a smaller share of the group in ", Option("target"))
    rates = {name: wanted[name] for name, _ in facts.measure.of_first_outcome} | {group.grouping: None}
    by_column = {facts.measure.columns_of(name): rate for name, rate in rates.items()}
    joint = " × " in group.grouping and len(by_column) == 1
    return ("leave the group at its size with ", Option("representation_rate", None if joint else by_column))


# ---------------------------------------------------------------- models


def _decision_remarks(facts: Facts) -> Iterator[Remark]:
    """Say where parity of a student's decisions means nothing, and where it was not reached."""
    decisions = facts.decisions
    if decisions is None:
        return
    for rate in decisions.rates:
        shares = [share for share in decisions.shares if share.grouping == rate.grouping]
        if rate.vacuous:
            outcomes, nobody = sorted({share.outcome for share in shares}), all(share.share == 0 for share in shares)
            yield (
                f"{decisions.student} decides for {' or '.join(outcomes)} for {'nobody' if nobody else 'everybody'} at "
                f"a probability of {decisions.threshold:g}, so that equal decisions for {rate.grouping} say nothing. "
                f"Choose a {'lower' if nobody else 'higher'} ",
                Option("threshold"),
            )
        elif rate.wanted is not None and rate.rate is not None and rate.rate < rate.wanted - SLACK:
            yield (
                f"the decisions of {decisions.student} for {rate.grouping} have a statistical rate of {rate.rate:.2f} "
                f"(wanted {rate.wanted:.2f}), the best of {counted(decisions.rounds, 'round')}. Try another ",
                Option("student"),
                ", or check the smallest groups",
            )


def unfair_decisions(facts: Facts) -> Iterator[Remark]:
    """Say for which groups a model is expected to stay less fair than the data are, and what helps."""
    estimate = facts.estimate
    if estimate is None:
        return
    if estimate.after.decided == 0:
        yield (
            "a model trained on the result is expected to decide for nobody in any group, so equal rates of its "
            "decisions mean nothing",
        )
    for name in less_fair(estimate.after, facts.wanted_of_decisions):
        rate, span = estimate.after.by_predictions[name], estimate.after.range_of("by_predictions", name)
        between = "" if span is None else f", between {span[0]:.2f} and {span[1]:.2f}"
        yield (
            f"the data are fair, but if a model is trained on them, the statistical rate of its decisions for {name} "
            f"is expected to be {rate:.2f}{between} (wanted {facts.wanted_of_decisions[name]:.2f})",
            *remedy_remark(estimate, name),
        )


def less_fair(scores: ModelScores, wanted: ByGrouping) -> list[str]:
    """Groupings for which a model's decisions are expected to stay well below the wanted rate."""
    return [
        name
        for name, rate in scores.by_predictions.items()
        if rate is not None and (least := wanted[name]) is not None and rate < least - SLACK
    ]


def remedy_remark(estimate: ModelEstimate, name: str) -> Remark:
    """Say what makes a model's decisions for a grouping fairer, or what to try; nothing if nothing does."""
    if estimate.remedy == "none":
        return ()
    if estimate.remedied is None:
        return ("; try whether it helps to use ", *_REMEDIES[estimate.remedy])
    expected = estimate.remedied.get(name)
    return () if expected is None else (f". A quick trial gave {expected:.2f} with ", *_REMEDIES[estimate.remedy])
