"""Mutated table files: each command reads what is there, or refuses it in one line and leaves everything as it was.

``FUZZ_FILES=20000 pytest tests/fuzz/test_files.py`` tries more of them.
"""

import gzip
import io
import os
import zipfile

import numpy as np
import pytest
from command_ends import prepared, run

from clifiles import QUIET, ROLES, biased_table

FILES = int(os.environ.get("FUZZ_FILES", "200"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
FORMATS = ("csv", "tsv", "csv.gz", "parquet", "arrow", "jsonl", "xlsx")
PIECES = (
    b'"',
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r",
    b",",
    b"\t",
    b"\x1b]52;c;AA\a",
    b"\xe2\x80\xae",
    b"=1+1",
)
DEBIAS = ["debias", "DATA", *ROLES, *QUIET]
# Each command, in which DATA is the file, with what it writes.
COMMANDS = (
    (["inspect", "DATA"], ()),
    (["inspect", "DATA", *ROLES, "--skip-last", "2", "--write-domain", "draft.toml"], ("draft.toml",)),
    ([*DEBIAS, "-o", "fair.csv", "--seed", "1"], ("fair.csv",)),
    ([*DEBIAS, "--mode", "weights", "--like-input", "-o", "fair.out"], ("fair.out",)),
    ([*DEBIAS, "--within", "race", "--also", "job=cook", "-o", "fair.csv"], ("fair.csv",)),
    (["debias", "DATA", "--outcome", "age", *ROLES[2:], *QUIET, "--equal-means", "-o", "fair.jsonl"], ("fair.jsonl",)),
    ([*DEBIAS, "--release", "--skip-last", "3", "-o", "fair.xlsx"], ("fair.xlsx",)),
    ([*DEBIAS, "--epsilon", "100", "--delta", "1e-6", "--domain", "domain.toml", "-o", "fair.csv"], ("fair.csv",)),
    (["rake", "DATA", "--margins", "margins.csv", "--relax", "all", "-o", "fair.csv"], ("fair.csv",)),
    (["rake", "DATA", "--margins", "DATA", "--like-input", "-o", "fair.out"], ("fair.out",)),
    (["evaluate", "DATA", "clean.csv", "--attacks", "20"], ()),
    (["evaluate", "clean.csv", "DATA", "--control", "DATA", "--attacks", "20"], ()),
    (["compare", "DATA", "--outcome", "nobody", *ROLES[2:]], ()),  # one that goes through takes long
    (["verify", "DATA"], ()),
)


def written(folder, format):
    """The table in a file of this format, as bytes."""
    table, path = biased_table(), folder / f"original.{format}"
    match format:
        case "parquet":
            table.write_parquet(path)
        case "arrow":
            table.write_ipc(path)
        case "jsonl":
            table.write_ndjson(path)
        case "xlsx":
            openpyxl = pytest.importorskip("openpyxl", reason="it writes the workbook that is mutated")
            book = openpyxl.Workbook()
            for row in (("Census",), (), table.columns, *table.rows()):
                book.active.append(row)
            book.active.merge_cells("A1:C1")
            book.save(path)
        case _:
            text = table.write_csv(separator="\t" if format == "tsv" else ",").encode()
            path.write_bytes(gzip.compress(text, mtime=0) if format == "csv.gz" else text)
    content = path.read_bytes()
    path.unlink()
    return content


def mutated(content, rng):
    """Bits flipped, pieces lost, repeated or put in, the end cut off."""
    raw = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(raw) + 1))
        match int(rng.integers(6)):
            case 0 | 1:
                if at < len(raw):
                    raw[at] ^= 1 << int(rng.integers(8))
            case 2:
                raw[at:at] = PIECES[int(rng.integers(len(PIECES)))]
            case 3:
                del raw[at : at + int(rng.integers(1, 100))]
            case 4:
                raw[at:at] = raw[at : at + int(rng.integers(1, 100))]
            case _:
                del raw[at:]
    return bytes(raw)


def mutated_inside(content, rng):
    """A workbook with a part that is changed, lost, or swapped with another; the archive around it is whole."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(parts)
    name, other = (names[int(rng.integers(len(names)))] for _ in range(2))
    match int(rng.integers(4)):
        case 0:
            del parts[name]
        case 1:
            parts[name], parts[other] = parts[other], parts[name]
        case _:
            # the sheet more often than others
            name = "xl/worksheets/sheet1.xml" if rng.integers(2) else name
            digits = bytes(str(int(rng.integers(10**9))), "ascii")
            parts[name] = mutated(parts[name], rng).replace(b"1", digits, int(rng.integers(2)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


@pytest.mark.parametrize("format", FORMATS)
def test_a_mutated_file_is_read_or_refused(format, tmp_path, monkeypatch, capfd):
    folder = prepared(tmp_path, monkeypatch)
    content, path = written(folder, format), folder / f"data.{format}"
    refused = 0
    for number in range(FILES // (len(FORMATS) + 1)):
        rng = np.random.default_rng([SEED, FORMATS.index(format), number])
        change = mutated_inside if format == "xlsx" and number % 4 else mutated
        path.write_bytes(change(content, rng))
        arguments, outputs = COMMANDS[number % len(COMMANDS)]
        typed = [path.name if argument == "DATA" else argument for argument in arguments]
        refused += run(typed, folder, outputs).exit_code > 0
        capfd.readouterr()  # what other libraries write to the terminal themselves
    assert refused or FILES < 100


BESIDE = [(name, command) for name in ("domain.toml", "margins.csv") for command in COMMANDS if name in command[0]]


def test_a_mutated_file_beside_the_table_is_read_or_refused(tmp_path, monkeypatch):
    folder = prepared(tmp_path, monkeypatch)
    for number in range(FILES // (len(FORMATS) + 1)):
        name, (arguments, outputs) = BESIDE[number % len(BESIDE)]
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(mutated(content, np.random.default_rng([SEED, len(FORMATS), number])))
        run(["clean.csv" if argument == "DATA" else argument for argument in arguments], folder, outputs)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("format", FORMATS)
def test_the_app_opens_a_mutated_file_or_says_why_not(format, tmp_path, monkeypatch, capfd):
    folder = prepared(tmp_path, monkeypatch)
    session_of_app = pytest.importorskip("fairmaxent.app.session", reason="the app needs starlette")
    content = written(folder, format)
    for number in range(FILES // 50):
        rng = np.random.default_rng([SEED, len(FORMATS) + 1, FORMATS.index(format), number])
        (folder / f"data.{format}").write_bytes(mutated(content, rng))
        session = session_of_app.Session(folder)
        session.open_given(f"data.{format}")
        session.stop()
        assert "bug" not in (session.problem or "")
        assert (session.problem is None) == (session.state()["table"] is not None)
        capfd.readouterr()
