"""A table that was opened, in memory or scanned where it is if it is Parquet, and the names of files made from it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals

from fairmaxent.app.page_options import READING_NAMES, PageOptions, page_options
from fairmaxent.app.upload import read_upload
from fairmaxent.cli.inspect import inspect_command as inspect
from fairmaxent.cli.options import outputs
from fairmaxent.cli.reading import DomainOptions, ReadingOptions
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import load_library, open_frame, read_weights
from fairmaxent.engines.lazy_frame import collect
from fairmaxent.files.reading import TableFile

_LOOKED_AT = 200_000  # rows of a large Parquet file that Look shows
_SLICES = 20  # from all over the file


@dataclass(frozen=True, eq=False)
class OpenedTable:
    """A file of the session, read when it is needed."""

    number: int  # so that an old page notices that another table was opened
    path: Path
    typed: str  # how a command names it: the path given to the app, or the name of the file that was uploaded
    title: str
    can_be_taken: bool = False  # whether the page offers the table itself, because it came with the package
    asked: Mapping[str, Any] = field(default_factory=dict)  # how the page wants it to be read
    is_upload: bool = False  # and may come from anywhere
    _levels: dict[str, Domain] = field(default_factory=dict, init=False)

    @cached_property
    def _options(self) -> PageOptions:
        return page_options(inspect, ["-"], self.asked, names=READING_NAMES)

    def reading(self, drop: Sequence[str] = ()) -> ReadingOptions:
        """How it is read, without some columns."""
        return replace(self._options.record(ReadingOptions), drop=list(drop) or None)

    @property
    def reading_typed(self) -> tuple[str | None, ...]:
        """How that is typed."""
        return self._options.typed

    @cached_property
    def _received(self) -> TableFile | None:
        """An upload as it is read by default; None for Parquet, and for files that are no uploads."""
        return read_upload(self.path, self.reading()) if self.is_upload else None

    @cached_property
    def _scanned(self) -> TableFile | None:
        return self.reading().scan(str(self.path)) if self._received is None else None

    @cached_property
    def _read(self) -> TableFile:
        return self._read_with(())

    def _read_with(self, texts: Sequence[str]) -> TableFile:
        """The whole table; remarks about the file name it as the user knows it, and not where the app keeps it."""
        table = self._received
        if table is None:
            table = self.reading().read(str(self.path), texts=texts)
        elif texts:
            table = read_upload(self.path, self.reading(), texts) or table
        parts = [(remark,) if isinstance(remark, str) else remark for remark in table.remarks]
        named = [
            [part.replace(str(self.path), self.typed) if isinstance(part, str) else part for part in each]
            for each in parts
        ]
        return replace(table, remarks=tuple(map(tuple, named)))

    @property
    def is_lazy(self) -> bool:
        """Whether the rows stay in the file."""
        return self._scanned is not None

    def file(self, drop: Sequence[str] = (), *, in_memory: bool = False, texts: Sequence[str] = ()) -> TableFile:
        """The table without some columns; a Parquet file is scanned unless it has to be in memory.

        ``texts`` are columns that were declared as text; if they were read as anything else, they are read again.
        """
        whole = self._read if in_memory or self._scanned is None else self._scanned
        if self._scanned is None and self.not_text(texts):
            whole = self._read_with(texts)
        return self.reading(drop).without_dropped(whole)

    def not_text(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the columns that hold anything but text, as the file was read."""
        text = load_library("polars").String
        return tuple(name for name in names if self.schema.get(name, text) != text)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The columns and their types."""
        return dict(self.file().frame.collect_schema())

    @cached_property
    def rows(self) -> int:
        """How many rows it has."""
        if self._scanned is None:
            return len(self._read.frame)
        return int(_collected(self._scanned.frame.select(load_library("polars").len())).item())

    @cached_property
    def looked_at(self) -> Any:
        """The rows that Look shows: all of them, or some from all over a large Parquet file."""
        if self._scanned is None:
            return self._read.frame
        lazy, rows = self._scanned.frame, self.rows
        if rows <= _LOOKED_AT:
            return _collected(lazy)
        slices = [lazy.slice(number * rows // _SLICES, _LOOKED_AT // _SLICES) for number in range(_SLICES)]
        return load_library("polars").concat(map(_collected, slices))

    def levels(self, drop: Sequence[str], columns_as: DomainOptions, weight: str | None) -> Domain:
        """The levels of the columns that Look shows; those learned last are kept, as roles change more often."""
        key = repr((tuple(drop), columns_as, weight))
        if key not in self._levels:
            frame = self.looked_at.drop(list(drop))
            domain = columns_as.domain(frame, weight)
            if domain is None:
                rows = frame if weight is None else frame.drop(weight)
                domain = Domain.infer(rows, weight=read_weights(open_frame(frame), weight))
            self._levels.clear()
            self._levels[key] = domain
        return self._levels[key]

    def file_names(self) -> tuple[str, str, str, bool]:
        """Names for table, model and report beside the data, and whether the table is written in the form of the data.

        They are only names: the app itself writes in a folder of its own.
        """
        words = outputs(self.typed, self.file().form)
        table, report = words[1], words[words.index("--report") + 1]
        stem = os.path.basename(self.typed).split(".")[0] or "table"
        return table, os.path.join(os.path.dirname(table), f"{stem}-model.fme"), report, "--like-input" in words


def _collected(lazy: Any) -> Any:
    """Read rows of a Parquet file, which may be damaged beyond its footer."""
    return collect(narwhals.from_native(lazy)).to_native()
