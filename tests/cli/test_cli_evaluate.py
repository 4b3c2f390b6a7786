"""``fairmaxent evaluate``: files in, the verdict out."""

import json
import shlex

import numpy as np
import polars as pl
import pytest

import clifiles
import fairmaxent
from clifiles import biased_table

REAL, NEW, CONTROL = (biased_table(seed) for seed in (1, 2, 3))
QUICK = ("--attacks", "100")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in (("real", REAL), ("new", NEW), ("control", CONTROL)):
        table.write_csv(f"{name}.csv")
    return tmp_path


def run(*arguments, command="evaluate", **options):
    return clifiles.run(command, *arguments, prog_name="fairmaxent", **options).output


def test_the_verdict_comes_first_and_the_next_step_last():
    said = run("real.csv", "new.csv", "--control", "control.csv", *QUICK)
    assert said.startswith("No attack")
    assert "240 real rows, 240 new rows, 240 control rows; 6 columns" in said
    # copying and singling out are too close to call with so few rows
    assert "It is too close to call for copying real rows" in " ".join(said.split())
    assert said.splitlines()[-1].startswith("Next: it is too close to call")
    assert max(map(len, said.split("\nNext")[0].splitlines())) <= 80


@pytest.mark.more
def test_rows_are_to_be_shared_only_where_no_risk_is_too_close_to_call():
    """Following the advice, more rows and more attacks, is what gets there."""
    for name, seed in (("real", 1), ("new", 2), ("control", 3)):
        cells = np.random.default_rng(seed).integers(0, 12, (1500, 8))
        rows = pl.DataFrame(cells, schema=list("abcdefgh"))
        rows.write_csv(f"{name}.csv")
        rows.head(150).write_csv(f"few-{name}.csv")
    more = ("--seed", "1", "--attacks", "1000")
    for before, advised in (
        ("few-", "too close to call"),
        ("", "Next: share the rows"),
    ):
        files = (f"{before}real.csv", f"{before}new.csv")
        said = run(*files, "--control", f"{before}control.csv", *more)
        assert advised in said.splitlines()[-1]
        assert ("uncertain" in said) == bool(before)


def test_it_is_what_python_says():
    record = json.loads(
        run(
            "real.csv",
            "new.csv",
            "--control",
            "control.csv",
            *QUICK,
            "--seed",
            "4",
            "--json",
        )
    )
    same = fairmaxent.evaluate(REAL, NEW, control=CONTROL, attacks=100, random_state=4)
    assert record.pop("notes") == []
    assert record == json.loads(json.dumps(same.to_dict()))


@pytest.mark.more
def test_copies_are_flagged_and_a_remedy_follows():
    options = ("--outcome", "income", "--protected", "sex", "--favourable", ">50K")
    said = run("real.csv", "real.csv", "--control", "control.csv", *QUICK, *options)
    assert said.startswith("Do not treat these rows as anonymous")
    command = shlex.split(said.splitlines()[-1])[1:]
    assert command == [
        "debias",
        "real.csv",
        *options,
        "--release",
        "-o",
        "real-uncopied.csv",
    ]
    run(*command[1:], command="debias")
    assert "sex = Female" in said
    bare = run("real.csv", "real.csv", "--control", "control.csv", *QUICK)
    assert bare.splitlines()[-1].endswith("'fairmaxent debias' with --release")


@pytest.mark.more
def test_rows_that_debias_wrote_can_be_evaluated():
    """It leaves identifiers out, which are not compared then."""
    REAL.with_columns(
        person=pl.Series([f"p{k}@example.org" for k in range(len(REAL))])
    ).write_csv("ids.csv")
    run(
        "ids.csv",
        "--outcome",
        "income",
        "--protected",
        "sex",
        "-o",
        "fair.csv",
        command="debias",
    )
    said = " ".join(run("ids.csv", "fair.csv", *QUICK).split())
    assert "are in the new rows with all their values" in said
    assert "the new rows do not have them: 'person'" in said


@pytest.mark.more
def test_formats_may_differ_and_one_table_may_come_from_stdin(folder):
    NEW.write_parquet("new.parquet")
    expected = run("real.csv", "new.csv", "--control", "control.csv", *QUICK)
    piped = run(
        "real.csv",
        "new.parquet",
        "--control",
        "-",
        *QUICK,
        input=(folder / "control.csv").read_text(),
    )
    assert piped == expected


@pytest.mark.more
def test_columns_can_be_dropped_from_all_tables():
    NEW.with_columns(extra=pl.lit(1)).write_csv("new.csv")
    refused = run("real.csv", "new.csv", *QUICK, code=3)
    assert "a column 'extra', which the real table does not have" in refused
    assert "--drop" in refused
    assert "; 5 columns" in run("real.csv", "new.csv", "--drop", "extra,weight", *QUICK)
    assert "did you mean 'extra'" in run(
        "real.csv", "new.csv", "--drop", "extr", *QUICK, code=3
    )


@pytest.mark.more
def test_a_config_file_serves_debias_and_evaluate():
    with open("options.toml", "w") as file:
        file.write(
            'outcome = "income"\nprotected = "sex"\nattacks = 100\ncontrol ='
            ' "control.csv"\n'
        )
    record = json.loads(
        run("real.csv", "new.csv", "--config", "options.toml", "--json")
    )
    assert record["utility"]["outcome"] == "income"
    assert record["control_rows"] == 240
    run("real.csv", "--config", "options.toml", command="debias")


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("real.csv",), 2, "Missing argument 'NEW'"),
        (("real.csv", "none.csv"), 5, "none.csv"),
        (("-", "-"), 2, "only one table can be read from stdin"),
        (("real.csv", "new.csv", "--outcome", "incom"), 3, "did you mean 'income'"),
        (
            ("real.csv", "new.csv", "--protected", "sex"),
            2,
            "--protected needs --outcome",
        ),
        (("real.csv", "new.csv", "--secrets", "ag"), 3, "did you mean 'age'"),
        (("real.csv", "new.csv", "--attacks", "0"), 2, "0 is not in the range"),
        (("real.csv", "empty.csv"), 3, "no rows"),
    ],
)
def test_what_cannot_be_evaluated_ends_with_one_line(arguments, code, message):
    NEW[:0].write_csv("empty.csv")
    said = run(*arguments, code=code)
    assert message in said
    assert "Traceback" not in said
