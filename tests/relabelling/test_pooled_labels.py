"""Soft labels: what a model predicts, pooled with what happened, by hand."""

from types import SimpleNamespace

import numpy as np

from fairmaxent.relabelling import people as module
from fairmaxent.relabelling.people import HeldOut, pooled_labels


def test_predictions_are_pooled_with_the_counts_of_a_profile(monkeypatch):
    monkeypatch.setattr(module, "prior_strength", lambda mean, counts: 4.0)
    # two people of one profile, the second counts three times; one who counts nothing
    people = SimpleNamespace(
        profiles=SimpleNamespace(counts=np.array([[0.0, 4.0], [0.0, 0.0]])),
        profile=np.array([0, 0, 1]),
    )
    held_out = HeldOut(
        record=np.array([0, 1, 2]),
        weight=np.array([1.0, 3.0, 0.0]),
        chances=np.array([[0.9, 0.1], [0.5, 0.5], [0.3, 0.7]]),
    )
    # the first is predicted 0.6 and 0.4: (4 · 0.6 + 0) / 8 and (4 · 0.4 + 4) / 8
    expected = [[0.3, 0.7], [0.3, 0.7]]
    np.testing.assert_allclose(pooled_labels(people, held_out), expected)
