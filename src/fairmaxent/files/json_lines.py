"""JSON lines: each line is an object, which says what its columns are."""

import codecs
import io
import itertools
import json
from typing import IO, Any

from fairmaxent.data.frames import load_library
from fairmaxent.data.limits import check_file_columns
from fairmaxent.errors import ColumnError, shown
from fairmaxent.files.content import need_room
from fairmaxent.files.parquet import CELL_MEMORY, reading_errors

polars = load_library("polars")

_BYTE_MEMORY = 2.5  # bytes of memory for each byte of text
# that are looked at before the others: polars takes long to collect many columns
_FIRST_LINES = 17_000


def read_json_lines(
    content: bytes,
    path: str,
    reading: object,
    format: str,
) -> tuple[Any, tuple[()], None]:
    """Read a table from the content of a file."""
    text = content.removeprefix(codecs.BOM_UTF8)
    with reading_errors(path, format):
        frame = polars.read_ndjson(text, schema=_schema(text, path))
        _check_keys(text, path)
    return frame, (), None


def _schema(content: bytes, path: object) -> Any:
    """The columns; each line may have its own, and few bytes stand for many cells."""
    need_room(_BYTE_MEMORY * len(content), path)
    lines = content.count(b"\n") + 1
    # the first lines, and then all
    for looked_at in sorted({min(_FIRST_LINES, lines), lines}):
        text = io.BytesIO(content)
        found = polars.scan_ndjson(text, infer_schema_length=looked_at)
        schema = found.collect_schema()
        check_file_columns(len(schema), path)
        need_room(float(CELL_MEMORY * len(schema) * lines), path)
    return schema


def _check_keys(content: bytes, path: str) -> None:
    """Refuse a row that has a key twice, of which polars takes one.

    Only lines that may have one are parsed again.
    """

    def unique(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ColumnError(
                f"{path}, line {line}: the key {shown(twice)} stands there twice;"
                " remove or rename one"
            )

    lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="\n")
    for before in itertools.count(step=_FIRST_LINES):
        batch = list(itertools.islice(lines, _FIRST_LINES))
        if not batch:
            return
        some = polars.Series(batch, dtype=polars.String)
        keys = some.str.extract_all(r'"(?:[^"\\]|\\.)*"\s*:').list
        for index in (keys.n_unique() < keys.len()).arg_true():
            line = before + index + 1
            json.loads(some[index], object_pairs_hook=unique)


def write_json_lines(
    lazy: Any, file: IO[bytes], *, compression: str, **_: object
) -> tuple[()]:
    """Write a lazy frame; the format holds any table."""
    lazy.sink_ndjson(file, compression=compression, check_extension=False)
    return ()
