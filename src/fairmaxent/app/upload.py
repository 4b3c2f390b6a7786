"""Uploads, read by a child process: what a crafted file ends or fills is only that."""

import contextlib
import multiprocessing
import os
import re
from dataclasses import fields
from multiprocessing.connection import Connection
from pathlib import Path

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.frames import load_library
from fairmaxent.data.limits import memory_limit, memory_text
from fairmaxent.errors import FairMaxEntError, LimitError, StorageError, first_line
from fairmaxent.files.formats import read_table
from fairmaxent.files.parquet import scan_table
from fairmaxent.files.reading import FileReading, TableFile

SECONDS = 300.0
_NAME_LENGTH = 100  # of a file
LEAST_MEMORY = 3 * 2**30  # that libraries reserve, though they use little of it

Answer = TableFile | FairMaxEntError | None
_CONTEXT = multiprocessing.get_context("spawn")
_spare: list[tuple[multiprocessing.process.BaseProcess, Connection]] = []


def read_upload(
    path: Path, reading: FileReading, declaration: Declaration | None = None
) -> TableFile | None:
    """Read a table in a child process.

    None for Parquet, which stays where it is, and was found to be readable.
    """
    how = FileReading(
        **{field.name: getattr(reading, field.name) for field in fields(FileReading)}
    )
    answer = _asked_of_child(path, how, declaration)
    if isinstance(answer, FairMaxEntError):
        raise answer
    return answer


def _asked_of_child(
    path: Path, reading: FileReading, declaration: Declaration | None
) -> Answer:
    most = int(max(memory_limit(), LEAST_MEMORY))
    try:
        child, pipe = _spare.pop()
        was_warm = True
    except IndexError:
        child, pipe = _start()
        was_warm = False
    try:
        pipe.send((most, path, reading, declaration))
        if not pipe.poll(SECONDS):
            raise LimitError(
                f"reading {path.name} took longer than {SECONDS:.0f} seconds, and was"
                " stopped; take a part of the rows, or use the command line"
            )
        answer: Answer = pipe.recv()
    except (EOFError, OSError) as problem:
        raise StorageError(
            f"{path.name} could not be read: reading it ended without an answer,"
            f" perhaps because it takes more than {memory_text(most)} of memory; save"
            " it again, or take a part of the rows"
        ) from problem
    finally:
        _end(child, pipe)
    if was_warm:
        warm_up()
    return answer


def warm_up() -> None:
    """Start a child that waits for a file, so that the next one is read at once."""
    if not _spare:
        _spare.append(_start())


def cool_down() -> None:
    """End the child that waits."""
    while _spare:
        _end(*_spare.pop())


def _start() -> tuple[multiprocessing.process.BaseProcess, Connection]:
    here, there = _CONTEXT.Pipe()
    child = _CONTEXT.Process(
        target=child_main,
        args=(there,),
        daemon=True,
    )
    child.start()
    there.close()  # so that the death of the child is noticed here
    return child, here


def _end(child: multiprocessing.process.BaseProcess, pipe: Connection) -> None:
    child.kill()
    child.join()
    pipe.close()


def child_main(pipe: Connection) -> None:
    """Wait for one file, in the child, and answer.

    It ends with the app, whose end of the pipe is then closed.
    """
    # whatever it says about its end is not for the user's terminal
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    load_library("polars")
    load_library("fairmaxent.files.csv")
    most, path, reading, declaration = pipe.recv()
    with contextlib.suppress(ImportError, ValueError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    pipe.send(read_or_refused(path, reading, declaration))


def read_or_refused(
    path: Path, reading: FileReading, declaration: Declaration | None
) -> Answer:
    """The table, None for Parquet, whose pages are all read once, or why not."""
    polars = load_library("polars")
    try:
        lazy = None
        if reading.input_format in (None, "parquet"):
            lazy = scan_table(path)
        if lazy is None:
            return read_table(path, reading, declaration=declaration)
        lazy.select(polars.all().count()).collect(engine="streaming")
    except polars.exceptions.PolarsError as problem:
        return StorageError(
            f"cannot read {path} ({first_line(problem)}); write the file again"
        )
    except FairMaxEntError as problem:
        return problem
    return None


def safe_name(name: str) -> str:
    """A file name without folders, hidden beginnings, or letters that steer a shell.

    >>> safe_name("../../etc/passwd"), safe_name("my survey (1).csv")
    ('passwd', 'my survey (1).csv')
    >>> safe_name("<b>.csv"), safe_name("..")
    ('_b_.csv', 'table')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain_letters = re.sub(r"[^\w .()+-]", "_", last).lstrip(".- ").strip()
    stem, dot, suffix = plain_letters.rpartition(".")
    return f"{stem[:_NAME_LENGTH]}{dot}{suffix[:_NAME_LENGTH]}" or "table"
