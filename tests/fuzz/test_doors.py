"""Generated calls by the other front doors, the command line, the estimator and the
page: each ends in our words, or in numbers that plain group-bys confirm.

``FUZZ_CALLS=100000 pytest tests/fuzz/test_doors.py`` tries more of them.
"""

import csv
import io
import json
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from by_hand import check_rates, compares_all_levels, is_plain
from ends import CALLS, SEED, ends_well, ran, soon
from frame_calls import OPTIONS, RIGHT, STRANGE
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import appserver
from fairmaxent import debias, load
from fairmaxent.cli.group import group

pytestmark = pytest.mark.more

TYPED_CALLS = round(CALLS * 0.5)
ESTIMATOR_CALLS = round(CALLS * 0.2)
PAGE_CALLS = round(CALLS * 0.3)
ROLES = ["--outcome", "y", "--protected", "z"]


def generated_table(rng):
    """Columns in which y depends on the others, w is a weight, and some cells are
    odd in one table of three.
    """
    rows = int(rng.integers(30, 150))
    z, z2, a = (
        rng.choice(["p", "q", "r"][: int(levels)], rows)
        for levels in rng.integers(2, 4, 3)
    )
    chance = np.where(z == "p", 0.3, 0.6) * np.where(a == "q", 0.8, 1.0)
    y = np.where(rng.random(rows) < chance, "yes", rng.choice(["no", "later"], rows))
    w = rng.uniform(0.5, 2.0, rows).round(2).astype(str)
    table = {"y": y, "z": z, "z2": z2, "a": a, "w": w}
    table = {name: cells.tolist() for name, cells in table.items()}
    if rng.integers(3) == 0:
        for _ in range(int(rng.integers(1, 6))):
            name = str(rng.choice(list(table)))
            table[name][int(rng.integers(rows))] = str(rng.choice(ODD_CELLS))
    return table


ODD_CELLS = [
    *("", " ", "NA", "?", "1", "1.5", "-1", "inf", "nan", "=1+1", "<b>", "P", "p "),
    *("\x1b]0;x\a", "\u202e", "x" * 200, 'a"b', "a,b", "a\nb", "é", "\x00", "ß"),
]


def csv_text(table):
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerows([list(table), *zip(*table.values(), strict=True)])
    return lines.getvalue()


# ---------------------------------------------------------------- the command line

# What people type after each option; the other options get odd texts only.
SENSIBLE = {
    "representation_rate": ("1", "0.8", "z=0.5", "none"),
    "statistical_rate": ("1", "0.9", "0.5", "none", "z=0.8"),
    "favourable": ("yes", "later"),
    "groups": ("each", "joint"),
    "weight": ("w",),
    "outcome": ("a=q", "z2"),
    "within": ("a", "z2", "a,z2", "a=p"),
    "target": ("z: p=0.5, q=0.5", "y: free", "a: keep", "z2: p=0.4, q=0.6"),
    "smallest_group": ("2%", "5", "0"),
    "largest_weight": ("2", "10"),
    "base": ("tree", "product", "uniform"),
    "base_share": ("0", "0.3", "1"),
    "forbid": ("z=p,a=q",),
    "keep_columns": ("a", "a,z2"),
    "random_state": ("0", "7"),
    "rows": ("1", "50", "2000"),
    "weight_name": ("ww",),
    "detail": ("bins", "rows"),
    "bins": ("3", "w: 4", "w: 0, 1, 5"),
    "kinds": ("a: ordered", "w: categorical"),
    "order": ("a: p, q, r", "a: q, p"),
    "max_levels": ("2", "5"),
    "levels": ("a: p=q", "z2: p=one, q=two"),
    "drop": ("a", "w", "w,a"),
    "missing_text": ("NA", "p"),
    "skip_last": ("1", "5"),
    "encoding": ("utf-8", "cp1252"),
    "delimiter": (",",),
    "decimal": (".",),
    "attacks": ("5", "20"),
    "secrets": ("y", "z,y"),
    "relax": ("all", "z"),
    "bounds": ("0.2,5", "0.01,100"),
    "replicates": ("2",),
    "given": ("z=p", "a=q", "y=yes"),
    "cluster": ("a", "w"),
    "reference": ("p", "z=q"),
    "title": ("A title",),
    "max_memory": ("2GB",),
}
ODD = (
    *("", " ", "x", "0", "-1", "1", "1.5", "1e400", "nan", "inf", "9" * 40, "none"),
    *("y", "z", "a", "w", "nobody", "z,z", "z=p", "z=", "=", ",", ":", "z: p", "y,z"),
    *("z: p=1", "z: p=0.5, q=x", "a: 1, 1", "free", "all", "each", "true", "[1]"),
    *("\u202e", "é", "x" * 300, "{", "p=q=r", "1..2", "w=0..1", "50%", "-5%", "A1:B2"),
)
FLAGS = ("equal_means", "compare_missing", "iid", "like_input", "readable_by_others")
FLAGS += ("force", "release", "hide_protected")
# Those that start processes or servers, train models, or write elsewhere.
LEFT_OUT = {"data", "model", "real", "new", "output", "report", "scheduler"}
LEFT_OUT |= {"save", "estimate", "evaluate", "epsilon", "delta", "ledger", "budget"}
LEFT_OUT |= {"config", "margins", "control", "sample", "write_config", "write_domain"}
LEFT_OUT |= {"json", "trade_off", "mode", "output_format", "document"}
OUTPUTS = ["-o", "fair.csv", "--save", "fair.fme", "--estimate", "none", "--json"]
BEGINNINGS = {
    "debias": ["d.csv", *ROLES, *OUTPUTS],
    "inspect": ["d.csv", *ROLES, "--json"],
    "rake": ["d.csv", "--margins", "m.csv", "-o", "fair.csv", "--json"],
    "evaluate": ["d.csv", "d.csv", "--attacks", "5", "--json"],
    "sample": ["fit.fme", "-n", "20", "-o", "fair.csv"],
    "report": ["fit.fme", "-o", "report.md"],
}
OFTEN = ("debias",) * 6 + ("inspect", "inspect", "rake", "evaluate", "sample", "sample")
WRITTEN = ("fair.csv", "fair.fme", "report.md")


def typed_call(rng):
    """A command with a few options, most of which make sense."""
    name = str(rng.choice([*OFTEN, "report"]))
    parameters = [
        one for one in group.get_command(None, name).params if one.name not in LEFT_OUT
    ]
    arguments = [name, *BEGINNINGS[name]]
    if name == "debias":
        arguments += ["--mode", str(rng.choice(["rows", "weights", "top-up"]))]
    is_odd = rng.integers(3) == 0
    for _ in range(int(rng.integers(0, 5))):
        one = parameters[int(rng.integers(len(parameters)))]
        if one.name not in SENSIBLE and one.name not in FLAGS and not is_odd:
            continue
        arguments.append(one.opts[0])
        if getattr(one, "is_flag", False):
            continue
        texts = SENSIBLE.get(one.name, ODD)
        if is_odd and rng.integers(2):
            texts = ODD
        arguments.append(str(rng.choice(texts)))
    return arguments


@pytest.mark.parametrize("part", range(4))
def test_the_command_line(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = generated_table(np.random.default_rng(2))
    debias(pl.DataFrame(people), "y", "z", estimate=None).save("fit.fme")
    (tmp_path / "m.csv").write_text("columns,level,value\nz,p,0.5\nz,q,0.3\nz,r,0.2\n")
    done = 0
    for number in range(TYPED_CALLS // 4):
        rng = np.random.default_rng([SEED, part, number])
        (tmp_path / "d.csv").write_text(csv_text(generated_table(rng)), "utf-8")
        arguments = typed_call(rng)
        outputs = [name for name in WRITTEN if name in arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result, written = ran(arguments, tmp_path, outputs)
        if result.exit_code == 0:
            done += 1
            try:
                check_written(arguments, result.stdout, written, tmp_path)
            except AssertionError as problem:
                raise AssertionError((number, arguments)) from problem
    assert done or TYPED_CALLS < 100


def check_written(arguments, said, written, folder):
    """What a command wrote and said is what a group-by finds."""
    if arguments[0] == "debias":
        check_fair_table(arguments, json.loads(said), written, folder)
    elif arguments[0] == "sample":
        rows = last_typed(arguments, "-n", "--rows")
        assert len(read_again(written["fair.csv"])) == int(rows)
    elif arguments[0] == "rake":
        weights = pd.to_numeric(
            read_again(written["fair.csv"])[name_of_weights(arguments, "raked_weight")]
        )
        assert (weights >= 0).all()
        assert np.isfinite(weights).all()
    elif arguments[0] != "report":
        assert isinstance(json.loads(said), dict)


def read_again(content):
    """A CSV file as texts, as it stands."""
    return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)


def name_of_weights(arguments, usual):
    if "--weight-name" in arguments[:-1]:
        *_, last = (at for at, word in enumerate(arguments) if word == "--weight-name")
        return arguments[last + 1]
    return usual


def last_typed(arguments, *spellings):
    """The value of an option, which may be typed several times."""
    typed = [at for at, word in enumerate(arguments[:-1]) if word in spellings]
    return arguments[typed[-1] + 1]


def has_everybody(table, request, fit):
    """Whether a group that the fit has is in each stratum of the table."""
    names = ["z", *request.within_names]
    there = set(zip(*(table[name] for name in names), strict=True))
    cells = fit.distribution.marginal(names)
    known = {tuple(cell) for *cell, chance in cells.rows() if chance > 0}
    return there >= known


def check_fair_table(arguments, record, written, folder):
    """Rows are as many as were said; their rates are those that were said."""
    mode = arguments[arguments.index("--mode") + 1]
    rows = read_again(written["fair.csv"])
    assert len(rows) == record["rows"]
    (folder / "fair.fme").write_bytes(written["fair.fme"])
    fit = load("fair.fme")
    (folder / "fair.fme").unlink()
    request = fit.request
    named = ["z", *request.outcome_names, *request.within_names]
    table = {name: rows[name].tolist() for name in rows.columns}
    is_readable = all(is_plain(table[name]) and "" not in table[name] for name in named)
    if mode == "top-up" or not is_readable or not compares_all_levels(fit):
        return
    weights = np.ones(len(rows))
    if mode == "weights":
        weights = rows[name_of_weights(arguments, "fair_weight")].astype(float)
        weights = weights.to_numpy()
        assert (weights >= 0).all()
    is_simple = request.weight is None and request.forbid is None
    if is_simple and has_everybody(table, request, fit):
        check_rates(fit, record["after"], table, weights)


# ---------------------------------------------------------------- the estimator


@seed(SEED)
@settings(
    max_examples=ESTIMATOR_CALLS,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(data=st.data(), number=st.integers(0, 2**32))
def test_the_estimator(data, number):
    estimator = pytest.importorskip("fairmaxent.estimator")
    rng = np.random.default_rng([SEED, number])
    table = generated_table(rng)
    X = pd.DataFrame(table).drop(columns=["y", "w"])
    y = pd.Series(table["y"], name="y")
    choices = data.draw(st.sampled_from([RIGHT, RIGHT, OPTIONS]))
    known = estimator.FairMaxEnt("z").get_params().keys()
    left_out = {"domain", "privacy", "model", "estimate"}
    names = sorted((known & choices.keys()) - left_out)
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    asked = {"estimate": None, **{name: data.draw(choices[name]) for name in chosen}}
    if data.draw(st.integers(0, 4)) == 0:
        asked["rows"] = data.draw(st.one_of(st.sampled_from([1, 40, 0, -1]), STRANGE))
    protected = data.draw(st.sampled_from(["z", "z", "z", 0, ["z"], "nobody", None, 9]))
    form = data.draw(st.sampled_from(["pandas", "pandas", "polars", "numpy", "list"]))
    if form == "polars":
        X = pl.from_pandas(X)
    elif form == "numpy":
        X = X.to_numpy()
    elif form == "list":
        X = X.to_numpy().tolist()
    with ends_well():
        sampler = estimator.FairMaxEnt(protected, **asked)
        fair_x, fair_y = sampler.fit_resample(X, y)
        assert type(fair_x) is type(X)
        assert len(fair_x) == len(fair_y) == (asked.get("rows") or len(y))
        weights = sampler.sample_weight_
        fit = sampler.fit_
        request = fit.request
        fits = compares_all_levels(fit) and not {"weight", "forbid"} & set(asked)
        strata = [table[name] for name in request.within_names if name in table]
        is_readable = all(map(is_clean, (table["y"], table["z"], *strata)))
        if form in ("pandas", "polars") and fits and is_readable:
            check_rates(fit, fit.certificate.achieved, table, weights)


def is_clean(cells):
    """Whether no cell is odd, or missing."""
    return set(cells) <= {"yes", "no", "later", "p", "q", "r"}


# ---------------------------------------------------------------- the page

VALUES = (
    *(None, True, False, 0, 1, -1, 0.5, 0.8, 1.5, 10**30, 1e308, "", "x", "yes", "z"),
    *("none", "1", "0.8", "\u202e", "x" * 300, [], [[]], ["z"], ["z", "z"], ["nobody"]),
    *([1], [None], {}, {"z": 0.5}, {"z": None}, {"z": {"p": 0.5}}, {"": 1}, {"a": "p"}),
    *([{"z": "p", "a": "q"}], {"y": "free"}, {"nobody": {}}, {"z": {"p": math.inf}}),
)
ASKED_RIGHT = {
    "statistical_rate": (1, 0.9, 0.5, {"z": 0.8}),
    "representation_rate": (None, 1, 0.8),
    "groups": ("each", "joint"),
    "within": (None, {"a": None}, {"z2": ["p"]}),
    "largest_weight": (None, 2, 10),
    "base_share": (0, 0.3, 1),
    "base": ("tree", "product"),
    "forbid": ([{"z": "p", "a": "q"}],),
    "equal_means": (False, True),
    "smallest_group": (None, "2%", 5),
    "compare_missing": (True, False),
    "drop": (["a"], ["w"]),
    "favourable": (["yes"], ["yes", "later"], []),
    "weight": (None, "w"),
    "random_state": (0, 7),
    "release": (True, False),
    "mode": ("rows", "weights", "top-up"),
    "rows": (None, 40),
    "max_levels": (3,),
    "bins": ({"w": 3},),
}
NAMES = sorted(
    {*ASKED_RIGHT, "target", "further_outcomes", "detail", "title", "kinds", "order"}
)
WAYS = ("fit",) * 6 + ("look", "read", "curve", "pin", "draft", "start", "anything")
READ = (
    "skip_lines",
    "skip_last",
    "missing_text",
    "levels",
    "columns",
    "delimiter",
    "sheet",
)
MOST_TABLES = 40  # calls about the same table, before another is opened


def test_the_page(tmp_path):
    """Every answer is one, or says in our words why not: never a bug."""
    tables = tmp_path / "tables"
    tables.mkdir()
    with appserver.running(tmp_path) as client:
        for number in range(PAGE_CALLS):
            rng = np.random.default_rng([SEED, 9, number])
            if number % MOST_TABLES == 0:
                table = generated_table(rng)
                while "inf" in csv_text(table):  # which is refused when it is opened
                    table = generated_table(rng)
                path = tables / f"{number}.csv"
                path.write_text(csv_text(table), encoding="utf-8")
                client.session.open_given(str(path))
                assert client.session.problem is None
            ask_the_page(client, rng, table)


def ask_the_page(client, rng, table):
    """One request, and what pandas finds of its answer."""
    way = str(rng.choice(WAYS))
    options = {"outcome": "y", "protected": ["z"], "favourable": ["yes"]}
    is_odd = rng.integers(3) == 0
    for name in rng.choice(NAMES, int(rng.integers(0, 4)), replace=False).tolist():
        values = ASKED_RIGHT.get(name, VALUES)
        if is_odd and rng.integers(2):
            values = VALUES
        options[name] = values[int(rng.integers(len(values)))]
    sent = {**client.present(), "options": options}
    if way == "curve":
        sent |= {"kind": "statistical_rate", "column": None}
    elif way == "start":
        sent |= {"kind": str(rng.choice(["take", "x"]))}
    elif way == "read":
        chosen = rng.choice(READ, int(rng.integers(0, 3))).tolist()
        odd = [VALUES[int(rng.integers(len(VALUES)))] for _ in chosen]
        sent["options"] = dict(zip(chosen, odd, strict=True))
    elif way == "anything":
        way = str(rng.choice(["fit", "look", "unpin", "stop", "demo", "curve", "read"]))
        name = str(rng.choice([*sent, "name", "number", "pin"]))
        sent[name] = VALUES[int(rng.integers(len(VALUES)))]
    with soon():
        status, answer = client.post(f"/api/{way}", sent)
    assert status in (200, 404, 405, 409, 422), (way, sent, answer)
    if status != 200:
        assert "bug" not in answer["error"]
        assert 5 < len(answer["error"]) < 5000
        return
    if way == "fit" and "answer" in answer:
        check_answer(answer["answer"], options, table)


def check_answer(answer, options, table):
    """Groups and rates as they are in the table, before anything is made fair."""
    simple = {"outcome", "protected", "favourable", "statistical_rate", "mode", "rows"}
    simple |= {"representation_rate", "base", "base_share", "random_state", "title"}
    is_simple = set(options) <= simple and options["favourable"] == ["yes"]
    if not is_simple or not (is_clean(table["y"]) and is_clean(table["z"])):
        return
    rows = pd.DataFrame(table)
    rates = (rows["y"] == "yes").groupby(rows["z"]).mean()
    for one in answer["see"]["groups"]:
        assert one["rate_before"] == pytest.approx(rates[one["group"]])
        share = (rows["z"] == one["group"]).mean()
        assert one["share_before"] == pytest.approx(share)
    for rate in answer["see"]["rates"]:
        if rate["kind"] == "statistical_rate":
            assert rate["before"] == pytest.approx(rates.min() / rates.max())
            after = [one["rate_after"] for one in answer["see"]["groups"]]
            assert rate["after"] == pytest.approx(min(after) / max(after))
            assert rate["wanted"] is None or rate["after"] >= rate["wanted"] - 1e-6
