"""Fixtures that several test files use."""

from __future__ import annotations

import pytest

from mixed import TABLES


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]()
