"""Sentences that the first page and the appendix share: what was done, what was reached, and what is not known."""

from __future__ import annotations

from fairmaxent.errors import Option
from fairmaxent.fit.statements import copies_of
from fairmaxent.report.facts import Report
from fairmaxent.report.rates import Reached

FILLED = "{} of the result has a combination of outcome and groups that nobody in the data has."
COSTS_UNKNOWN = "What the result costs each group is not known for this fit."
DELIVERED_NAMES = {"rows": "Drawn rows", "weights": "Weighted rows", "top-up": "Old and added rows"}


def title(report: Report) -> str:
    """The title that was given, or the outcome and the columns whose groups are compared."""
    return report.filing.title or f"{report.favourable}, by {', '.join(report.protected)}"


def summary(report: Report) -> str:
    """Say what was done."""
    about = "A table of" if report.promise is None else "A table of about"
    head = f"{about} {report.rows:,} rows and {report.columns} columns was turned into a fair distribution."
    return " ".join(filter(None, [head, delivery(report), sharing(report)]))


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


def sharing(report: Report) -> str:
    """Say what a private fit promises, or how many of the new rows are copies of real ones."""
    if report.promise is not None:
        return f"It is {report.promise}. Counts, and all numbers before, are noisy estimates."
    share = report.certificate.copied_share
    if not share or report.mode != "rows":
        return ""
    copies = copies_of(redrawn=report.certificate.redrawn is not None)
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


def wanted_text(rate: Reached) -> str:
    """Write what was asked for."""
    shown = "any" if rate.wanted is None else f"{rate.wanted:.4f}"
    return f"{shown} (target)" if rate.from_target and rate.wanted is not None else shown


def last_costs(report: Report) -> str:
    """What is known of one person in a group."""
    return (
        "largest weight" if report.mode == "weights" else "most copies" if report.costs.counted else "expected copies"
    )


def copies_note(report: Report) -> str:
    """Say which rows were counted, and what could not be."""
    if report.promise is not None:
        return (
            "No row of the data was used to draw the new rows, only noisy counts. A new row that equals a real one "
            "does so by chance, and that cannot be told without the data."
        )
    if report.copies is None:
        reason = "only weights were added" if report.mode == "weights" else "none had to be added"
        if report.mode == "weights" and report.relabelled:
            reason = "each appears once per outcome, with a weight"
        return f"All rows are real: {reason}. Sharing them means sharing the data."
    seed = "" if report.seed is None else f", with seed {report.seed}"
    drawn = f"The rows were drawn for this report{seed}." if report.for_report else "Counted in the delivered rows."
    if report.mode == "rows" and report.copies.rows < report.new_rows:
        drawn = f"{drawn} Of {report.new_rows:,} rows, the first {report.copies.rows:,} were checked."
    if report.copies.same_values is not None:
        return drawn
    return f"{drawn} Raw values were not compared, because the table itself was not available; a fit keeps only levels."


def not_estimated(report: Report) -> str:
    """Say how to learn what a model will do."""
    asked = Option("estimate", "weights" if report.mode == "weights" else "rows")
    return said(report, "This was not estimated for this fit. To estimate it, fit again with ", asked, ".")


def said(report: Report, *parts: object) -> str:
    """Join texts and options, spelled as readers of the report know them."""
    return report.source.front_door.said(parts)
