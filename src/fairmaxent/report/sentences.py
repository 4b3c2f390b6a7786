"""The sentences that every form of the report shares."""

from __future__ import annotations

from fairmaxent.report.build import Report
from fairmaxent.report.rates import Reached

RATE_NAMES = {"representation_rate": "Representation rate", "statistical_rate": "Statistical rate"}

RATES = (
    "The representation rate is the size of the smallest group over that of the largest. The statistical rate is the "
    "lowest chance of an outcome in any group over the highest. One means that all groups are alike. Achieved rates "
    "are exact: they are computed from the fitted distribution, not estimated."
)
DELIVERED_NAMES = {"rows": "Drawn rows", "weights": "Weighted rows", "top-up": "Old and added rows"}
WARNINGS = "What a careful reader should know about these data and this fit."
GROUPS = "Before: in the data, with the number of rows behind it. After: in the fitted distribution, exactly."
MOVES = "The levels whose share of the rows changed most, over all columns."
MARGINALS = (
    "Share of the rows at each level. Outcome and protected columns come first, then the columns that moved most. "
    "Columns outside the request move because they go together with the groups and the outcome. The distance is the "
    "share of the rows that would have to change their level."
)
ASSOCIATIONS = (
    "How strongly two columns go together, by Cramér's V: 0 for independent columns, 1 where one decides the other. "
    "The outcome should lose its tie to the protected columns; the rest should look the same on both sides. "
    "Between columns with many levels and few rows, some of it is chance, which the base does not repeat. The larger "
    "base_share is, the more the weak ties fade: the base 'tree' keeps only the strongest, the others none."
)
TRADE_OFF = (
    "The same request with other shares of the base (what stands in for rows that are not there; base_share), and with "
    "other rates in the place of those asked for. Distance is KL(data‖fair), the information in nats (1 nat is 1.44 "
    "bits) that is lost on average where the fair distribution stands for the data: 0 is none. Effective rows is how "
    "many equally weighted "
    "rows the fair weights are worth: few means that small groups are counted many times over. Seen combinations is "
    "the chance that a drawn row has a combination of levels that is in the data."
)
CERTIFICATE = (
    "How good the numerical solution is, taken from the fitted distribution itself. A distance is a Kullback-Leibler "
    "divergence in nats, a unit of information: 0 means the same distribution. Theorem and lemma are those of Celis, "
    "Keswani and Vishnoi, Data preprocessing to mitigate bias: a maximum entropy based approach (ICML 2020)."
)
NOTHING_DRAWN = "Every row is a real one: {}. Whoever gets them gets the data."
PRIVACY = (
    "This is a count, not a guarantee. The fair distribution is learned from real rows and mixes them in, so drawn "
    "rows can repeat real ones, above all where base_share is small. The method is not differentially private. Treat "
    "drawn rows as you would treat the data. A copy of a common row tells little, a copy of a row that occurs once may "
    "tell about a person."
)
LIMITS = (
    "The rates hold for the groups and the outcome that were asked about. Other groups, and intersections where each "
    "column was asked about on its own, can still differ.",
    "Fair data do not make every model trained on them fair: where other columns tell the outcome well, a classifier "
    "can bring the old gap back. The section on a model trained on this has an estimate, if one was asked for; measure "
    "it on your model's predictions.",
    "The request is met by giving groups and outcomes other weights, where asked also other outcomes to rows, and by "
    "drawing new ones. It does not find out why "
    "the data were unequal, and does not correct wrong measurements or labels.",
    "What is said about a group rests on the rows that it has. Where they are few, the fair table repeats what those "
    "few rows happen to show.",
    "Numbers with many values are read in bins, and rare words as one level 'other'; ties between columns finer than "
    "that are not kept in new rows.",
    "Equal rates are one idea of fairness. Whether it is the right one here, people who know the case must decide.",
)
CALL = "In Python, with the table as frame; where a Domain, labeller or student of your own was passed, pass it again:"
READ_CALL = "In Python, with the whole table of the file as frame:"
_MEASURED = {
    "rows": "The column after it is counted in the drawn rows; independent draws of as many rows would fall into the "
    "interval 95 % of the time.",
    "weights": "The column after it is taken from the weighted rows.",
    "top-up": "The column after it is counted in the old and the added rows together.",
}
_SHORT = {
    "rows": "Rows come in whole numbers, so that a rate of the drawn rows can lie below the exact one; more rows come "
    "closer.",
    "weights": "The weights do not reach what the distribution does.",
    "top-up": "Rows come in whole numbers, so that a rate of old and added rows can lie below the exact one.",
}
_SCATTER = "Rows that are drawn independently scatter, and their rates lie below the exact ones; rows by quota do not."


def title(report: Report) -> str:
    """Name the report by its columns."""
    return f"{report.outcome} by {', '.join(report.protected)}"


def summary(report: Report) -> str:
    """Say in a few sentences what was done and what came of it."""
    asked = [rate for rate in report.rates if rate.met is not None]
    met, exactly = (sum(getattr(rate, kind) is True for rate in asked) for kind in ("met", "met_exactly"))
    head = f"A table of {report.rows:,} rows and {report.columns} columns was turned into a fair distribution. "
    head += delivery(report)
    if not asked:
        return f"{head} No rate was asked for."
    which = {1: "The rate asked for is", 2: "Both rates asked for are"}.get(len(asked), f"All {len(asked)} rates are")
    if met == len(asked):
        return f"{head} {which} met."
    rows = DELIVERED_NAMES[report.mode].lower()
    if exactly == len(asked):
        return f"{head} {which} met by the distribution, {met or 'none'} of {len(asked)} by the {rows}{_gap(asked)}."
    return f"{head} {exactly} of {len(asked)} rates asked for are met by the distribution, {met} by the {rows}."


def _gap(asked: list[Reached]) -> str:
    """How far what was delivered falls short at most: a rounding to whole rows looks different from a failure."""
    short = [rate for rate in asked if not rate.met]
    if any(rate.from_target or rate.delivered is None for rate in short):
        return ""
    return f" (short by {max((rate.wanted or 0) - (rate.delivered or 0) for rate in short):.4f} at most)"


def delivery(report: Report) -> str:
    """Say what was handed over."""
    if report.mode == "weights":
        each = " and for each of its outcomes" if report.relabelled else ""
        return f"Delivered: a weight for each of the {report.rows:,} rows{each}, none of them new."
    how = "independently" if report.iid else "by quota"
    if report.mode == "top-up":
        return f"Delivered: {report.new_rows:,} rows to be added to the {report.rows:,}."
    if report.for_report:
        return f"For this report, {report.new_rows:,} rows were drawn from it {how}."
    return f"Delivered: {report.new_rows:,} new rows, drawn {how}."


def state(rate: Reached) -> tuple[str, str]:
    """Whether a rate was met, as a class of the page and in words; a tick only where the delivered rows meet it too."""
    if rate.met is None:
        return "", "not asked for"
    if rate.met:
        return "good", "✓ met"
    return ("short", "met by the distribution only") if rate.met_exactly else ("bad", "✗ not met")


def wanted(rate: Reached) -> str:
    """Write what was asked for."""
    shown = "any" if rate.wanted is None else f"{rate.wanted:.4f}"
    return f"{shown} (target)" if rate.from_target and rate.wanted is not None else shown


def delivered(rate: Reached) -> str:
    """Write the rate of what was delivered; a dash where no group, or no outcome, is there to compare."""
    return "–" if rate.delivered is None else f"{rate.delivered:.4f}"


def interval(rate: Reached) -> str:
    """Write where independent draws fall."""
    return "–" if rate.interval is None else f"{rate.interval[0]:.3f} – {rate.interval[1]:.3f}"


def rates_note(report: Report) -> str:
    """Explain the columns of the rates, and why a rate that the distribution meets may not be met by rows."""
    text = f"{RATES} {_MEASURED[report.mode]}"
    if not any(rate.met_exactly and not rate.met for rate in report.rates):
        return text
    return f"{text} {_SCATTER if report.iid else _SHORT[report.mode]}"


def certificate_lines(report: Report) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each promised quantity."""
    own = report.certificate
    bound = own["multiplier_bound"]
    asked = any(rate.kind == "statistical_rate" and rate.wanted is not None for rate in report.rates)
    guarantee = ("Guaranteed statistical rate", f"{own['bound']:.4f}", f"Theorem 4.5, with δ = {own['delta']:.1e}")
    return [
        (
            "Solver",
            f"{own['method']}, {own['status']} after {own['iterations']} iterations",
            "how the optimum was found",
        ),
        ("Residual", f"{own['residual']:.1e}", "largest gap between a wanted and a reached expectation"),
        (
            "Distance to the prior",
            nats(own["distance"]["to_prior"]),
            "KL(p*‖q): how far from the reweighted rows and the base, mixed (the negated dual optimum)",
        ),
        ("Distance from the data", nats(own["distance"]["from_data"]), "KL(data‖p*): how far from the table as it was"),
        (
            "Effective rows",
            f"{own['effective_rows']:,.0f} of {report.rows:,}",
            "what the fair weights are worth (Kish)",
        ),
        *([guarantee] if asked else []),
        (
            "Size of the multipliers",
            f"{own['multiplier_norm']:.3g}" + ("" if bound is None else f", at most {bound:.3g}"),
            "‖λ*‖₂; the bound is Lemma 4.2",
        ),
    ]


def nats(distance: float) -> str:
    """Write a distance; rounding errors of one that is zero have no sign.

    >>> nats(0.25), nats(-1e-17)
    ('0.2500', '0.0000')
    """
    return f"{round(distance, 4) + 0.0:.4f}"


def copy_lines(report: Report) -> list[tuple[str, str]]:
    """What was counted among the new rows, and each share."""
    own = report.copies
    if own is None:
        return []
    new = "added" if report.mode == "top-up" else "drawn"
    lines = [
        (f"of {own.rows:,} {new} rows have the same levels as a real row in every column", percent(own.same_levels)),
        ("is the exact expectation of that share", percent(own.expected_same_levels)),
    ]
    if own.same_values is None or own.same_values_as_one is None:
        return lines
    twins = "of the real rows have exactly the values of another real row, for comparison"
    return [
        (f"of the {new} rows have exactly the values of a real row in every column", percent(own.same_values)),
        (f"of the {new} rows have exactly the values of a real row that occurs once", percent(own.same_values_as_one)),
        *([] if own.twins_in_data is None else [(twins, percent(own.twins_in_data))]),
        *lines,
    ]


def copies_note(report: Report) -> str:
    """Say which rows were counted, and what could not be."""
    if report.copies is None:
        reason = "only weights were added" if report.mode == "weights" else "none had to be added"
        if report.mode == "weights" and report.relabelled:
            reason = "each stands there once per outcome, with a weight"
        return NOTHING_DRAWN.format(reason)
    seed = "" if report.seed is None else f", with seed {report.seed}"
    drawn = f"The rows were drawn for this report{seed}." if report.for_report else "Counted in the delivered rows."
    if report.mode == "rows" and report.copies.rows < report.new_rows:
        drawn = f"{drawn} Of {report.new_rows:,} rows, the first {report.copies.rows:,} were looked at."
    if report.copies.same_values is not None:
        return drawn
    return f"{drawn} Raw values were not compared, because the table itself was not at hand; a fit keeps only levels."


def more(count: int, what: str) -> str:
    """Count what had no room.

    >>> more(1, "level"), more(2, "level")
    ('1 more level', '2 more levels')
    """
    return f"{count:,} more {what}{'s' if count != 1 else ''}"


def percent(share: float | None) -> str:
    r"""Write a share for people, on one line.

    >>> percent(0.12345), percent(0.0004), percent(1e-9), percent(0.0), percent(None)
    ('12.3\xa0%', '0.04\xa0%', '<\xa00.01\xa0%', '0.0\xa0%', '–')
    """
    if share is None:
        return "–"
    if 0 < share < 0.0001:
        return "<\u00a00.01\u00a0%"
    return f"{100 * share:.{2 if 0 < share < 0.001 else 1}f}\u00a0%"


def points(before: float | None, after: float | None) -> str:
    """Write a change of a share in percentage points, with its sign.

    >>> points(0.25, 0.5), points(0.5, 0.25)
    ('+25.0', '−25.0')
    """
    if before is None or after is None:
        return "–"
    change = round(100 * (after - before), 1)
    return f"{change:+.1f}".replace("-", "−") if change else "0.0"


def versions(report: Report) -> str:
    """List the software that took part, and the seed."""
    listed = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    if report.mode == "weights":
        return f"Software: {listed}. Nothing is random."
    seed = "of the caller's rows is not known here" if report.seed is None else f"of the new rows: {report.seed}"
    return f"Software: {listed}. Seed {seed}."


def data_file(report: Report) -> str | None:
    """Name the file of the data, so that it can be told from others."""
    own = report.source
    if own.file is None:
        return None
    return f"Data: {own.file}" + ("." if own.sha256 is None else f", SHA-256 {own.sha256}.")


def call_note(report: Report) -> str:
    """Say what the Python call starts from."""
    return CALL if report.source.file is None else READ_CALL


def footer(report: Report) -> str:
    """Say how large the problem was."""
    return (
        f"{report.rows:,} rows, {report.distinct_rows:,} of them distinct as combinations of levels, "
        f"{report.columns} columns, {report.points:.3g} possible combinations. Written by fairmaxent."
    )
