"""evaluate agrees with anonymeter's risks within both intervals.

The library wants older versions of others than fairmaxent does, so that it runs in an
interpreter of its own: FAIRMAXENT_EVALUATION_PYTHON names it.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import fairmaxent
import realdata

pytestmark = pytest.mark.process
PYTHON = os.environ.get("FAIRMAXENT_EVALUATION_PYTHON", sys.executable)


@cache
def installed():
    """Whether the interpreter has the library."""
    command = [PYTHON, "-c", "import anonymeter"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(autouse=True)
def _libraries():
    if not installed():
        pytest.skip(
            "needs anonymeter, or FAIRMAXENT_EVALUATION_PYTHON, an interpreter that"
            " has it"
        )


def compas():
    """7214 rows with numbers as they are."""
    import pandas as pd

    names = [
        "sex",
        "age",
        "race",
        "juv_fel_count",
        "decile_score",
        "juv_misd_count",
        "juv_other_count",
    ]
    names += ["priors_count", "c_charge_degree", "is_violent_recid", "two_year_recid"]
    return pd.read_csv(realdata._path("compas-scores-two-years.csv"))[names]


def coarse():
    """Adult without a fine column, so that many people are equally near."""
    names = [
        "age",
        "workclass",
        "education",
        "marital_status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "income",
    ]
    return realdata.adult().assign(age=lambda table: (table["age"] // 10).astype(str))[
        names
    ]


TABLES = {
    "coarse": (coarse, "income", "sex", 2000),
    "adult": (lambda: realdata.adult().drop(columns="fnlwgt"), "income", "sex", 1000),
    "german": (realdata.german, "credit", "a9", 500),
    "compas": (compas, "two_year_recid", "race", 1000),
}
SHARES = {"default": None, "base": 1.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("peers")


@cache
def tables(name, share):
    """Real rows, new rows made from them, and as many other rows."""
    load, outcome, protected, rows = TABLES[name]
    frame = load()
    frame = frame.sample(len(frame), random_state=1).reset_index(drop=True)
    real, control = frame[:rows], frame[rows : 2 * rows].reset_index(drop=True)
    options = {} if SHARES[share] is None else {"base_share": SHARES[share]}
    fit = fairmaxent.debias(
        real, outcome, protected, estimate=None, random_state=0, **options
    )
    return real, fit.sample(rows), control


@cache
def ours(name, share):
    real, new, control = tables(name, share)
    return fairmaxent.evaluate(real, new, control=control, attacks=len(real))


def theirs(folder, name, share, **question):
    """What the library answers."""
    paths = []
    for kind, frame in zip(
        ("real", "new", "control"), tables(name, share), strict=True
    ):
        paths.append(folder / f"{name}-{share}-{kind}.parquet")
        if not paths[-1].exists():
            frame.to_parquet(paths[-1])
    script = Path(__file__).with_name("evaluation_peers.py")
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONPATH"
    }
    command = [PYTHON, str(script), *map(str, paths), json.dumps(question)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(done.stdout)


def agree(risk, peer, slack):
    """Each value is inside the other's interval; guesses are drawn, so that it may be
    nearly.
    """
    return risk.low - slack <= peer["value"] <= risk.high + slack and (
        peer["low"] - slack <= risk.value <= peer["high"] + slack
    )


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", TABLES)
def test_the_risks_of_anonymeter(folder, name, share):
    risks = ours(name, share).risks
    columns = list(tables(name, share)[1].columns)
    halves = [columns[0::2], columns[1::2]]
    secrets = [columns[0], columns[-1]]
    answers = {
        "singling out": (risks.singling_out, {"kind": "singling_out"}),
        "linkability": (risks.linkability, {"kind": "linkability", "parts": halves}),
        **{
            name: (
                risks.inference.by_column[name],
                {"kind": "inference", "secret": name},
            )
            for name in secrets
        },
    }
    apart = {}
    for attack, (risk, question) in answers.items():
        peer = theirs(folder, name, share, attacks=TABLES[name][3], **question)
        print(name, share, attack, risk, peer)
        if not agree(risk, peer, 0.0 if attack == "linkability" else 0.01):
            apart[attack] = risk, peer
    assert not apart
