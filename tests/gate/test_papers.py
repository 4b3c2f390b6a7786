"""Documents to file: filled or marked, equal to numbers by hand, and readable."""

import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import clifiles
import fairmaxent
from clifiles import biased_table
from fairmaxent.debiasing import Fit
from fairmaxent.gate.kinds import KINDS
from fairmaxent.gate.papers import FORMS

# An interpreter that has mlcroissant and huggingface_hub, which the library itself does
# not need.
OTHERS = os.environ.get("FAIRMAXENT_OTHERS", sys.executable)


@pytest.fixture(scope="module")
def audited():
    """People by sex and race, and how many of them were hired."""
    cells = {
        ("F", "A"): (10, 2),
        ("F", "B"): (20, 10),
        ("M", "A"): (40, 20),
        ("M", "B"): (100, 60),
        ("M", "C"): (3, 0),
    }
    cells[None, "A"] = (3, 1)
    rows = [
        (*cell, "yes" if n < hired else "no")
        for cell, (count, hired) in cells.items()
        for n in range(count)
    ]
    frame = pl.DataFrame(rows, schema=["sex", "race", "hired"], orient="row")
    wanted = {"statistical_rate": {"sex": 0.8}, "favourable": "yes", "random_state": 0}
    return fairmaxent.debias(frame, "hired", ["sex", "race"], **wanted)


def test_local_law_144_equals_an_example_by_hand(audited):
    text = audited.document("ll144")
    rows = [
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if re.match(r"\| [FMABC]\b", line)
    ]
    assert rows == [
        ["F", "30", "12", "40.0%", "0.715", "–"],
        ["M", "143", "80", "55.9%", "1.000", "–"],
        ["A", "53", "23", "43.4%", "0.744", "–"],
        ["B", "120", "70", "58.3%", "1.000", "–"],
        ["C", "3", "0", "0.0%", "0.000", "under 2 %"],
        ["F × A", "10", "2", "20.0%", "0.333", "–"],
        ["F × B", "20", "10", "50.0%", "0.833", "–"],
        ["M × A", "40", "20", "50.0%", "0.833", "–"],
        ["M × B", "100", "60", "60.0%", "1.000", "–"],
        ["M × C", "3", "0", "0.0%", "0.000", "under 2 %"],
    ]
    assert all(
        f"- {name}: {count} people are not in" in text
        for name, count in (("sex", 3), ("race", 0), ("sex × race", 3))
    )


def test_scores_are_compared_by_who_is_above_the_median():
    scores = [1, 2, 3, 4, 3, 4, 5, 6, 7, 8] * 10  # of which 4 is the median
    frame = pl.DataFrame({"sex": (["F"] * 4 + ["M"] * 6) * 10, "score": scores})
    text = fairmaxent.debias(
        frame, "score", "sex", statistical_rate=None, random_state=0
    ).document("ll144")
    assert (
        "| F | 40 | 0 | 0.0% | 0.000 | – |\n| M | 60 | 40 | 66.7% | 1.000 | – |" in text
    )
    assert "Scoring rate" in text


def test_every_part_is_filled_or_marked(audited):
    drafts = [kind for kind in KINDS if KINDS[kind].suffix == ".md"]
    assert len(drafts) > 2
    for kind in drafts:
        _, *sections = audited.document(kind).split("\n## ")
        assert len(sections) == len(KINDS[kind].parts)
        assert all(
            "\n- " in part or "\n| " in part or "**To be written by" in part
            for part in sections
        )
    points = re.findall(r"## 10\(2\)\((.)\)", audited.document("article-10"))
    assert points == list("abcdefgh")
    for kind, said in (("cards", "did you mean 'card'"), ("ll144", "name favourable")):
        with pytest.raises(fairmaxent.InputError, match=said):
            fairmaxent.debias(biased_table(), "income", "sex", random_state=0).document(
                kind
            )
    for kind, data in (("card", "fair.csv"), ("croissant", "fair.parquet")):
        with pytest.raises(fairmaxent.InputError, match="leave data out"):
            audited.document(kind, data)
    with pytest.raises(
        fairmaxent.errors.StorageError, match=r"cannot read nowhere\.csv"
    ):
        audited.document("croissant", "nowhere.csv")


def test_every_kind_is_known_wherever_kinds_are_named(audited):
    help_text = clifiles.run("document", "--help").output
    listed = ", ".join(repr(name) for name in KINDS)
    with pytest.raises(fairmaxent.InputError, match=f"known: {listed}"):
        audited.document("zzz")
    for name, kind in KINDS.items():
        assert kind.form in FORMS
        assert f'``"{name}"``' in Fit.document.__doc__
        assert f"{name} ({kind.suffix}): {kind.help}" in help_text
    assert {kind.form for kind in KINDS.values()} == {*FORMS}
    assert "{" + "|".join(KINDS) + "}" in help_text


def test_documentation_names_only_kinds_that_there_are():
    pages = Path(__file__).parents[2].joinpath("docs").rglob("*.md")
    named = [
        name
        for page in pages
        for name in re.findall(r"fairmaxent document ([\w-]+)", page.read_text())
    ]
    assert named
    assert {*named} <= {*KINDS}


def test_a_document_belongs_to_one_model(audited, tmp_path):
    audited.save(tmp_path / "model.fme")
    fairmaxent.debias(biased_table(), "income", "sex", random_state=0).save(
        tmp_path / "other.fme"
    )
    for kind in KINDS:
        clifiles.run("document", kind, tmp_path / "model.fme", "-o", tmp_path / kind)
        assert (tmp_path / kind).read_text() == audited.document(kind)
        clifiles.run("verify", tmp_path / "model.fme", "--document", tmp_path / kind)
        clifiles.run(
            "verify", tmp_path / "other.fme", "--document", tmp_path / kind, code=5
        )


READ = {
    "mlcroissant": (
        "import mlcroissant;"
        " mlcroissant.Dataset(sys.argv[1]).metadata.ctx.issues.errors and sys.exit(1)"
    ),
    "huggingface_hub": (
        "from huggingface_hub import DatasetCard; assert"
        " DatasetCard.load(sys.argv[1]).data.tags"
    ),
}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("reader", READ)
@pytest.mark.parametrize(
    "table", [biased_table(), biased_table().rename({"job": 'a "b": {c}\n'}), None]
)
def test_those_who_read_them_can(reader, table, audited, tmp_path):
    if subprocess.run(
        [OTHERS, "-c", f"import {reader}"], capture_output=True, check=False
    ).returncode:
        pytest.skip(
            f"{reader} is not installed; FAIRMAXENT_OTHERS may name an interpreter that"
            " has it"
        )
    fit = (
        audited
        if table is None
        else fairmaxent.debias(table, "income", "sex", random_state=0)
    )
    fit.sample(50).write_csv(tmp_path / "fair.csv")
    path = tmp_path / ("paper.json" if reader == "mlcroissant" else "README.md")
    path.write_text(
        fit.document("croissant", tmp_path / "fair.csv")
        if reader == "mlcroissant"
        else fit.document("card")
    )
    subprocess.run([OTHERS, "-c", f"import sys; {READ[reader]}", path], check=True)
