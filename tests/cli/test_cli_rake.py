"""``fairmaxent rake``: files in and out, refusals and exit codes."""

import json
import stat

import polars as pl
import pytest

import clifiles
import fairmaxent

COLUMNS = {"sex": ["F", "F", "M", "M", "M", "F"] * 5}
COLUMNS["age"] = ["young", "old", "young", "old", "old", "old"] * 5
COLUMNS["label"] = ["a", "b", "c", "d", "e", "f"] * 5
SURVEY = pl.DataFrame(COLUMNS | {"design": [1.0, 2.0, 1.5, 1.0, 1.0, 3.0] * 5})
CENSUS = "columns,level,value\nsex,F,0.55\nsex,M,0.45\nage,young,0.4\nage,old,0.6\n"
MARGINS = {"sex": {"F": 0.55, "M": 0.45}, "age": {"young": 0.4, "old": 0.6}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SURVEY.write_csv("survey.csv")
    SURVEY.write_parquet("survey.parquet")
    (tmp_path / "census.csv").write_text(CENSUS)
    return tmp_path


def run(*arguments, code=0):
    return clifiles.run("rake", *arguments, prog_name="fairmaxent", code=code)


@pytest.mark.parametrize(
    ("data", "output"),
    [("survey.csv", "weighted.parquet"), ("survey.parquet", "weighted.csv")],
)
def test_a_file_is_weighted(folder, data, output):
    result = run(
        data,
        "--margins",
        "census.csv",
        "--weight",
        "design",
        "--bounds",
        "0.3,3",
        "-o",
        output,
    )
    weighted = (
        pl.read_csv(output) if output.endswith("csv") else pl.read_parquet(output)
    )
    expected = fairmaxent.rake(
        SURVEY, MARGINS, weight="design", bounds=(0.3, 3)
    ).weights()
    assert weighted["raked_weight"].to_list() == pytest.approx(expected.tolist())
    assert weighted.columns == [*SURVEY.columns, "raked_weight"]
    assert f"wrote {output} (30 rows)" in result.output
    assert stat.S_IMODE((folder / output).stat().st_mode) == 0o600


def test_json_holds_the_certificate_and_the_table_may_go_to_stdout():
    result = run("survey.csv", "--margins", "census.csv", "-o", "-")
    assert result.stdout.splitlines()[0] == "sex,age,label,design,raked_weight"
    assert "largest error" in result.stderr
    result = run(
        "survey.csv",
        "--margins",
        "census.csv",
        "--json",
        "--replicates",
        "2",
        "-o",
        "w.csv",
    )
    record = json.loads(result.output)
    assert record["certificate"]["largest_error"] < 1e-12
    assert record["replicates"] == 2
    assert isinstance(record["seed"], int)
    assert pl.read_csv("w.csv").columns[-3:] == [
        "raked_weight",
        "raked_weight_1",
        "raked_weight_2",
    ]
    seed = str(record["seed"])
    run(
        "survey.csv",
        "--margins",
        "census.csv",
        "--replicates",
        "2",
        "--seed",
        seed,
        "-o",
        "again.csv",
    )
    assert pl.read_csv("again.csv").equals(pl.read_csv("w.csv"))


def test_a_report_is_written_beside_the_table(folder):
    result = run(
        "survey.csv",
        "--margins",
        "census.csv",
        "-o",
        "w.csv",
        "--report",
        "report.html",
    )
    assert (
        "wrote w.csv (30 rows)\nwrote report.html\n\nNext: use the column"
        " 'raked_weight'" in result.output
    )
    text = (folder / "report.html").read_text()
    assert "survey.csv" in text
    assert "Design effect" in text
    run("survey.csv", "--margins", "census.csv", "--report", "report.txt", code=5)


def test_a_group_of_three_is_named_before_the_table():
    pl.DataFrame({"sex": ["F"] * 100 + ["X"] * 3}).write_csv("few.csv")
    pl.DataFrame({"sex": ["F", "X"], "value": [0.8, 0.2]}).write_csv("shares.csv")
    result = run("few.csv", "--margins", "shares.csv")
    assert result.output.startswith(
        "Warning: sex = X: 20.0% of the total weight rests on 3 rows"
    )
    assert "with --bounds and --relax." in " ".join(result.output.split())


def test_a_conflict_ends_with_4_and_leaves_nothing(folder):
    (folder / "census.csv").write_text(
        "columns,level,value\nsex,F,0.55\nsex,M,0.45\nage,young,0.1\nage,old,0.9\n"
    )
    result = run(
        "survey.csv",
        "--margins",
        "census.csv",
        "--bounds",
        "0.5,1.3",
        "-o",
        "w.csv",
        code=4,
    )
    assert "age = young has a share of 0.3333 and should have 0.1" in result.output
    assert "--relax all" in result.output
    assert not (folder / "w.csv").exists()
    relaxed = run(
        "survey.csv",
        "--margins",
        "census.csv",
        "--bounds",
        "0.5,1.3",
        "--relax",
        "age",
        "-o",
        "w.csv",
    )
    assert "the bounds do not allow all margins" in relaxed.output


def test_several_files_and_crossed_margins(folder):
    (folder / "crossed.csv").write_text(
        "sex,age,value\nF,young,20\nF,old,30\nM,young,15\nM,old,35\n"
    )
    (folder / "age.csv").write_text(
        "columns,level,value\nage,young,0.35\nage,old,0.65\n"
    )
    result = run(
        "survey.csv", "--margins", "crossed.csv", "--margins", "age.csv", "-o", "w.csv"
    )
    assert "was read as percentages" in result.output
    weighted = (
        pl.read_csv("w.csv")
        .group_by("sex", "age")
        .agg(pl.col("raked_weight").sum() / 30)
    )
    assert sorted(weighted.iter_rows())[1] == pytest.approx(("F", "young", 0.2))


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["survey.csv"], 2, "--margins"),
        (["survey.csv", "--margins", "census.csv", "--bounds", "3"], 2, "two numbers"),
        (
            ["survey.csv", "--margins", "census.csv", "--bounds", "2,3"],
            3,
            "--bounds is (2, 3)",
        ),
        (
            ["survey.csv", "--margins", "census.csv", "--relax", "region"],
            3,
            "--relax names 'region'",
        ),
        (["survey.csv", "--margins", "nowhere.csv"], 5, "nowhere.csv"),
        (
            ["survey.csv", "--margins", "census.csv", "-o", "census.csv"],
            2,
            "would be overwritten",
        ),
        (
            ["survey.csv", "--margins", "census.csv", "-o", "-", "--json"],
            2,
            "both write to stdout",
        ),
        (["-", "--margins", "-"], 2, "only one table"),
        (
            ["survey.csv", "--margins", "census.csv", "--title", "T"],
            2,
            "--title needs --report",
        ),
        (["survey.csv", "--margins", "census.csv", "--like-input"], 2, "--like-input"),
        (
            ["survey.csv", "--margins", "census.csv", "--report", "r.pdf"],
            5,
            "r.pdf: a report is not written as PDF; write an .html one",
        ),
        (
            [
                "survey.csv",
                "--margins",
                "census.csv",
                "--weight-name",
                "age",
                "-o",
                "w.csv",
            ],
            3,
            "--weight-name",
        ),
    ],
)
def test_refusals(arguments, code, words):
    said = run(*arguments, code=code).output
    assert words in " ".join(said.split())
    assert len(said.strip().splitlines()) == 1
