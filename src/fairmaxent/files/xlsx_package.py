"""An Excel workbook as what it is, a zip archive of XML: its parts are read one at a time, and never beyond a limit.

Nothing in a workbook is run or fetched: formulas count by the value stored with them, links and macros are not read.
"""

from __future__ import annotations

import contextlib
import io
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from fairmaxent.data.limits import (
    FREELY_INFLATED,
    MOST_INFLATION,
    memory_limit,
    memory_text,
    need_memory,
)
from fairmaxent.errors import LimitError, Option, StorageError, cut, first_line

MOST_PARTS = 10_000
"""How many parts a workbook may have."""

_CHUNK = 1 << 18
_ENCODINGS = ("utf-8", "utf-16", "us-ascii", "iso-8859-1")
_LEAST_MEMORY = 3  # bytes of memory that each byte of a table takes
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    EOFError,
    RuntimeError,
    OSError,
    ValueError,
    OverflowError,
)

Start = Callable[[str, Mapping[str, str]], None]


@dataclass(frozen=True)
class Relation:
    """A part that another part refers to, and what for."""

    kind: str  # the last word of its type, such as "worksheet"
    target: str  # the name of the part


@dataclass(eq=False)
class Package:
    """The parts of a workbook in memory."""

    path: str
    content: bytes
    parts: dict[str, zipfile.ZipInfo]
    archive: zipfile.ZipFile
    inflated: int = field(default=0)  # bytes that were read so far

    def size(self, name: str) -> int:
        """The size of a part once it is decompressed; 0 if there is none."""
        return self.parts[name].file_size if name in self.parts else 0

    def parse(self, name: str, start: Start, end: Callable[[str, str], None]) -> None:
        """Read a part: ``start`` gets each element's name and attributes, ``end`` its name and the text inside.

        Names come without their namespaces. A part that is missing has no elements.
        """
        if name not in self.parts:
            return
        self.account(self.size(name))
        parser = _parser(start, end, self.damaged)
        try:
            for chunk in self._chunks(name):
                parser.Parse(chunk)
            parser.Parse(b"", True)  # noqa: FBT003 (it takes no name)
        except expat.ExpatError as problem:
            raise self.damaged(f"{name}: {problem}") from problem

    def _chunks(self, name: str) -> Iterator[bytes]:
        """Decompress a part a piece at a time."""
        with zip_errors(self.path):
            stream = self.archive.open(self.parts[name])
        with stream:
            while True:
                with zip_errors(self.path):
                    chunk = stream.read(_CHUNK)
                if not chunk:
                    return
                yield chunk

    def relations(self, name: str) -> dict[str, Relation]:
        """What a part refers to, by identifier; ``""`` is the whole workbook."""
        folder, base = posixpath.split(name)
        relations: dict[str, Relation] = {}

        def start(element: str, attributes: Mapping[str, str]) -> None:
            if element == "Relationship" and attributes.get("TargetMode") != "External":
                target = attributes.get("Target", "")
                target = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                kind = attributes.get("Type", "").rpartition("/")[2]
                relations[attributes.get("Id", "")] = Relation(kind, target)

        self.parse(posixpath.join(folder, "_rels", f"{base}.rels"), start, lambda *_: None)
        return relations

    def damaged(self, why: str) -> StorageError:
        """The error for a workbook that is not as it should be."""
        return StorageError(f"{self.path} is a damaged Excel workbook ({why}); save it again, or save the sheet as CSV")

    def account(self, size: int) -> None:
        """Count bytes that come out of the file, and refuse many more than it has: a few can stand for many."""
        self.inflated += size
        by_size = max(FREELY_INFLATED, MOST_INFLATION * len(self.content))
        most = min(by_size, memory_limit() / _LEAST_MEMORY)
        if self.inflated > most:
            raise LimitError(
                f"{self.path} has {memory_text(len(self.content))}, and would have more than {memory_text(most)} once "
                "decompressed, which is beyond the limit; save the sheet as CSV",
                *((", or raise the limit with ", Option("max_memory")) if most < by_size else ()),
            )


def open_package(content: bytes, path: str) -> Package:
    """Open a workbook, of which nothing is decompressed yet."""
    need_memory(_LEAST_MEMORY * len(content), f"reading {path}", "take a part of the rows")
    with zip_errors(path):
        archive = zipfile.ZipFile(io.BytesIO(content))
        entries = archive.infolist()
    if len(entries) > MOST_PARTS:
        raise LimitError(f"{path} has {len(entries):,} parts, and the limit is {MOST_PARTS:,}; save the sheet as CSV")
    parts = {entry.filename.replace("\\", "/").removeprefix("/"): entry for entry in entries}
    if "mimetype" in parts and "content.xml" in parts:
        raise StorageError(f"{path} is an OpenDocument file; save it as .xlsx or CSV")
    if "[Content_Types].xml" not in parts:
        raise StorageError(f"{path} is a zip archive, not an Excel workbook; unpack it, and pass the table in it")
    return Package(path, content, parts, archive)


@contextlib.contextmanager
def zip_errors(path: str) -> Iterator[None]:
    """Turn what a damaged archive raises into an error that says so."""
    try:
        yield
    except _ZIP_ERRORS as problem:
        raise StorageError(
            f"{path} is a damaged Excel workbook ({first_line(problem)}); save it again, or save the sheet as CSV"
        ) from problem


def _parser(start: Start, end: Callable[[str, str], None], damaged: Callable[[str], StorageError]) -> Any:
    """A parser that passes on names without namespaces, and text with the element that ends after it."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    texts: list[str] = []

    def refuse(*_: object) -> None:
        raise damaged("it declares entities")

    def check_encoding(_: str, encoding: str | None, __: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise damaged(f"its encoding is {cut(encoding)}")

    def started(name: str, attributes: dict[str, str]) -> None:
        texts.clear()
        start(name.rpartition(" ")[2], attributes)

    def ended(name: str) -> None:
        end(name.rpartition(" ")[2], "".join(texts))
        texts.clear()

    parser.StartDoctypeDeclHandler = refuse
    parser.XmlDeclHandler = check_encoding
    parser.StartElementHandler = started
    parser.EndElementHandler = ended
    parser.CharacterDataHandler = texts.append
    return parser
