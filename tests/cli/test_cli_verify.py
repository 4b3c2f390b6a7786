"""``fairmaxent verify``: a clear answer, for people and for programs, and an exit code
that means it.
"""

import hashlib
import json

import polars as pl
import pytest

import fairmaxent
from clifiles import biased_table, run
from fairmaxent.fit.verification import verify
from modelfiles import with_header


def test_a_sound_model_is_verified(tmp_path):
    model = tmp_path / "fit.fme"
    fairmaxent.debias(biased_table(), "income", "sex", estimate=None).save(model)
    said = run("verify", model).stdout
    assert f"{model}: verified" in said
    assert hashlib.sha256(model.read_bytes()).hexdigest() in said
    before = fairmaxent.load(model).certificate.before["statistical_rate"]["sex"]
    rate = f"statistical rate of sex     1.0000  {before:.4f}    1.0000  ✓ reached"
    assert rate in said
    assert "all 240 rows, with the exact values of 'age', 'weight'; protect it" in said
    record = json.loads(run("verify", model, "--json").stdout)
    assert record["verified"] is True
    assert record["achieved"]["statistical_rate"]["sex"] == pytest.approx(1)
    assert record["told"]["rates"]["weight"] == "verdict"
    assert record["told"]["rates"]["tables"][0]["rows"][1][2] == f"{before:.4f}"
    assert record["unverified"] == ["how often each value of a bin is to be drawn"]

    def forge(header):
        header["certificate"]["achieved"]["statistical_rate"]["sex"] = 0.5

    (tmp_path / "forged.fme").write_bytes(with_header(model.read_bytes(), forge))
    refused = run("verify", tmp_path / "forged.fme", code=5)
    assert (
        "its certificate states achieved statistical_rate sex as 0.5, but what it holds"
        " gives 1" in refused.stderr
    )
    assert "verified" not in refused.stdout


def few_people():
    """A fit whose smallest group has to become the largest."""
    wanted = {"Black": 0.8, "Other": 0.1, "White": 0.1}
    return fairmaxent.debias(
        biased_table(),
        "income",
        "race",
        target={"race": wanted},
        largest_weight=1.5,
        estimate=None,
    )


def test_warnings_of_a_sound_model_are_shown(tmp_path):
    fit = few_people()
    fit.save(tmp_path / "fit.fme")
    (share,) = [one for one in fit.certificate.targets if one.name == "race = Black"]
    assert share.after < 0.7
    said = run("verify", tmp_path / "fit.fme").stdout
    warned = f"race = Black is {share.after:.1%} of the result, not the 80.0%"
    assert f"Warning: {warned}" in said
    assert "in --target of 'fairmaxent debias'" in said
    record = json.loads(run("verify", tmp_path / "fit.fme", "--json").stdout)
    assert warned in " ".join(record["told"]["missed"]["says"])
    # in Python, options are called as they are there
    assert "in target" in str(verify(tmp_path / "fit.fme"))


def test_what_only_the_table_or_the_rows_could_show_is_named(tmp_path):
    table = biased_table()
    mails = pl.Series("mail", [f"a{row}@example.org" for row in range(len(table))])
    fit = fairmaxent.debias(
        table.with_columns(mails), "income", "sex", estimate=None, random_state=3
    )
    fit.save(tmp_path / "fit.fme")
    shown = run("verify", tmp_path / "fit.fme").stdout
    assert "not verified: which columns were left out" in shown
    assert "not verified: the seed" in shown
