"""Tests of the app that start no process read uploads in their own."""

import json

import pytest


@pytest.fixture(autouse=True)
def _uploads_are_read_here(request, monkeypatch):
    if request.node.get_closest_marker("process") is None:
        upload = pytest.importorskip("fairmaxent.app.upload", reason="the app needs starlette")
        monkeypatch.setattr(upload, "_run", lambda asked, *_: upload.reply(json.loads(asked)))
        monkeypatch.setattr(upload, "warm_up", lambda: None)


@pytest.fixture(autouse=True)
def _no_curves(request, monkeypatch):
    """Each point of a curve in a report takes another fit; one test is about them."""
    if "trade_off" not in request.node.name and request.node.get_closest_marker("process") is None:
        monkeypatch.setattr("fairmaxent.report.trade_off.LARGEST_TABLE", 0)
