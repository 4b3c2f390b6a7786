"""``fairmaxent verify``: a clear answer, for people and for programs; what is refused is in `test_forged_models.py`."""

import hashlib
import json

import pytest

import fairmaxent
from clifiles import biased_table, run


def test_a_sound_model_is_verified(tmp_path):
    model = tmp_path / "model.fme"
    fairmaxent.debias(biased_table(), "income", "sex", estimate=None).save(model)
    said = run("verify", model).stdout
    assert f"{model}: verified" in said
    assert hashlib.sha256(model.read_bytes()).hexdigest() in said
    assert "statistical rate of sex: 1.0000" in said
    assert "all 240 rows, with the exact values of 'age', 'weight'; protect it" in said
    record = json.loads(run("verify", model, "--json").stdout)
    assert record["verified"] is True
    assert record["achieved"]["statistical_rate"]["sex"] == pytest.approx(1)
    assert record["unverified"] == ["how often each value within a bin was seen, by which values are drawn from bins"]
