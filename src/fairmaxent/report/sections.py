"""The appendix of the report: sections in order, each made from the facts.

A new section is a function here, and its line in `_SECTIONS`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from fairmaxent.document import (
    Block,
    Blocks,
    Code,
    Document,
    Listing,
    Note,
    Paragraph,
    Section,
    Table,
)
from fairmaxent.errors import BASE_SHARE
from fairmaxent.facts.models import ModelEstimate
from fairmaxent.report.first_page import first_page
from fairmaxent.report.refits import evaluation_blocks, trade_off_blocks
from fairmaxent.report.report import Report
from fairmaxent.report.shares import (
    column_blocks,
    group_blocks,
    pair_blocks,
)
from fairmaxent.telling.case import Topic
from fairmaxent.telling.entries import told
from fairmaxent.telling.models import expected_lines
from fairmaxent.telling.rates import rate_text

_LAST = {
    "largest weight": (
        "The largest weight is that of one person; all weights are 1 on average."
    ),
    "most copies": (
        "Most copies is how many of these rows repeat the values of one real row; real"
        " rows that are equal share their copies."
    ),
    "expected copies": (
        "Expected copies is how often one real row is expected among the rows."
    ),
}
_LIMITS = (
    (
        "The rates hold for the groups and the outcome that were asked about. Other"
        " groups can still differ, and so can intersections if each column was asked"
        " about on its own."
    ),
    (
        "The request is met by giving groups and outcomes other weights, by changing"
        " the outcomes of rows if that was asked for, and by drawing new rows. It does"
        " not explain why the data were unequal, and does not correct wrong"
        " measurements or labels."
    ),
    (
        "Numbers with many values are read in bins, and rare values as one level"
        " 'other'; new rows do not keep finer relations between columns."
    ),
    (
        "What is said about a small group rests on its few rows: the result repeats"
        " whatever they happen to show."
    ),
    (
        "Equal rates are one idea of fairness. People who know the case must decide"
        " whether it is the right one here."
    ),
)

# what is said below the counts of copies
_ABOUT_COPIES = (
    (
        "This is a count, not a guarantee. The fair distribution is learned from real"
        " rows and contains them, so drawn rows can repeat real ones, especially if "
    ),
    BASE_SHARE,
    (
        " is small. This fit is not differentially private. Treat drawn rows the way"
        " you would treat the data. A copy of a common row reveals little; a copy of a"
        " row that occurs only once may reveal something about a person."
    ),
)


def report_document(report: Report) -> Document:
    """The report as a document."""
    sections = [
        Section(key, title, short, tuple(make(report))).titled()
        for key, title, short, make in _SECTIONS
    ]
    return replace(
        first_page(report),
        appendix=tuple(section for section in sections if section.blocks),
    )


def _told(topic: Topic) -> Callable[[Report], Blocks]:
    """All that is said of a topic."""
    return lambda report: told(report.case, topics=[topic])


def _rates(report: Report) -> Blocks:
    yield from told(report.case, topics=["reached"])
    if report.warnings:
        yield Note(
            "What you should know about these data and this fit:", report.warnings
        )


def _costs(report: Report) -> Blocks:
    if report.alerts:  # the first page may have no room for all that they say
        yield Listing(report.alerts)
    last = report.costs.about_one(report.mode)
    yield Paragraph(
        "Before: the share of the data. After: the share in the"
        f" {report.delivered_name}. Effective rows: how many equally weighted rows"
        " would say as much about a group as its real rows do with their fair weights."
        " The worst cell is the combination of outcome and groups in which one person"
        f" counts most. {_LAST[last]}"
    )
    if report.changed:
        yield Paragraph(
            "How many people of each group have another outcome here than in the data"
            " is an expected number, because each person is split between outcomes."
        )
    yield from told(report.case, topics=["costs"])


def _model(report: Report) -> Blocks:
    yield Paragraph(
        "Data are made fair so that models trained on them are fair too. That is not"
        " automatic: a model also sees the other columns, and if they predict the old"
        " outcome, its decisions repeat it."
    )
    yield from told(report.case, topics=["model"])
    estimate = report.certificate.estimate
    if estimate is None:  # how to estimate it was said
        return
    yield Paragraph(_how_it_was_estimated(report, estimate))
    lines = expected_lines(estimate, favourable=report.favourable)
    rows = tuple((line.label, *line.texts, line.meaning) for line in lines)
    yield Table(
        "All that was estimated", ("Expected", "Before", "After", "Meaning"), rows
    )
    yield Paragraph(
        "The statistical rate is one idea of fairness: all groups get the outcome"
        " equally often. It says nothing about mistakes. The other lines do, but if"
        " groups differ, no model can be perfect in all of them. They are measured"
        " against the outcomes in the data, which may carry the old bias themselves."
        ' The documentation explains what each is for, on the page "Is statistical'
        ' parity all there is to fairness?".'
    )


def _how_it_was_estimated(report: Report, estimate: ModelEstimate) -> str:
    """Say which model it is, and how this can be known before anybody trains it."""
    people = "people in the original data"
    original = "the original data"
    if not report.certificate.provenance.has_real_rows:
        people = "rows drawn from the private model"
        original = "such rows before they were made fair"
    if estimate.hide_protected:
        original += ", without the protected columns"
    learned = "drawn" if estimate.output == "rows" else "weighted"
    decision = "the likeliest outcome"
    if estimate.threshold != 0.5:  # one of two outcomes
        decision = (
            f"{report.favourable} if its probability is above {estimate.threshold:g}"
        )
    folds = f"{estimate.folds} folds"
    if estimate.rounds > 1:
        folds += f", {estimate.rounds} times over"
    return (
        f"Before: {estimate.student} trained on {original}. After: the same model"
        f" trained on the {learned} rows. Both decide about {people}: they predict"
        f" {decision}. This is an estimate: people were split into {folds}, and each"
        " fold was judged by models that had not seen it. In brackets is the range that"
        " holds 95 of 100 measurements of such a model on"
        f" {estimate.measured_on:,} other people. Another kind of model may behave"
        " differently."
    )


def _privacy(report: Report) -> Blocks:
    ledger = report.certificate.privacy
    if ledger is None:
        return
    record = ledger.to_dict()
    yield from told(report.case, topics=["privacy"])
    yield Paragraph(
        f"Here {record['unit']}; for somebody with k"
        " times as many rows, the cost is k² times as high. Taken to be public:"
        f" {'; '.join(record['public'])}. Every look at the table is listed, and"
        " nothing else was learned from it; each row is counted in one cell of each"
        " table. The sensitivity is by how much one person can change it. The costs"
        " add up, in zero-concentrated differential privacy."
    )
    rows = [
        (
            look["measured"],
            look["mechanism"],
            f"{look['cells']:,}",
            f"{look['sensitivity']:g}",
            f"{look['scale']:.2f}",
            f"{look['rho']:.3g}",
        )
        for look in record["spent"]
    ]
    allowed = f"Sum, of {record['rho']:.3g} allowed"
    rows.append((allowed, "", "", "", "", f"{record['spent_rho']:.3g}"))
    heads = ("Measured", "Noise", "Cells", "Sensitivity", "Scale", "Cost (ρ)")
    yield Table("What this fit spent", heads, tuple(rows))


def _copies(report: Report) -> Blocks:
    yield from told(report.case, topics=["copies"])
    if report.copies is not None:
        yield Paragraph(report.source.front_door.text_of(_ABOUT_COPIES))


def _certificate(report: Report) -> Blocks:
    yield Paragraph(
        "How good the numerical solution is, computed from the fitted distribution"
        " itself. A distance is a Kullback-Leibler divergence in nats, a unit of"
        " information: 0 means the same distribution. The theorem and the lemma are"
        " from Celis, Keswani and Vishnoi, Data preprocessing to mitigate bias: a"
        " maximum entropy based approach (ICML 2020)."
    )
    numbers = report.certificate
    rows = [
        (
            "Solver",
            f"{numbers.method}, converged after {numbers.iterations} iterations",
            "how the optimum was found",
        ),
        (
            "Residual",
            f"{numbers.residual:.1e}",
            "largest difference between a wanted and an achieved expectation",
        ),
        (
            "Distance to the prior",
            rate_text(numbers.distance["to_prior"]),
            (
                "KL(p*‖q): how far from the mixture of reweighted rows and base (the"
                " negated dual optimum)"
            ),
        ),
        (
            "Distance from the data",
            rate_text(numbers.distance["from_data"]),
            "KL(data‖p*): how far from the rows that were fitted",
        ),
        (
            "Effective rows",
            f"{numbers.effective_rows:,.0f} of {report.rows:,}",
            (
                "equally weighted rows that carry as much information as the fair"
                " weights (Kish)"
            ),
        ),
        *_bounds(report),
    ]
    yield Table("Certificate", ("Quantity", "Value", "Meaning"), tuple(rows))


def _bounds(report: Report) -> Iterator[tuple[str, str, str]]:
    """What the paper's theorem and its lemma say."""
    numbers = report.certificate
    asked = numbers.wanted["statistical_rate"].values()
    if any(rate is not None for rate in asked):
        yield (
            "Guaranteed statistical rate",
            f"{numbers.bound:.4f}",
            f"Theorem 4.5, with δ = {numbers.delta:.1e}",
        )
    size = f"{numbers.multiplier_norm:.3g}"
    if numbers.multiplier_bound is not None:
        size += f", at most {numbers.multiplier_bound:.3g}"
    yield "Size of the multipliers", size, "‖λ*‖₂; the bound is Lemma 4.2"


def _repeat(report: Report) -> Blocks:
    source = report.source
    provenance = report.certificate.provenance
    if not provenance.repeats_with_seed:
        yield Note(
            f"Running it again spends another ε = {provenance.epsilon:g}. More"
            " rows, and other reports, can be made from the saved fit, which spends"
            " nothing."
        )
    if source.command is not None:
        yield Paragraph("On the command line:")
        yield Code(source.command)
    frame = "the complete table of the file as frame"
    if source.file is None:
        frame = (
            "the table as frame; if you passed your own Domain, labeller or student,"
            " pass it again"
        )
    yield Paragraph(f"In Python, with {frame}:")
    yield Code(report.call)
    random = f"Seed of the new rows: {report.seed}."
    if report.mode == "weights":
        random = "Nothing is random."
    elif report.seed is None:
        random = "Seed of the new rows: not known here."
    yield Paragraph(f"{random} Options are named as {source.front_door.where}.")


_SECTIONS: tuple[tuple[str, str, str, Callable[[Report], Iterable[Block]]], ...] = (
    (
        "asked",
        "Everything that was asked for",
        "Asked",
        lambda report: [Listing(report.wishes)],
    ),
    ("reached", "The rates in detail", "Rates", _rates),
    ("costs", "The costs in detail", "Costs", _costs),
    (
        "groups",
        "The groups and their outcomes",
        "Groups",
        lambda report: group_blocks(report.groups),
    ),
    ("model", "A model trained on this", "A model trained on this", _model),
    (
        "columns",
        "Every column",
        "Every column",
        lambda report: column_blocks(report.marginals),
    ),
    (
        "pairs",
        "Pairwise structure",
        "Pairs",
        lambda r: pair_blocks(r.associations, r.source.front_door),
    ),
    (
        "trade-off",
        "Trade-off",
        "Trade-off",
        lambda r: trade_off_blocks(r.trade_off, r.source.front_door),
    ),
    ("privacy", "Privacy", "Privacy", _privacy),
    ("copies", "Copies of real rows", "Copies", _copies),
    (
        "given-away",
        "What the rows give away",
        "What the rows give away",
        lambda r: evaluation_blocks(r.evaluation),
    ),
    ("certificate", "Certificate", "Certificate", _certificate),
    ("limits", "Limits of the method", "Limits", lambda _: [Listing(_LIMITS)]),
    ("repeat", "How to repeat it", "Repeat it", _repeat),
)
