"""The sentences that every form of the report shares."""

from __future__ import annotations

from fairmaxent.report.report import Report

RATE_NAMES = {"representation_rate": "Representation rate", "statistical_rate": "Statistical rate"}

RATES = (
    "The representation rate is the size of the smallest group over that of the largest. The statistical rate is the "
    "lowest chance of an outcome in any group over the highest. One means that all groups are alike. Achieved rates "
    "are exact: they are computed from the fitted distribution, not estimated. Drawn rows are counted; independent "
    "draws of as many rows would fall into the interval 95 % of the time."
)
WARNINGS = "What a careful reader should know about these data and this fit."
GROUPS = "Before: in the data. After: in the fitted distribution, exactly."
MOVES = "The levels whose share of the rows changed most, over all columns."
MARGINALS = (
    "Share of the rows at each level. Outcome and protected columns come first, then the columns that moved most. "
    "Columns outside the request move because they go together with the groups and the outcome. The distance is the "
    "share of the rows that would have to change their level."
)
ASSOCIATIONS = (
    "How strongly two columns go together, by Cramér's V: 0 for independent columns, 1 where one decides the other. "
    "The outcome should lose its tie to the protected columns; the rest should look the same on both sides. "
    "Between columns with many levels and few rows, some of it is chance, which the base does not repeat."
)
TRADE_OFF = (
    "The same request with other shares of the base, and with other rates in the place of those asked for. Distance is "
    "the divergence KL(data‖fair) in nats: lower is closer to the data. Effective rows is how many equally weighted "
    "rows the fair weights are worth: few means that small groups are counted many times over. Seen combinations is "
    "the chance that a drawn row has a combination of levels that is in the data."
)
CERTIFICATE = "How good the numerical solution is, taken from the fitted distribution itself."
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
    "can bring the old gap back. Measure it on its predictions.",
    "The request is met by giving groups and outcomes other weights and by drawing new rows. It does not find out why "
    "the data were unequal, and does not correct wrong measurements or labels.",
    "What is said about a group rests on the rows that it has. Where they are few, the fair table repeats what those "
    "few rows happen to show.",
    "Numbers with many values are read in bins, and rare words as one level 'other'; ties between columns finer than "
    "that are not kept in new rows.",
    "Equal rates are one idea of fairness. Whether it is the right one here, people who know the case must decide.",
)
CALL = "In Python, with the table as frame; where a Domain of your own was passed, pass it again:"


def title(report: Report) -> str:
    """Name the report by its columns."""
    return f"{report.outcome} by {', '.join(report.protected)}"


def summary(report: Report) -> str:
    """Say in two sentences what was done and what came of it."""
    asked = [rate for rate in report.rates if rate.met is not None]
    met = sum(rate.met is True for rate in asked)
    head = f"A table of {report.rows:,} rows and {report.columns} columns was turned into a fair distribution."
    if not asked:
        return f"{head} No rate was asked for."
    if met == len(asked):
        which = {1: "The rate asked for is", 2: "Both rates asked for are"}.get(met, f"All {met} rates asked for are")
        return f"{head} {which} met."
    return f"{head} {met} of the {len(asked)} rates asked for are met."


def certificate_lines(report: Report) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each promised quantity."""
    own = report.certificate
    bound = own["multiplier_bound"]
    return [
        (
            "Solver",
            f"{own['method']}, {own['status']} after {own['iterations']} iterations",
            "how the optimum was found",
        ),
        ("Residual", f"{own['residual']:.1e}", "largest gap between a wanted and a reached expectation"),
        ("Distance to the prior", f"{own['distance']['to_prior']:.4f}", "KL(p*‖q) in nats, the negated dual optimum"),
        ("Distance from the data", f"{own['distance']['from_data']:.4f}", "KL(data‖p*) in nats"),
        (
            "Effective rows",
            f"{own['effective_rows']:,.0f} of {report.rows:,}",
            "what the fair weights are worth (Kish)",
        ),
        ("Guaranteed statistical rate", f"{own['bound']:.4f}", f"Theorem 4.5, with δ = {own['delta']:.1e}"),
        (
            "Size of the multipliers",
            f"{own['multiplier_norm']:.3g}" + ("" if bound is None else f", at most {bound:.3g}"),
            "‖λ*‖₂; the bound is Lemma 4.2",
        ),
    ]


def copy_lines(report: Report) -> list[tuple[str, str]]:
    """What was counted among the drawn rows, and each share."""
    own = report.copies
    lines = [
        (f"of {own.rows:,} drawn rows have the same levels as a real row in every column", percent(own.same_levels)),
        ("is the exact expectation of that share", percent(own.expected_same_levels)),
    ]
    if own.same_values is None or own.same_values_as_one is None or own.twins_in_data is None:
        return lines
    return [
        ("of the drawn rows have exactly the values of a real row in every column", percent(own.same_values)),
        ("of the drawn rows have exactly the values of a real row that occurs once", percent(own.same_values_as_one)),
        ("of the real rows have exactly the values of another real row, for comparison", percent(own.twins_in_data)),
        *lines,
    ]


def copies_note(report: Report) -> str:
    """Say which rows were counted, and what could not be."""
    drawn = (
        "The drawn rows are those that were passed in."
        if report.seed is None
        else (f"The rows were drawn for this report, with seed {report.seed}.")
    )
    if report.copies.same_values is not None:
        return drawn
    return f"{drawn} Raw values were not compared, because the table itself was not at hand; a fit keeps only levels."


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
    seed = "of the caller's rows is not known here" if report.seed is None else f"of the drawn rows: {report.seed}"
    return f"Software: {listed}. Seed {seed}."


def footer(report: Report) -> str:
    """Say how large the problem was."""
    return (
        f"{report.rows:,} rows, {report.distinct_rows:,} of them distinct as combinations of levels, "
        f"{report.columns} columns, {report.points:.3g} possible combinations. Written by fairmaxent."
    )
