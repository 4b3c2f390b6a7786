"""The tables of the appendix, which Markdown and HTML share."""

from __future__ import annotations

from typing import Any

from fairmaxent.fit.cost_text import worst_groups
from fairmaxent.fit.share_text import percent, times
from fairmaxent.report import decisions, model_estimate, sentences
from fairmaxent.report.build import Report
from fairmaxent.report.number_text import nats, points
from fairmaxent.report.text_table import TextTable

WORST_CELL = "Worst cell"


def rates_table(report: Report) -> TextTable:
    """Each rate as wanted, in the data, in the fitted distribution, and in what was delivered."""
    drawn = report.mode == "rows"
    heads = ("Rate", "Wanted", "Before", "Achieved", sentences.DELIVERED_NAMES[report.mode], "State")
    rows = tuple(
        (
            sentences.rate_name(rate),
            sentences.wanted(rate),
            f"{rate.before:.4f}",
            f"{rate.achieved:.4f}",
            sentences.delivered(rate),
            sentences.state(report, rate)[1],
            *([sentences.interval(rate)] if drawn else []),
            rate.worst_before,
        )
        for rate in report.rates
    )
    return TextTable(
        "Rates",
        (*heads, *(["Independent draws"] if drawn else []), "Worst before"),
        rows,
        words=(5, 7) if drawn else (5, 6),
        state=5,
        states=tuple(sentences.state(report, rate)[0] for rate in report.rates),
    )


def costs_table(report: Report) -> TextTable:
    """Each group, those that rest on least if there are many, and the worst cell; no row if costs are not known."""
    copies = "Most copies" if report.costs.counted else "Expected copies"
    last = "Largest weight" if report.mode == "weights" else copies
    costs = report.costs
    named = [] if costs.worst_cell is None else [(group.name, group) for group in worst_groups(costs.groups)]
    named += [] if costs.worst_cell is None else [(f"{WORST_CELL}: {costs.worst_cell.name}", costs.worst_cell)]
    rows = tuple(
        (
            name,
            f"{cost.rows:,}",
            percent(cost.before),
            percent(cost.after),
            times(cost.effective_rows),
            times(cost.largest_weight if report.mode == "weights" else cost.most_copies),
        )
        for name, cost in named
    )
    return TextTable("Costs by group", ("Group", "Rows", "Before", "After", "Effective rows", last), rows)


def ledger_table(report: Report) -> TextTable:
    """Each look that a private fit took at the table, and what it cost; the last row is the sum."""
    ledger = report.certificate["privacy"]
    rows = [
        (look["measured"], look["mechanism"], f"{look['cells']:,}", f"{look['scale']:.2f}", f"{look['rho']:.3g}")
        for look in ledger["spent"]
    ]
    total = (f"Sum, of {ledger['rho']:.3g} allowed", "", "", "", f"{ledger['spent_rho']:.3g}")
    return TextTable("Privacy ledger", ("Measured", "Noise", "Cells", "Scale", "Cost (ρ)"), (*rows, total), words=(1,))


def decisions_table(tried: dict[str, Any], favourable: str) -> TextTable:
    """What the student of a relabelled fit decided."""
    rows = tuple(decisions.lines(tried, favourable))
    return TextTable("Decisions about people it did not learn from", decisions.HEAD, rows)


def model_table(known: dict[str, Any], favourable: str) -> TextTable:
    """What a model trained on the result is expected to do."""
    rows = tuple(
        (name, model_estimate.number(before), model_estimate.number(after), meaning)
        for name, meaning, before, after in model_estimate.lines(known, favourable=favourable)
    )
    return TextTable("A model trained on this", ("Expected", "Before", "After", "Meaning"), rows, words=(3,))


def moves_table(report: Report) -> TextTable:
    """The levels whose share changed most."""
    rows = tuple(
        (move.column, move.level, percent(move.before), percent(move.after), points(move.before, move.after))
        for move in report.moves
    )
    return TextTable("What changed most", ("Column", "Level", "Before", "After", "Change, points"), rows, words=(1,))


def pairs_table(report: Report) -> TextTable:
    """The pairs of columns whose relation changed most, beyond chance."""
    rows = tuple(
        (f"{pair.first}, {pair.second}", f"{pair.before:.3f}", f"{pair.after:.3f}", f"{pair.chance:.3f}")
        for pair in report.associations.shifts
    )
    return TextTable("Pairs that changed most", ("Columns", "Cramér's V before", "After", "By chance"), rows)


def trade_off_table(report: Report) -> TextTable:
    """What the same fit costs with other options."""
    rows, varied = [], sentences.varied(report)
    for point in report.trade_off.points:
        name = f"{varied[point.varied]}: {point.value:g}{' (this fit)' if point.is_this_fit else ''}"
        if point.effective_rows is None:
            rows.append((name, "–", "–", "–", f"not possible: {point.problem}"))
        else:
            distance = "–" if point.distance is None else nats(point.distance)
            rows.append((name, distance, f"{point.effective_rows:,.0f}", percent(point.seen), "possible"))
    heads = ("Varied", "Distance", "Effective rows", "Seen combinations", "Note")
    if all(point.problem is None for point in report.trade_off.points):
        return TextTable("Trade-off", heads[:-1], tuple(row[:-1] for row in rows))
    return TextTable("Trade-off", heads, tuple(rows), words=(4,))


def certificate_table(report: Report) -> TextTable:
    """Name, value and meaning of each promised quantity."""
    certificate = report.certificate
    bound = certificate["multiplier_bound"]
    asked = any(rate.kind == "statistical_rate" and rate.wanted is not None for rate in report.rates)
    guarantee = (
        "Guaranteed statistical rate",
        f"{certificate['bound']:.4f}",
        f"Theorem 4.5, with δ = {certificate['delta']:.1e}",
    )
    rows = (
        (
            "Solver",
            f"{certificate['method']}, {certificate['status']} after {certificate['iterations']} iterations",
            "how the optimum was found",
        ),
        (
            "Residual",
            f"{certificate['residual']:.1e}",
            "largest difference between a wanted and an achieved expectation",
        ),
        (
            "Distance to the prior",
            nats(certificate["distance"]["to_prior"]),
            "KL(p*‖q): how far from the mixture of reweighted rows and base (the negated dual optimum)",
        ),
        (
            "Distance from the data",
            nats(certificate["distance"]["from_data"]),
            "KL(data‖p*): how far from the original table",
        ),
        (
            "Effective rows",
            f"{certificate['effective_rows']:,.0f} of {report.rows:,}",
            "equally weighted rows that carry as much information as the fair weights (Kish)",
        ),
        *([guarantee] if asked else []),
        (
            "Size of the multipliers",
            f"{certificate['multiplier_norm']:.3g}" + ("" if bound is None else f", at most {bound:.3g}"),
            "‖λ*‖₂; the bound is Lemma 4.2",
        ),
    )
    return TextTable("Certificate", ("Quantity", "Value", "Meaning"), rows, words=(1, 2))
