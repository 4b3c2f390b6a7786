"""Everything that a user can do with a loaded model, and what must hold for each number that comes out."""

from __future__ import annotations

import numbers
from collections.abc import Mapping

import narwhals as nw
import numpy as np

from fairmaxent import FairMaxEntError


def use(fit):
    """Use a fit in every way; any exception that is not the library's, or number outside its range, is raised."""
    certificate = fit.certificate
    str(certificate)
    repr(fit)
    repr(fit.domain)
    # Rows drawn by quota come below; a thousand simulated quotas for each mutant would take most of the time.
    rates = (certificate.wanted, certificate.before, certificate.achieved, certificate.interval(50, iid=True))
    assert all(0 <= rate <= 1 + 1e-9 or np.isnan(rate) for rate in _numbers(rates))
    certificate.to_dict()
    table = fit.distribution.root_table
    assert abs(table.sum() - 1) < 1e-5
    assert table.min() >= 0
    rows = nw.from_native(fit.sample(40, random_state=1), eager_only=True)
    assert len(rows) == 40
    assert tuple(rows.columns) == fit.columns
    probabilities = fit.distribution.probability(rows.to_native())
    assert ((probabilities >= 0) & (probabilities <= 1 + 1e-9)).all()
    fit.sample(10, random_state=1, iid=True)
    _tried(lambda: fit.top_up(random_state=1))
    weights = _tried(fit.weights)
    if weights is not None:
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert abs(weights.sum() / len(weights) - 1) < 1e-3
    for attribute in fit.domain.attributes:
        marginal = nw.from_native(fit.distribution.marginal(attribute.name), eager_only=True)
        shares = marginal.get_column("probability").to_numpy()
        assert abs(shares.sum() - 1) < 1e-5
        assert shares.min() >= 0
        _tried(lambda attribute=attribute: fit.distribution.condition({attribute.name: attribute.labels[0]}))


def _tried(call):
    """What a call gives, or None where the library says that it cannot be."""
    try:
        return call()
    except FairMaxEntError:
        return None


def _numbers(value):
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, numbers.Real):
        yield value
