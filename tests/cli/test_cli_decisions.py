"""The decisions that outcomes were relabelled for, on the command line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import fairmaxent.relabelling.labellers
from fairmaxent.cli.group import group
from tables import random_frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(fairmaxent.relabelling.labellers, "has_library", lambda name: False)  # the tree is quick
    monkeypatch.chdir(tmp_path)
    random_frame(np.random.default_rng(5), (2,), 2, rows=300).to_csv("data.csv", index=False)
    return tmp_path


def test_rates_and_shares_of_decisions_are_shown(folder):
    asked = ["debias", "data.csv", "--outcome", "y", "--protected", "z0", "--favourable", "o1", "--estimate", "none"]
    result = CliRunner().invoke(group, [*asked, "--relabel", "predictions", "--seed", "1"])
    assert result.exit_code == 0, result.output
    record = json.loads(CliRunner().invoke(group, [*asked, "--relabel", "predictions", "--seed", "1", "--json"]).stdout)
    known = record["certificate"]["decisions"]
    assert "decisions of rooted tree about people it did not learn from" in result.stdout
    for share in known["shares"]:
        assert f"{share['share']:.4f}" in result.stdout
    plain = CliRunner().invoke(group, [*asked, "--seed", "1"])
    assert "it did not learn from" not in plain.stdout
