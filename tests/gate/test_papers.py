"""Documents to file: filled or marked, equal to numbers by hand, and readable."""

import html
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from forging import forged, forged_head

import clifiles
import fairmaxent
from clifiles import biased_table
from fairmaxent.debiasing import Fit
from fairmaxent.document.words import percent
from fairmaxent.gate.papers import ALL_FACTS, KINDS
from fairmaxent.telling.entries import KEYS

# An interpreter that has mlcroissant and huggingface_hub, which the library itself does
# not need.
OTHERS = os.environ.get("FAIRMAXENT_OTHERS", sys.executable)


ABOUT_FITS = [name for name in KINDS if KINDS[name].about == "saved fit"]


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


def test_every_part_is_filled_or_marked(audited):
    drafts = [kind for kind in ABOUT_FITS if KINDS[kind].suffix == ".md"]
    assert len(drafts) > 1
    for kind in drafts:
        _, *sections = audited.document(kind).split("\n## ")
        assert len(sections) == len(KINDS[kind].parts)
        assert all(
            "\n- " in part or "\n| " in part or "\n> To be written by" in part
            for part in sections
        )
    points = re.findall(r"## 10\(2\)\((.)\)", audited.document("article-10"))
    assert points == list("abcdefgh")
    for kind, said in (("cards", "did you mean 'card'"), ("ll144", "name their table")):
        with pytest.raises(fairmaxent.InputError, match=said):
            fairmaxent.debias(biased_table(), "income", "sex", random_state=0).document(
                kind
            )
    with pytest.raises(
        fairmaxent.errors.StorageError, match=r"cannot read nowhere\.csv"
    ):
        audited.document("croissant", result="nowhere.csv")


def test_croissant_describes_csv_files_only(audited, tmp_path):
    audited.sample(20).write_parquet(tmp_path / "fair.parquet")
    with pytest.raises(fairmaxent.InputError, match="leave result out"):
        audited.document("croissant", result=tmp_path / "fair.parquet")


def test_every_kind_is_known_wherever_kinds_are_named(audited):
    help_text = clifiles.run("document", "--help").output
    listed = ", ".join(repr(name) for name in KINDS)
    with pytest.raises(fairmaxent.InputError, match=f"known: {listed}"):
        audited.document("zzz")
    for name, kind in KINDS.items():
        assert callable(kind.make)
        assert f'``"{name}"``' in Fit.document.__doc__
        assert f"{name} ({kind.suffix}): {kind.help}" in help_text
    used = {
        fact
        for kind in KINDS.values()
        for part in kind.parts
        for fact in part.get("facts", ())
    }
    assert {*ALL_FACTS} - {*KEYS} <= used <= {*ALL_FACTS}
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


def three_columns():
    """People with three protected columns, one of them Boolean."""
    rng = np.random.default_rng(3)
    count = 400
    sex = rng.choice(["F", "M"], count, p=[0.4, 0.6])
    race = rng.choice(["A", "B"], count, p=[0.3, 0.7])
    score = rng.normal(0, 1, count) + 0.5 * (sex == "M") + 0.3 * (race == "B")
    is_hired = rng.random(count) < 1 / (1 + np.exp(0.5 - score))
    columns = {
        "sex": sex,
        "race": race,
        "veteran": rng.random(count) < 0.3,
        "tests": rng.integers(0, 12, count),
        "score": score.round(3),
        "town": np.where(rng.random(count) < 0.05, None, rng.choice(["X", "Y"], count)),
        "staff_id": np.arange(count) + 10_000,
        "hired": np.where(is_hired, "yes", "no"),
    }
    return pl.DataFrame(columns)


def private_fit():
    """A fit with little noise of two columns and an outcome."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], 1400, p=[0.4, 0.6])
    is_hired = rng.random(1400) < np.where(sex == "M", 0.5, 0.3)
    hired = np.where(is_hired, "yes", "no")
    job = rng.choice(["a", "b"], 1400)
    frame = pl.DataFrame({"sex": sex, "job": job, "hired": hired})
    levels = {"sex": ["F", "M"], "job": ["a", "b"], "hired": ["no", "yes"]}
    return fairmaxent.debias(
        frame,
        "hired",
        "sex",
        favourable="yes",
        domain=fairmaxent.Domain.declare(levels=levels),
        privacy=fairmaxent.Privacy(epsilon=1, delta=1e-6),
        random_state=0,
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Saved fits by name: plain, private, and three columns with a model."""
    folder = tmp_path_factory.mktemp("models")
    plain = fairmaxent.debias(
        biased_table(), "income", "sex", favourable=">50K", random_state=0
    )
    columns = ["sex", "race", "veteran"]
    taught = fairmaxent.debias(
        three_columns(),
        "hired",
        columns,
        favourable="yes",
        model="logistic",
        random_state=0,
    )
    fits = {"plain": plain, "private": private_fit(), "model": taught}
    for name, fit in fits.items():
        fit.save(folder / f"{name}.fme")
        fit.sample(50).write_csv(folder / f"{name} rows_1.csv")
    return folder


PAPERS = [(name, kind) for name in ("plain", "private", "model") for kind in ABOUT_FITS]


@pytest.fixture(scope="module")
def papers(models):
    """Each kind of document about each fit, with the model that it is about."""
    written = {}
    for name, kind in PAPERS:
        fit = fairmaxent.load(models / f"{name}.fme")
        result = models / f"{name} rows_1.csv"
        written[name, kind] = (fit, fit.document(kind, result=result))
    return written


def compared(fit, text, folder):
    """Compare a text; None: it is refused as something else."""
    path = folder / "paper"
    path.write_text(text, encoding="utf-8")
    try:
        return fit.verify_document(path)
    except fairmaxent.errors.StorageError:
        return None


@pytest.mark.some(3)
@pytest.mark.parametrize("about", PAPERS)
def test_an_untouched_document_is_made_again(about, papers, tmp_path):
    fit, text = papers[about]
    for same in (text, text.rstrip(), text.replace("\n", "\r\n"), f"\ufeff{text}"):
        path = tmp_path / "paper"
        path.write_bytes(same.encode())
        found = fit.verify_document(path)
        assert (found.kind, found.differences) == (about[1], ())
        assert "every line agrees" in str(found)
    assert found.unwritten == text.count("To be written by")
    kind = KINDS[about[1]]
    questions = [part for part in kind.parts if "write" in part]
    in_head = json.dumps(kind.head).count("To be written by")
    assert found.unwritten == len(questions) + in_head


@pytest.mark.some(2)
@pytest.mark.parametrize("changes", [6, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("about", PAPERS)
def test_forged_documents_are_found(about, changes, papers, tmp_path):
    fit, text = papers[about]
    rng = random.Random(f"{about}")
    for _ in range(changes):
        found = compared(fit, forged(text, rng), tmp_path)
        assert found is None or found.differences


@pytest.mark.some(1)
@pytest.mark.parametrize("changes", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ABOUT_FITS)
def test_a_changed_head_is_no_bug(kind, changes, papers, tmp_path):
    """What a document states of itself is read before anything is compared."""
    fit, text = papers["plain", kind]
    rng = random.Random(kind)
    for _ in range(changes):
        found = compared(fit, forged_head(text, rng), tmp_path)
        assert found is None or found.differences


def test_missing_values_are_counted_by_group(papers):
    _, text = papers["model", "article-10"]
    table = three_columns().to_pandas()
    for name in ("sex", "race", "veteran"):
        for level, rows in table.groupby(name):
            lacking = rows["town"].isna()
            line = (
                f"| town | {name} = {level} | {lacking.sum()} | {lacking.mean():.1%} |"
            )
            assert line in text
    _, text = papers["plain", "article-10"]
    assert "- No column that is not named here has missing values.\n" in text
    assert "is missing in" not in text
    assert "Missing" not in text


def test_rows_of_tables_are_sentences_for_programs(papers):
    """Each cell behind its head, as the lines stand behind each other."""
    _, text = papers["plain", "croissant"]
    biases = json.loads(text)["rai:dataBiases"]
    assert (
        "Representation rate of sex; asked of the table any; in the data 0." in biases
    )
    assert re.search(r"\. Group sex = Female; People \d+; Share of the data", biases)


def test_sentences_end(papers):
    """In a text for programs, they stand behind each other."""
    for (_, kind), (_, text) in papers.items():
        lines = [line for line in text.split("\n") if line.startswith("- ")]
        facts = [line for line in lines if not re.match(r"- [A-Z]\w+: ", line)]
        assert all(line.endswith(".") for line in facts), kind


def test_what_has_no_document_is_said(models, tmp_path):
    table = models / "plain rows_1.csv"
    done = clifiles.run("document", "card", table, "-o", tmp_path / "a.md", code=5)
    assert "a raking and an evaluation have reports of their own" in done.stderr
    words = ["--score", "score", "--protected", "sex,race", "-o"]
    model = models / "plain.fme"
    done = clifiles.run("document", "ll144", model, *words, tmp_path / "a.md", code=5)
    assert "a table of decisions, which no saved fit holds" in done.stderr


def test_the_lines_that_differ_are_shown(papers, models, tmp_path):
    _, text = papers["plain", "article-10"]
    number, line = next(
        (number, line)
        for number, line in enumerate(text.split("\n"), 1)
        if line.startswith("| sex = Female")
    )
    path = tmp_path / "a.md"
    path.write_text(text.replace(line, f"{line}\x1b[31m"))
    shown = clifiles.run(
        "verify", "--document", path, models / "plain.fme", code=1
    ).output
    assert f"line {number}\n" in shown
    assert f"document:   {line}\\x1b[31m\n" in shown
    assert f"made again: {line}\n" in shown
    answer = clifiles.run(
        "verify", "--json", "--document", path, models / "plain.fme", code=1
    )
    found = json.loads(answer.output)["document"]
    assert found["kind"] == "article-10"
    assert [one["line"] for one in found["differences"]] == [number]


def test_the_date_is_sealed(papers, tmp_path):
    fit, text = papers["plain", "card"]
    (date,) = re.findall(r"card, (\d{4}-\d\d-\d\d), by", text)
    found = compared(fit, text.replace(date, "2020-01-01"), tmp_path)
    (line,) = found.differences
    assert "Seal: " in line.document[0]


@pytest.mark.some(3)
@pytest.mark.parametrize("about", PAPERS)
def test_words_of_people_may_differ(about, papers, tmp_path):
    fit, text = papers[about]
    words = re.sub(
        r"(?m)^> To be .*$", "> We asked, *and* 12 answered.\n\n> 2. More.\n>", text
    )
    words = re.sub(r'(?m)": "To be [^"]*"', r'": "MIT \\u00e9 \\"2\\""', words)
    assert words != text
    found = compared(fit, words, tmp_path)
    assert (found.differences, found.unwritten) == ((), 0)
    if about[1] == "croissant":
        assert json.loads(words)["license"] == 'MIT é "2"'


def test_only_the_words_of_people_in_their_places_may_differ(papers, tmp_path):
    fit, text = papers["plain", "article-10"]
    first = text.index("\n> ")
    changes = {
        "a place of one's own": text.replace("\n## ", "\n> All is well.\n\n## ", 1),
        "no place": text[:first] + text[text.index("\n", first + 1) :],
        "behind it": f"{text}\nAll is well.\n",
        "behind another end of a line": f"{text[:first]}\n> Ours.\r\rAll is well."
        + text[text.index("\n", first + 1) :],
        "behind a sign that separates lines": f"{text[:first]}\n> Ours.\u2028All."
        + text[text.index("\n", first + 1) :],
        "hiding": text.replace("\n> To be", "\n> <!-- To be", 1),
    }
    for other in changes.values():
        assert other != text
        assert compared(fit, other, tmp_path).differences
    fit, text = papers["plain", "croissant"]
    twice = text.replace('\n "license"', '\n "name": "Fair",\n "license"', 1)
    assert compared(fit, twice, tmp_path).differences
    twice = text.replace('\n "license"', '\n "license": "MIT",\n "license"', 1)
    assert compared(fit, twice, tmp_path).differences


def test_no_filled_text_of_a_program_may_differ(papers, tmp_path):
    """Each of them, not only those that a random change happens to meet."""
    fit, text = papers["plain", "croissant"]
    filled = {
        name: value
        for name, value in json.loads(text).items()
        if isinstance(value, str) and not value.startswith("To be written by")
    }
    assert {"description", "rai:dataBiases", "rai:dataLimitations"} < {*filled}
    for name, value in filled.items():
        line = f'"{name}": {json.dumps(value, ensure_ascii=False)}'
        assert text.count(line) == 1
        other = text.replace(line, f'{line[:-1]} And all is well."')
        found = compared(fit, other, tmp_path)
        assert found is None or found.differences, name


def test_a_document_belongs_to_one_model(papers, models, tmp_path):
    fit, text = papers["plain", "card"]
    path = tmp_path / "card.md"
    path.write_text(text)
    clifiles.run("verify", "--document", path, models / "plain.fme")
    clifiles.run("verify", "--document", path, models / "model.fme", code=5)
    path.write_text(f"We comply with everything. {fit.certificate.digest}\n")
    result = clifiles.run("verify", "--document", path, models / "plain.fme", code=5)
    assert (
        "is not a document that fairmaxent wrote about this saved fit" in result.stderr
    )
    clifiles.run("document", "card", models / "plain.fme", "-o", path, "--force")
    (command,) = re.findall(r"- Verify: (.*)", path.read_text())
    assert command == "fairmaxent verify --document card.md plain.fme"


def test_what_is_asked_of_a_model_is_not_said_of_the_table(papers):
    """Its decisions are asked for, and measured; the table gives way to them."""
    for kind in ABOUT_FITS:
        fit, text = papers["model", kind]
        plain = text.replace("\\", "")
        assert "Asked of its decisions, not of the table" in plain
        assert "what the model decides is measured, not promised" in plain
        assert "Asked of the table: " not in plain
        assert "did not learn from: the good outcome for" in plain
        assert f"trained {fit.certificate.decisions.trainings} times" in plain
        for lie in ("that it decides for", "is equal, up to", "rates that were asked"):
            assert lie not in plain


def test_no_document_is_a_verdict(papers):
    for (_, kind), (_, text) in papers.items():
        assert "made fair" not in text.lower(), kind
        assert "othing in it is a verdict" in text


def test_the_rows_and_rates_of_a_result_are_stated(papers, tmp_path):
    """Those of the file, which are not those of the distribution."""
    fit, _ = papers["plain", "article-10"]
    rows = biased_table().filter(pl.col("sex") == "Male").head(20)
    rows = pl.concat([rows, biased_table().filter(pl.col("sex") == "Female")])
    good = rows.group_by("sex").agg((pl.col("income") == ">50K").mean())["income"]
    people = rows["sex"].value_counts()["count"]
    rows.write_csv(tmp_path / "rows.csv")
    text = fit.document("article-10", result=tmp_path / "rows.csv")
    (line,) = re.findall(r"- Result: (.*)", text)
    count = f"{len(rows)} rows: of these alone, without weights"
    sizes = f"representation rate of sex {people.min() / people.max():.4f}"
    assert f"{count}, {sizes}" in line
    assert good.min() < 0.95 * good.max()
    assert f"statistical rate of sex {good.min() / good.max():.4f}" in line
    assert "| statistical rate of sex | 1.0000 |" in text
    assert "In the distribution" in text
    for name in ("New rows", "Weights", "Rows to add"):
        assert f"- {name}: " in text


def test_files_of_something_else_are_refused(models, tmp_path):
    fit = fairmaxent.load(models / "plain.fme")
    table = biased_table()
    own = tmp_path / "own.csv"
    table.write_csv(own)
    text = fit.document("card", data=own)
    assert re.search(r"- Data: own\.csv, SHA-256 .{64}, which agrees with", text)
    other = tmp_path / "other.csv"
    table.reverse().write_csv(other)
    with pytest.raises(fairmaxent.InputError, match="is not the row that the fit"):
        fit.document("card", data=other)
    table.head(10).write_csv(other)
    with pytest.raises(fairmaxent.InputError, match="data has 10 rows"):
        fit.document("card", data=other)
    for name in ("data", "result"):
        with pytest.raises(fairmaxent.errors.FairMaxEntError, match="learned from"):
            fit.document("card", **{name: models / "model rows_1.csv"})


def test_what_privacy_promises_is_said_in_numbers(papers):
    _, text = papers["private", "article-10"]
    assert "at most e^ε = 2.72 times more or less likely" in text
    assert "at most 1 row in the table; nothing checks how many" in text
    assert "It takes to be public: " in text
    assert "Numbers inside bins are drawn, not measured" in text
    assert re.search(
        r"statistical rate of sex \(of the data, with its noise: 0\.\d\d to", text
    )
    assert "noise: " not in papers["plain", "article-10"][1]


def test_the_noise_of_the_shares_of_outcomes_is_said(models, papers):
    fit = fairmaxent.load(models / "private.fme")
    cell, _ = fit.certificate.privacy.count_ranges
    # each of the two shares is a sum of two noisy cells, over a sum of four
    share = fit.certificate.outcome_shares[0].before
    exact = cell * np.sqrt(2 + 4 * share**2) / fit.certificate.rows
    for kind in ABOUT_FITS:
        text = papers["private", kind][1]
        said = re.search(r"each outcome's share before is at most ± (.*?)%", text)
        assert exact <= float(said[1]) / 100 <= 2 * exact
        assert "outcome's share before" not in papers["plain", kind][1]
        assert "The digest of the table is not stated" in text


def test_copies_by_chance_are_counted(audited, papers):
    """The share of drawn rows that equal a row of the data, exactly."""
    rows = audited.table.collect().codes
    assert len(rows) == 11
    combinations = audited.distribution.joint(range(3))
    real = audited.blocks.unpool(rows)
    equal = sum(combinations[tuple(row)] for row in real)
    assert audited.certificate.copied_share < equal
    by_design = f"{percent(audited.certificate.copied_share)} of them are by design"
    by_chance = f"by design or by chance, {percent(equal)} are expected to equal"
    for kind in ABOUT_FITS:
        text = audited.document(kind)
        assert f"{by_design} copies of rows of the data; {by_chance}" in text
        private = papers["private", kind][1]
        assert "0.0% of them are by design" in private
        assert "others may equal one by chance." in private


def test_numbers_are_those_that_the_outputs_have(papers):
    """Of weights, of rows to add, and of each group before and after."""
    fit, text = papers["plain", "card"]
    text = html.unescape(text)
    weights = fit.weights()
    worth = weights.sum() ** 2 / (weights**2).sum()
    assert worth < len(weights) - 1
    assert f"at most {weights.max():.3f}. As" in text
    assert f"they tell as much as {worth:,.0f} rows that count alike" in text
    added = fit.top_up(random_state=0)
    assert f"- Rows to add: {len(added):,}, beside the {len(weights):,} of" in text
    table = fit.weigh(biased_table())
    is_rich = pl.col("income") == ">50K"
    for (sex,), people in table.group_by("sex"):
        before = people.select(is_rich.mean()).item()
        rich = people.filter(is_rich)
        after = rich["fair_weight"].sum() / people["fair_weight"].sum()
        (line,) = re.findall(rf"(?m)^\| sex = {sex} \| {len(people)} \| .*$", text)
        cells = line.strip("| ").split(" | ")
        assert cells[4] == "income = >50K"
        assert cells[5] == percent(before)
        assert cells[7] == percent(after)
        assert before != pytest.approx(after, abs=0.01)


def test_the_noise_of_rates_is_simulated(models, papers):
    """Rates of the data with the same noise once more, in 95 % of draws."""
    fit = fairmaxent.load(models / "private.fme")
    cell, _ = fit.certificate.privacy.count_ranges
    rng = np.random.default_rng(7)
    people = fit.problem.cells()
    noisy = people + rng.normal(0, cell / 1.96, (4000, *people.shape))
    yes = noisy[:, 1] / noisy.sum(axis=1)
    ratios = yes.min(axis=1) / yes.max(axis=1)
    said = re.search(
        r"statistical rate of sex \(of the data, with its noise: (.*?) to (.*?)\)",
        papers["private", "card"][1],
    )
    for end, quantile in zip(said.groups(), (0.025, 0.975), strict=True):
        assert float(end) == pytest.approx(np.quantile(ratios, quantile), abs=0.03)


def test_a_group_is_warned_of_by_how_much_its_rows_tell(papers):
    """Not by their number: 32 rows may tell less than 30 that count alike."""
    text = papers["plain", "card"][1]
    assert "whose rows tell less than 30 rows that count alike" in text


def test_outcomes_are_counted_before_and_after(papers):
    fit, text = papers["model", "card"]
    share = next(
        one for one in fit.certificate.outcome_shares if one.outcome == "hired = yes"
    )
    before = three_columns().select((pl.col("hired") == "yes").mean()).item()
    assert share.before == pytest.approx(before)
    shares = f"{percent(before)} before, {percent(share.after)} after"
    assert f"outcome hired = yes: {shares}" in text


def test_a_person_may_be_the_creator_and_say_when(papers, tmp_path):
    fit, text = papers["plain", "croissant"]
    person = text.replace("sc:Organization", "sc:Person", 1)
    dated = re.sub(
        r'( "dateCreated": .*\n)', r'\1 "datePublished": "2026-11-19",\n', person
    )
    assert json.loads(dated)["datePublished"] == "2026-11-19"
    assert compared(fit, dated, tmp_path).differences == ()
    for wrong in ("fair", "2026-11-19, and fair"):
        other = dated.replace('"2026-11-19",\n "cite', f'"{wrong}",\n "cite')
        assert other != dated
        assert compared(fit, other, tmp_path).differences
    twice = dated.replace('"sc:FileObject"', '"sc:Person"')
    twice = twice.replace('"cr:FileObject"', '"sc:Person"')
    assert compared(fit, twice, tmp_path).differences


def test_a_private_fit_states_no_digest_of_its_table(models):
    fit = fairmaxent.load(models / "private.fme")
    with pytest.raises(fairmaxent.InputError, match="leave data out"):
        fit.document("article-10", data=models / "private rows_1.csv")


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
        fit.document("croissant", result=tmp_path / "fair.csv")
        if reader == "mlcroissant"
        else fit.document("card")
    )
    subprocess.run([OTHERS, "-c", f"import sys; {READ[reader]}", path], check=True)
