"""Fits that several tests look at."""

import pytest
from doors import Made


@pytest.fixture(scope="session")
def made():
    """Fits, each with what its doors show; made when they are first asked for."""
    known = {}

    def make(name):
        if name not in known:
            known[name] = Made(name)
        return known[name]

    return make
