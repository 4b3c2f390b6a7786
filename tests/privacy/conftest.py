"""What tests of private fits share."""

import pytest

from fairmaxent.fit import pipeline
from quiet import Recording


@pytest.fixture
def recording(monkeypatch, tmp_path):
    """A folder to work in, and noise that records what it is asked."""
    monkeypatch.setattr(pipeline, "OpenDP", Recording)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.chdir(tmp_path)
    return tmp_path
