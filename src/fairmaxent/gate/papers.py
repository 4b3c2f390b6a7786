"""The documents that people must file, written about a fit.

Each part of a kind of document is filled with facts of the fit, or says who must write
it. A kind is a section of `papers.toml`; the functions that write them are `FORMS`.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.table import ratio
from fairmaxent.document import Block, Document, Listing, Note, Section, Table
from fairmaxent.document.text import to_markdown
from fairmaxent.document.words import percent
from fairmaxent.errors import InputError, Option, StorageError, did_you_mean
from fairmaxent.fairness.rates import Grouping, group_table
from fairmaxent.files.reading import Name
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.groups import group_changes
from fairmaxent.gate.kinds import KINDS, Kind
from fairmaxent.plain_text import json_text, visible

_SMALL = 0.02  # of all people; a category below it may be left out of an audit
_TYPES = {"numeric": "sc:Float", "date": "sc:Date"}
Facts = Mapping[str, list[Any]]  # sentences, or tables


@dataclass(frozen=True, eq=False)
class Draft:
    """What a document is written from."""

    kind: Kind
    fit: Certified
    facts: Facts
    data: Name | None  # the file of the fair table


def document(fit: Certified, kind: str, data: Name | None = None) -> str:
    """Write a document about a fit; Croissant describes ``data``, the fair table."""
    if kind not in KINDS:
        raise InputError(f"there is no document {kind!r}; {did_you_mean(kind, KINDS)}")
    wanted = KINDS[kind]
    if data is not None:
        is_csv = os.fspath(data).lower().endswith(".csv")
        if wanted.form != "croissant" or not is_csv:
            raise InputError(
                "only a Croissant document describes a table, and that a CSV file;"
                " leave ",
                Option("data"),
                " out",
            )
    return FORMS[wanted.form](Draft(wanted, fit, _facts(fit), data))


# ---- the forms of documents


def _markdown(draft: Draft) -> str:
    """A section for each part."""
    sections = []
    for number, part in enumerate(draft.kind.parts):
        title = part["title"]
        blocks = tuple(_filled(part, draft.facts))
        sections.append(Section(f"part-{number}", title, title, blocks))
    return to_markdown(
        Document(
            kind="Document",
            title=draft.kind.title,
            filing=(("Certificate (SHA-256)", draft.fit.certificate.digest),),
            summary=draft.kind.note,
            first_page=tuple(sections),
            appendix=(),
            footer="",
        )
    )


def _audit(draft: Draft) -> str:
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
    return _markdown(draft)


def _card(draft: Draft) -> str:
    """Markdown below a head for programs."""
    head = draft.kind.head | {
        "pretty_name": _name(draft.fit),
        "certificate": draft.fit.certificate.digest,
    }
    # JSON is YAML, too, whatever the names of columns hold.
    lines = [f"{key}: {json_text(value, indent=0)}" for key, value in head.items()]
    return "\n".join(["---", *lines, "---", "", _markdown(draft)])


def _croissant(draft: Draft) -> str:
    """JSON-LD: the parts are properties; of a file, also its digest and its columns."""
    record = {
        **draft.kind.head,
        "name": _name(draft.fit),
        "alternateName": draft.kind.title,
    }
    for part in draft.kind.parts:
        blocks: Iterable[Any] = _filled(part, draft.facts)
        texts = [text for block in blocks for text in block.items or (block.lead,)]
        record[part["title"]] = " ".join(map(visible, texts))
    record["rai:dataReleaseMaintenancePlan"] = (
        f"Certificate of the fit (SHA-256): {draft.fit.certificate.digest}"
    )
    if draft.data is not None:
        file = {
            "@type": "cr:FileObject",
            "@id": "table",
            "name": "table",
            "contentUrl": os.path.basename(draft.data),
            "encodingFormat": "text/csv",
            "sha256": _digest(draft.data),
        }
        columns = [
            {
                "@type": "cr:Field",
                "@id": f"rows/{number}",
                "name": visible(column.name),
                "dataType": _TYPES.get(column.kind, "sc:Text"),
                "source": {
                    "fileObject": {"@id": "table"},
                    "extract": {"column": column.name},
                },
            }
            for number, column in enumerate(draft.fit.domain.attributes)
        ]
        rows = {
            "@type": "cr:RecordSet",
            "@id": "rows",
            "name": "rows",
            "field": columns,
        }
        record["distribution"] = [file]
        record["recordSet"] = [rows]
    return json_text(record) + "\n"


def _digest(path: Name) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise StorageError(
            f"cannot read {path}: {problem.strerror}; check its path"
        ) from problem


# ---- what there is to say


def _filled(part: Mapping[str, Any], facts: Facts) -> Iterator[Block]:
    """What is known about a part, and who must write the rest."""
    for name in part.get("facts", ()):
        sentences = tuple(fact for fact in facts[name] if isinstance(fact, str))
        if sentences:
            yield Listing(sentences)
        yield from (fact for fact in facts[name] if not isinstance(fact, str))
    if "write" in part:
        yield Note(f"To be written by {part['write']}")


def _name(fit: Certified) -> str:
    return visible(
        f"{' and '.join(fit.roles.outcome_names)} by"
        f" {', '.join(fit.roles.protected_names)}, made fair"
    )


def _facts(fit: Certified) -> Facts:
    """Everything that a document can say, by name."""
    certificate = fit.certificate
    roles = fit.roles
    asked: Any = fit.request
    wanted = [rate for rate in certificate.rate_lines if rate.wanted is not None]
    changes = group_changes(fit)
    groups = {one.name: one for one in changes}  # once, of several outcomes too
    axes = tuple(range(1, 1 + len(roles.protected)))
    # each protected column, and their intersections
    groupings = dict.fromkeys([*((axis,) for axis in axes), axes])
    impact = [_impact(fit, grouping) for grouping in groupings]
    return {
        "table": [
            f"The table has {certificate.rows:,} rows and {len(fit.columns)} columns:"
            f" {', '.join(fit.columns)}."
        ],
        "asked": [
            *(f"Asked for: {rate.label} at least {rate.wanted:g}." for rate in wanted),
            *asked.words(),
        ],
        "rates": [
            f"{rate.label}: {rate.before:.3f} in the data, {rate.reached:.3f} in the"
            " result."
            for rate in wanted
        ],
        "groups": [
            f"{name}: {_before_and_after(one.share_before, one.share_after)}"
            for name, one in groups.items()
        ],
        "rates_of_groups": [
            f"{one.name} have {one.about}:"
            f" {_before_and_after(one.rate_before, one.rate_after)}"
            for one in changes
        ],
        "prepared": [
            *certificate.notes,
            *(f"Left out: {name}." for name in certificate.left_out_columns),
        ],
        "costs": [
            f"The weights are worth {certificate.effective_rows:,.0f} of"
            f" {certificate.rows:,} rows."
        ],
        "warnings": [*certificate.warnings] or ["The certificate warns of nothing."],
        "protected": [
            f"Columns whose groups are compared: {', '.join(roles.protected_names)}."
        ],
        "privacy": [f"Privacy: {asked.privacy or 'no guarantee is given'}."],
        "impact": [table for table, _ in impact],
        "unknown": [sentence for _, sentence in impact],
    }


def _before_and_after(before: float | None, after: float | None) -> str:
    return f"{percent(before)} in the data, {percent(after)} in the result."


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


FORMS: dict[str, Callable[[Draft], str]] = {
    "markdown": _markdown,
    "audit": _audit,
    "card": _card,
    "croissant": _croissant,
}
