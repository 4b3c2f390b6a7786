"""One test per numbered statement of the paper, named after it.

What the library says is compared with the statement itself: algorithms are transcribed
from their pseudocode, sums run over every point of a small domain. Where the text has a
slip, the corrected form stands here and the docstring says so. The outcome Y is
attribute 0 and the protected attribute Z is attribute 1 throughout.
"""

from itertools import product
from math import log

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from fairmaxent import paper
from fairmaxent.data.table import Table, tally
from fairmaxent.fairness.fair_table import algorithm_1, reweigh
from fairmaxent.fit.facts import lemma_4_2, theorem_4_5
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.solvers import Newton, NewtonCG
from handrates import representation_rate, statistical_rate
from oracle import points
from tables import times
from transcribed import (
    SHARES,
    TAUS,
    Binary,
    count_given,
    dense_prior,
    distance_to_faces,
    fitted_point_probabilities,
    gradient_oracle,
    hessian_oracle,
    iterative_scaling,
    prior_table,
    random_data,
    random_datasets,
    random_problem,
    tilt,
    transcribed_algorithm_1,
    value_oracle,
    yz_table,
    zero_probability,
)


# ---------------------------------------------------------------- Section 2
def random_distribution(seed):
    """p on four attributes: an outcome, two protected ones and another."""
    rng = np.random.default_rng([seed, 3])
    sizes = rng.integers(2, 5, size=4)
    masses = rng.dirichlet(np.full(np.prod(sizes), 0.5))
    p = {tuple(point): mass for point, mass in zip(points(sizes), masses, strict=True)}
    return sizes, p, np.array(list(p.values())).reshape(sizes).sum(axis=3)


@pytest.mark.parametrize("protected", [1, 2])
def test_definition_2_1_representation_rate(protected):
    for seed in range(times(40)):
        sizes, p, table = random_distribution(seed)
        mass = [
            sum(m for a, m in p.items() if a[protected] == z)
            for z in range(sizes[protected])
        ]
        ratios = [mass[i] / mass[j] for i, j in product(range(len(mass)), repeat=2)]
        rate = representation_rate(table, (protected,))
        assert all(ratio >= rate - 1e-12 for ratio in ratios)
        assert rate == pytest.approx(min(ratios), rel=1e-12)


@pytest.mark.parametrize("protected", [1, 2])
def test_definition_2_2_statistical_rate(protected):
    for seed in range(times(40)):
        sizes, p, table = random_distribution(seed)
        for y in range(sizes[0]):
            given = []
            for z in range(sizes[protected]):
                group = sum(m for a, m in p.items() if a[protected] == z)
                given.append(
                    sum(m for a, m in p.items() if a[protected] == z and a[0] == y)
                    / group
                )
            ratios = [
                given[i] / given[j] for i, j in product(range(len(given)), repeat=2)
            ]
            assert statistical_rate(table, (protected,), [y]) == pytest.approx(
                min(ratios), rel=1e-12
            )


def test_definitions_2_1_and_2_2_of_a_fitted_distribution():
    """The certificate's rates are those of p* summed over the whole domain."""
    for rng, data in random_datasets(20, outcomes=(2, 3)):
        fit = paper.fit(
            data.frame(),
            outcome="y",
            protected="z",
            C=float(rng.choice(SHARES)),
            theta="d",
            favourable=1,
        )
        table = yz_table(fitted_point_probabilities(fit), data.sizes)
        shares, given = table.sum(axis=0), table[1] / table.sum(axis=0)
        achieved = fit.certificate.achieved
        assert achieved["representation_rate"]["z"] == pytest.approx(
            shares.min() / shares.max(), rel=1e-9
        )
        assert achieved["statistical_rate"]["z"] == pytest.approx(
            given.min() / given.max(), rel=1e-9
        )


# ---------------------------------------------------------------- Section 7.1: the
# prior
def test_lemma_7_1_the_uniform_distribution_is_fair():
    for _, data in random_datasets(10, outcomes=(2, 3)):
        u = prior_table(
            paper.fit(
                data.frame(), outcome="y", protected="z", C=1.0
            ).optimum.dual.prior
        )
        np.testing.assert_allclose(u[:, 0], u[:, 1], rtol=1e-14)  # (1)
        assert u[:, 0].sum() == pytest.approx(u[:, 1].sum(), rel=1e-14)  # (2)
        # (3), and why
        np.testing.assert_allclose(
            u[:, 0] / u[:, 0].sum(), 1 / data.sizes[0], rtol=1e-14
        )


@pytest.mark.parametrize("tau", TAUS)
def test_lemma_7_2_the_weights_have_representation_rate_tau_and_statistical_rate_one(
    tau,
):
    for _, data in random_datasets(25, outcomes=(2, 3)):
        table = np.zeros(data.sizes[:2])
        np.add.at(table, (data.rows[:, 0], data.rows[:, 1]), data.reweighted(tau))
        np.testing.assert_allclose(table[:, 0], tau * table[:, 1], rtol=1e-12)  # (1)
        # (2)
        assert table[:, 0].sum() == pytest.approx(tau * table[:, 1].sum(), rel=1e-12)
        # (3)
        np.testing.assert_allclose(
            table[:, 0] / table[:, 0].sum(), table[:, 1] / table[:, 1].sum(), rtol=1e-12
        )


def test_lemma_7_3_the_statistical_rate_of_a_convex_combination():
    """v₁ and v₂ on all points of a domain, with rates τ₂ ≤ τ₁ between the groups, mixed
    by the library.
    """
    for seed in range(times(60)):
        rng = np.random.default_rng([seed, 4])
        data = random_data(rng, [int(rng.integers(2, 4)), 2, 2])
        grid, blocks = points(data.sizes), data.blocks
        tau_1, tau_2 = np.sort(rng.uniform(0.05, 1, 2))[::-1]
        parts = []
        for tau in (tau_1, tau_2):
            given = rng.dirichlet(np.ones(2), size=data.sizes[:2])  # v(x | y, z), free
            joint = (
                np.multiply.outer(rng.dirichlet(np.ones(data.sizes[0])), [tau, 1.0])[
                    :, :, None
                ]
                * given
            )
            parts.append(Rows.weighted(blocks, blocks.pool(grid), joint.ravel()))
        C = rng.random()
        q = prior_table(Mixture.of((C, 1 - C), parts))
        for y in range(data.sizes[0]):
            assert statistical_rate(q, (1,), [y]) >= tau_1 * tau_2 - 1e-12  # (1)
            assert q[y, 0] / q[y, 1] >= tau_2 - 1e-12  # (2)
            assert q[y, 1] / q[y, 0] >= 1 - 1e-12


@pytest.mark.some(6)
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("C", [0.0, *SHARES])
def test_theorem_4_1_the_prior_has_statistical_rate_tau(C, tau):
    for _, data in random_datasets(8, outcomes=(2, 3)):
        fit = paper.fit(data.frame(), outcome="y", protected="z", C=C, tau=tau)
        q = dense_prior(data, transcribed_algorithm_1(data, tau), C)
        ours = np.exp(
            fit.optimum.dual.prior.log_probability(points(data.blocks.levels))
        )
        np.testing.assert_allclose(ours, q, rtol=1e-10, atol=1e-16)
        given = yz_table(ours, data.sizes) / yz_table(ours, data.sizes).sum(axis=0)
        assert (given.min(axis=1) >= (tau - 1e-12) * given.max(axis=1)).all()


class Counted(np.ndarray):
    """An array that adds up how many elements every operation on it reads or writes."""

    work = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return _counted(getattr(ufunc, method), inputs, options)

    def __array_function__(self, function, types, inputs, options):
        return _counted(function, inputs, options)

    def __getitem__(self, key):
        return _counted(np.ndarray.__getitem__, (self, key), {})


def _plain(value):
    if isinstance(value, tuple | list):
        return type(value)(_plain(item) for item in value)
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value


def _counted(function, inputs, options):
    result = function(
        *_plain(inputs), **{name: _plain(value) for name, value in options.items()}
    )
    Counted.work += max(
        array.size
        for array in (*inputs, result)
        if isinstance(array, np.ndarray | np.generic)
    )
    return result.view(Counted) if isinstance(result, np.ndarray) else result


def test_theorem_4_1_the_weights_take_linear_time():
    """Every operation on the rows is counted: the total is a·N + b with a small a, to
    the last element.
    """

    def work(size):
        rng = np.random.default_rng(0)
        codes = np.sort(rng.integers(0, 4, size))[:, None].view(Counted)
        counts = rng.integers(1, 9, size).astype(float).view(Counted)
        Counted.work = 0
        table = Table(codes, counts, counts, counts)
        reweigh(
            table, algorithm_1(tally(codes[:, 0], counts, 4).reshape(2, 2), 0.5).ravel()
        )
        return Counted.work

    first, second, third = (work(size) for size in (1000, 2000, 4000))
    assert third - second == 2 * (second - first)
    assert 1000 <= second - first <= 10 * 1000


# ---------------------------------------------------------------- Section 4.2: the dual
def test_lemma_4_2_bounds_the_multipliers():
    """Corrected: ‖λ*‖₂ ≤ log(|Ω|/C)/η. The printed d·log(1/C)/η is 0 at C = 1, where λ*
    need not be.
    """
    printed_fails = 0
    for seed in range(times(150)):
        problem = random_problem(seed)
        d, eta = len(problem.theta), min(problem.theta.min(), 1 - problem.theta.max())
        _, multipliers = problem.solve(Newton())
        bound = log(2**d / problem.C) / eta
        assert np.linalg.norm(multipliers) <= bound
        shares = [np.array([1 - share, share]) for share in problem.theta]
        assert lemma_4_2(-log(2**d / problem.C), shares) == pytest.approx(
            bound, rel=1e-12
        )
        assert log(problem.q.min()) >= problem.dual.prior.log_floor() - 1e-12
        printed_fails += np.linalg.norm(multipliers) > d * log(1 / problem.C) / eta
    assert printed_fails


def test_lemma_4_2_with_many_levels():
    for seed in range(times(40)):
        rng = np.random.default_rng(seed)
        shares = [
            rng.dirichlet(np.full(size, rng.choice([1, 100])))
            for size in rng.integers(2, 6, 3)
        ]
        eta = min(map(distance_to_faces, shares))
        assert lemma_4_2(-7.0, shares) == pytest.approx(7 / eta, rel=1e-9)


def test_lemma_4_3_the_oracles_equal_enumeration():
    """Algorithms 2, 3 and 4 (corrected), the library's dual, and the sums over all
    points: three ways, one answer.
    """
    for seed in range(times(80)):
        problem = random_problem(seed)
        multipliers = np.random.default_rng(seed).normal(
            scale=2, size=len(problem.theta)
        )
        p = tilt(problem.q, problem.alphas, multipliers)
        value = log(problem.q @ np.exp((problem.alphas - problem.theta) @ multipliers))
        mean = p @ problem.alphas
        hessian = problem.alphas.T @ (p[:, None] * problem.alphas) - np.outer(
            mean, mean
        )
        oracles = [
            oracle(*problem.input, multipliers)
            for oracle in (value_oracle, gradient_oracle, hessian_oracle)
        ]
        for triple in (oracles, problem.at(multipliers)):
            for ours, exact in zip(
                triple, (value, mean - problem.theta, hessian), strict=True
            ):
                np.testing.assert_allclose(ours, exact, atol=1e-11)


def test_lemma_4_3_the_oracles_on_a_domain_beyond_enumeration():
    """2^40 points: only the sums of Algorithms 2 to 4 are left to compare with."""
    problem = random_problem(7, d=40)
    multipliers = np.random.default_rng(7).normal(size=40)
    oracles = [
        oracle(*problem.input, multipliers)
        for oracle in (value_oracle, gradient_oracle, hessian_oracle)
    ]
    for ours, exact in zip(problem.at(multipliers), oracles, strict=True):
        np.testing.assert_allclose(ours, exact, atol=1e-11)


@pytest.mark.parametrize("solver", [Newton(), NewtonCG()], ids=["newton", "newton-cg"])
def test_theorem_4_4_the_solution_is_epsilon_optimal(solver):
    """h(λ*) = −KL(p*‖q) with p* from iterative scaling of the primal program."""
    for seed in range(times(80)):
        problem = random_problem(1000 + seed)
        solution, multipliers = problem.solve(solver)
        p = iterative_scaling(problem.q, len(problem.theta), problem.theta)
        assert solution.value <= -(p @ np.log(p / problem.q)) + 1e-9
        np.testing.assert_allclose(
            tilt(problem.q, problem.alphas, multipliers), p, atol=1e-9
        )


@pytest.mark.parametrize("solver", [Newton(), NewtonCG()], ids=["newton", "newton-cg"])
def test_theorem_4_4_holds_on_a_domain_of_2_to_the_60_points(solver):
    """By convexity h(λ°) − h(λ*) ≤ ‖∇h(λ°)‖·(‖λ°‖ + ‖λ*‖), with ∇h from Algorithm 3 and
    Lemma 4.2 for ‖λ*‖.
    """
    problem = random_problem(5, d=60, margin=0.1)
    solution, multipliers = problem.solve(solver)
    slope = np.linalg.norm(gradient_oracle(*problem.input, multipliers))
    eta = min(problem.theta.min(), 1 - problem.theta.max())
    assert slope * (np.linalg.norm(multipliers) + log(2**60 / problem.C) / eta) <= 1e-8
    assert solution.iterations <= 100
    assert np.linalg.norm(multipliers) > 1  # there was something to solve


# ---------------------------------------------------------------- Section 4.3: fairness
# of p*
def test_theorem_4_5_on_any_target():
    """Any θ with 1/2 ≤ θ_ℓ ≤ 1/(1+τ); p* and δ by enumeration, λ* from the library."""
    informative = 0
    for seed in range(times(200)):
        rng = np.random.default_rng([seed, 5])
        data = random_data(rng, [2] * int(rng.integers(2, 6)))
        tau, C = float(rng.choice(TAUS)), float(rng.choice(SHARES))
        w = transcribed_algorithm_1(data, tau)
        theta = np.clip(
            w @ data.rows + rng.normal(scale=0.02, size=len(data.sizes)), 0.02, 0.98
        )
        theta[1] = rng.uniform(1 / 2, 1 / (1 + tau))
        problem = Binary(data, w, C, theta)
        _, multipliers = problem.solve(Newton())
        p = yz_table(tilt(problem.q, problem.alphas, multipliers), data.sizes)
        q = yz_table(problem.q, data.sizes)
        for y in (0, 1):
            delta = np.abs(p[y] - q[y]).max()
            bound = tau - 4 * delta * (1 + tau) / (C + 4 * delta)
            assert theorem_4_5(tau, base_mass=C / 4, delta=delta) == pytest.approx(
                max(0.0, bound), abs=1e-12
            )
            assert statistical_rate(p, (1,), [y]) >= bound - 1e-9
            informative += bound > 0.25 * tau
    assert informative > times(100)  # many bounds are far from the trivial 0


@pytest.mark.some(1)
@pytest.mark.parametrize("theta", ["w", "b"])
def test_theorem_4_5_in_the_certificate(theta):
    """Each y on its own, and the worst of them; the proof has C/(2|Y|) where the
    statement puts |Y| = 2.
    """
    for rng, data in random_datasets(40, outcomes=(2, 3)):
        tau, C = float(rng.choice(TAUS)), float(rng.choice(SHARES))
        q = yz_table(
            dense_prior(data, transcribed_algorithm_1(data, tau), C), data.sizes
        )
        bounds = []
        for favourable in (*range(data.sizes[0]), None):
            fit = paper.fit(
                data.frame(),
                outcome="y",
                protected="z",
                C=C,
                tau=tau,
                theta=theta,
                favourable=favourable,
            )
            certificate = fit.certificate
            assert (
                certificate.achieved["statistical_rate"]["z"]
                >= certificate.bound - 1e-9
            )
            assert certificate.achieved["representation_rate"]["z"] >= tau - 1e-9
            if favourable is None:
                assert certificate.bound == min(bounds)
                continue
            p = yz_table(fitted_point_probabilities(fit), data.sizes)
            delta = np.abs(p - q)[favourable].max()
            assert certificate.delta == pytest.approx(delta, abs=1e-9)
            bounds.append(certificate.bound)
            expected = tau - delta * (1 + tau) / (C / (2 * data.sizes[0]) + delta)
            assert certificate.bound == pytest.approx(max(0.0, expected), abs=1e-6)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("prior", "theta"), [("w", "d"), ("d", "d"), ("d", "b"), ("d", "w")]
)
def test_theorem_4_5_outside_its_hypotheses_promises_nothing_false(prior, theta):
    """With q_C^d or θ^d the theorem says nothing; whatever the certificate says instead
    must still hold.
    """
    for rng, data in random_datasets(60):
        C, frame = float(rng.choice(SHARES)), data.frame()
        fit = paper.fit(
            frame,
            outcome="y",
            protected="z",
            C=C,
            prior=prior,
            theta=theta,
            favourable=1,
        )
        assert (
            fit.certificate.bound
            <= fit.certificate.achieved["statistical_rate"]["z"] + 1e-9
        )


@pytest.mark.parametrize("tau", TAUS)
def test_remark_4_6_the_two_natural_targets(tau):
    for _, data in random_datasets(10):
        share = data.counts / data.counts.sum()
        w = transcribed_algorithm_1(data, tau)
        for theta, weights, protected in (
            ("w", w, [tau / (1 + tau), 1 / (1 + tau)]),
            ("b", share, [0.5, 0.5]),
        ):
            fit = paper.fit(
                data.frame(), outcome="y", protected="z", theta=theta, tau=tau
            )
            for attribute, size in enumerate(data.sizes):
                mean = np.bincount(
                    data.rows[:, attribute], weights=weights, minlength=size
                )
                wanted = protected if attribute == 1 else mean
                np.testing.assert_allclose(
                    fit.distribution.joint([attribute]), wanted, atol=1e-10
                )


# ---------------------------------------------------------------- Appendix A: sampling
# from counting
def sampling_problem(seed, C):
    """A fit with θ^d, and the same problem and λ* for the appendix's sampler."""
    data = random_data(np.random.default_rng([seed, 8]), [2, 2, 2, 2])
    fit = paper.fit(data.frame(), outcome="y", protected="z", C=C, theta="d")
    mean = data.counts @ data.rows / data.counts.sum()
    problem = Binary(data, transcribed_algorithm_1(data, 1.0), C, mean)
    return fit, problem, problem.solve(Newton())[1]


@pytest.mark.parametrize("C", [0.0, *SHARES])
def test_theorem_a_1_sampling_attribute_by_attribute_draws_p(C):
    """Every coin of the appendix's sampler is the library's conditional; their products
    are p*, exactly.
    """
    fit, problem, multipliers = sampling_problem(0, C)
    for alpha, p in zip(problem.alphas, fitted_point_probabilities(fit), strict=True):
        chain = 1.0
        for k, level in enumerate(alpha):
            if count_given(problem, multipliers, alpha[:k]) == 0:
                break
            zero = zero_probability(problem, multipliers, alpha[:k])
            chain *= 1 - zero if level else zero
            given = {
                name: int(known)
                for name, known in zip(fit.columns, alpha[:k], strict=False)
            }
            assert fit.distribution.condition(given).joint([k])[0] == pytest.approx(
                zero, abs=1e-10
            )
        assert p == pytest.approx(chain, rel=1e-8, abs=1e-12)


def test_theorem_a_1_our_sampler_agrees_with_it():
    """20,000 rows each: both have the frequencies of p*, and the test would notice
    those of the prior.
    """
    draws = 20_000
    fit, problem, multipliers = sampling_problem(1, 0.3)
    prefixes = [prefix for k in range(4) for prefix in product((0, 1), repeat=k)]
    coins = {
        prefix: zero_probability(problem, multipliers, prefix) for prefix in prefixes
    }
    tossed = []
    for tosses in np.random.default_rng(11).random((draws, 4)):
        prefix = ()
        for toss in tosses:
            prefix = (*prefix, int(toss >= coins[prefix]))
        tossed.append(prefix)
    drawn = fit.sample(draws, iid=True, random_state=12).to_numpy()
    theirs, ours = (
        np.bincount(np.asarray(rows) @ [8, 4, 2, 1], minlength=16)
        for rows in (tossed, drawn)
    )
    p = fitted_point_probabilities(fit)
    assert chisquare(theirs, p * draws).pvalue > 1e-3
    assert chisquare(ours, p * draws).pvalue > 1e-3
    assert chi2_contingency([theirs, ours]).pvalue > 1e-3
    assert chisquare(ours, problem.q * draws).pvalue < 1e-9


# ---------------------------------------------------------------- Algorithm 1
@pytest.mark.parametrize("tau", TAUS)
def test_algorithm_1_equals_its_pseudocode(tau):
    """Its τ sets the representation rate; the statistical rate of its weights is 1
    whatever τ.
    """
    for _, data in random_datasets(25, outcomes=(2, 3)):
        expected = transcribed_algorithm_1(data, tau)
        np.testing.assert_allclose(data.reweighted(tau), expected, rtol=1e-12)
        fit = paper.fit(data.frame(), outcome="y", protected="z", tau=tau)
        np.testing.assert_allclose(fit.weighted.counts, expected, rtol=1e-12)
        table = np.zeros(data.sizes[:2])
        np.add.at(table, (data.rows[:, 0], data.rows[:, 1]), fit.weighted.counts)
        assert representation_rate(table, (1,)) == pytest.approx(tau, rel=1e-12)
        assert statistical_rate(table, (1,), range(data.sizes[0])) == pytest.approx(
            1.0, rel=1e-12
        )
