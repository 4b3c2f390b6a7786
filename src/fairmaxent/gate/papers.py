"""The documents that people must file, written about a fit.

Each part of a kind of document is filled with facts of the fit, or says who must write
it. A kind is a section of `papers.toml`. All that a document says follows from the
model file and from its stamp, so that `remade` can make it again.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import narwhals as nw

from fairmaxent.data.attribute import Attribute
from fairmaxent.document import Block, Document, Listing, Note, Section, Table
from fairmaxent.document.text import on_one_line, to_markdown
from fairmaxent.document.words import capital
from fairmaxent.errors import InputError, Option, did_you_mean
from fairmaxent.files.content import file_sha256
from fairmaxent.files.reading import Name
from fairmaxent.files.write import time_of_writing
from fairmaxent.fit.certified import Certified
from fairmaxent.gate.facts import FACTS
from fairmaxent.gate.kinds import KINDS, Kind
from fairmaxent.plain_text import json_text, visible

_TYPES = {nw.Boolean: "Boolean", nw.Date: "Date", nw.Datetime: "DateTime"}

WRITTEN = "Written"
SEAL = "Seal"
_BLANK = "0" * 64
TO_WRITE = "To be written by "
_QUESTION = re.compile(r"^\*\*([^:*]*):.*\*\*$", re.MULTILINE)  # and who answers it

Stamp = Mapping[str, str]  # what a document states beside the model


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
            (SEAL, f"SHA-256 {_BLANK}, of all that fairmaxent wrote here"),
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
    stamp = {WRITTEN: f"{kind}, {date}, by fairmaxent {version('fairmaxent')}"}
    for what, path in (("Data", data), ("Result", result)):
        if path is not None:
            name = quote(os.path.basename(path))
            stamp[what] = f"{name}, SHA-256 {file_sha256(path)}"
    return Draft(KINDS[kind], fit, stamp).sealed()


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
        lambda asked: f"{asked[0]}\n\n> {TO_WRITE}{asked[1].lower()}.", text
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
        "dateCreated": draft.stamp[WRITTEN].split(", ")[1],
    }
    for part in draft.kind.parts:
        texts = [text for block in _filled(part, draft.fit) for text in _texts(block)]
        if "write" in part:
            texts.append(TO_WRITE + part["write"])
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
