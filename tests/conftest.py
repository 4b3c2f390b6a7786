"""Fixtures that several test files use."""

from __future__ import annotations

import os

import pytest

from fairmaxent.fit import pipeline
from fairmaxent.fit.outlook import NotEstimated
from mixed import TABLES

# So that reports are the same whenever they are written; set here, so that subprocesses have it, too.
os.environ.setdefault("SOURCE_DATE_EPOCH", "1780000000")

# Two processes share two cores: the threads of one would only wait for those of the other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ESTIMATED_BY_DEFAULT = pipeline.estimated_by_default


def not_estimated(*_, **__):
    """Stand in for the estimate that nobody asked for; it has a name because fits are pickled."""
    return NotEstimated(())


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]()


@pytest.fixture(scope="session", autouse=True)
def _no_estimates_unasked():
    """An estimate that nobody asked for takes seconds: only tests about it make one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "estimated_by_default", not_estimated)
        yield


@pytest.fixture
def estimates_unasked(monkeypatch):
    """Estimates are made by default, as everywhere but in tests."""
    monkeypatch.setattr(pipeline, "estimated_by_default", ESTIMATED_BY_DEFAULT)


@pytest.fixture
def put(tmp_path):
    """Write content to a file and return its path."""

    def put(content, name="table.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return put
