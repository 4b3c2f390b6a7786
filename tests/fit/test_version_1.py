"""version_1.py: model files that were saved before the request became a record still load, and mean the same."""

from __future__ import annotations

import json
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

import fairmaxent
from fairmaxent import Relabel
from fairmaxent.data import frames
from fairmaxent.data.draws import largest_remainders, shuffled_cells
from fairmaxent.fit.plans import PaperRequest
from fairmaxent.fit.request import Request
from fairmaxent.fit.version_1 import _remedy, _small_group

FOLDER = Path(__file__).parent / "version_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
NEW_NAMES = ("absorb", "parity", "threshold")


@pytest.fixture(params=EXPECTED)
def stored(request):
    return fairmaxent.load(FOLDER / f"{request.param}.fme"), EXPECTED[request.param]


def test_numbers_and_draws_are_those_of_the_code_that_saved_them(stored):
    fit, expected = stored
    assert fit.certificate.achieved == expected["achieved"]
    known = np.exp(fit.distribution.log_probability(fit.distinct_rows.codes[:5]))
    np.testing.assert_allclose(known, expected["probabilities"], rtol=1e-12)
    rng = np.random.default_rng(2)
    cells = shuffled_cells(largest_remainders(fit.distribution.root_table.ravel(), 6), rng)  # a quota was this then
    rows = frames.arrange(fit.distribution.draw(cells, rng, spread=True), fit.columns, fit.weight_column)
    drawn = nw.from_native(rows, eager_only=True).to_polars()
    assert drawn.write_csv() == expected["drawn"]


def test_the_request_says_what_the_options_said(stored):
    fit, expected = stored
    options = expected["options"]
    kind = Request if "base_share" in options else PaperRequest
    assert isinstance(fit.request, kind)
    if kind is Request:  # what the options meant: reweighing moved the outcome's share, and missing was a group
        free = {} if options["absorb"] == "relabel" else {options["outcome"]: "free"}
        options = options | {"target": (free | (options["target"] or {})) or None, "missing": "compare"}
    for name, value in options.items():
        if name not in NEW_NAMES:
            assert getattr(fit.request, name) == value, name
    if kind is Request:
        plan = Relabel(parity=options["parity"], threshold=options["threshold"])
        assert fit.request.relabelling == (plan if options["absorb"] == "relabel" else None)


def test_facts_take_the_place_of_sentences(stored):
    fit, expected = stored
    certificate = fit.certificate
    assert certificate.rows == fit.table.size == 240
    assert [f"{group.name} ({group.rows} rows)" for group in certificate.small_groups] == expected["small_groups"]
    assert (certificate.costs is None) == isinstance(fit.request, PaperRequest)  # measured when the file is read
    assert (certificate.estimate is None) == (expected["remedy"] is None)
    if certificate.estimate is not None:
        assert certificate.estimate.remedy == _remedy(expected["remedy"])
        assert fit.request.estimate == certificate.estimate.output == "weights"


def test_it_is_saved_in_the_new_format(stored, tmp_path):
    fit, _ = stored
    fit.save(tmp_path / "again.fme")
    again = fairmaxent.load(tmp_path / "again.fme")
    assert again.request == fit.request
    assert again.certificate.to_dict() == fit.certificate.to_dict()


@pytest.mark.parametrize(
    ("sentence", "remedy"),
    [
        (
            "the other columns tell it. Relabelling helps: absorb='relabel', parity='predictions'",
            "relabel",
        ),
        ("its probabilities are fairer than its decisions. Also level these: parity='predictions'", "predictions"),
        ("train on weights instead of rows, or use a smaller base_share", "weights"),
        ("there is nothing further to ask of labels; look at the smallest groups", "none"),
    ],
)
def test_every_remedy_of_version_1_has_a_name(sentence, remedy):
    assert _remedy(sentence) == remedy


def test_a_group_may_hold_brackets_and_lines():
    assert _small_group("z = a (b)\n(3 rows) (7 rows)")["map"] == [["name", "z = a (b)\n(3 rows)"], ["rows", 7]]
    with pytest.raises(ValueError, match="no size"):
        _small_group("z = a")
