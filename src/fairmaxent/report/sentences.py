"""The sentences that every form of the report shares."""

from __future__ import annotations

from fairmaxent.errors import Option
from fairmaxent.fit.cost_text import worst_groups
from fairmaxent.fit.share_text import percent
from fairmaxent.fit.sharing_text import copies_of
from fairmaxent.report.build import Report
from fairmaxent.report.number_text import more
from fairmaxent.report.rates import Reached
from fairmaxent.report.trade_off import Varied

RATE_NAMES = {"representation_rate": "Representation rate", "statistical_rate": "Statistical rate"}

RATES = (
    "The representation rate is the size of the smallest group divided by that of the largest. The statistical rate is "
    "the lowest rate of an outcome in any group divided by the highest. A rate of 1 means that all groups are equal. "
    "Achieved rates are exact: they are computed from the fitted distribution, not estimated."
)
DELIVERED_NAMES = {"rows": "Drawn rows", "weights": "Weighted rows", "top-up": "Old and added rows"}
ALERTS = "Warning: this result rests on very few people"
CHANGED = (
    "Outcomes were changed. How many people of each group have another outcome here than in the data (the expected "
    "number, because each person is split between outcomes):"
)
FILLED = "{} of the result has a combination of outcome and groups that nobody in the data has."
COSTS = (
    "Effective rows is the number of equally weighted rows that carry as much information as the fair weights of the "
    "group. The worst cell is the combination of outcome and groups in which one person counts most."
)
LARGEST_WEIGHT = "The largest weight is that of one person; all weights are 1 on average."
COUNTED_COPIES = (
    "Most copies is how many of these rows repeat the values of one real row; real rows that are equal share their "
    "copies."
)
EXPECTED_COPIES = "Expected copies is how often one real row is expected among the rows."
COSTS_UNKNOWN = "What the result costs each group is not known for this fit."
WARNINGS = "What you should know about these data and this fit:"
GROUPS = "Before: in the data, with the number of rows. After: in the fitted distribution, exactly."
MOVES = "The levels whose share of the rows changed most, among all columns."
NO_MOVES = "No level of any column changed its share of the rows by a tenth of a percentage point."
MARGINALS = (
    "Share of the rows at each level. Outcome and protected columns come first, then the columns that changed most. "
    "Columns that nobody asked about change because they are related to the groups and the outcome. The distance is "
    "the share of the rows that would have to change their level."
)
CERTIFICATE = (
    "How good the numerical solution is, computed from the fitted distribution itself. A distance is a "
    "Kullback-Leibler divergence in nats, a unit of information: 0 means the same distribution. The theorem and the "
    "lemma are from Celis, Keswani and Vishnoi, Data preprocessing to mitigate bias: a maximum entropy based approach "
    "(ICML 2020)."
)
NOTHING_DRAWN = "All rows are real: {}. Sharing them means sharing the data."
PRIVATE_COPIES = (
    "No row of the data was used to draw the new rows, only noisy counts. A new row that equals a real one does so by "
    "chance, and that cannot be told without the data."
)
LIMITS = (
    "The rates hold for the groups and the outcome that were asked about. Other groups can still differ, and so can "
    "intersections if each column was asked about on its own.",
    "Fair data do not make every model trained on them fair: if other columns predict the outcome well, a classifier "
    "can bring the old gap back. The section 'A model trained on this' gives an estimate, if one was made; measure the "
    "rate of your own model's predictions too.",
    "The request is met by giving groups and outcomes other weights, by changing the outcomes of rows if that was "
    "asked for, and by drawing new rows. It does not explain why the data were unequal, and does not correct wrong "
    "measurements or labels.",
    "What the report says about a group rests on the rows of that group. If they are few, the fair table repeats what "
    "those few rows happen to show.",
    "Numbers with many values are read in bins, and rare values as one level 'other'; new rows do not keep finer "
    "relations between columns.",
    "Equal rates are one idea of fairness. People who know the case must decide whether it is the right one here.",
)
CALL = "In Python, with the table as frame; if you passed your own Domain, labeller or student, pass it again:"
READ_CALL = "In Python, with the complete table of the file as frame:"
_MEASURED = {
    "rows": "The next column is counted in the drawn rows; the same number of independent draws would fall into the "
    "interval 95% of the time.",
    "weights": "The next column is computed from the weighted rows.",
    "top-up": "The next column is counted in the old and the added rows together.",
}
_SHORT = {
    "rows": "A row cannot be split, so a rate of drawn rows can be below the exact one; more rows come closer.",
    "weights": "The weights do not reach the rate that the distribution has.",
    "top-up": "A row cannot be split, so a rate of old and added rows can be below the exact one.",
}
_SCATTER = "Independent draws vary, and their rates are below the exact ones; rows drawn by quota vary far less."


def title(report: Report) -> str:
    """The title that was given, or the outcome and the columns whose groups are compared."""
    return report.filing.title or f"{report.favourable}, by {', '.join(report.protected)}"


def rate_name(rate: Reached) -> str:
    """Name a rate, with what it is about."""
    return f"{RATE_NAMES[rate.kind]} of {rate.grouping}{'' if rate.outcome is None else f', {rate.outcome}'}"


def summary(report: Report) -> str:
    """Say what was done."""
    about = "A table of" if report.promise is None else "A table of about"
    head = f"{about} {report.rows:,} rows and {report.columns} columns was turned into a fair distribution."
    return " ".join(filter(None, [head, delivery(report), sharing(report)]))


def sharing(report: Report) -> str:
    """Say what a private fit promises, or how many of the new rows are copies of real ones."""
    if report.promise is not None:
        return f"It is {report.promise}. Counts, and all numbers before, are noisy estimates."
    share = report.certificate["copied_share"]
    if not share or report.mode != "rows":
        return ""
    copies = copies_of(redrawn=report.certificate["redrawn"] is not None)
    return f"About {round(share * report.new_rows):,} of them are copies of {copies.are}: {copies.mean}."


def verdict(report: Report) -> str:
    """Say what was reached; a rate that stands on too few people is not met without a reminder of that."""
    asked = [rate for rate in report.rates if rate.met is not None]
    met, exactly = (sum(getattr(rate, kind) is True for rate in asked) for kind in ("met", "met_exactly"))
    if not asked:
        return "No rate was asked for."
    which = {1: "The rate asked for is", 2: "Both rates asked for are"}.get(len(asked), f"All {len(asked)} rates are")
    reminder = ", but at the cost named in the warning above" if report.alerts else ""
    if met == len(asked):
        return f"{which} met{reminder}."
    rows = DELIVERED_NAMES[report.mode].lower()
    if exactly < len(asked):
        return f"{exactly} of {len(asked)} rates asked for are met by the distribution, {met} by the {rows}{reminder}."
    short = [rate for rate in asked if not rate.met]
    gap = f"{max(rate.gap or 0.0 for rate in short):.4f}"
    why = ", because a row cannot be split" if short[0].rounded else ""
    if all(rate.nearly_met for rate in short):
        return f"{which} met: exactly by the distribution, and to within {gap} by the {rows}{why}{reminder}."
    is_one_number = not any(rate.from_target or rate.gap is None for rate in short)
    count = f"meet {met or 'none'} of {len(asked)}" if met or not is_one_number else ""
    fall = f"fall short by up to {gap}{why}" if is_one_number else ""
    return f"{which} met by the distribution, but the {rows} {' and '.join(filter(None, [count, fall]))}{reminder}."


def delivery(report: Report) -> str:
    """Say what was delivered."""
    if report.mode == "weights":
        each = " and each of its outcomes" if report.relabelled else ""
        return f"Delivered: a weight for each of the {report.rows:,} rows{each}; no row is new."
    how = "independently" if report.iid else "by quota"
    if report.mode == "top-up":
        return f"Delivered: {report.new_rows:,} rows to be added to the {report.rows:,}."
    if report.for_report:
        return f"For this report, {report.new_rows:,} rows were drawn from it {how}."
    return f"Delivered: {report.new_rows:,} new rows, drawn {how}."


def state(report: Report, rate: Reached) -> tuple[str, str]:
    """Whether a rate was met, as a class of the page and in words; a tick only if the delivered rows meet it too.

    A row cannot be split, so a rate that the distribution has exactly may differ in the last digits among them.
    """
    if rate.met is None:
        return "", "not asked for"
    if rate.met or rate.nearly_met:
        met = "✓ met" if rate.met else "✓ met, rounded to whole rows"
        return ("short", f"{met}, but see the warning") if rate.costly else ("good", met)
    if not rate.met_exactly:
        return "bad", "✗ not met"
    what = {"rows": "these rows", "weights": "the weights", "top-up": "old and added rows"}[report.mode]
    by = "cannot be compared" if rate.gap is None else f"are {'off' if rate.from_target else 'short'} by {rate.gap:.4f}"
    return "short", f"met by the distribution, but {what} {by}"


def wanted(rate: Reached) -> str:
    """Write what was asked for."""
    shown = "any" if rate.wanted is None else f"{rate.wanted:.4f}"
    return f"{shown} (target)" if rate.from_target and rate.wanted is not None else shown


def delivered(rate: Reached) -> str:
    """Write the rate of what was delivered; a dash if there is no group or no outcome to compare."""
    return "–" if rate.delivered is None else f"{rate.delivered:.4f}"


def interval(rate: Reached) -> str:
    """Write the range of independent draws."""
    return "–" if rate.interval is None else f"{rate.interval[0]:.3f} – {rate.interval[1]:.3f}"


def costs_note(report: Report) -> str:
    """Explain the columns of the costs."""
    if report.costs.worst_cell is None:
        return COSTS_UNKNOWN
    after = {"rows": "in the drawn rows", "weights": "by the weights", "top-up": "in the old and added rows together"}
    text = f"Before: the share of the data. After: the share {after[report.mode]}. {COSTS}"
    if report.mode == "weights":
        return f"{text} {LARGEST_WEIGHT}"
    return f"{text} {COUNTED_COPIES if report.costs.counted else EXPECTED_COPIES}"


def hidden_costs(report: Report) -> str | None:
    """Count the groups that are not shown."""
    hidden = len(report.costs.groups) - len(worst_groups(report.costs.groups))
    return f"{more(hidden, 'group')} in the JSON report." if hidden else None


def changed_shares(report: Report) -> list[str]:
    """How common each outcome is, before and after, and how much nobody in the data stands for."""
    lines = [f"{share.outcome}: {percent(share.before)} → {percent(share.after)}" for share in report.costs.outcomes]
    return [*lines, *([FILLED.format(percent(report.costs.filled))] if report.costs.filled else [])]


def associations_note(report: Report) -> str:
    """Explain the maps of relations between columns."""
    return _said(
        report,
        "How strongly two columns are related, measured by Cramér's V: 0 means independent, 1 means that one "
        "determines the other. The outcome should no longer be related to the protected columns; the rest should look "
        "the same on both sides. The larger ",
        Option("base_share"),
        " is, the more the weak relations fade: the base 'tree' keeps only the strongest, the others none.",
    )


def pairs_note(report: Report) -> str:
    """Say which pairs are listed."""
    text = (
        "Pairs are listed if their Cramér's V changed by more than chance alone can explain. By chance: about how "
        "related such columns would seem to be if they were not, because many levels share few rows, or because few "
        "rows count often."
    )
    return text if report.associations.shifts else f"{text} No pair changed by more than that."


def trade_off_note(report: Report) -> str:
    """Explain what was varied, and what it costs."""
    return _said(
        report,
        "The same request with other shares of the base (",
        Option("base_share"),
        "), which makes combinations possible that no row has, and with other rates instead of the ones asked for. "
        "Distance is KL(data‖fair): the information in nats (1 nat is 1.44 bits) that is lost on average when the fair "
        "distribution replaces the data; 0 means none. Effective rows is the number of equally weighted rows that "
        "carry as much information as the fair weights; if there are few, small groups count many times over. Seen "
        "combinations is the probability that a drawn row has a combination of levels that is in the data.",
    )


def varied(report: Report) -> dict[Varied, str]:
    """What the fits of the trade-off differ in."""
    return {"base_share": _said(report, Option("base_share")), "rates": "rates asked for"}


def privacy_note(report: Report) -> str:
    """Say what a count of copies is, and what it is not."""
    return _said(
        report,
        "This is a count, not a guarantee. The fair distribution is learned from real rows and contains them, so drawn "
        "rows can repeat real ones, especially if ",
        Option("base_share"),
        " is small. This fit is not differentially private. Treat drawn rows the way you would treat the data. A copy "
        "of a common row reveals little; a copy of a row that occurs only once may reveal something about a person.",
    )


def not_estimated(report: Report) -> str:
    """Say how to learn what a model will do."""
    asked = Option("estimate", "weights" if report.mode == "weights" else "rows")
    return _said(report, "This was not estimated for this fit. To estimate it, fit again with ", asked, ".")


def options_note(report: Report) -> str:
    """Say how options are named, for a reader who came in by another door."""
    note = report.source.front_door.note
    return f"{note[:1].upper()}{note[1:]}."


def _said(report: Report, *parts: object) -> str:
    return report.source.front_door.said(parts)


def rates_note(report: Report) -> str:
    """Explain the columns of the rates, and why a rate that the distribution meets may not be met by rows."""
    text = f"{RATES} {_MEASURED[report.mode]}"
    if not any(rate.met_exactly and not rate.met for rate in report.rates):
        return text
    return f"{text} {_SCATTER if report.iid else _SHORT[report.mode]}"


def copy_lines(report: Report) -> list[tuple[str, str]]:
    """What was counted among the new rows, and each share."""
    copies = report.copies
    if copies is None:
        return []
    new = "added" if report.mode == "top-up" else "drawn"
    lines = [
        (
            f"of {copies.rows:,} {new} rows have the same levels as a real row in every column",
            percent(copies.same_levels),
        ),
        ("is the exact expectation of that share", percent(copies.expected_same_levels)),
    ]
    if copies.same_values is None or copies.same_values_as_one is None:
        return lines
    twins = "of the real rows have exactly the values of another real row, for comparison"
    return [
        (f"of the {new} rows have exactly the values of a real row in every column", percent(copies.same_values)),
        (
            f"of the {new} rows have exactly the values of a real row that occurs once",
            percent(copies.same_values_as_one),
        ),
        *([] if copies.twins_in_data is None else [(twins, percent(copies.twins_in_data))]),
        *lines,
    ]


def ledger_note(report: Report) -> str:
    """Say what a private fit promises, for whom, and what it takes for granted."""
    ledger = report.certificate["privacy"]
    public = "; ".join(ledger["public"])
    return (
        f"This result is {report.promise}. Here {ledger['unit']}. Taken to be public: {public}. Every look at the "
        "table is listed, and nothing else was learned from it; each person is counted in one cell of each table "
        "(sensitivity 1). The costs add up, in zero-concentrated differential privacy, and another private fit of the "
        "same table comes on top."
    )


def copies_note(report: Report) -> str:
    """Say which rows were counted, and what could not be."""
    if report.promise is not None:
        return PRIVATE_COPIES
    if report.copies is None:
        reason = "only weights were added" if report.mode == "weights" else "none had to be added"
        if report.mode == "weights" and report.relabelled:
            reason = "each appears once per outcome, with a weight"
        return NOTHING_DRAWN.format(reason)
    seed = "" if report.seed is None else f", with seed {report.seed}"
    drawn = f"The rows were drawn for this report{seed}." if report.for_report else "Counted in the delivered rows."
    if report.mode == "rows" and report.copies.rows < report.new_rows:
        drawn = f"{drawn} Of {report.new_rows:,} rows, the first {report.copies.rows:,} were checked."
    if report.copies.same_values is not None:
        return drawn
    return f"{drawn} Raw values were not compared, because the table itself was not available; a fit keeps only levels."


def seed(report: Report) -> str:
    """Say with which seed new rows were drawn."""
    if report.mode == "weights":
        return "Nothing is random."
    return f"Seed of the new rows: {'not known here' if report.seed is None else report.seed}."


def call_note(report: Report) -> str:
    """Say what the Python call starts from."""
    return CALL if report.source.file is None else READ_CALL


def footer(report: Report) -> str:
    """Say how large the problem was."""
    return (
        f"{report.rows:,} rows, {report.distinct_rows:,} of them distinct as combinations of levels, "
        f"{report.columns} columns, {report.points:.3g} possible combinations. Written by fairmaxent."
    )
