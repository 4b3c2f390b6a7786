"""`check` where groups are only likely: decided by what is assumed, unless refuted."""

import numpy as np
import pandas as pd
import pytest

from clifiles import run
from fairmaxent import Likely, check
from fairmaxent.errors import InputError

COLUMNS = {"a": "p_a", "b": "p_b"}
POLICY = """
[loans]
data = "loans.csv"
outcome = "paid"
favourable = "yes"
likely = {race = {a = "p_a", b = "p_b"}}
told_by = "names"
statistical_rate = 0.8
"""
TYPED = ["--likely", "race: a=p_a, b=p_b", "--told-by", "names"]


def loans(rows=4000, gap=0.3, seed=0):
    """Names of two groups, of which one pays back less often."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(0.3, 0.3, rows)
    in_a = rng.random(rows) < chance
    paid = rng.random(rows) < np.where(in_a, 0.7 - gap, 0.7)
    return pd.DataFrame(
        {"p_a": chance, "p_b": 1 - chance, "paid": np.where(paid, "yes", "no")}
    )


def decided_by_columns(rows=4000):
    rng = np.random.default_rng(1)
    profile = rng.integers(0, 12, rows)
    chance = rng.random(12)[profile]
    paid = rng.random(rows) < rng.uniform(0.1, 0.9, 12)[profile]
    return pd.DataFrame(
        {"p_a": chance, "p_b": 1 - chance, "paid": np.where(paid, "yes", "no")}
    )


def told(told_by="names"):
    return Likely("race", COLUMNS, told_by=told_by)


@pytest.mark.parametrize(
    ("gap", "limit", "answer"),
    [(0.3, 0.8, "fail"), (0.0, 0.8, "pass"), (0.3, 0.58, "cannot tell")],
)
def test_the_interval_decides_if_it_is_to_be_sure(gap, limit, answer):
    result = check(
        loans(gap=gap),
        "paid",
        told(),
        favourable="yes",
        statistical_rate=limit,
        confident=True,
    )
    assert result.answer == answer
    assert "Assumed: names tell the group; if columns do:" in str(result)


def test_what_the_data_contradict_tells_nothing():
    frame = decided_by_columns()
    asked = {"favourable": "yes", "statistical_rate": 0.8}
    for confident in (False, True):
        result = check(frame, "paid", told(), confident=confident, **asked)
        assert result.answer == "cannot tell"
        assert "so nobody can tell whether" in str(result)
        assert "which the data contradict" in str(result)
    since = check(frame, "paid", told(), against=frame, favourable="yes")
    assert since.answer == "cannot tell"
    assert check(frame, "paid", told("columns"), **asked).answer != "cannot tell"


def test_other_limits_and_columns_beside_it():
    frame = loans().assign(sex=["f", "m"] * 2000)
    result = check(
        frame,
        "paid",
        ["sex", told()],
        favourable="yes",
        statistical_rate={"race": 0.8, "sex": 0.8},
        statistical_difference=0.2,
        representation_rate=0.5,
    )
    answers = {found.name: found.answer for found in result.findings}
    assert answers == {
        "statistical rate of sex": "pass",
        "statistical rate of race": "fail",
        "representation rate of sex": "pass",
        "representation rate of race": "pass",
        "statistical difference of sex": "pass",
        "statistical difference of race": "fail",
    }


def test_a_policy_may_stand_in_a_file_or_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loans().to_csv("loans.csv", index=False)
    (tmp_path / "fairness.toml").write_text(POLICY)
    from_file = run("check", "--policies", "fairness.toml", code=1).output
    assert "loans: fail" in from_file
    asked = ["--outcome", "paid", "--favourable", "yes", "--statistical-rate", "0.8"]
    assert "check: fail" in run("check", "loans.csv", *asked, *TYPED, code=1).output
    said = run("check", "loans.csv", *asked, *TYPED[:2], code=2).stderr
    assert "needs to know what tells the group" in said


def test_a_lazy_frame_and_a_file_are_read(tmp_path):
    polars = pytest.importorskip("polars")
    frame = loans()
    frame.to_parquet(tmp_path / "loans.parquet")
    asked = {"favourable": "yes", "statistical_rate": 0.8}
    rates = [
        check(data, "paid", told(), **asked).findings[0].rate.value
        for data in (
            frame,
            polars.from_pandas(frame).lazy(),
            tmp_path / "loans.parquet",
        )
    ]
    assert rates[1:] == pytest.approx([rates[0]] * 2, rel=1e-9)


def test_two_of_them_are_refused():
    with pytest.raises(InputError, match="only one can be probabilities"):
        check(loans(), "paid", [told(), told()], statistical_rate=0.8)


def test_known_groups_that_contradict_the_probabilities_are_no_pass():
    frame = loans(gap=0.0)
    rng = np.random.default_rng(3)
    drawn = np.where(rng.random(len(frame)) < frame["p_a"], "a", "b")
    truth = np.where(rng.random(len(frame)) < 0.3, drawn, None)
    swapped = {"a": "p_b", "b": "p_a"}
    for columns in (COLUMNS, swapped):
        likely = Likely("race", columns, told_by="names", known_groups="truth")
        asked = (frame.assign(truth=truth), "paid", likely)
        if columns is COLUMNS:
            result = check(*asked, favourable="yes", statistical_rate=0.8)
            assert result.answer == "pass"
        else:
            with pytest.raises(InputError, match="look whether columns are swapped"):
                check(*asked, favourable="yes", statistical_rate=0.8)
