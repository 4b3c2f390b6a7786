"""The documents that people must file, written about a fit, and made again.

Each part of a kind of document is filled with facts of the fit, or says who must write
it. A kind is a section of `papers.toml`. All that a document says follows from the
model file and from its stamp, so whoever has the model can make it again and compare.
What people write is marked: in Markdown, lines that begin with ">"; in JSON, texts that
were "To be written by …".
"""

import difflib
import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import narwhals as nw
import numpy as np

import fairmaxent
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.table import ratio
from fairmaxent.document import Block, Document, Listing, Note, Section, Table
from fairmaxent.document.text import on_one_line, to_markdown
from fairmaxent.document.words import capital, counted, percent
from fairmaxent.errors import (
    FairMaxEntError,
    InputError,
    Option,
    StorageError,
    did_you_mean,
)
from fairmaxent.fairness.rates import Grouping, group_table
from fairmaxent.files.content import file_sha256, read_content
from fairmaxent.files.reading import Name
from fairmaxent.files.write import time_of_writing
from fairmaxent.fit import statements
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.groups import changes_by_column
from fairmaxent.fit.solved import missing_rows
from fairmaxent.gate.kinds import KINDS, Kind
from fairmaxent.options.refusals import refuse
from fairmaxent.plain_text import json_text, visible

_SMALL = 0.02  # of all people; a category below it may be left out of an audit
_DRAWS = 200  # of noise
_ENDS = (0.025, 0.975)
_MEANING = (
    "The representation rate is the size of the smallest group divided by that of the"
    " largest; the statistical rate is the lowest share of an outcome in any group"
    " divided by the highest. 1 means that groups are equal. The 95 % interval says how"
    " far chance may have moved the share in a group of so many people."
)
_NOISY = (
    "The fit is private: numbers of the data are noisy. The noise (95 %) stands behind"
    " ±, or as a range; numbers of the result have none."
)
_HEADS = (
    "Group",
    "People",
    "Share of the data",
    "Share of the result",
    "Outcome",
    "In the data",
    "95 % interval",
    "In the result",
)
_TYPES = {nw.Boolean: "Boolean", nw.Date: "Date", nw.Datetime: "DateTime"}

_WRITTEN = "Written"
_SEAL = "Seal"
_BLANK = "0" * 64
_STAMP = re.compile(rf'({_WRITTEN}|Data|Result): ([^;"\n]+)')
_TO_WRITE = "To be written by "
_QUESTION = re.compile(r"^\*\*([^:*]*):.*\*\*$", re.MULTILINE)  # and who answers it
# what people write: lines of Markdown, and texts of JSON
_QUOTED = re.compile(r"^>.*(?:\n+>.*)*", re.MULTILINE)
_TEXT = re.compile(r'^( *"[^"]+": )"(?:[^"\\\n]|\\.)*"', re.MULTILINE)
_HTML = re.compile(r"<[!/?a-zA-Z]")  # which could hide what follows

Stamp = Mapping[str, str]  # what a document states beside the model
Facts = Iterable[Block | str]


@dataclass(frozen=True, eq=False)
class Draft:
    """What a document is written from."""

    kind: Kind
    fit: Certified
    stamp: Stamp

    @property
    def filing(self) -> tuple[tuple[str, str], ...]:
        """What identifies the document; the seal is filled in at the end."""
        digest = self.fit.certificate.digest
        return (
            *self.stamp.items(),
            ("Certificate", f"SHA-256 {digest}"),
            (_SEAL, f"SHA-256 {_BLANK}, of all that fairmaxent wrote here"),
        )

    def sealed(self) -> str:
        """The text, with its own digest in it, taken while that was blank."""
        text = self.kind.make(self)
        return text.replace(_BLANK, hashlib.sha256(text.encode()).hexdigest(), 1)


def document(
    fit: Certified, kind: str, *, data: Name | None = None, result: Name | None = None
) -> str:
    """Write a document about a fit, and about the files of its data and its result."""
    if kind not in KINDS:
        raise InputError(f"there is no document {kind!r}; {did_you_mean(kind, KINDS)}")
    if data is not None and fit.request.privacy is not None:
        raise InputError(
            "the digest of the table would give away what a private fit hides; leave ",
            Option("data"),
            " out",
        )
    date = f"{time_of_writing():%Y-%m-%d}"
    stamp = {_WRITTEN: f"{kind}, {date}, by fairmaxent {fairmaxent.__version__}"}
    for what, path in (("Data", data), ("Result", result)):
        if path is not None:
            name = quote(os.path.basename(path))
            stamp[what] = f"{name}, SHA-256 {file_sha256(path)}"
    return Draft(KINDS[kind], fit, stamp).sealed()


# ---- documents made again


@dataclass(frozen=True)
class Difference:
    """Lines of a document, from this number on, that are not as the model gives."""

    line: int
    document: tuple[str, ...]
    model: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"line {self.line}"]
        lines += [f"  document: {on_one_line(text)}" for text in self.document]
        lines += [f"  model:    {on_one_line(text)}" for text in self.model]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Comparison:
    """A document beside the same one made again; printed, the lines that differ."""

    kind: str
    written: str  # its kind, date and version, as it states them
    differences: tuple[Difference, ...]
    unwritten: int  # parts that people have yet to write

    def __str__(self) -> str:
        if not self.differences:
            return (
                f"document {self.written}: made again from the model; every line agrees"
                f" ({counted(self.unwritten, 'part')} still to be written by people,"
                " whose words are not compared). Not verified: its date, and the"
                " digests of other files"
            )
        return "\n  ".join(
            [
                f"document {self.written}: not what the model gives with fairmaxent"
                f" {fairmaxent.__version__}",
                *map(str, self.differences),
            ]
        )


def compare(fit: Certified, path: Name) -> Comparison:
    """Make the document in a file again, and compare all that people did not write."""
    text = read_content(path).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    head, seal, _ = text.partition(f"{_SEAL}: ")
    stamp = dict(_STAMP.findall(head.replace("\\", "")))  # of Markdown
    kind = stamp.get(_WRITTEN, "").partition(",")[0]
    is_about_it = bool(seal) and fit.certificate.digest in head
    if not is_about_it or kind not in KINDS:
        raise StorageError(
            f"{path} is not a document that fairmaxent wrote about this model, or its"
            " first lines were changed; write it again with 'fairmaxent document'"
        )
    again = Draft(KINDS[kind], fit, stamp).sealed()
    return Comparison(
        kind=kind,
        written=on_one_line(stamp[_WRITTEN]),
        differences=tuple(differences(text, again)),
        unwritten=len(re.findall(rf'^(?:> | *"[^"]+": "){_TO_WRITE}', text, re.M)),
    )


def differences(text: str, again: str) -> Iterator[Difference]:
    """The lines of a text that are not as made again, but for what people write."""
    found = text.rstrip("\n").split("\n")
    expected = _with_words(again, text).rstrip("\n").split("\n")
    matcher = difflib.SequenceMatcher(None, found, expected, autojunk=False)
    for what, start, end, start_again, end_again in matcher.get_opcodes():
        if what != "equal":
            yield Difference(
                line=start + 1,
                document=tuple(found[start:end]),
                model=tuple(expected[start_again:end_again]),
            )


def _with_words(again: str, text: str) -> str:
    """The text made again, with what people wrote in the places for it."""
    answers = iter(_QUOTED.findall(text))
    texts = {match[1]: match[0] for match in _TEXT.finditer(text)}

    def quoted(place: re.Match[str]) -> str:
        words = next(answers, "")
        return place[0] if _HTML.search(words) else words

    def stated(place: re.Match[str]) -> str:
        is_open = place[0].startswith(f'{place[1]}"{_TO_WRITE}')
        return texts.get(place[1], "") if is_open else place[0]

    return _TEXT.sub(stated, _QUOTED.sub(quoted, again))


# ---- how kinds are written


def markdown(draft: Draft) -> str:
    """A section for each part, with a mark where people write."""
    sections = []
    for number, part in enumerate(draft.kind.parts):
        title = part["title"]
        blocks = _filled(part, draft.fit)
        if "write" in part:
            blocks.append(Note(capital(part["write"])))
        section = Section(f"part-{number}", title, title, tuple(blocks))
        sections.append(section.titled())
    text = to_markdown(
        Document(
            kind="Document",
            title=draft.kind.title,
            filing=draft.filing,
            summary=draft.kind.note,
            first_page=tuple(sections),
            footer="",
        )
    )
    return _QUESTION.sub(
        lambda asked: f"{asked[0]}\n\n> {_TO_WRITE}{asked[1].lower()}.", text
    )


def audit(draft: Draft) -> str:
    """The numbers of an audit, which needs to know who was selected."""
    request = draft.fit.request
    is_score = draft.fit.roles.attributes[0].kind == "numeric"
    is_unclear = request.favourable is None and not is_score
    if is_unclear or request.privacy is not None:
        raise InputError(
            "an audit counts who was selected; name ",
            Option("favourable"),
            ", and do not fit privately",
        )
    return markdown(draft)


def card(draft: Draft) -> str:
    """Markdown below a head for programs."""
    head = draft.kind.head | {"pretty_name": _name(draft.fit)}
    # JSON is YAML, too, whatever the names of columns hold.
    lines = [f"{key}: {json_text(value, indent=0)}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", "", markdown(draft)])


def croissant(draft: Draft) -> str:
    """JSON-LD: the parts are properties; of a file, also its digest and its columns."""
    filed = "; ".join(f"{name}: {value}" for name, value in draft.filing)
    record: dict[str, Any] = {
        **draft.kind.head,
        "description": f"{draft.kind.note} {filed}.",
        "name": _name(draft.fit),
        "alternateName": draft.kind.title,
        "dateCreated": draft.stamp[_WRITTEN].split(", ")[1],
    }
    for part in draft.kind.parts:
        texts = [text for block in _filled(part, draft.fit) for text in _texts(block)]
        if "write" in part:
            texts.append(_TO_WRITE + part["write"])
        record[part["title"]] = " ".join(map(on_one_line, texts))
    if "Result" in draft.stamp:
        name, _, digest = draft.stamp["Result"].partition(", SHA-256 ")
        if not name.lower().endswith(".csv"):
            raise InputError(
                "a Croissant document describes a CSV file; leave ",
                Option("result"),
                " out",
            )
        file = {
            "@type": "cr:FileObject",
            "@id": "table",
            "name": "table",
            "contentUrl": name,
            "encodingFormat": "text/csv",
            "sha256": digest,
        }
        rows = {
            "@type": "cr:RecordSet",
            "@id": "rows",
            "name": "rows",
            "field": [*map(_field, draft.fit.domain.attributes)],
        }
        record["distribution"] = [file]
        record["recordSet"] = [rows]
    return json_text(record) + "\n"


def _field(column: Attribute) -> dict[str, Any]:
    """A column of the result, with the type of its values."""
    dtype = column.values.dtype
    type_name = _TYPES.get(dtype.base_type(), "Text")
    if dtype.is_numeric():
        type_name = "Integer" if dtype.is_integer() else "Float"
    return {
        "@type": "cr:Field",
        "@id": f"rows/{quote(column.name)}",
        "name": visible(column.name),
        "dataType": f"sc:{type_name}",
        "source": {
            "fileObject": {"@id": "table"},
            "extract": {"column": column.name},
        },
    }


def _texts(block: Any) -> Iterable[str]:
    """A block as running text."""
    if isinstance(block, Table):
        lines = (block.heads, *block.titled().rows)
        return [f"{line[0]}: {', '.join(line[1:])}.".lstrip(": ") for line in lines]
    return getattr(block, "items", None) or (block.text,)


# ---- what there is to say


def _filled(part: Mapping[str, Any], fit: Certified) -> list[Block]:
    """What is known about a part: sentences one below the other, then tables."""
    facts = [fact for name in part.get("facts", ()) for fact in FACTS[name](fit)]
    blocks: list[Block] = [fact for fact in facts if not isinstance(fact, str)]
    sentences = [fact for fact in facts if isinstance(fact, str)]
    if sentences:
        blocks.insert(0, Listing(tuple(sentences)))
    return blocks


def _name(fit: Certified) -> str:
    return visible(
        f"{' and '.join(fit.roles.outcome_names)} by"
        f" {', '.join(fit.roles.protected_names)}, made fair"
    )


def _noise(fit: Certified, cells: float, people: float | None = None) -> str:
    """How far off a sum of so many noisy counts is, or its share of all people.

    Nothing, if they have no noise.
    """
    ledger = fit.certificate.privacy
    if ledger is None or people == 0:
        return ""
    noise = ledger.count_ranges[0] * math.sqrt(cells)
    if people is None:
        return f" ± {noise:,.0f}"
    return f" ± {percent(noise / people)}"


def _table(fit: Certified) -> Facts:
    noise = _noise(fit, fit.problem.cells().size)
    yield (
        f"The table has {fit.certificate.rows:,}{noise} rows and"
        f" {len(fit.columns)} columns: {', '.join(fit.columns)}."
    )


def _asked(fit: Certified) -> Facts:
    request: Any = fit.request
    for rate in fit.certificate.rate_lines:
        if rate.wanted is not None:
            yield f"Asked for: {rate.label} at least {rate.wanted:g}."
    yield from request.words()


def _prepared(fit: Certified) -> Facts:
    """How columns were read: dropped, binned, merged."""
    certificate = fit.certificate
    dropped = ", ".join(certificate.left_out_columns) or "none"
    yield f"Columns left out, as they look like identifiers or notes: {dropped}."
    for column in fit.domain.attributes:
        if column.edges is not None:
            yield f"{column.name} was read in {column.size} bins."
    yield from (f"{capital(note)}." for note in certificate.notes)


def _missing(fit: Certified) -> Facts:
    """How many values each column lacks, and how many rows are the same."""
    if fit.request.privacy is not None:
        yield "Missing values and equal rows are not counted: the fit is private."
        return
    table = fit.table.collect()
    codes = fit.roles.blocks.unpool(table.codes)
    for index, column in enumerate(fit.domain.attributes):
        if column.missing is not None:
            missing = table.rows[codes[:, index] == column.missing].sum()
            share = percent(float(missing / table.size))
            yield f"{column.name} is missing in {missing:,.0f} rows ({share})."
    yield "No other column has missing values."
    yield (
        f"{table.distinct:,} of {table.size:,} rows are different as they were read,"
        " with numbers in bins; whether equal ones are duplicates is not known."
    )


def _rates(fit: Certified) -> Facts:
    """Each rate as it was asked for, before and after, without a verdict."""
    yield _MEANING
    certificate = fit.certificate
    yield from _noise_of_rates(fit)
    lines = [replace(line, slack=None) for line in certificate.rate_lines]
    heads = ("asked for", "in the data", "in the result")
    yield statements.rates_table(lines, heads)


def _noise_of_rates(fit: Certified) -> Iterator[str]:
    """Where rates of the data are if the noise of a private fit is added again."""
    certificate = fit.certificate
    if certificate.privacy is None:
        return
    yield _NOISY
    people = fit.problem.cells()
    deviation = certificate.privacy.count_ranges[0] / 1.96
    noise = np.random.default_rng(0).normal(0, deviation, (_DRAWS, *people.shape))
    drawn = [*map(fit.problem.judged.rates, np.maximum(people + noise, 0))]
    for kind, name in certificate.rates_shown:
        low, high = np.nanquantile([rates[kind][name] for rates in drawn], _ENDS)
        label = certificate.measure.rate_name(kind, name)
        yield f"The {label} of the data is {low:.2f} to {high:.2f}, for its noise."


def _groups(fit: Certified) -> Facts:
    """The people of each group, and their outcomes, before and after."""
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
            _percent(change.rate_before) + _noise(fit, cells, change.rows),
            interval,
            _percent(change.rate_after),
        )
        rows.append(row)
    yield Table("Groups", _HEADS, tuple(rows))


def _percent(rate: float) -> str:
    """A rate; a dash in a group that nobody is in."""
    return percent(None if math.isnan(rate) else rate)


def _decisions(fit: Certified) -> Facts:
    """What a model decides that the table was made for, or that was estimated."""
    decisions = fit.certificate.decisions
    estimate = fit.certificate.estimate
    if decisions is None and estimate is None:
        yield "No decisions of a classifier were measured."
    yield from statements.beyond_lines(decisions)
    yield from statements.decision_blocks(decisions)
    yield from statements.estimate_blocks(estimate)


def _delivered(fit: Certified) -> Facts:
    """The three results that a fit has, and what each would be."""
    certificate = fit.certificate
    copies = percent(certificate.copied_share)
    yield f"New rows: drawn from the fair distribution; {copies} copy rows of the data."
    impossible = "Weights and rows to add: not possible for this fit."
    try:
        most = float(fit.weights().max())
        yield (
            f"Weights: one for each row, 1 on average, at most {most:.3f}; worth"
            f" {certificate.effective_rows:,.0f} of {certificate.rows:,} rows."
        )
        impossible = "Rows to add: not possible for this fit."
        refuse(fit.request, mode="top-up")
        added = missing_rows(fit, certificate.measure.sums).sum()
        yield f"Rows to add: {added:,}."
    except FairMaxEntError:
        yield impossible


def _warnings(fit: Certified) -> Facts:
    ledger = fit.certificate.privacy
    if ledger is not None:
        yield f"{statements.noise_of_counts(ledger)}, also in what follows."
    yield from map(capital, fit.certificate.warnings or ("nothing is warned of.",))


def _protected(fit: Certified) -> Facts:
    yield f"Columns whose groups are compared: {', '.join(fit.roles.protected_names)}."


def _privacy(fit: Certified) -> Facts:
    ledger = fit.certificate.privacy
    if ledger is None:
        yield "No guarantee of privacy is given."
    yield from statements.privacy_lines(ledger)


def _impact(fit: Certified, axes: Grouping) -> tuple[Table, str]:
    """Impact ratios of the people in the data, and how many are in no category."""
    outcome, *columns = (fit.roles.attributes[axis] for axis in (0, *axes))
    people = group_table(fit.problem.cells("rows"), axes)
    for axis, attribute in enumerate((outcome, *columns)):
        if attribute.missing is not None:
            np.moveaxis(people, axis, 0)[attribute.missing] = 0.0

    if outcome.kind == "numeric" and fit.request.favourable is None:
        good = _above_median(fit, outcome)
        above = "the median" if outcome.is_value_coded else "the median's bin"
        heads = (f"Above {above}", "Scoring rate")
    else:
        good = list(fit.problem.measure.favourable)
        heads = ("Selected", "Selection rate")
    counts = people.sum(axis=0)
    chosen = people[good].sum(axis=0)
    rates = ratio(chosen, counts)

    total = counts.sum()
    rows = []
    for group in map(tuple, np.argwhere(counts > 0).tolist()):
        labels = (
            column.labels[level] for column, level in zip(columns, group, strict=True)
        )
        impact = "–"
        if rates.max():
            impact = f"{rates[group] / rates.max():.3f}"
        small = "–"
        if counts[group] < _SMALL * total:
            small = "under 2 %"
        row = (
            " × ".join(labels),
            f"{counts[group]:,.0f}",
            f"{chosen[group]:,.0f}",
            percent(float(rates[group])),
            impact,
            small,
        )
        rows.append(row)
    name = " × ".join(column.name for column in columns)
    table = Table(
        label=f"Impact ratios by {name}",
        heads=(name, "People", *heads, "Impact ratio", "Small"),
        rows=tuple(rows),
    )
    left_out = fit.problem.cells("rows").sum() - total
    unknown = (
        f"{name}: {left_out:,.0f} people are not in the table: their category or"
        " outcome is unknown."
    )
    return table, unknown


def _above_median(fit: Certified, score: Attribute) -> list[int]:
    """The levels of a score that are above the median of all people."""
    cells = fit.problem.cells("rows")
    people = cells.reshape(len(cells), -1).sum(axis=1)[: score.missing]
    running = np.cumsum(people)
    median = int(np.searchsorted(running, running[-1] / 2))
    return list(range(median + 1, len(people)))


def _audited(fit: Certified) -> list[tuple[Table, str]]:
    """Each protected column, and their intersections."""
    axes = tuple(range(1, 1 + len(fit.roles.protected)))
    groupings = dict.fromkeys([*((axis,) for axis in axes), axes])
    return [_impact(fit, grouping) for grouping in groupings]


FACTS: dict[str, Callable[[Certified], Facts]] = {
    "table": _table,
    "asked": _asked,
    "prepared": _prepared,
    "missing": _missing,
    "rates": _rates,
    "groups": _groups,
    "decisions": _decisions,
    "delivered": _delivered,
    "warnings": _warnings,
    "protected": _protected,
    "privacy": _privacy,
    "impact": lambda fit: [table for table, _ in _audited(fit)],
    "unknown": lambda fit: [sentence for _, sentence in _audited(fit)],
}
