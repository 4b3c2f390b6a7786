"""Names, e-mail addresses, numbers and notes of people: not one of them gets out unless
it is kept on purpose.
"""

import zipfile

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import fairmaxent
from fairmaxent import Domain, debias
from fairmaxent.cli.group import group
from fairmaxent.errors import ColumnError, LevelError
from fairmaxent.report import write_report
from tables import EQUAL_PROBABILITIES

ROWS = 300
PERSONAL = ["name", "mail", "phone", "ssn", "patient_id", "note"]
KEPT = ["age", "town", "sex", "hired"]


def people():
    """Every personal value begins with a mark that can be looked for; people come more
    than once.
    """
    rng = np.random.default_rng(8)
    person = rng.integers(0, 200, ROWS)
    columns = {"name": [f"Zqname{n} Zqsurname{n % 17}" for n in person]}
    columns["mail"] = [f"zqmail{n}@example.org" for n in person]
    columns["phone"] = [f"+49 30 77{n:05}" for n in person]
    columns["ssn"] = [f"{n + 100}-{n % 90 + 10}-77{n % 100:02}" for n in person]
    columns["patient_id"] = 770_000 + person
    columns["note"] = [
        f"zqnote {n}: feels better since the {n % 30}th, wants to come again soon"
        for n in person
    ]
    columns["age"] = rng.integers(18, 90, ROWS)
    columns["town"] = rng.choice(["Bonn", "Ulm", "Jena"], ROWS)
    return pd.DataFrame(
        columns
        | {
            "sex": rng.choice(["F", "M"], ROWS),
            "hired": rng.choice(["no", "yes"], ROWS),
        }
    )


def personal_values():
    table = people()
    return {str(value) for name in PERSONAL for value in table[name]}


def leaks(text):
    """The personal values in a text."""
    return [value for value in personal_values() if value in text]


LIBRARIES = {
    "pandas": lambda frame: frame,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_of_them_is_in_rows_model_certificate_or_reports(library, tmp_path):
    frame = LIBRARIES[library](people())
    fit = debias(frame, "hired", "sex", random_state=0, estimate=None)
    assert fit.columns == tuple(KEPT)
    assert list(fit.certificate.left_out_columns) == PERSONAL
    drawn = [
        fit.sample(500),
        fit.sample(20, iid=True),
        fit.top_up(),
        *fit.sample_batches(50, size=20),
    ]
    for rows in drawn:
        assert nw.from_native(rows, eager_only=True).columns == KEPT
    fit.save(tmp_path / "fit.fme")
    with zipfile.ZipFile(tmp_path / "fit.fme") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    assert leaks(content.decode("latin-1")) == []
    assert (
        fairmaxent.load(tmp_path / "fit.fme").certificate.left_out_columns
        == fit.certificate.left_out_columns
    )
    for name in ("report.html", "report.md", "report.json"):
        write_report(fit, tmp_path / name, data=frame, trade_off=False)
        assert leaks((tmp_path / name).read_text(encoding="utf-8")) == []
    assert (
        leaks(f"{fit.certificate}{fit.certificate.to_dict()}{fit!r}{fit.domain!r}")
        == []
    )


def test_a_note_says_which_were_left_out_and_how_to_keep_them():
    (note,) = [
        text
        for text in debias(people(), "hired", "sex").certificate.warnings
        if "left out" in text
    ]
    assert all(repr(name) in note for name in PERSONAL)
    assert note.endswith(f"use keep_columns={PERSONAL!r}")


@pytest.mark.some(1)
@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_kept_on_purpose(library):
    frame = LIBRARIES[library](people())
    fit = debias(frame, "hired", "sex", keep_columns=["patient_id", "mail"])
    assert fit.columns == ("mail", "patient_id", *KEPT)
    drawn = nw.from_native(fit.sample(50, random_state=0), eager_only=True)
    assert set(drawn.get_column("mail").to_list()) <= set(people()["mail"])
    assert sum("was kept" in note for note in fit.domain.notes) == 2
    assert debias(frame, "hired", "sex", keep_columns=[]).columns == tuple(KEPT)


def test_a_given_domain_is_narrowed():
    domain = Domain.infer(people(), bins={"age": [0, 40, 100]})
    fit = debias(people(), "hired", "sex", domain=domain)
    assert fit.columns == tuple(KEPT)
    assert fit.domain.attribute("age").size == 2
    lazy = debias(
        pl.from_pandas(people()).lazy(),
        "hired",
        "sex",
        domain=Domain.infer(pl.from_pandas(people())),
    )
    assert lazy.columns == tuple(KEPT)


def test_weights_are_for_all_rows_and_the_users_own_table_keeps_its_columns():
    fit = debias(people(), "hired", "sex")
    assert len(fit.weights()) == ROWS
    assert list(fit.weigh(people()).columns) == [*people().columns, "fair_weight"]
    relabelled = debias(
        people(),
        "hired",
        "sex",
        favourable="yes",
        model=EQUAL_PROBABILITIES,
        estimate=None,
    )
    assert relabelled.columns == tuple(KEPT)


def test_paper_fits_leave_them_out_too():
    options = {"outcome": "hired", "protected": "sex"}
    fit = fairmaxent.paper.fit(people(), **options)
    assert fit.columns == tuple(KEPT)
    assert fairmaxent.paper.fit(
        people(), **options, keep_columns="patient_id"
    ).columns == ("patient_id", *KEPT)


@pytest.mark.parametrize("keep", ["nmae", ["age", "nmae"], 3, {"name"}])
def test_what_cannot_be_kept_is_refused(keep):
    with pytest.raises(ColumnError, match="keep_columns"):
        debias(people(), "hired", "sex", keep_columns=keep)


def run(*args):
    return CliRunner().invoke(group, [str(arg) for arg in args])


@pytest.mark.more
@pytest.mark.parametrize(
    ("suffix", "more"),
    [
        ("csv", []),
        ("parquet", ["--bins", "8", "--mode", "top-up", "--representation-rate", "1"]),
    ],
)
def test_the_command_leaks_nothing(suffix, more, tmp_path):
    data, out = tmp_path / f"data.{suffix}", tmp_path / "fair.csv"
    table = pl.from_pandas(people())
    (table.write_csv if suffix == "csv" else table.write_parquet)(data)
    model, report = tmp_path / "fit.fme", tmp_path / "report.json"
    asked = [
        "--outcome",
        "hired",
        "--protected",
        "sex",
        "-o",
        out,
        "--save",
        model,
        "--report",
        report,
    ]
    result = run("debias", data, *asked, *more, "--estimate", "none")
    assert result.exit_code == 0, result.stderr
    assert (
        leaks(result.stdout + result.stderr + out.read_text() + report.read_text())
        == []
    )
    assert f"--keep-columns {','.join(PERSONAL)}" in result.stdout
    assert "protect it like the table itself" in result.stdout
    for command in ("inspect", "inspect --json"):
        first, *flags = command.split()
        assert (
            leaks(
                run(
                    first, data, "--outcome", "hired", "--protected", "sex", *flags
                ).stdout
            )
            == []
        )
    assert (
        leaks(run("verify", model).stdout + run("verify", model, "--json").stdout) == []
    )


def test_messages_cut_values_and_stay_short():
    notes = [f"{number} " + "was seen again and again " * 400 for number in range(2)]
    frame = pd.DataFrame(
        {
            "diagnosis": notes * 50,
            "sex": ["F", "M"] * 50,
            "hired": ["no", "yes", "yes", "no"] * 25,
        }
    )
    domain = Domain.infer(frame)
    assert max(map(len, domain.attribute("diagnosis").labels)) == 60
    with pytest.raises(LevelError) as caught:
        domain.encode(frame.assign(diagnosis="something else " * 2000))
    assert len(str(caught.value)) < 500
    with pytest.raises(LevelError) as caught:
        debias(frame, "hired", "sex", forbid=[{"diagnosis": "something else " * 2000}])
    assert len(str(caught.value)) < 500
    fit = debias(
        frame,
        "hired",
        "sex",
        statistical_rate=None,
        target={"diagnosis": {notes[0]: 0.3, notes[1]: 0.7}},
    )
    assert "was seen again and again " * 4 not in str(fit.certificate) + str(
        fit.certificate.to_dict()
    )
    # rows hold the values themselves
    assert set(fit.sample(20)["diagnosis"]) <= set(notes)


@pytest.mark.parametrize(
    "options",
    [
        {"target": {"name": {"nobody": 1.0}}},
        {"forbid": [{"name": "nobody", "sex": "F"}]},
        {"keep_columns": ["name", "nobody"]},
    ],
)
def test_a_hint_lists_no_people(options):
    with pytest.raises(fairmaxent.InputError) as caught:
        debias(people(), "hired", "sex", **options)
    assert not leaks(str(caught.value))


TOWNS = ["Zqtown", "Jena", "Bonn", "Ulm"]
LISTED = {
    "pandas": lambda frame: frame.assign(town=pd.Categorical(frame["town"], TOWNS)),
    "polars": (
        lambda frame: pl.from_pandas(frame).with_columns(
            pl.col("town").cast(pl.Enum(TOWNS))
        )
    ),
    "pyarrow": lambda frame: pa.table(
        {
            **frame.drop(columns="town"),
            "town": pa.DictionaryArray.from_arrays(
                [TOWNS.index(town) for town in frame["town"]], TOWNS
            ),
        }
    ),
}


@pytest.mark.parametrize("library", LISTED)
def test_rows_to_share_list_no_category_that_no_row_has(library, tmp_path):
    fit = debias(
        LISTED[library](people()[KEPT]), "hired", "sex", release=True, estimate=None
    )
    drawn = fit.sample(300, random_state=0)
    assert set(pl.DataFrame(drawn)["town"].cast(pl.String)) == {"Bonn", "Jena", "Ulm"}
    nw.from_native(drawn).write_parquet(tmp_path / "drawn.parquet")
    fit.save(tmp_path / "fit.fme")
    with zipfile.ZipFile(tmp_path / "fit.fme") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    assert b"Zqtown" not in content + (tmp_path / "drawn.parquet").read_bytes()
