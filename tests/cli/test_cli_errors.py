"""Bad invocations of the command line: one clear line, the right code, no traceback, no
file left behind.

One table of cases drives one test: what is typed, the exit code, and what the line
says.
"""

import errno
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

from clifiles import ROLES, biased_table, listing
from fairmaxent import debias
from fairmaxent.cli.group import group

HEADER = "sex,income\n"
FILES = {
    "empty.csv": b"",
    "header.csv": HEADER.encode(),
    "long.csv": (HEADER + "F,1\nM,0,9\n").encode(),
    "twice.csv": b"sex,income,sex\nF,1,F\nM,0,M\n",
    "quote.csv": (HEADER + 'F,"1\nM,0\n').encode(),
    "nothing.bin": bytes(range(256)) * 4,
    "paper.pdf": b"%PDF-1.7 \n",
    "old.csv.bz2": b"BZh91AY",
    "half.csv.zst": b"\x28\xb5\x2f\xfd\x00\x00",
    "half.parquet": b"PAR1 and no more",
    "array.json": b'[{"sex": "F"}]',
    "latin.csv": "sex,income\nFrau Müller,1\nM,0\n".encode("latin-1"),
    "nameless.csv": b"39,Male,>50K\n28,Female,<=50K\n",
    "one.csv": (HEADER + "F,1\nM,1\n").encode(),
    "split.csv": (HEADER + "F,1\n" * 40 + "M,0\n" * 40).encode(),
    "exists.csv": b"precious",
    "broken.toml": b"outcome = \n",
    "unknown.toml": b"outcom = 'income'\n",
    "dashes.toml": b"base-share = 0.5\n",
    "outputs.toml": b"output = 'a.csv'\n",
    "both.toml": b"representation_rate = 1.0\n[target.sex]\nFemale = 0.6\nMale = 0.4\n",
    "number.toml": b"protected = 3\n",
    "declared.toml": b'[levels]\nsex = ["Female", "Male"]\n',
}


@dataclass(frozen=True)
class Case:
    """What is typed, the exit code, and texts that the line must hold."""

    typed: str
    code: int
    says: tuple[str, ...]
    typed_in: bytes | None = None

    @property
    def args(self):
        return [part.replace("~", " ") for part in self.typed.split()]


R = " ".join(ROLES)
OUT = f"{R} -o new.csv"
TWICE = ("--representation-rate", "--target", "'sex'")
CASES = [
    # usage
    Case("nonsense", 2, ("No such command 'nonsense'",)),
    Case("debia good.csv", 2, ("Did you mean 'debias'",)),
    Case("--nonsense", 2, ("--nonsense", "--help")),
    Case("debias", 2, ("DATA", "debias --help")),
    Case("debias good.csv", 2, ("--outcome",)),
    Case(
        f"debias good.csv {OUT} --representation-rat 1", 2, ("--representation-rate",)
    ),
    Case(f"debias good.csv {OUT} --mode sometimes", 2, ("sometimes", "top-up")),
    Case(
        f"debias good.csv {OUT} --mode weights --rows 5",
        2,
        ("--rows cannot go", "--mode weights"),
    ),
    Case(
        f"debias good.csv {OUT} --statistical-rate high", 2, ("'high' is not a number",)
    ),
    Case(f"debias good.csv {OUT} --bins age:~0,young", 2, ("'young' is not a number",)),
    Case(f"debias good.csv {R} -o - --json", 2, ("stdout",)),
    Case(f"debias good.csv {OUT} --save -", 2, ("name a file",)),
    Case(
        f"debias good.csv {R} --threshold 0.4",
        2,
        ("--threshold needs --model", "add --model"),
    ),
    Case("inspect good.csv --favourable >50K", 2, ("--outcome",)),
    Case("inspect good.csv --config=", 2, ("--config", "it is empty; name a file")),
    Case(f"debias good.csv {R} --output=", 2, ("--output", "it is empty")),
    Case(f"debias good.csv {OUT} --domain=", 2, ("--domain", "it is empty")),
    Case("sample fit.fme -n 100000000000000000000", 3, ("1,000,000,000,000",)),
    Case(
        f"debias good.csv {OUT} --representation-rate 0.9 --target"
        " sex:~Female=0.6,~Male=0.4",
        2,
        TWICE,
    ),
    Case(f"debias good.csv {OUT} --config both.toml", 2, TWICE),
    Case(
        f"compare good.csv {R} --outcome job=cook",
        3,
        ("a single outcome; name one with --outcome",),
    ),
    # data and options that cannot be used
    Case(f"debias empty.csv {OUT}", 3, ("empty.csv is empty",)),
    Case(f"debias header.csv {OUT}", 3, ("no rows",)),
    Case(f"debias twice.csv {OUT}", 3, ("columns 1 and 3", "'sex'")),
    Case(f"debias one.csv {OUT}", 3, ("single level", "'income'")),
    Case(
        "debias good.csv --outcome incme --protected sex -o new.csv",
        3,
        ("'incme'", "did you mean 'income'"),
    ),
    Case(
        "debias good.csv --outcome income --protected income -o new.csv",
        3,
        ("both the outcome and protected",),
    ),
    Case(f"debias nameless.csv {OUT}", 3, ("no column 'income'", "--columns")),
    Case(f"debias nameless.csv {OUT} --columns age,sex", 3, ("3 columns and 2 names",)),
    Case(f"debias good.csv {OUT} --drop jop", 3, ("did you mean 'job'",)),
    Case(f"debias good.csv {OUT} --drop sex", 3, ("'sex'", "--drop", "a role")),
    *(
        Case(f"{command} --weight wieght {option}", code, ("did you mean 'weight'",))
        for command, code in (
            ("rake good.csv --margins good.csv -o new.csv", 3),
            (f"check good.csv {R} --statistical-rate 0.8", 2),
        )
        for option in ("--max-levels 3", "--domain declared.toml")
    ),
    Case(f"debias good.csv {OUT} --favourable 50K", 3, ("'50K'", "did you mean")),
    Case(
        f"debias good.csv {OUT} --statistical-rate 1.5",
        3,
        ("--statistical-rate is 1.5", "use --statistical-rate none"),
    ),
    Case(
        f"debias good.csv {OUT} --within sex",
        3,
        ("--within names 'sex', which is protected",),
    ),
    Case(f"debias good.csv {OUT} --rows 0", 2, ("--rows", "x>=1")),
    Case(f"debias good.csv {OUT} --target sex:~Female=0.6,~Male=0.6", 3, ("target",)),
    Case(
        f"debias good.csv {OUT} --forbid sex=Mal,job=cook", 3, ("did you mean 'Male'",)
    ),
    Case(
        f"debias good.csv {OUT} --kinds age:~categoricl",
        3,
        ("did you mean 'categorical'",),
    ),
    Case(f"debias good.csv {OUT} --order job:~nurse,cook", 3, ("'clerk'",)),
    Case(f"debias good.csv {OUT} --bins 4 --bins age:~5", 2, ("one of the two",)),
    Case(
        f"debias good.csv {OUT} --target age:keep --target age:keep",
        2,
        ("twice", "'age'"),
    ),
    Case(f"debias good.csv {OUT} --rows 1000000000000", 3, ("memory",)),
    Case(
        f"debias good.csv {OUT} --mode weights --weight-name age",
        3,
        ("already has a column 'age'",),
    ),
    Case(f"debias good.csv {OUT} --encoding klingon", 3, ("'klingon' is not known",)),
    Case(
        f"debias good.csv {R} -o new.xls",
        3,
        ("'.xls'", "did you mean '.xlsx'?", "add .gz"),
    ),
    Case(f"debias good.csv {OUT} --save new.csv", 3, ("written twice",)),
    Case(
        f"debias good.csv {OUT} --config broken.toml",
        3,
        ("broken.toml is not valid TOML", "line 1"),
    ),
    Case(
        f"debias good.csv {OUT} --config unknown.toml",
        3,
        ("'outcom'", "did you mean 'outcome'"),
    ),
    Case(
        f"debias good.csv {OUT} --config dashes.toml",
        3,
        ("'base-share'", "did you mean 'base_share'"),
    ),
    Case(
        f"debias good.csv {OUT} --config outputs.toml",
        3,
        ("'output'", "cannot be set in a config file", "--output"),
    ),
    Case(
        "debias good.csv --outcome income -o n.csv --config number.toml",
        2,
        ("protected is 3", "a list of columns"),
    ),
    Case("sample fit.fme -n 5 --given sex=Femal", 3, ("did you mean 'Female'",)),
    # what was asked for is impossible
    Case(
        f"debias split.csv {OUT} --base-share 0",
        4,
        ("income", "set --base-share > 0", "or set small groups apart"),
    ),
    Case(
        f"debias split.csv {OUT} --mode weights", 4, ("--mode rows or --mode top-up",)
    ),
    Case("sample rows_only.fme -n 5 --given sex=F,income=1", 4, ("probability zero",)),
    # files that cannot be read or written
    Case(f"debias gone.csv {OUT}", 5, ("cannot read gone.csv", "No such file")),
    Case(f"debias folder {OUT}", 5, ("folder without Parquet files",)),
    Case(f"debias nothing.bin {OUT}", 5, ("not text",)),
    Case(f"debias paper.pdf {OUT}", 5, ("PDF",)),
    Case(f"debias old.csv.bz2 {OUT}", 5, ("bzip2",)),
    Case(
        f"debias half.csv.zst {OUT}", 5, ("compressed with zstd", "decompress it first")
    ),
    Case(f"debias half.parquet {OUT}", 5, ("half.parquet as parquet",)),
    Case(f"debias array.json {OUT}", 5, ("one object per line",)),
    Case(f"debias good.csv {OUT} --input-format parquet", 5, ("good.csv as parquet",)),
    Case(f"debias long.csv {OUT}", 5, ("long.csv, line 3: 3 cells", "2 columns")),
    Case(f"debias quote.csv {OUT}", 5, ("quotes",)),
    Case(
        f"debias latin.csv {OUT} --encoding utf-8",
        5,
        ("latin.csv is not utf-8", "byte 18"),
    ),
    Case(f"debias good.csv {R} -o exists.csv", 5, ("exists.csv exists", "--force")),
    Case(
        f"debias good.csv {R} -o good.csv --force",
        2,
        ("good.csv is an input file", "another file"),
    ),
    Case(f"debias good.csv {R} -o folder", 5, ("folder is a folder",)),
    Case(
        f"debias good.csv {R} -o new/ --output-format csv",
        5,
        ("new is a folder; name a file in it",),
    ),
    Case(f"inspect good.csv {R} --write-config=", 2, ("it is empty; name a file",)),
    Case(
        f"debias good.csv {R} -o no/where/new.csv",
        5,
        ("does not exist; create it first",),
    ),
    Case(f"debias good.csv {OUT} --report report.docx", 5, (".html",)),
    Case(f"debias good.csv {R} -o /proc/new.csv", 5, ("cannot write in /proc",)),
    Case(
        f"debias good.csv {R} -o /dev/full", 5, ("/dev/full is a device; name a file",)
    ),
    Case(f"debias good.csv {OUT} --config gone.toml", 5, ("gone.toml", "No such file")),
    Case("sample gone.fme -n 5", 5, ("gone.fme", "No such file")),
    Case(
        "sample good.csv -n 5",
        5,
        ("good.csv is damaged or was not written by fairmaxent",),
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()
    table = biased_table()
    table.write_csv(folder / "good.csv")
    debias(table, "income", "sex").save(folder / "fit.fme")
    split = table.select(
        sex=table["sex"].replace({"Female": "F", "Male": "M"}),
        income=table["sex"] == "Male",
    )
    split = split.with_columns(split["income"].cast(int))
    options = {"representation_rate": None, "statistical_rate": None, "base_share": 0}
    debias(split, "income", "sex", **options).save(folder / "rows_only.fme")
    return folder


@pytest.mark.some(14)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.typed)
def test_one_line_the_right_code_and_nothing_left_behind(case, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = listing(folder)
    result = CliRunner().invoke(group, case.args, input=case.typed_in)
    assert result.exit_code == case.code, result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert result.stdout == ""
    for text in case.says:
        assert text in result.stderr
    assert listing(folder) == before


class PanicException(BaseException):
    """As polars raises it: no Exception."""

    __module__ = "pyo3_runtime"


def broken(problem):
    def fail(*_, **__):
        raise problem

    return fail


@pytest.mark.parametrize(
    ("problem", "whose"),
    [
        (KeyError("lost"), "fairmaxent"),
        (PanicException("called `Result::unwrap()` on an `Err` value"), "polars"),
    ],
)
def test_an_unexpected_error_is_called_a_bug_in_one_line_and_debug_shows_it(
    problem, whose, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("fairmaxent.files.formats.read_table", broken(problem))
    result = CliRunner().invoke(group, ["debias", "good.csv", *ROLES])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert f"a bug in {whose}" in result.stderr
    assert "--debug" in result.stderr
    assert str(problem) in result.stderr
    shown = CliRunner().invoke(group, ["--debug", "debias", "good.csv", *ROLES])
    assert shown.exit_code == 1
    assert type(problem).__name__ in shown.stderr.split("Error: this is a bug")[0]
    assert "Traceback" in shown.stderr


@pytest.mark.parametrize(
    ("where", "problem", "code", "says"),
    [
        (
            "files.formats.read_table",
            MemoryError(),
            3,
            "memory ran out (MemoryError); ask for fewer rows",
        ),
        ("files.formats.read_table", np.zeros, 3, "memory ran out (Unable to allocate"),
        (
            "files.formats.read_table",
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            3,
            "memory ran out",
        ),
        (
            "files.formats.read_table",
            ImportError("x.so: failed to map segment from file"),
            3,
            "memory ran out",
        ),
        (
            "files.csv.write_csv",
            PanicException("index out of bounds"),
            5,
            "cannot write x.csv as csv (index out of",
        ),
    ],
)
def test_want_of_memory_and_panics_while_writing_are_no_bugs(
    where, problem, code, says, folder, monkeypatch
):
    def allocate(*_, **__):
        np.zeros(2**50)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        f"fairmaxent.{where}", allocate if problem is np.zeros else broken(problem)
    )
    result = CliRunner().invoke(group, ["debias", "good.csv", *ROLES, "-o", "x.csv"])
    assert (result.exit_code, result.stderr.count("\n")) == (code, 1)
    assert says in result.stderr
