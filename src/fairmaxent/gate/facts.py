"""What there is to say about a fit in a document to file: sentences and tables.

Each fact is a function, found by its name in `papers.toml`.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import repeat

import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.table import FEWEST_ROWS, Codes, Reals
from fairmaxent.document import Block, Table
from fairmaxent.document.words import capital, percent
from fairmaxent.engines.rows import mass_on
from fairmaxent.errors import FairMaxEntError
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.groups import changes_by_column
from fairmaxent.fit.top_up import missing_rows
from fairmaxent.options.refusals import refuse
from fairmaxent.telling.case import Case, texts_of
from fairmaxent.telling.costs import MOST_WARNED, outcome_lines
from fairmaxent.telling.entries import KEYS
from fairmaxent.telling.rates import DEFINITIONS, rate_lines, rates_table
from fairmaxent.telling.sharing import copies_of, noise_of_counts

_DRAWS = 200  # of noise
_ENDS = (0.025, 0.975)
_MEANING = (
    f"{DEFINITIONS} The table of groups names the outcome. 1 means that groups are"
    " equal; neither is a verdict. The fitted distribution is what the"
    " result is made from: weights have its shares, and drawn or added rows have them"
    " up to whole rows, so that their rates are lower or higher: those of a result file"
    " are stated beside its digest. The 95 % interval says how far chance may have"
    " moved the share in a group of so many people; groups whose rows tell less than"
    f" {FEWEST_ROWS} rows that count alike stand among the gaps or limitations: the"
    f" first {MOST_WARNED} by name, the others by their number."
)
_NOISY = (
    "The fit is private: numbers of the data are noisy. The noise (95 %) stands behind"
    " ±, or as a range; numbers of the distribution have none, and how far chance may"
    " have moved a share is not said. Numbers inside bins are drawn, not measured."
)
_EXPECTED = (
    "They are decisions about people of the data, each by a model that did not learn"
    " from that person. The expected rate is the mean, over simulated other people, of"
    " the lowest share of a group divided by the highest: chance alone makes it lower"
    " than the shares below it divided by each other. The model learned from weights:"
    " from rows that are drawn or added, it learns to decide somewhat differently. How"
    " often it gave the good outcome to each group before is not in the fit, but how"
    " often to all"
)
_HEADS = (
    "Group",
    "People",
    "Share of the data",
    "Share of the distribution",
    "Outcome",
    "In the data",
    "95 % interval",
    "In the distribution",
)

Facts = Iterable[Block | str]


def _noise(fit: Certified, cells: float, people: float | None = None) -> str:
    """How far off a sum of so many noisy counts is, or its share of all people.

    Nothing, if they have no noise.
    """
    provenance = fit.provenance
    if not provenance.is_noisy or people == 0:
        return ""
    noise = provenance.noise_of_count * math.sqrt(cells)
    if people is None:
        return f" ± {noise:,.0f}"
    return f" ± {percent(min(noise / people, 1.0))}"


def _table(fit: Certified) -> Facts:
    noise = _noise(fit, fit.problem.cells().size)
    yield (
        f"The data that the fit was made from have {fit.certificate.rows:,}{noise} rows"
        f" and {len(fit.columns)} columns: {', '.join(fit.columns)}."
    )


def _prepared(fit: Certified) -> Facts:
    """How columns were read: dropped, binned, merged."""
    certificate = fit.certificate
    dropped = ", ".join(certificate.left_out_columns) or "none"
    yield (
        "Columns left out because their names or values look like identifiers, such as"
        f" a number for each person, or like notes: {dropped}."
    )
    for column in fit.domain.attributes:
        if column.edges is not None:
            yield f"{column.name} was read in {column.size} bins."
    yield from map(capital, certificate.notes)


def _missing(fit: Certified) -> Facts:
    """How many values each column lacks, and how many rows are the same."""
    if not fit.provenance.shows_rows:
        yield (
            "Missing values and equal rows are not counted, because the fit is private;"
            " whoever has the table must say how many there are."
        )
        return
    table = fit.table.collect()
    codes = fit.blocks.unpool(table.codes)
    attributes = fit.domain.attributes
    rows: list[tuple[str, ...]] = []
    for index, column in enumerate(attributes):
        if column.missing is None:
            continue
        lacking = np.where(codes[:, index] == column.missing, table.rows, 0)
        share = percent(float(lacking.sum() / table.size))
        yield f"{column.name} is missing in {lacking.sum():,.0f} rows ({share})."
        for other in fit.recorded.protected:
            if other != index:
                groups = codes[:, other]
                counts = _by_group(attributes[other], groups, table.rows, lacking)
                rows += [(column.name, *count) for count in counts]
    yield "No column that is not named here has missing values."
    if rows:
        heads = ("Column", "Group", "Missing", "Share of the group")
        yield Table("Missing values by group", heads, tuple(rows))
    yield (
        f"{table.distinct:,} of {table.size:,} rows are different as they were read,"
        " with numbers in bins; whether equal ones are duplicates is not known."
    )


def _by_group(
    column: Attribute, groups: Codes, rows: Reals, lacking: Reals
) -> Iterator[tuple[str, str, str]]:
    """Each group, how many of its people lack a value, and their share."""
    people = np.bincount(groups, rows)
    without = np.bincount(groups, lacking)
    for level in np.flatnonzero(people).tolist():
        share = percent(float(without[level] / people[level]))
        yield column.describe(level), f"{without[level]:,.0f}", share


def _rates(fit: Certified) -> Facts:
    """Each rate as it was asked for, before and after, without a verdict."""
    yield _MEANING
    if fit.provenance.is_noisy:
        yield _NOISY
        # of half of the cells, and of all of them in what their sum is divided by
        noise = _noise(fit, 1.5 * fit.problem.cells().size, fit.certificate.rows)
        yield f"The noise of each outcome's share before is at most{noise}."
    case = Case(facts=fit.certificate)
    lines = [
        replace(line, label=f"{line.label}{noise}", state="")
        for line, noise in zip(rate_lines(case), _noise_of_rates(fit), strict=False)
    ]
    heads = ("asked of the table", "in the data", "in the distribution")
    yield rates_table(lines, heads)


def _noise_of_rates(fit: Certified) -> Iterator[str]:
    """Where each rate of the data is if the noise of a private fit is added again."""
    provenance = fit.provenance
    if not provenance.is_noisy:
        yield from repeat("")
        return
    people = fit.problem.cells()
    deviation = provenance.noise_of_count / 1.96
    noise = np.random.default_rng(0).normal(0, deviation, (_DRAWS, *people.shape))
    drawn = [*map(fit.problem.judged.rates, np.maximum(people + noise, 0))]
    for kind, name in fit.certificate.rates_shown:
        low, high = np.nanquantile([rates[kind][name] for rates in drawn], _ENDS)
        yield f" (of the data, with its noise: {low:.2f} to {high:.2f})"


def _groups(fit: Certified) -> Facts:
    """The people of each group, and their outcomes, before and after."""
    yield from outcome_lines(fit.certificate.outcome_shares)
    changes = changes_by_column(fit)
    groups = {(change.column, change.group) for change in changes}
    sizes = Counter(column for column, _ in groups)
    all_cells = fit.problem.cells().size
    rows = []
    for change in changes:
        cells = all_cells / sizes[change.column]
        # an upper bound of the variance of a ratio of noisy sums
        of_share = cells + change.share_before**2 * all_cells
        interval = "–"
        if change.rate_before_low >= 0:  # it is compared, and not private
            low = percent(change.rate_before_low)
            interval = f"{low} to {percent(change.rate_before_high)}"
        row = (
            change.name,
            f"{change.rows:,}{_noise(fit, cells)}",
            percent(change.share_before) + _noise(fit, of_share, fit.certificate.rows),
            percent(change.share_after),
            change.about,
            percent(change.rate_before) + _noise(fit, cells, change.rows),
            interval,
            percent(change.rate_after),
        )
        rows.append(row)
    yield Table("Groups", _HEADS, tuple(rows))


def _decisions(fit: Certified) -> Facts:
    """What a model decides that the table was made for, or that was estimated."""
    decisions = fit.certificate.decisions
    estimate = fit.certificate.estimate
    if decisions is None and estimate is None:
        yield "No decisions of a classifier were measured."
    yield from _told("made_for", fit)
    if decisions is not None:
        yield _EXPECTED
    yield from _told("decisions", fit)
    yield from _told("estimate", fit)


def _delivered(fit: Certified) -> Facts:
    """The three results that a fit has, and what each would be."""
    certificate = fit.certificate
    yield (
        "A fit has up to three results. The rows and the rates of the one that was"
        " delivered stand beside its digest, if its file was named; people write which"
        " it is. The rates of a file of weights or of rows to add are not those of its"
        " use, in which weights count, or the rows of the data do too."
    )
    by_chance = "others may equal one by chance"
    if fit.provenance.has_real_rows:
        equal = percent(mass_on(fit.table, fit.distribution.density))
        by_chance = (
            f"by design or by chance, {equal} are expected to equal a row of the data"
            " as it was read, with numbers in bins"
        )
    yield (
        f"New rows: drawn from the fitted distribution, {certificate.rows:,} unless"
        f" another number is asked for. {percent(certificate.copied_share)} of them are"
        f" by design copies of {copies_of(certificate.redrawn)[0]};"
        f" {by_chance}."
    )
    impossible = "Weights and rows to add: not possible for this fit."
    try:
        most = float(fit.weights().max())
        yield (
            f"Weights: one for each of the {certificate.rows:,} rows, 1 on average, at"
            f" most {most:.3f}. As they differ, they tell as much as"
            f" {certificate.effective_rows:,.0f} rows that count alike."
        )
        impossible = "Rows to add: not possible for this fit."
        refuse(fit.request, mode="top-up")
        added = missing_rows(fit, certificate.measure.sums).sum()
        yield f"Rows to add: {added:,}, beside the {certificate.rows:,} of the data."
    except FairMaxEntError:
        yield impossible


def _warnings(fit: Certified) -> Facts:
    if fit.provenance.is_noisy:
        yield f"{noise_of_counts(fit.provenance)}, also in what follows."
    yield from map(
        capital,
        fit.certificate.warnings
        or ("the fit has no warning, which does not say that nothing is wrong",),
    )


def _protected(fit: Certified) -> Facts:
    yield f"Columns whose groups are compared: {', '.join(fit.roles.protected_names)}."


def _privacy(fit: Certified) -> Facts:
    if not fit.provenance.spends:
        yield "No guarantee of privacy is given."
        return
    yield from _told("promise", fit)
    yield from _told("meaning", fit)
    yield (
        "Noise has no seed. The seed that rows are drawn with is no secret. The digest"
        " of the table is not stated: it would give away what the fit hides."
    )


def _told(key: str, fit: Certified) -> Facts:
    """What the entry of this key says: sentences and tables."""
    for block in KEYS[key].of(fit.case()):
        if isinstance(block, Table):
            yield block
        else:
            yield from texts_of([block])


FACTS: dict[str, Callable[[Certified], Facts]] = {
    **{key: partial(_told, key) for key in KEYS},
    "table": _table,
    "prepared": _prepared,
    "missing": _missing,
    "rates": _rates,
    "groups": _groups,
    "decisions": _decisions,
    "delivered": _delivered,
    "warnings": _warnings,
    "protected": _protected,
    "privacy": _privacy,
}
