"""Uploads, read by a child process: a file that was crafted to end or to fill the process that reads it ends only that.

The child leaves the table as an Arrow file, and what it has to say as JSON, in a folder that only the user can look
into.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from fairmaxent import errors
from fairmaxent.data.frames import load_library
from fairmaxent.data.limits import memory_limit, memory_text
from fairmaxent.errors import FairMaxEntError, LimitError, Option, StorageError
from fairmaxent.files.formats import read_table
from fairmaxent.files.parquet import scan_table
from fairmaxent.files.reading import Reading, TableFile, TableForm
from fairmaxent.files.write import private_folder

SECONDS = 300.0
COMMAND = ["-m", "fairmaxent.app.upload"]
LEAST_MEMORY = 3 * 2**30  # that libraries reserve, though they use little of it
_TABLE, _ANSWER = "table.arrow", "answer.json"


def read_upload(path: Path, reading: Reading, texts: Sequence[str] = ()) -> TableFile | None:
    """Read a table in a child process; None for Parquet, which stays where it is, and was found to be readable."""
    most = int(max(memory_limit(), LEAST_MEMORY))
    how = {field.name: getattr(reading, field.name) for field in fields(Reading)}
    with private_folder(path.parent) as folder:
        _run({"path": str(path), "folder": str(folder), "reading": how, "texts": list(texts), "most": most})
        if not (folder / _ANSWER).exists():
            raise StorageError(
                f"{path.name} could not be read: reading it ended without an answer, perhaps because it takes more "
                f"than {memory_text(most)} of memory; save it again, or take a part of the rows"
            )
        answer = json.loads((folder / _ANSWER).read_bytes())
        if "error" in answer:
            raise getattr(errors, answer["error"])(*_unpacked(answer["parts"]))
        if answer["stays"]:
            return None
        frame = load_library("polars").read_ipc(folder / _TABLE)
        return TableFile(frame, tuple(map(_unpacked, answer["remarks"])), form=TableForm(**answer["form"]))


# ---------------------------------------------------------------- children

_spare: list[subprocess.Popen[bytes]] = []


def warm_up() -> None:
    """Start a child that waits for a file, so that the next one is read at once."""
    if not _spare:
        _spare.append(_start())


def cool_down() -> None:
    """End the child that waits."""
    while _spare:
        _end(_spare.pop())


def _start() -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, *COMMAND], stdin=subprocess.PIPE, stdout=silent, stderr=silent)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def _run(asked: dict[str, Any]) -> None:
    try:
        child, was_warm = _spare.pop(), True
    except IndexError:
        child, was_warm = _start(), False
    try:
        child.communicate(json.dumps(asked).encode(), timeout=SECONDS)
    except subprocess.TimeoutExpired as problem:
        raise LimitError(
            f"reading {Path(asked['path']).name} took longer than {SECONDS:.0f} seconds, and was stopped; take a part "
            "of the rows, or use the command line"
        ) from problem
    finally:
        _end(child)
    if was_warm:
        warm_up()


# ---------------------------------------------------------------- messages as JSON


def _packed(part: object) -> Any:
    """A part of a message: a text, an option, or parts again."""
    if isinstance(part, Option):
        return {**asdict(part), "value": None if part.value is ... else [part.value]}
    if isinstance(part, FairMaxEntError):
        return [_packed(each) for each in part.parts]
    return [_packed(each) for each in part] if isinstance(part, tuple) else str(part)


def _unpacked(part: Any) -> Any:
    if isinstance(part, dict):
        return Option(**{**part, "value": ... if part["value"] is None else part["value"][0]})
    return tuple(map(_unpacked, part)) if isinstance(part, list) else part


# ---------------------------------------------------------------- in the child


def _answer(path: str, folder: Path, reading: Reading, texts: Sequence[str]) -> dict[str, Any]:
    polars = load_library("polars")
    try:
        lazy = scan_table(path) if reading.input_format in (None, "parquet") else None
        if lazy is not None:
            lazy.select(polars.all().count()).collect(engine="streaming")  # all pages are read once
            return {"stays": True}
        table = read_table(path, reading, texts=texts)
    except polars.exceptions.PolarsError as problem:
        why = errors.first_line(problem)
        return {"error": "StorageError", "parts": [f"cannot read {path} ({why}); write the file again"]}
    except FairMaxEntError as problem:
        return {"error": type(problem).__name__, "parts": _packed(problem)}
    table.frame.write_ipc(folder / _TABLE)
    return {"stays": False, "remarks": [_packed(remark) for remark in table.remarks], "form": asdict(table.form)}


def reply(asked: dict[str, Any]) -> None:
    """Read the file that is asked for, and leave the answer in the folder for it."""
    folder = Path(asked["folder"])
    answer = _answer(asked["path"], folder, Reading(**asked["reading"]), asked["texts"])
    (folder / _ANSWER).write_text(json.dumps(answer))


if __name__ == "__main__":
    load_library("polars")
    load_library("fairmaxent.files.csv")
    given = json.load(sys.stdin)  # for which a child may wait a while
    with contextlib.suppress(ImportError, ValueError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (given["most"], given["most"]))
    reply(given)
