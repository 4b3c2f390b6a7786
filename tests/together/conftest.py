"""Tests of pairs make hundreds of calls."""

import pytest
from quickened import quickened


@pytest.fixture(autouse=True, scope="module")
def _quick():
    with quickened():
        yield
