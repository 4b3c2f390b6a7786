"""Model files of format version 2, from before digests: they load, mean the same, and may not be forged either."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

import fairmaxent
from fairmaxent import StorageError

FOLDER = Path(__file__).parent / "version_2"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(params=EXPECTED)
def name(request):
    return request.param


def test_numbers_and_draws_are_those_of_the_code_that_saved_them(name):
    fit, expected = fairmaxent.load(FOLDER / f"{name}.fme"), EXPECTED[name]
    assert fit.certificate.achieved == expected["achieved"]
    known = np.exp(fit.distribution.log_probability(fit.distinct_rows.codes[:5]))
    np.testing.assert_allclose(known, expected["probabilities"], rtol=1e-12)
    drawn = nw.from_native(fit.sample(6, random_state=2), eager_only=True).to_polars()
    assert drawn.write_csv() == expected["drawn"]
    if expected["warnings"] is not None:
        assert list(fit.certificate.warnings) == expected["warnings"]


def test_it_is_saved_in_the_new_format(name, tmp_path):
    fit = fairmaxent.load(FOLDER / f"{name}.fme")
    fit.save(tmp_path / "again.fme")
    again = fairmaxent.load(tmp_path / "again.fme")
    assert again.request == fit.request
    assert again.certificate.to_dict() == fit.certificate.to_dict()
    with zipfile.ZipFile(tmp_path / "again.fme") as archive:
        assert "SHA256SUMS" in archive.namelist()


def forged(name, number):
    """The file with another achieved rate."""
    with zipfile.ZipFile(FOLDER / f"{name}.fme") as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    header = json.loads(members["header.json"])
    achieved = dict(dict(header["certificate"]["values"]["map"])["achieved"]["map"])["statistical_rate"]["map"]
    achieved[0][1] = number
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in (members | {"header.json": json.dumps(header)}).items():
            archive.writestr(member, content)
    return buffer.getvalue()


def test_a_forged_certificate_is_refused(name, tmp_path):
    (tmp_path / "forged.fme").write_bytes(forged(name, 0.987654))
    with pytest.raises(StorageError, match="certificate states achieved statistical_rate"):
        fairmaxent.load(tmp_path / "forged.fme")
