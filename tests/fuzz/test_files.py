"""Mutated table files and generated config files: each command takes what is there, or
refuses it in one line.

``FUZZ_FILES=20000 FUZZ_CONFIGS=5000 pytest tests/fuzz/test_files.py`` tries more of
them.
"""

import io
import os
import zipfile

import numpy as np
import pytest
from ends import SEED, mutated, prepared, run

from clifiles import QUIET, ROLES, biased_table
from fairmaxent.cli.config import config_keys
from fairmaxent.files.write import write_table

pytestmark = pytest.mark.more

FILES = int(os.environ.get("FUZZ_FILES", "112"))
CONFIGS = int(os.environ.get("FUZZ_CONFIGS", "30"))
FORMATS = ("csv", "tsv", "csv.gz", "parquet", "arrow", "jsonl", "xlsx")
DEBIAS = ["debias", "DATA", *ROLES, *QUIET]
DECLARED = ["--domain", "domain.toml", "--ledger", "../ledger.json"]
# Each command, in which DATA is the file, with what it writes.
COMMANDS = (
    (["inspect", "DATA"], ()),
    (
        ["inspect", "DATA", *ROLES, "--skip-last", "2", "--write-domain", "draft.toml"],
        ("draft.toml",),
    ),
    ([*DEBIAS, "-o", "fair.csv", "--seed", "1"], ("fair.csv",)),
    ([*DEBIAS, "--mode", "weights", "--like-input", "-o", "fair.out"], ("fair.out",)),
    (
        [*DEBIAS, "--within", "race", "--outcome", "job=cook", "-o", "fair.csv"],
        ("fair.csv",),
    ),
    (
        [
            "debias",
            "DATA",
            "--outcome",
            "age",
            *ROLES[2:],
            *QUIET,
            "--equal-means",
            "-o",
            "fair.jsonl",
        ],
        ("fair.jsonl",),
    ),
    ([*DEBIAS, "--release", "--skip-last", "3", "-o", "fair.xlsx"], ("fair.xlsx",)),
    (
        [*DEBIAS, "--epsilon", "100", "--delta", "1e-6", *DECLARED, "-o", "fair.csv"],
        ("fair.csv", "fair.fme"),
    ),
    (
        [
            "rake",
            "DATA",
            "--margins",
            "margins.csv",
            "--relax",
            "all",
            "-o",
            "fair.csv",
        ],
        ("fair.csv",),
    ),
    (
        ["rake", "DATA", "--margins", "DATA", "--like-input", "-o", "fair.out"],
        ("fair.out",),
    ),
    (["evaluate", "DATA", "clean.csv", "--attacks", "20"], ()),
    (["evaluate", "clean.csv", "DATA", "--control", "DATA", "--attacks", "20"], ()),
    # one that goes through takes long
    (["compare", "DATA", "--outcome", "nobody", *ROLES[2:]], ()),
    (["verify", "DATA"], ()),
)


def written(folder, format):
    """The table in a file of this format, as bytes."""
    path = folder / f"original.{format}"
    if format == "xlsx":
        openpyxl = pytest.importorskip(
            "openpyxl", reason="it writes the workbook that is mutated"
        )
        book = openpyxl.Workbook()
        for row in (("Census",), (), biased_table().columns, *biased_table().rows()):
            book.active.append(row)
        book.active.merge_cells("A1:C1")
        book.save(path)
    else:
        write_table(biased_table(), path)
    content = path.read_bytes()
    path.unlink()
    return content


def mutated_inside(content, rng):
    """A workbook with a part that is changed, lost, or swapped with another; the
    archive around it is whole.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name, other = rng.choice(sorted(parts), size=2)
    match int(rng.integers(4)):
        case 0:
            del parts[name]
        case 1:
            parts[name], parts[other] = parts[other], parts[name]
        case _:  # the sheet more often than others
            name = "xl/worksheets/sheet1.xml" if rng.integers(2) else name
            parts[name] = mutated(parts[name], rng).replace(
                b"1", b"%d" % rng.integers(10**9), int(rng.integers(2))
            )
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
        typed = [
            path.name if argument == "DATA" else argument for argument in arguments
        ]
        refused += run(typed, folder, outputs) > 0
        capfd.readouterr()  # what other libraries write to the terminal themselves
    assert refused or FILES < 100


BESIDE = [
    (name, command)
    for name in ("domain.toml", "margins.csv")
    for command in COMMANDS
    if name in command[0]
]


def test_a_mutated_file_beside_the_table_is_read_or_refused(tmp_path, monkeypatch):
    folder = prepared(tmp_path, monkeypatch)
    for number in range(FILES // (len(FORMATS) + 1)):
        name, (arguments, outputs) = BESIDE[number % len(BESIDE)]
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(
            mutated(content, np.random.default_rng([SEED, len(FORMATS), number]))
        )
        run(
            ["clean.csv" if argument == "DATA" else argument for argument in arguments],
            folder,
            outputs,
        )
        (folder / name).write_bytes(content)


KEYS = [
    key for key in config_keys() if key not in ("scheduler", "estimate", "ledger")
]  # those train models
VALUES = (
    *(
        "true",
        "0",
        "1",
        "3",
        "-1",
        "0.5",
        "1e-9",
        "inf",
        "nan",
        "1e400",
        "9" * 30,
        "1979-05-27",
        "07:32:00",
    ),
    *(
        '""',
        '"x"',
        '"none"',
        '"sex"',
        '"age"',
        '">50K"',
        '"tree"',
        '"joint"',
        '"compare"',
        r'"\u0000"',
        r'"\u202e"',
    ),
    *(
        "[]",
        '["sex"]',
        '["sex", "race"]',
        "[1, 2]",
        "[[1]]",
        "[{a=1}]",
        "[true]",
        '["age", "age"]',
    ),
    *(
        "{}",
        "{sex=1}",
        '{sex="x"}',
        "{sex={Female=0.5, Male=0.5}}",
        '{income="free"}',
        "{age=[1,2,3]}",
        '{"" = 1}',
    ),
    *(
        "100",
        '"race"',
        '"job=cook"',
        '["race", "job"]',
        '{race="White"}',
        '"domain.toml"',
        '"clean.csv"',
    ),
    *("{sex=[", "'''", "= =", "#"),  # no TOML at all
)
WRITING = ["debias", "clean.csv", *QUIET, "-o", "fair.csv", "--save", "fit.fme"]
# Commands that read a config file, with what they write.
CONFIGURED = (
    (WRITING, ("fair.csv", "fit.fme")),
    (["inspect", "clean.csv"], ()),
    ([*WRITING, "--epsilon", "100", *DECLARED], ("fair.csv", "fit.fme")),
    (
        ["rake", "clean.csv", "--margins", "margins.csv", "-o", "fair.csv"],
        ("fair.csv",),
    ),
    (WRITING, ("fair.csv", "fit.fme")),
    (["evaluate", "clean.csv", "clean.csv", "--attacks", "20"], ()),
)


@pytest.mark.parametrize("part", range(2))
def test_a_config_file_is_used_or_refused(part, tmp_path, monkeypatch):
    folder = prepared(tmp_path, monkeypatch)
    for number in range(CONFIGS // 2):
        rng = np.random.default_rng([SEED, part, number])
        chosen = rng.choice(KEYS, size=int(rng.integers(1, 4)), replace=False)
        lines = [
            f"{key} = {VALUES[int(rng.integers(len(VALUES)))]}\n" for key in chosen
        ]
        (folder / "c.toml").write_text("".join(lines), encoding="utf-8")
        arguments, outputs = CONFIGURED[number % len(CONFIGURED)]
        roles = [
            *(ROLES[:2] if "outcome" not in chosen else []),
            *(ROLES[2:] if "protected" not in chosen else []),
        ]
        needed = roles if arguments[0] == "debias" else []
        run([*arguments, "--config", "c.toml", *needed], folder, outputs)
