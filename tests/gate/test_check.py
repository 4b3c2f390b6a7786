"""The gate: every front door gives one answer, `confident` keeps its promise, and files
hold whatever the data hold.
"""

import contextlib
import json
import runpy
import shlex
import uuid
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

import clifiles
import fairmaxent
import pages
from clifiles import biased_table
from fairmaxent.cli.config import toml
from fairmaxent.errors import UnfairError
from fairmaxent.gate import check, fair_test
from fairmaxent.gate.checking import check_policies
from fairmaxent.gate.policy import read_policies
from fairmaxent.gate.result import CODES, FORMS
from fairmaxent.metrics import intervals, representation_rate, statistical_rate
from fairmaxent.metrics.effective_counts import EffectiveCounts
from fairmaxent.metrics.intervals import Compared


def people(*counts, size=100):
    """Groups of a size, of which so many were hired."""
    sex = [name for name, _ in zip("FMX", counts, strict=False) for _ in range(size)]
    hired = [
        answer
        for count in counts
        for answer in ["yes"] * count + ["no"] * (size - count)
    ]
    return pl.DataFrame({"sex": sex, "hired": hired})


ROLES = "[a]\nprotected = 'sex'\noutcome = 'hired'"
ASKED = {
    "outcome": "hired",
    "protected": "sex",
    "favourable": "yes",
    "statistical_rate": 0.8,
}


@pytest.mark.some(6)
@pytest.mark.parametrize(
    ("table", "options", "answer"),
    [
        (people(40, 50), {}, "pass"),  # on the limit
        (people(39, 50), {}, "fail"),
        (people(39, 50), {"confident": True}, "cannot tell"),
        (people(10, 50), {"confident": True}, "fail"),
        (people(5000, 5000, size=10_000), {"confident": True}, "pass"),
        (people(50), {}, "cannot tell"),  # there is nobody to compare with
        (
            people(50, 10, 50),
            {"protected": ["sex"], "statistical_rate": {"sex": 0.2}},
            "pass",
        ),
        (people(10, 50), {"statistical_rate": None, "against": people(50, 50)}, "fail"),
        (people(45, 50), {"statistical_rate": None, "against": people(50, 50)}, "pass"),
        (people(10, 50), {"predictions": ["yes", "no"] * 100}, "pass"),
        (
            people(10, 50).with_columns(p=pl.lit("yes")),
            {"outcome": None, "predictions": "p"},
            "pass",
        ),
        (people(50, 50), {"statistical_rate": None, "representation_rate": 1}, "pass"),
    ],
)
def test_the_answer(table, options, answer):
    result = check(table, **ASKED | options)
    assert (result.answer, result.ok, result.rows) == (
        answer,
        answer == "pass",
        len(table),
    )
    if answer == "pass":
        return result.raise_if_unfair()
    with pytest.raises(UnfairError, match=answer) as raised:
        result.raise_if_unfair()
    assert isinstance(raised.value, AssertionError)
    assert ("one group only" in str(raised.value)) == (table["sex"].n_unique() == 1)


@pytest.mark.some(2)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("within", [None, "race", {"race": ["Black", "White"]}])
def test_rates_of_counted_rows_are_those_of_the_rows(weight, within):
    """Whatever holds the rows: they are counted first, in memory or by an engine."""
    table = biased_table().with_columns(
        sex=pl.when(pl.col("age") > 85).then(None).otherwise("sex")
    )
    how = {
        "within": within,
        "weight": weight,
        "compare_missing": True,
        "smallest_group": None,
        "confidence": 0.98,  # of two limits, and four fifths of the chance
    }
    expected = [
        statistical_rate(table, "income", "sex", favourable=">50K", **how),
        representation_rate(table, "sex", **how),
    ]
    limits = {
        "statistical_rate": 0.8,
        "representation_rate": 0.5,
        **how,
        "confidence": 0.95,
    }
    for frame in (table, table.lazy(), table.to_pandas(), table.to_arrow()):
        result = check(frame, "income", "sex", favourable=">50K", **limits)
        for found, rate in zip(result.findings, expected, strict=True):
            assert found.rate.value == pytest.approx(rate.value, abs=1e-12)
            assert found.rate.interval == pytest.approx(rate.interval, abs=1e-8)
            assert found.rate.worst == rate.worst
            assert [group.count for group in found.rate.groups] == [
                group.count for group in rate.groups
            ]


def typed(asked):
    for name, value in asked.items():
        texts = (
            [",".join(value)]
            if isinstance(value, list)
            else []
            if isinstance(value, bool)
            else [str(value)]
        )
        yield from [f"--{name.replace('_', '-')}", *texts] if value is not False else []


def checks_in(text):
    """What was found. Engines add up weights in any order, so the last digits vary."""
    return json.loads(text, parse_float=lambda digits: round(float(digits), 9))[
        "checks"
    ]


@pytest.mark.more
@pytest.mark.parametrize(
    "seeds",
    [range(15), pytest.param(range(1000, 11_000), marks=pytest.mark.slow)],
    ids=lambda seeds: str(len(seeds)),
)
def test_front_doors_agree(seeds, tmp_path):
    """Tables and policies are drawn: Python, the command line, a file of policies, and
    the test made of it.
    """
    for seed in seeds:
        rng = np.random.default_rng(seed)
        size, table = (
            int(rng.integers(20, 200)),
            tmp_path / ("table.parquet" if seed % 5 else "table.csv"),
        )
        columns = {
            "sex": rng.choice(["F", "M"], size),
            "age": rng.choice(["old", "x, y"], size),
        }
        columns["hired"] = np.where(rng.random(size) < rng.random(), "yes", "no")
        columns["score"] = rng.random(size).round(2)
        columns["team"] = rng.choice(["a", "b"], size)
        columns["house"] = np.arange(size) // 2
        columns["mass"] = rng.integers(1, 4, size)  # sums of these are exact
        frame = pl.DataFrame(columns)
        asked = {
            "outcome": "hired",
            "protected": list(rng.permutation(["sex", "age"])[: rng.integers(1, 3)]),
        }
        asked |= {
            "statistical_rate": round(float(rng.uniform(0.3, 1)), 2),
            "confident": bool(rng.random() < 0.2),
        }
        asked |= {"favourable": "yes"} if rng.random() < 0.7 else {}
        asked |= {"representation_rate": 0.5} if rng.random() < 0.3 else {}
        asked |= {"groups": "joint"} if rng.random() < 0.3 else {}
        if seed % 10 == 0:  # they take longer
            asked |= {"favourable": "yes", "predictions": "score", "threshold": 0.4}
            kind = rng.choice(["equal_opportunity", "equalised_odds", "calibration"])
            asked[str(kind)] = round(float(rng.uniform(0.05, 1)), 2)
        elif seed % 10 == 5:
            asked |= {"smallest_group": 0, "statistical_difference": 0.1}
            asked["against"] = str(tmp_path / "earlier.parquet")
            frame.sample(size // 2, seed=seed).write_parquet(asked["against"])
        others = {
            "weight": "mass",
            "cluster": "house",
            "within": "team",
            "confidence": 0.8,
            "compare_missing": True,
        }
        if asked["protected"] == ["sex"]:
            others["reference"] = "F"
        asked |= {name: others[name] for name in others if rng.random() < 0.15}
        frame.write_parquet(table) if seed % 5 else frame.write_csv(table)
        try:
            result = check(frame, **asked)
        # nobody, or everybody, was hired; or options do not go together
        except fairmaxent.InputError:
            clifiles.run("check", table, *typed(asked), code=2)
            continue
        (expected,) = checks_in(FORMS["json"]([result]))
        said = clifiles.run(
            "check", table, "--format", "json", *typed(asked), code=CODES[result.answer]
        ).stdout
        assert checks_in(said) == [expected | {"file": str(table)}]
        policies = tmp_path / "pyproject.toml"
        lines = [
            f"{name} = {toml(value)}"
            for name, value in {"data": table.name, **asked}.items()
        ]
        policies.write_text(
            "\n".join(["[tool.fairmaxent.check.case]", *lines]), encoding="utf-8"
        )
        if seed % 4 == 0:  # the test below reads the same file
            (again,) = checks_in(FORMS["json"](check_policies(read_policies(policies))))
            assert again["findings"] == expected["findings"]
        with (
            contextlib.nullcontext()
            if result.ok
            else pytest.raises(UnfairError, match=result.answer)
        ):
            fair_test(policies)("case")


@cache
def confident_answer(first, second, size):
    return check(people(first, second, size=size), **ASKED, confident=True).answer


def answers(first, second, size, tables=2000):
    """How often which answer comes, if these are the true rates."""
    rng = np.random.default_rng(0)
    drawn = zip(
        *(rng.binomial(size, rate, tables) for rate in (first, second)), strict=True
    )
    found = [confident_answer(*map(int, pair), size) for pair in drawn]
    return {answer: found.count(answer) / tables for answer in CODES}


@pytest.mark.slow
@pytest.mark.parametrize("size", [30, 300, 3000])
def test_a_confident_check_seldom_fails_on_the_limit_and_finds_a_large_gap(size):
    assert answers(0.4, 0.5, size)["fail"] <= 0.05
    # A rate of .6, where most of the better group were hired, is found.
    assert size != 300 or answers(0.48, 0.8, 300)["fail"] >= 0.95


@pytest.mark.slow
def test_no_worse_than_before_is_seldom_failed_by_chance():
    rng = np.random.default_rng(1)
    drawn = rng.binomial(200, [0.4, 0.5, 0.4, 0.5], (400, 4)).tolist()
    tables = [
        (people(*draw[:2], size=200), people(*draw[2:], size=200)) for draw in drawn
    ]
    asked = {**ASKED, "statistical_rate": None}
    assert (
        np.mean([not check(now, **asked, against=before).ok for now, before in tables])
        <= 0.05
    )


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("first", "second"), [(36, 50), (47, 50), (21, 30), (76, 90), (50, 50)]
)
def test_so_many_people_are_needed(first, second):
    """Of tables with as many people, four in five tell; with a fifth less or more,
    fewer or more of them do.
    """
    (found,) = check(people(first, second), **ASKED, confident=True).findings
    rng = np.random.default_rng(2)

    def telling(count):
        positives = rng.binomial(
            round(count), [first / 100, second / 100], (4000, 2)
        ).astype(float)
        compared = Compared(
            EffectiveCounts(
                positives, round(count) - positives, np.ones_like(positives)
            )
        )
        low, high = intervals.ratio_ends([compared], 1 - 0.8 * 0.05)
        return np.mean((low >= 0.8) | (high < 0.8))

    assert {*found.needed} == {"F", "M"}
    (count,) = {*found.needed.values()}
    assert telling(count / 1.2) < 0.8 < telling(count * 1.2)
    assert f"about {count:,} people of F, {count:,} people of M" in found.sentence
    # on the limit nobody will tell
    assert not check(people(40, 50), **ASKED, confident=True).findings[0].needed


def test_files_hold_whatever_the_data_hold(tmp_path):
    nasty = '<b>&"\x1b[2J\ufffe|`\u202e'
    frame = (
        people(10, 50)
        .with_columns(sex=pl.col("sex") + nasty)
        .rename({"sex": f"s{nasty}"})
    )
    results = [
        check(frame, "hired", f"s{nasty}", favourable="yes", statistical_rate=limit)
        for limit in (0.1, 0.8)
    ]
    made = {form: write(results) for form, write in FORMS.items()}
    assert not any(mark in text for text in made.values() for mark in "\x1b\u202e")
    suites = ElementTree.fromstring(made["junit"])
    assert [suite.get("failures") for suite in suites] == ["0", "1"]
    assert [len(case) for case in suites.iter("testcase")] == [0, 1]
    assert json.loads(made["json"])["answer"] == "fail"
    assert "<b>" not in made["markdown"]
    paths = [tmp_path / f"check{suffix}" for suffix in (".txt", ".md", ".xml", ".json")]
    people(10, 50).write_csv(table := tmp_path / "table.csv")
    clifiles.run(
        "check",
        table,
        *typed(ASKED),
        *(word for path in paths for word in ("-o", path)),
        code=1,
    )
    assert all(path.stat().st_size for path in paths)
    # its own files are replaced, whatever they say; those of others are not
    for answer, (code, name) in {
        "pass": (0, "fair.csv"),
        "error": (2, "gone.csv"),
        "fail": (1, "table.csv"),
    }.items():
        people(50, 50).write_csv(tmp_path / "fair.csv")
        words = [word for path in paths for word in ("-o", path)]
        clifiles.run("check", tmp_path / name, *typed(ASKED), *words, code=code)
        assert all(f"{answer}" in path.read_text("utf-8") for path in paths[:2])
    for path in paths:
        text = path.read_text("utf-8")
        path.write_text(f"My notes.\n{text}", "utf-8")
        clifiles.run("check", table, *typed(ASKED), "-o", path, code=2)
        assert path.read_text("utf-8").startswith("My notes.")
        clifiles.run("check", table, *typed(ASKED), "-o", path, "--force", code=1)
    clifiles.run("check", table, *typed(ASKED), "-o", tmp_path / "check.pdf", code=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no policy"),
        ("protected = 'sex'", "name protected columns, and the outcome"),
        (ROLES, "nothing to check; set a limit"),
        (f"{ROLES}\nstatistical_rates = 0.8", "did you mean 'statistical_rate'"),
        (f"{ROLES}\nstatistical_rate = {{rce = 0.8}}", "names 'rce'"),
        (f"{ROLES}\nstatistical_rate = 0.8", "names no table"),
        ("a =", "is not valid TOML"),
    ],
)
def test_a_file_without_a_policy_that_can_be_used(tmp_path, text, said):
    path = tmp_path / "policies.toml"
    path.write_text(text, encoding="utf-8")
    (found,) = check_policies(read_policies(path))
    with pytest.raises(fairmaxent.InputError, match=said):
        found.raise_if_unfair()
    clifiles.run("check", "--policies", path, code=2)


def nested_columns():
    """Columns of Arrow that nobody can be grouped by."""
    identity = uuid.uuid4().bytes
    return {
        "list": pa.array([[1], [2]] * 30),
        "struct": pa.array([{"a": 1}, {"a": 2}] * 30),
        "map": pa.array([[("a", 1)]] * 60, pa.map_(pa.string(), pa.int64())),
        "uuid": pa.array([identity] * 60, pa.uuid()),
    }


@pytest.mark.parametrize("kind", ["list", "struct", "map", "uuid"])
@pytest.mark.parametrize("role", ["protected", "outcome", "within"])
def test_what_nobody_can_be_grouped_by_is_said(kind, role):
    columns = {"hired": pa.array(["yes", "no"] * 30), "sex": pa.array(["f", "m"] * 30)}
    table = pa.table({**columns, "odd": nested_columns()[kind]})
    asked = {"outcome": "hired", "protected": ["sex"], "statistical_rate": 0.8}
    with pytest.raises(fairmaxent.InputError, match=r"cannot be counted by .*odd"):
        check(table, **(asked | {role: "odd"}))


def test_a_type_that_an_engine_lacks_is_no_bug(tmp_path):
    wide = pa.array([1, 2] * 30, pa.decimal256(50, 2))
    parquet.write_table(
        pa.table({"hired": ["yes", "no"] * 30, "sex": ["f", "m"] * 30, "wide": wide}),
        tmp_path / "wide.parquet",
    )
    asked = {"outcome": "hired", "protected": "sex", "statistical_rate": 0.8}
    with pytest.raises(fairmaxent.errors.StorageError, match="precision must be"):
        check(tmp_path / "wide.parquet", **asked)


@pytest.mark.more
def test_the_files_to_copy_work(tmp_path, monkeypatch):
    for name in ("gate/pyproject.toml", "census.csv"):
        (tmp_path / Path(name).name).write_bytes((pages.DOCS / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    action, hook = (
        yaml.safe_load((pages.DOCS / f"gate/{name}").read_text())
        for name in ("github-action.yml", "pre-commit-config.yaml")
    )
    commands = [
        step["run"].partition(" >> ")[0]
        for step in action["jobs"]["check"]["steps"]
        if "fairmaxent check" in step.get("run", "")
    ]
    (hook,) = hook["repos"][0]["hooks"]
    for command in [*commands, *commands, hook["entry"]]:  # they run again and again
        assert "pass" in clifiles.run(*shlex.split(command)[1:]).stdout
    assert Path("fairness.xml").exists()
    kept = [step["with"] for step in action["jobs"]["check"]["steps"] if "if" in step]
    assert [where["path"] for where in kept] == ["fairness.xml"]
    # a commit that deletes a table, or changes one with an odd name, is checked, too
    assert hook["always_run"]
    assert not {"files", "types", "exclude", "stages"} & hook.keys()
    example = runpy.run_path(str(pages.DOCS / "gate/test_fairness.py"))["test_fairness"]
    for name in example.pytestmark[0].args[1]:
        example(name)
