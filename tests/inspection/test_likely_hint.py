"""Columns that look like probabilities of groups are noticed, and others are not."""

import numpy as np
import polars as pl
import pytest

from clifiles import run
from fairmaxent import Likely, inspect
from fairmaxent.errors import Option


def table(rows=500):
    rng = np.random.default_rng(0)
    chances = rng.dirichlet([0.5, 0.5, 0.5], rows)
    return pl.DataFrame(
        {
            "paid": rng.choice(["yes", "no"], rows),
            "score": rng.random(rows),
            "p_white": chances[:, 0],
            "p_black": chances[:, 1],
            "p_asian": chances[:, 2],
            "rate": rng.random(rows),
        }
    )


def hints(frame, *groups):
    look = inspect(frame, "paid", [*groups])
    return [hint for hint in look.hints if hint.kind == "probabilities"]


def test_columns_that_add_up_to_one_are_noticed():
    (hint,) = hints(table())
    assert hint.columns == ("p_white", "p_black", "p_asian")
    asked = {"white": "p_white", "black": "p_black", "asian": "p_asian"}
    assert hint.parts[1] == Option("likely", {"group": asked})
    assert "add up to 1 in every row" in str(hint)


@pytest.mark.parametrize(
    "change",
    [
        pl.col("p_white") * 0.9,
        pl.when(pl.col("score") > 0.5).then(1.2).otherwise("p_white"),
    ],
)
def test_others_are_not(change):
    assert not hints(table().with_columns(change.alias("p_white")))


def test_columns_of_yes_and_no_are_not():
    coded = [(pl.col("paid") == level).cast(float) for level in ("yes", "no")]
    kept = table().select("paid", coded[0].alias("one"), coded[1].alias("other"))
    assert not hints(kept)


def test_rows_without_any_do_not_matter():
    gaps = [
        pl.when(pl.col("score") > 0.2).then(name).alias(name)
        for name in ("p_white", "p_black", "p_asian")
    ]
    assert len(hints(table().with_columns(gaps))) == 1


def test_few_digits_do_not_matter():
    names = ["p_white", "p_black", "p_asian"]
    assert len(hints(table().with_columns(pl.col(names).round(4)))) == 1


def test_who_has_named_them_is_not_told():
    groups = {"white": "p_white", "black": "p_black", "asian": "p_asian"}
    assert not hints(table(), Likely("race", groups, told_by="names"))


def test_the_command_says_what_to_type(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().write_csv("loans.csv")
    said = " ".join(run("inspect", "loans.csv", "--outcome", "paid").output.split())
    typed = "--likely 'group: white=p_white,black=p_black,asian=p_asian'"
    assert f"compare these groups with {typed} and say what tells them" in said
    assert f"{typed} --told-by names" in said.split("Next:")[1]
    known = ["--likely", "race: white=p_white,black=p_black,asian=p_asian"]
    known += ["--told-by", "names"]
    look = run("inspect", "loans.csv", "--outcome", "paid", *known).output
    assert "if names tell the group" in look
    assert "--told-by names" in look.split("Next:")[1]
