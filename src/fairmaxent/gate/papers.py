"""The documents that people must file: written, and made again to be compared.

Each part of a kind of document is filled with facts, or says who must write it. A kind
is a section of `papers.toml`. All that a document says follows from the saved fit, or
from the table, that it is about, and from its stamp: so whoever has that can make it
again. What people write is marked: in Markdown, lines that begin with ">"; in JSON,
texts that were "To be written by …".
"""

import difflib
import hashlib
import html
import os
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import narwhals as nw

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.document import Block, Document, Listing, Note, Section, Table
from fairmaxent.document.text import on_one_line, to_markdown
from fairmaxent.document.words import capital, counted
from fairmaxent.errors import (
    InputError,
    Option,
    StorageError,
    did_you_mean,
)
from fairmaxent.files.content import file_sha256, read_content
from fairmaxent.files.formats import read_table
from fairmaxent.files.reading import Name
from fairmaxent.files.write import time_of_writing
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.verification import checked_data
from fairmaxent.gate.audit import Audit, AuditRequest, people, ratios, unknown
from fairmaxent.gate.facts import FACTS, Facts
from fairmaxent.options import with_options_of
from fairmaxent.plain_text import json_text, visible
from fairmaxent.telling.rates import rate_text

_TYPES = {nw.Boolean: "Boolean", nw.Date: "Date", nw.Datetime: "DateTime"}
ALL_FACTS: dict[str, Callable[[Any], Facts]] = {
    **FACTS,
    "people": people,
    "ratios": ratios,
    "unknown": unknown,
}

_FILE = Path(__file__).with_name("papers.toml")  # its sections are the kinds
_WRITTEN = "Written"
_ASKED = "Asked"
_SEAL = "Seal"
_BLANK = "0" * 64
_VERIFY = "fairmaxent verify --document DOCUMENT FILE"
_TO_WRITE = "To be written by "
_QUESTION = re.compile(r"^\*\*([^:*]*):.*\*\*$", re.MULTILINE)  # and who answers it
_STAMP = re.compile(rf'({_WRITTEN}|{_ASKED}|Data|Result|Verify): ([^;"\n]+)')
# what people write: lines of Markdown, and texts of JSON
_QUOTED = re.compile(r"^>.*(?:\n+>.*)*", re.MULTILINE)
_TEXT = re.compile(r'^( *"[^"]+": )"(?:[^"\\\n]|\\.)*"', re.MULTILINE)
# what they may change besides, or add, because it has a form that is prescribed
_ORGANISATION = '"creator": {\n  "@type": "sc:Organization",\n'
_PERSON = '"creator": {\n  "@type": "sc:Person",\n'
_PUBLISHED = re.compile(
    r'^( "dateCreated": "[^"]*",\n) "datePublished": "\d{4}-\d\d-\d\d",\n', re.M
)
_HTML = re.compile(r"<[!/?a-zA-Z]")  # which could hide what follows

Stamp = Mapping[str, str]  # what a document states beside what it is about


@dataclass(frozen=True)
class Kind:
    """A kind of document: what it is for, and what it is made of."""

    name: str
    help: str  # a line for the command line
    suffix: str  # of the file that it is written to
    made_by: str  # a function of a module beside this one
    title: str
    note: str
    parts: list[dict[str, Any]]  # with a title, the facts to fill in, and who writes
    about: str = "saved fit"  # or "table"
    head: dict[str, Any] = field(default_factory=dict)  # of the file, for programs

    @property
    def make(self) -> Callable[[Any], str]:
        """The function that writes a draft; imported late, as it takes a while."""
        return pkgutil.resolve_name(f"fairmaxent.gate.{self.made_by}")


KINDS = {
    name: Kind(name=name, **section)
    for name, section in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}


@dataclass(frozen=True, eq=False)
class Draft:
    """What a document is written from."""

    kind: Kind
    subject: Any  # a fit, or an audit of a table
    stamp: Stamp

    @property
    def filing(self) -> tuple[tuple[str, str], ...]:
        """What identifies the document; the seal is filled in at the end."""
        seal = (
            f"SHA-256 {_BLANK}, of all that fairmaxent wrote here. It is no signature:"
            " whoever writes another text can make another seal"
        )
        return (*self.stamp.items(), (_SEAL, seal))

    def sealed(self) -> str:
        """The text, with its own digest in it, taken while that was blank."""
        text = self.kind.make(self)
        return text.replace(_BLANK, hashlib.sha256(text.encode()).hexdigest(), 1)


def document(
    fit: Certified,
    kind: str,
    *,
    data: Name | None = None,
    result: Name | None = None,
    verify: str = _VERIFY,
) -> str:
    """Write a document about a fit, and about the files of its data and its result.

    Files that do not belong to the fit are refused. ``verify`` is the command that
    makes the document again.
    """
    if kind not in KINDS:
        raise InputError(f"there is no document {kind!r}; {did_you_mean(kind, KINDS)}")
    if KINDS[kind].about != "saved fit":
        raise InputError(
            f"{kind} counts the decisions of a tool, which no saved fit holds; name"
            f" their table: 'fairmaxent document {kind} TABLE', or"
            " fairmaxent.gate.papers.audit"
        )
    if data is not None and not fit.provenance.shows_rows:
        raise InputError(
            "the digest of the table would give away what a private fit hides; leave ",
            Option("data"),
            " out",
        )
    stamp = _written(kind, verify)
    if data is not None:
        checked_data(fit, read_table(data).frame)
        stamp["Data"] = f"{_identified(data)}, which agrees with the fit"
    if result is not None:
        stamp["Result"] = f"{_identified(result)}, {_measured(fit, result)}"
    return _about_fit(KINDS[kind], fit, stamp).sealed()


def _measured(fit: Certified, path: Name) -> str:
    """How many rows a result has, and their rates, without weights.

    A table with other columns or levels than those of the fit is refused.
    """
    frame = frames.open_frame(read_table(path).frame)
    cells = fit.cells_of(fit.encoded(frame))
    rates = [
        f"{kind.replace('_', ' ')} of {name} {rate_text(rate)}"
        for kind, found in fit.problem.judged.rates(cells).items()
        for name, rate in found.items()
    ]
    measured = quote(", ".join(rates), safe=" ,=()")
    return f"{len(frame):,} rows: of these alone, without weights, {measured}"


@with_options_of(AuditRequest)
def audit(data: Any, request: AuditRequest) -> str:
    """Draft the numbers of an audit by Local Law 144, from a table of decisions.

    What only people know is marked "To be written by". `data` is a frame, or the name
    of a file, whose digest the document then states.

    Parameters
    ----------
    """
    return audit_of(data, request)


def audit_of(data: Any, request: AuditRequest, verify: str = _VERIFY) -> str:
    """Draft the numbers of an audit."""
    found = Audit.of(data, request)
    stamp = _written("ll144", verify) | {_ASKED: request.stated}
    if found.sha256 is not None:
        stamp["Data"] = _identified(data)
    return Draft(KINDS["ll144"], found, stamp).sealed()


def _written(kind: str, verify: str) -> dict[str, str]:
    date = f"{time_of_writing():%Y-%m-%d}"
    written = f"{kind}, {date}, by fairmaxent {version('fairmaxent')}"
    return {_WRITTEN: written, "Verify": verify}


def _identified(path: Name) -> str:
    return f"{quote(os.path.basename(path))}, SHA-256 {file_sha256(path)}"


def _about_fit(kind: Kind, fit: Certified, stamp: Stamp) -> Draft:
    certificate = (
        f"SHA-256 {fit.certificate.digest}, of what the saved fit states, not of its"
        " file"
    )
    return Draft(kind, fit, {**stamp, "Certificate": certificate})


# ---- made again


@dataclass(frozen=True)
class Difference:
    """Lines of a document, from this number on, that are not as made again."""

    line: int
    document: tuple[str, ...]
    again: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"line {self.line}"]
        lines += [f"  document:   {on_one_line(text)}" for text in self.document]
        lines += [f"  made again: {on_one_line(text)}" for text in self.again]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Comparison:
    """A document beside the same one made again; printed, the lines that differ."""

    kind: str
    written: str  # its kind, date and version, as it states them
    differences: tuple[Difference, ...]
    unwritten: int  # parts that people have yet to write

    def __str__(self) -> str:
        source = KINDS[self.kind].about
        if not self.differences:
            unverified = "its date"
            if source == "saved fit":
                unverified += ", and what its head says of other files"
            return (
                f"document {self.written}: made again from the {source}; every line"
                f" agrees ({counted(self.unwritten, 'part')} still to be written by"
                f" people, whose words are not compared). Not verified: {unverified}"
            )
        return "\n  ".join(
            [
                f"document {self.written}: not what the {source} gives with fairmaxent"
                f" {version('fairmaxent')}",
                *map(str, self.differences),
            ]
        )


@dataclass(frozen=True)
class Filed:
    """A document in a file: its text, and what its first lines state."""

    path: Name
    text: str
    head: str
    stamp: dict[str, str]

    @classmethod
    def read(cls, path: Name) -> "Filed":
        """Read a document; one without a seal has no stamp."""
        text = read_content(path).decode("utf-8-sig", "replace").replace("\r\n", "\n")
        head, seal, _ = text.partition(f"{_SEAL}: ")
        stated = html.unescape(head.replace("\\", ""))  # of Markdown
        return cls(path, text, head, dict(_STAMP.findall(stated)) if seal else {})

    @property
    def kind(self) -> Kind | None:
        """What kind of document it says it is."""
        stated = self.stamp.get(_WRITTEN, "").split(", ")
        if len(stated) != len(("kind", "date", "version")):
            return None
        return KINDS.get(stated[0])

    def foreign(self, source: str) -> StorageError:
        """The error for a document about something else."""
        return StorageError(
            f"{self.path} is not a document that fairmaxent wrote about this {source},"
            " or its first lines were changed; write it again with 'fairmaxent"
            " document'"
        )

    def compared(self, draft: Draft) -> Comparison:
        """The lines that are not as made again, but for what people write."""
        try:
            again = draft.sealed()
        except InputError as problem:  # what it states could not be written
            raise self.foreign(draft.kind.about) from problem
        return Comparison(
            kind=draft.kind.name,
            written=on_one_line(self.stamp[_WRITTEN]),
            differences=tuple(_differences(self.text, again)),
            unwritten=len(
                re.findall(rf'^(?:> | *"[^"]+": "){_TO_WRITE}', self.text, re.M)
            ),
        )


def is_audit(path: Name) -> bool:
    """Whether a document is about a table, and not about a fit."""
    kind = Filed.read(path).kind
    return kind is not None and kind.about == "table"


def compare(fit: Certified, path: Name) -> Comparison:
    """Make the document in a file again from a fit, and compare it."""
    filed = Filed.read(path)
    is_about_it = fit.certificate.digest in filed.head
    if filed.kind is None or filed.kind.about != "saved fit" or not is_about_it:
        raise filed.foreign("saved fit")
    return filed.compared(_about_fit(filed.kind, fit, filed.stamp))


def verify_audit(path: Name, data: Any) -> Comparison:
    """Make an audit again from its table, and show the lines of the file that differ.

    Only the words of people may: lines that begin with ``>`` where there was one. The
    answer has the ``kind`` and the ``differences``; printed, it shows them.
    """
    filed = Filed.read(path)
    if filed.kind is None or filed.kind.about != "table":
        raise filed.foreign("table")
    request = AuditRequest.of_statement(filed.stamp.get(_ASKED, ""))
    audited = Audit.of(data, request)
    stamp = filed.stamp | {_ASKED: request.stated}
    if audited.sha256 is not None and "Data" in stamp:
        name = stamp["Data"].partition(", ")[0]
        stamp["Data"] = f"{name}, SHA-256 {audited.sha256}"
    return filed.compared(Draft(filed.kind, audited, stamp))


def _differences(text: str, again: str) -> Iterator[Difference]:
    """The lines of a text that are not as made again, but for what people write."""
    text = text.replace(_PERSON, _ORGANISATION, 1)
    found = text.rstrip("\n").split("\n")
    expected = _with_words(again, text).rstrip("\n").split("\n")
    matcher = difflib.SequenceMatcher(None, found, expected, autojunk=False)
    for what, start, end, start_again, end_again in matcher.get_opcodes():
        if what != "equal":
            yield Difference(
                line=start + 1,
                document=tuple(found[start:end]),
                again=tuple(expected[start_again:end_again]),
            )


def _with_words(again: str, text: str) -> str:
    """The text made again, with what people wrote in the places for it."""
    published = _PUBLISHED.search(text)
    if published is not None:
        again = again.replace(published[1], published[0], 1)
    answers = iter(_QUOTED.findall(text))
    texts = {match[1]: match[0] for match in _TEXT.finditer(text)}

    def quoted(place: re.Match[str]) -> str:
        words = next(answers, "")
        # readers end a line at more signs than the one that it is compared by
        lines = filter(None, words.splitlines())
        is_open = _HTML.search(words) or not all(one.startswith(">") for one in lines)
        return place[0] if is_open else words

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
        blocks = _filled(part, draft.subject)
        if "write" in part:
            blocks.append(Note(capital(part["write"])))
        section = Section(f"part-{number}", title, title, tuple(blocks))
        sections.append(section.titled())
    text = to_markdown(
        Document(
            kind="Draft",
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


def card(draft: Draft) -> str:
    """Markdown below a head for programs."""
    head = draft.kind.head | {"pretty_name": _name(draft.subject)}
    # JSON is YAML, too, whatever the names of columns hold.
    lines = [f'"{key}": {json_text(value, indent=0)}' for key, value in head.items()]
    return "\n".join(["---", *lines, "---", "", markdown(draft)])


def croissant(draft: Draft) -> str:
    """JSON-LD: the parts are properties; of a file, also its digest and its columns."""
    filed = "; ".join(f"{name}: {value}" for name, value in draft.filing)
    record: dict[str, Any] = {
        **draft.kind.head,
        "description": f"{draft.kind.note} {filed}.",
        "name": _name(draft.subject),
        "alternateName": draft.kind.title,
        "dateCreated": draft.stamp[_WRITTEN].split(", ")[1],
    }
    for part in draft.kind.parts:
        texts = [
            text for block in _filled(part, draft.subject) for text in _texts(block)
        ]
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
            "sha256": digest[:64],
        }
        rows = {
            "@type": "cr:RecordSet",
            "@id": "rows",
            "name": "rows",
            "description": "The columns that the fit read; weights are not among them.",
            "field": [*map(_field, draft.subject.domain.attributes)],
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
        return [_row_text(block.heads, row) for row in block.titled().rows]
    return getattr(block, "items", None) or (block.text,)


def _row_text(heads: Iterable[str], row: Iterable[str]) -> str:
    """A row of a table as a sentence."""
    cells = [f"{head} {cell}".strip() for head, cell in zip(heads, row, strict=True)]
    return f"{capital('; '.join(cells))}."


def _filled(part: Mapping[str, Any], subject: Any) -> list[Block]:
    """What is known about a part: sentences one below the other, then tables."""
    facts = [
        fact for name in part.get("facts", ()) for fact in ALL_FACTS[name](subject)
    ]
    blocks: list[Block] = [fact for fact in facts if not isinstance(fact, str)]
    sentences = [f"{fact.rstrip('.')}." for fact in facts if isinstance(fact, str)]
    if sentences:
        blocks.insert(0, Listing(tuple(sentences)))
    return blocks


def _name(fit: Certified) -> str:
    return visible(
        f"{' and '.join(fit.roles.outcome_names)} by"
        f" {', '.join(fit.roles.protected_names)}, changed by fairmaxent"
    )
