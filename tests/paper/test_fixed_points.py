"""The paper's data: what the authors' code computes on them, to all digits known."""

from functools import cache
from math import log

import numpy as np
import pytest

from fairmaxent import paper
from handrates import representation_rate, statistical_rate
from oracle import points
from reproduction import datasets
from reproduction.box_newton import BoxNewton
from transcribed import (
    Data,
    dense_prior,
    distance_to_faces,
    radius_and_limit,
    transcribed_algorithm_1,
    yz_table,
)

SETS = {"small": "compas-small", "adult": "adult-small"}


@cache
def data_of(name):
    return datasets.load(SETS[name])


@cache
def real_fit(name, protected, C=0.5, theta="w", solver="newton"):
    data = data_of(name)
    roles = {
        "outcome": data.outcome,
        "protected": protected,
        "favourable": data.favourable,
    }
    return paper.fit(data.frame, **roles, C=C, theta=theta, solver=solver)


@pytest.mark.some(4)
@pytest.mark.parametrize(
    (
        "name",
        "protected",
        "C",
        "theta",
        "dual",
        "statistical",
        "representation",
        "divergence",
    ),
    [
        ("small", "sex", 0.5, "w", -0.045087, 0.9888, 1, 0.3485),
        ("small", "sex", 0.5, "b", -0.047869, 0.9927, 1, 0.3570),
        ("small", "race", 0.5, "w", -0.087294, 0.9952, 1, 0.1198),
        ("small", "race", 0.5, "b", -0.094101, 0.9961, 1, 0.1214),
        ("small", "race", 0.1, "w", -0.004295, 0.9993, 1, 0.0455),
        ("small", "race", 0.1, "b", -0.006833, 0.9999, 1, 0.0470),
        ("small", "race", 0.1, "d", -0.025271, 0.9992, 0.6624, 0.0239),
        ("adult", "sex", 0.5, "w", -0.236443, 0.9793, 1, 0.3361),
        ("adult", "sex", 0.5, "b", -0.242344, 0.9770, 1, 0.3301),
    ],
)
def test_fixed_points_of_the_authors_code(
    name, protected, C, theta, dual, statistical, representation, divergence
):
    fit = real_fit(name, protected, C, theta)
    achieved = fit.certificate.achieved
    assert fit.certificate.dual == pytest.approx(dual, abs=1e-6)
    assert achieved["statistical_rate"][protected] == pytest.approx(
        statistical, abs=1e-4
    )
    assert achieved["representation_rate"][protected] == pytest.approx(
        representation, abs=1e-4
    )
    assert paper.divergence_from_raw(fit) == pytest.approx(divergence, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "protected", "statistical", "representation", "cells", "seen"),
    [
        ("small", "sex", 0.7282, 0.2428, 144, 142),
        ("small", "race", 0.7471, 0.6624, 144, 142),
        ("adult", "sex", 0.3597, 0.4959, 504, 410),
    ],
)
def test_fixed_points_of_the_raw_data(
    name, protected, statistical, representation, cells, seen
):
    fit = real_fit(name, protected)
    assert np.prod(fit.domain.sizes) == cells
    assert len(fit.table.codes) == seen
    assert fit.certificate.before["statistical_rate"][protected] == pytest.approx(
        statistical, abs=6e-5
    )
    assert fit.certificate.before["representation_rate"][protected] == pytest.approx(
        representation, abs=6e-5
    )


@pytest.mark.parametrize(
    ("name", "protected", "divergence"),
    [("small", "sex", 0.4318), ("small", "race", 0.2896), ("adult", "sex", 1.2185)],
)
def test_fixed_points_of_the_prior_alone(name, protected, divergence):
    """q_C^w at C = 0.5 from the frame by Algorithm 1 as printed; the fit's prior is the
    same, point by point.
    """
    frame = data_of(name).frame
    first = [data_of(name).outcome, protected]
    frame = frame[first + sorted(column for column in frame if column not in first)]
    codes = np.column_stack(
        [
            np.unique(frame[column].to_numpy(), return_inverse=True)[1]
            for column in frame
        ]
    )
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    data = Data(tuple(int(k) + 1 for k in codes.max(axis=0)), rows, counts)
    q = dense_prior(data, transcribed_algorithm_1(data, 1.0), 0.5)
    table = yz_table(q, data.sizes)
    assert statistical_rate(table, (1,), [1]) == pytest.approx(1.0, abs=1e-12)
    assert representation_rate(table, (1,)) == pytest.approx(1.0, abs=1e-12)
    raw = dense_prior(data, counts / counts.sum(), 0.0) + 1e-7
    assert q @ np.log(q / raw) == pytest.approx(divergence, abs=1e-4)
    prior = real_fit(name, protected).optimum.dual.prior
    np.testing.assert_allclose(
        np.exp(prior.log_probability(points(prior.blocks.levels))), q, rtol=1e-10
    )


@pytest.mark.parametrize(
    ("name", "protected", "theta", "bound", "delta"),
    [
        ("small", "sex", "w", 0.8697, 0.00871),
        ("small", "sex", "b", 0.8761, None),
        ("small", "race", "w", 0.8803, None),
        ("small", "race", "b", 0.8819, None),
        ("adult", "sex", "w", 0.3060, 0.06643),
        ("adult", "sex", "b", 0.3050, None),
    ],
)
def test_theorem_4_5_fixed_points(name, protected, theta, bound, delta):
    certificate = real_fit(name, protected, theta=theta).certificate
    assert certificate.bound == pytest.approx(bound, abs=6e-5)
    assert certificate.achieved["statistical_rate"][protected] >= certificate.bound
    if delta is not None:
        assert certificate.delta == pytest.approx(delta, abs=6e-6)


@pytest.mark.parametrize("theta", ["d", "b", "w"])
@pytest.mark.parametrize(
    ("name", "protected"), [("small", "sex"), ("small", "race"), ("adult", "sex")]
)
def test_lemma_4_2_on_real_data(name, protected, theta):
    """With k levels the features of an attribute fill a simplex; η is the distance of θ
    to its nearest face.
    """
    fit = real_fit(name, protected, theta=theta)
    eta = min(
        distance_to_faces(fit.distribution.joint([attribute]))
        for attribute in range(len(fit.domain.sizes))
    )
    bound = log(np.prod(fit.domain.sizes) / 0.5) / eta
    assert fit.certificate.multiplier_norm <= bound
    assert fit.certificate.multiplier_norm <= fit.certificate.multiplier_bound


@pytest.mark.some(1)
@pytest.mark.parametrize("protected", ["sex", "race"])
def test_theorem_d_1_on_real_data(protected):
    fit = real_fit("small", protected, solver=BoxNewton(C=0.5))
    newton = real_fit("small", protected)
    assert fit.certificate.method == "box-newton"
    assert fit.certificate.dual == pytest.approx(newton.certificate.dual, abs=1e-10)
    assert (
        fit.certificate.iterations
        <= radius_and_limit(fit.optimum.dual.size, 0.5, 1e-6)[1]
    )
