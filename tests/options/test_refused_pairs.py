"""The table of what is refused: each row is, by every front door, with both names."""

import importlib
import importlib.util
import inspect
import json
import pkgutil
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairmaxent
from clifiles import run
from fairmaxent.app.page_options import as_labelled, forms
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.rake import RakeOptions
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.values import as_typed
from fairmaxent.errors import InputError, Option
from fairmaxent.fit.models import Estimate, Model
from fairmaxent.fit.refused import EVALUATION
from fairmaxent.fit.request import Request
from fairmaxent.gate.audit import AuditRequest
from fairmaxent.gate.policy import Policy
from fairmaxent.options import typed_options
from fairmaxent.options.refusals import (
    GIVEN,
    MISSING,
    Refused,
    by_name,
    matches,
    refuse,
)
from fairmaxent.privacy.budget import Privacy
from fairmaxent.report.report import ReportRequest

HOOKS = Path(__file__).parents[2] / "scripts" / "docs_hooks.py"
TARGET = {"sex": {"f": 0.5, "m": 0.5}}

# A value of each option that is not its default, in Python and as it is typed.
VALUES = {
    "smallest_group": "2%",
    "base": "product",
    "base_share": 0.5,
    "data": pl.DataFrame({"sex": ["f"]}),
    "decided": "best",
    "detail": "rows",
    "estimate": "rows",
    "estimator": LogisticRegression(),
    "evaluate": True,
    "favourable": "yes",
    "forbid": [{"sex": "f"}],
    "groups": "joint",
    "iid": True,
    "keep_columns": "name",
    "largest_weight": 3.0,
    "likely": fairmaxent.Likely("race", {"a": "p", "b": "q"}, told_by="names"),
    "equal_means": True,
    "mode": "weights",
    "model": "logistic",
    "outcome": "hired",
    "parity": "probabilities",
    "privacy": Privacy(),
    "protected": "sex",
    "release": True,
    "representation_rate": 0.9,
    "hide_protected": True,
    "statistical_rate": {"sex": 0.9},
    "target": TARGET,
    "threshold": 0.4,
    "weight": "w",
}
TYPED = {
    "smallest_group": "--smallest-group 2%",
    "json": "--json",
    "author": "--author me",
    "base": "--base product",
    "base_share": "--base-share 0.5",
    "bins": "--bins 5",
    "decided": "--decided best",
    "domain": "--domain domain.toml",
    "detail": "--detail rows",
    "estimate": "--estimate rows",
    "evaluate": "--evaluate",
    "forbid": "--forbid sex=f",
    "groups": "--groups joint",
    "iid": "--iid",
    "kinds": "--kinds age:categorical",
    "keep_columns": "--keep-columns name",
    "largest_weight": "--largest-weight 3",
    "like_input": "--like-input",
    "likely": "--likely race:a=p,b=q --told-by names",
    "max_levels": "--max-levels 9",
    "equal_means": "--equal-means",
    "mode": "--mode weights",
    "model": "--model logistic",
    "order": "--order size:s,m",
    "output": "-o fair",
    "output_format": "--output-format csv",
    "parity": "--model logistic --parity probabilities",
    "privacy": "--epsilon 1 --save kept.fme",
    "purpose": "--purpose trial",
    "release": "--release",
    "report": "--report r.html",
    "representation_rate": "--representation-rate 0.9",
    "resume": "--resume",
    "rows": "--rows 5",
    "scheduler": "--scheduler tcp://h:1",
    "hide_protected": "--hide-protected",
    "statistical_rate": "--statistical-rate sex=0.9",
    "target": "--target sex:f=0.5,m=0.5",
    "threshold": "--threshold 0.4",
    "title": "--title T",
    "weight": "--weight w",
    "weight_name": "--weight-name w",
}
# Where a row needs another value than the usual one.
SPECIAL = {
    ("target", "largest_weight"): {"target": {"age": None}},
    ("target", "mode"): {"target": {"age": None}},
    ("target", "likely"): {"target": {"age": None}},
    ("model", "statistical_rate"): {"statistical_rate": None},
    ("outcome", "model"): {"outcome": ["hired", "kept"]},
    ("outcome", "likely"): {"outcome": ["hired", "kept"]},
    ("outcome", "estimate"): {"outcome": ["hired", "kept"]},
    ("representation_rate", "groups"): {"representation_rate": {"sex": 0.9}},
    ("estimate", "privacy"): {"estimate": "weights"},
    ("estimate", "release"): {"estimate": Estimate(output="weights")},
}
SPECIALLY_TYPED = {
    ("target", "largest_weight"): {"target": "--target age:keep"},
    ("target", "mode"): {"target": "--target age:keep"},
    ("target", "likely"): {"target": "--target age:keep"},
    ("model", "statistical_rate"): {"statistical_rate": "--statistical-rate none"},
    ("outcome", "model"): {"outcome": "--outcome kept"},  # beside another
    ("outcome", "likely"): {"outcome": "--outcome kept"},
    ("outcome", "estimate"): {"outcome": "--outcome kept"},
    ("representation_rate", "groups"): {
        "representation_rate": "--representation-rate sex=0.9"
    },
    ("estimate", "privacy"): {"estimate": "--estimate weights"},
    ("estimate", "release"): {"estimate": "--estimate weights"},
    ("json", "output"): {"output": "-o -"},
    ("resume", "likely"): {"resume": "--resume -o fair.parquet"},
    ("like_input", "privacy"): {"like_input": "--like-input -o fair.csv"},
    ("parity", "model"): {"parity": "--parity probabilities"},
    ("resume", "model"): {"resume": "--resume -o f.csv"},
    ("resume", "privacy"): {"resume": "--resume -o f.csv"},
    ("scheduler", "evaluate"): {"evaluate": "--evaluate --report r.html"},
    ("scheduler", "like_input"): {"like_input": "--like-input -o fair"},
    ("scheduler", "output"): {"output": "-o -"},
}


def name_of(row):
    """A row as the name of its test."""
    return f"{row.option}-{row.other}"


def held(row, values, special):
    """Values of both options that the row refuses."""
    asked_for = special.get((row.option, row.other), {})
    own = {**values, **asked_for}
    pair = {row.option: own.get(row.option), row.other: own.get(row.other)}
    for name, pattern in ((row.option, row.value), (row.other, row.beside)):
        if pattern == MISSING and name not in asked_for:
            del pair[name]
        elif isinstance(pattern, tuple) and values is VALUES:
            pair[name] = pattern[0]
        elif isinstance(pattern, tuple) and name == "mode":
            pair[name] = f"--mode {pattern[0]}"
    return pair


# ---------------------------------------------------------------- Python

IN_REQUEST = [row for row in Request.REFUSED if row not in EVALUATION]
IN_REQUEST += Model.REFUSED


def asked(row):
    """Ask for both options of a row, as a user of Python does."""
    pair = held(row, VALUES, SPECIAL)
    names = {"outcome": "hired", "protected": "sex"}
    if row.when is not None and row.option == "equal_means":
        names["domain"] = fairmaxent.Domain.declare(
            levels={"sex": ["f", "m"]}, edges={"hired": [0, 1, 2]}
        )
    output = {name: pair.pop(name) for name in ("mode",) if name in pair}
    in_report = {"iid", "evaluate", "data"} & {row.option, row.other}
    if in_report:
        own = {"privacy", "likely"} & pair.keys()
        of_fit = {name: pair.pop(name) for name in own}
        refuse(ReportRequest(**output, **pair), **of_fit)
        return
    in_model = {"hide_protected", "threshold", "decided", "estimator"}
    if row.option in in_model:
        Model(**pair)
        return
    refuse(Request(**(names | pair)), **output)


@pytest.mark.parametrize("row", IN_REQUEST, ids=name_of)
def test_python_refuses_each_row_with_both_names(row):
    with pytest.raises(InputError) as caught:
        asked(row)
    options = [part for part in caught.value.parts if isinstance(part, Option)]
    assert {row.option, row.other} <= {option.name for option in options}
    said = str(caught.value)
    assert all(str(option) in said for option in options)
    assert ("needs" if row.beside == MISSING else "cannot go together with") in said


@pytest.mark.parametrize("row", IN_REQUEST, ids=name_of)
def test_either_option_alone_is_not_refused_by_the_row(row):
    pair = held(row, VALUES, SPECIAL)
    for name in pair:
        alone = dict.fromkeys((row.option, row.other)) | {name: pair[name]}
        both = matches(alone, row.option, row.value) and matches(
            alone, row.other, row.beside
        )
        assert both == (row.beside == MISSING and name == row.option)


@pytest.mark.parametrize("row", EVALUATION, ids=name_of)
def test_evaluate_refuses_groups_without_an_outcome(row):
    table = pl.DataFrame({"sex": ["f", "m"] * 50})
    with pytest.raises(InputError, match=f"{row.option} needs outcome"):
        fairmaxent.evaluate(table, table, **{row.option: VALUES[row.option]})


@pytest.mark.parametrize("row", Policy.REFUSED, ids=name_of)
def test_a_policy_refuses_every_row(row):
    asked = {
        "outcome": "hired",
        "favourable": "yes",
        "predictions": "score",
        "threshold": 0.5,
        "cluster": None,
    }
    said = f"{row.option} cannot go together with {row.other}"
    if row.other == "groups":
        asked |= {"groups": "joint", row.option: {"sex": 0.8}}
    else:
        asked |= {"statistical_rate": 0.8, row.option: 0.8, row.other: "branch"}
    if row.other == "likely":
        asked["likely"] = VALUES["likely"]
    if row.beside == MISSING:
        asked[row.other] = None
        said = f"{row.option} needs {row.other}"
    with pytest.raises(InputError, match=said):
        Policy(protected="sex", **asked)


@pytest.mark.parametrize("row", AuditRequest.REFUSED, ids=name_of)
def test_an_audit_refuses_every_row(row):
    with pytest.raises(InputError, match=f"{row.option} needs {row.other}"):
        AuditRequest(protected=["sex", "race"], **{row.option: "yes"})


def test_a_budget_needs_a_ledger():
    with pytest.raises(InputError, match="budget needs ledger"):
        Privacy(budget=3)


def test_what_follows_from_sharing_can_be_asked_for_again():
    request = Request("hired", "sex", release=True, base_share=1.0, detail="bins")
    assert (request.base_share, request.detail) == (1.0, "bins")
    assert Request("hired", "sex", release=True) == request


def hiring(rows=4000):
    """Women are fewer, are hired and kept less often, and live apart."""
    rng = np.random.default_rng(43)
    men = rng.random(rows) < 0.7
    table = {
        "sex": np.where(men, "m", "f"),
        "race": np.where(rng.random(rows) < np.where(men, 0.5, 0.2), "a", "b"),
        "town": rng.choice(["x", "y"], rows),
        "pay": rng.integers(1, 4, rows) + men,
        "hired": np.where(rng.random(rows) < np.where(men, 0.6, 0.3), "yes", "no"),
        "kept": np.where(rng.random(rows) < np.where(men, 0.7, 0.5), "yes", "no"),
    }
    return pd.DataFrame(table)


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        ({"protected": "sex"}, True),
        ({"protected": "sex", "within": "town"}, True),
        ({"protected": "sex", "groups": "joint"}, True),
        ({"protected": ["sex", "race"]}, True),
        ({"protected": ["sex", "race"], "representation_rate": {"sex": 0.9}}, True),
        ({"protected": ["sex", "race"], "representation_rate": {"race": 0.9}}, False),
        ({"protected": ["sex", "race"], "groups": "joint"}, False),
        ({"protected": ["sex", "race"], "groups": "joint", "within": "town"}, False),
    ],
)
def test_sizes_are_given_once_or_both_are_kept(more, is_refused):
    table = hiring()
    asked = {"representation_rate": 0.9, "target": TARGET, **more}
    protected = asked.pop("protected")
    if is_refused:
        with pytest.raises(InputError, match="cannot go together with target"):
            fairmaxent.debias(table, "hired", protected, favourable="yes", **asked)
        return
    fit = fairmaxent.debias(table, "hired", protected, favourable="yes", **asked)
    weighed = table.assign(weight=fit.weights())
    shares = weighed.groupby("sex")["weight"].sum() / weighed["weight"].sum()
    assert shares.tolist() == pytest.approx([0.5, 0.5], abs=1e-6)
    cells = ["sex"] if "groups" in asked else []
    if "within" in asked:
        cells.append(asked["within"])
    sizes = weighed.groupby([*cells, "race"])["weight"].sum().to_numpy().reshape(-1, 2)
    assert (sizes.min(axis=1) / sizes.max(axis=1) >= 0.9 - 1e-6).all()


@pytest.mark.parametrize("rate", [1.0, 1, 0.8])
def test_equal_means_leave_the_rates_of_the_other_outcomes(rate):
    table = hiring()
    fit = fairmaxent.debias(
        table,
        ["pay", "hired", "kept"],
        "sex",
        equal_means=True,
        statistical_rate=rate,
        favourable={"hired": "yes", "kept": "yes"},
        base_share=1.0,
        random_state=0,
    )
    drawn = fit.sample(40_000)
    for outcome in ("hired", "kept"):
        good = (drawn[outcome] == "yes").groupby(drawn["sex"]).mean()
        assert good.min() / good.max() >= rate - 0.01
    means = drawn.groupby("sex")["pay"].mean()
    assert means["f"] == pytest.approx(means["m"], abs=0.01)


# ---------------------------------------------------------------- the command line

COMMANDED = [
    *(row for row in Request.REFUSED if row not in EVALUATION),
    *Model.REFUSED,
    *OutputOptions.REFUSED,
    *DomainOptions.REFUSED,
]
FLAGS = by_name(
    source
    for record in (Request, OutputOptions, DomainOptions)
    for source in typed_options(record)
)


def typed_rows():
    """The rows of `debias` whose two options can be typed there."""
    for row in COMMANDED:
        known = {row.option, row.other} <= FLAGS.keys()
        is_output = row.value == ("uncertainty",)
        is_domain = row.option == "equal_means" and row.when is not None
        if known and not is_output and not is_domain and row.option in TYPED:
            yield row


@pytest.mark.parametrize("row", [*typed_rows()], ids=name_of)
def test_a_command_refuses_each_row_before_any_work(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = " ".join(held(row, TYPED, SPECIALLY_TYPED).values()).split()
    roles = ["--outcome", "hired", "--protected", "sex"]
    said = run("debias", "nowhere.csv", *roles, *words, code=2).stderr
    for name in (row.option, row.other):
        assert as_typed(Option(name)) in said
    assert list(tmp_path.iterdir()) == []


def test_an_option_of_a_record_needs_the_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    roles = ["--outcome", "hired", "--protected", "sex"]
    parts = [source for source in typed_options(Request) if source.owner is not None]
    assert {source.owner for source in parts} == {"likely", "model", "privacy"}
    values = {"delta": "1e-6", "undeclared": "drop", "decided": "keep"}
    for source in parts:
        if source.field.name == "epsilon":
            continue
        flag = source.flags[0]
        word = [values.get(source.field.name, "2")]
        if source.info.text == "flag":
            word = []
        elif source.info.choices:
            word = [source.info.choices[0]]
        said = run("debias", "nowhere.csv", *roles, flag, *word, code=2).stderr
        whole = as_typed(Option(source.owner))
        assert f"{flag} needs {whole}" in said
        assert f"add {whole}, or leave {flag} out" in said


def test_a_config_file_is_refused_likewise_but_may_be_for_runs_with_a_report(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"sex": ["f", "m", "f", "m"] * 30, "hired": list("ynny") * 30})
    frame.write_csv("data.csv")
    roles = 'outcome = "hired"\nprotected = ["sex"]\n'
    Path("c.toml").write_text(f'{roles}title = "T"\n')
    run("debias", "data.csv", "--config", "c.toml", "--estimate", "none")
    Path("c.toml").write_text(f"{roles}release = true\nbase_share = 0.5\n")
    said = run("debias", "nowhere.csv", "--config", "c.toml", code=2).stderr
    assert "--base-share cannot go together with --release" in said
    Path("c.toml").write_text(f"{roles}threshold = 0.4\n")
    said = run("debias", "nowhere.csv", "--config", "c.toml", code=2).stderr
    assert "--threshold needs --model" in said


def test_raking_refuses_a_title_without_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert RakeOptions.REFUSED
    said = run("rake", "no.csv", "--margins", "m.csv", "--title", "T", code=2).stderr
    assert "--title needs --report" in said


# ---------------------------------------------------------------- the page


def test_the_page_knows_each_row_of_its_controls_and_says_the_same():
    controls = {one["name"]: one for part in forms().values() for one in part}
    greyed = {
        (name, row["other"]) for name, one in controls.items() for row in one["refused"]
    }
    assert ("base_share", "release") in greyed
    assert ("largest_weight", "model") in greyed
    assert ("mode", "epsilon") in greyed
    assert controls["threshold"]["part_of"] == "model"
    assert ("representation_rate", "target") not in greyed  # depends on the column
    (row,) = [
        row for row in controls["base_share"]["refused"] if row["other"] == "release"
    ]
    assert row["why"].startswith("“New combinations” cannot go together with “Rows to")
    assert (row["is"], row["default"]) == (GIVEN, False)
    with pytest.raises(InputError) as caught:
        Request("hired", "sex", release=True, base_share=0.5)
    assert caught.value.spelled(as_labelled) == row["why"]


SCRIPT = """
import { isAsked } from "./form.js";
const { forms, cases } = JSON.parse(process.argv[2]), all = Object.values(forms).flat();
console.log(JSON.stringify(cases.map((values) =>
  all.filter((one) => !isAsked(one, values)).map((one) => one.name))));
process.exit();
"""


def test_the_script_of_the_page_greys_out_what_the_table_refuses(tmp_path):
    node = shutil.which("node") or pytest.skip("node is not here to run JavaScript")
    for file in (files("fairmaxent.app") / "static").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "run.js").write_text(SCRIPT)
    cases = [
        {},
        {"release": True},
        {"epsilon": 1, "model": "none"},
        {"model": "logistic", "parity": "probabilities"},
        {"mode": "weights"},
    ]
    given = json.dumps({"forms": forms(), "cases": cases})
    done = subprocess.run(
        [node, "run.js", given],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    usual, released, private, relabelled, weighed = map(set, json.loads(done.stdout))
    of_model = {"hide_protected", "parity", "threshold", "decided"}
    of_privacy = {"delta", "rows_per_person", "budget", "undeclared"}
    of_likely = {"told_by", "known_groups", "recalibrated", "slack"}
    assert usual == of_model | of_privacy | of_likely | {"weight_name"}
    assert released == usual | {
        "base_share",
        "detail",
        "keep_columns",
        "max_levels",
        "mode",
    }
    beside_privacy = {"model", "base", "evaluate", "smallest_group"}
    of_release = {"max_levels", "keep_columns"}
    assert private == (released | beside_privacy) - of_privacy - of_release
    refused = {"largest_weight", "forbid", "equal_means", "smallest_group"}
    assert relabelled == (usual | refused) - {"parity"}
    assert weighed == (usual - {"weight_name"}) | {"rows", "iid", "evaluate"}


# ---------------------------------------------------------------- the table


def test_the_reference_page_prints_every_row_of_every_record():
    spec = importlib.util.spec_from_file_location("docs_hooks", HOOKS)
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    for module in pkgutil.walk_packages(fairmaxent.__path__, "fairmaxent."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    records = [
        record
        for name, module in list(sys.modules.items())
        if name.startswith("fairmaxent")
        for record in vars(module).values()
        if inspect.isclass(record) and vars(record).get("REFUSED")
    ]
    assert {Request, Model, Privacy, Policy, OutputOptions} <= {*records}
    shown = {row for rows in hooks.REFUSED.values() for row in rows}
    assert {*EVALUATION}.union(*(record.REFUSED for record in records)) == shown
    here = SimpleNamespace(file=SimpleNamespace(src_uri="reference/refused.md"))
    page = hooks.on_page_markdown(hooks.TABLE, here)
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(lines) == len(shown)
    assert "| `budget` | no `ledger` | it is about all fits together | add it |" in page


def test_every_row_says_why_and_names_known_options():
    every = {*COMMANDED, *Request.REFUSED, *Privacy.REFUSED, *EVALUATION}
    known = {*FLAGS, "data", "estimator", "estimate", "outcome", "ledger"}
    for row in every:
        assert row.why
        assert {row.option, row.other} <= known
        assert row.option != row.other
        for name in {row.option, row.other} & FLAGS.keys():
            assert as_typed(Option(name)) in FLAGS[name].flags


def test_a_row_is_one_line_to_add():
    row = Refused("largest_weight", "weight", "this is a trial")

    class Trial(Request):
        REFUSED = (*Request.REFUSED, row)

    Trial("hired", "sex", weight="w")
    with pytest.raises(InputError, match=r"largest_weight cannot .* weight: this is"):
        Trial("hired", "sex", weight="w", largest_weight=3.0)
