"""What may be shared: the promise of a private fit, and copies of real rows."""

import math
from collections.abc import Iterator

from fairmaxent.data.reading import RedrawnValues
from fairmaxent.document import Blocks, Listing, Note, Paragraph
from fairmaxent.document.words import capital, counted, percent
from fairmaxent.errors import Option
from fairmaxent.facts.output import Copies, Output
from fairmaxent.privacy.budget import Ledger
from fairmaxent.privacy.provenance import Provenance
from fairmaxent.telling.case import Case

_BY_CHANCE = (
    "No row of the data was used to draw the new rows, only noisy counts. A new row"
    " that equals a real one does so by chance, and that cannot be told without the"
    " data."
)


def promise(case: Case) -> Blocks:
    """What a private fit promises, and what its numbers are."""
    ledger = case.facts.privacy
    if ledger is None:
        return
    yield Paragraph(capital(promise_of(ledger)))
    yield Paragraph(
        f"{len(ledger.spent)} measurements of the table spent ρ ="
        f" {ledger.rho:.6g} of {ledger.privacy.rho:.6g}; counts, and all numbers"
        " before, are noisy estimates, from drawn rows that stand for the data, and"
        f" the achieved rates are exact. {noise_of_counts(case.facts.provenance)}"
    )


def promise_of(ledger: Ledger) -> str:
    """What a private fit promises, in a sentence."""
    return (
        f"private with {ledger.privacy}: if any one person had not been in the table,"
        " whatever anybody learns from this result would have been at most"
        f" e^{ledger.privacy.epsilon:g} times (e is 2.7) more or less likely, up to a"
        " probability of δ"
    )


def noise_of_counts(provenance: Provenance) -> str:
    """How far off noisy counts are, in a sentence."""
    return (
        "Noise moves the count of an outcome in a group by up to"
        f" {provenance.noise_of_count:,.0f}, and that of all rows by up to"
        f" {provenance.noise_of_rows:,.0f}, with 95% confidence; a group that is hardly"
        " larger is mostly noise"
    )


def spending(case: Case) -> Blocks:
    """That another private fit adds to what this one spent."""
    provenance = case.facts.provenance
    if not provenance.spends:
        return
    yield Note(
        "another private fit of the same people, even one that follows advice"
        f" given here, spends another ε = {provenance.epsilon:g}, and all of it"
        " adds up; more rows and reports from this one spend nothing"
    )


def weak_promise(case: Case) -> Blocks:
    """That δ is too large for so many people."""
    ledger = case.facts.privacy
    if ledger is None or ledger.privacy.delta * case.facts.rows < 1:
        return
    yield from case.notes(
        [
            (
                f"δ = {ledger.privacy.delta:g} is not below 1 divided by the number of"
                f" rows (about {case.facts.rows:,}), so the promise may fail for"
                " somebody; choose a smaller ",
                Option("delta"),
            )
        ]
    )


def meaning(case: Case) -> Blocks:
    """For whom the promise holds, and what it takes to be public."""
    ledger = case.facts.privacy
    if ledger is None:
        return
    rows = counted(ledger.privacy.rows_per_person, "row")
    factor = math.exp(min(ledger.privacy.epsilon, 700))  # beyond, floats end
    yield Paragraph(
        f"In numbers: at most e^ε = {factor:.3g} times more or less likely, except with"
        " probability δ"
    )
    yield Paragraph(
        f"It holds for people with at most {rows} in the table; nothing checks how many"
        " they have."
    )
    yield Paragraph(f"It takes to be public: {'; '.join(ledger.public)}.")


# ---------------------------------------------------------------- copies


def copies(case: Case) -> Blocks:
    """How many drawn rows are copies on purpose, and how to draw rows to share."""
    facts = case.facts
    output = case.output
    if not facts.copied_share:
        return
    drawn = f"About {percent(facts.copied_share)} of drawn rows"
    if output is not None:
        is_counted = output.copies is not None and output.copies.same_values is not None
        if output.mode != "rows" or (is_counted and facts.redrawn is None):
            return
        copied = round(facts.copied_share * output.rows)
        drawn = f"About {copied:,} of the {counted(output.rows, 'new row')}"
    are, mean = copies_of(facts.redrawn)
    sentence = f"{drawn} are copies of {are}, and {mean}"
    if facts.likely is None:
        release = case.spell(Option("release", value=True))
        sentence += f"; for rows to share, add {release}"
    yield Paragraph(f"{sentence}.")


def copies_counted(case: Case) -> Blocks:
    """How many rows are real ones, or why there is nothing to count."""
    output = case.output
    if output is None:
        return
    if output.mode == "weights" or not output.rows:
        yield Paragraph(_all_are_real(output))
    elif not case.facts.provenance.has_real_rows:
        yield Paragraph(_BY_CHANCE)
    elif output.copies is not None:
        yield Listing(tuple(_copy_lines(output, output.copies)))


def _all_are_real(output: Output) -> str:
    reason = "none had to be added"
    if output.mode == "weights":
        reason = "only weights were added"
        if output.is_relabelled:
            reason = "each appears once per outcome, with a weight"
    return f"All rows are real: {reason}. Sharing them means sharing the data."


def _copy_lines(output: Output, found: Copies) -> Iterator[str]:
    """The shares of the rows that repeat real ones, exactly and by levels."""
    if found.same_values is None:
        yield "Exact copies were not counted, because the data were not given."
    new = "added" if output.mode == "top-up" else "new"
    rows = f"{found.rows:,} {new} rows"
    if found.rows < output.rows:
        rows = f"the first {rows}"
    shares = {
        "have exactly the values of a real row in every column": found.same_values,
        "have exactly the values of a real row that occurs once, which may point to a"
        " person": found.same_values_as_one,
        "have the same levels as a real row in every column": found.same_levels,
    }
    for what, share in shares.items():
        if share is not None:
            copied = round(share * found.rows)
            yield f"{percent(share)} of {rows} ({copied:,}) {what}"
    expected = percent(found.expected_same_levels)
    yield f"{expected} is the exact expectation of that share"
    if found.twins_in_data is not None:
        yield (
            f"{percent(found.twins_in_data)} of the real rows have exactly the values"
            " of another real row, for comparison"
        )


def copies_of(redrawn: RedrawnValues | None) -> tuple[str, str]:
    """What copies of real rows are, and what that means for who shares them."""
    if redrawn is None:
        return "rows of the data", "sharing them means sharing real people"
    are = "rows of the data but for their numbers, which are redrawn within bins"
    return are, "sharing them can still give real people away"
