"""The paper's setting and its algorithms, transcribed line by line: the slow twins of
tests/paper/test_paper.py.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import e, log

import numpy as np

from fairmaxent.data.table import Blocks, Table, tally
from fairmaxent.fairness.fair_table import algorithm_1, reweigh
from fairmaxent.maxent.dual import Dual
from fairmaxent.maxent.features import attribute_features
from fairmaxent.maxent.priors.bases import Product
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows
from oracle import points
from tables import times

TAUS = [0.2, 0.5, 0.8, 1.0]
SHARES = [0.05, 0.1, 0.5, 0.9, 1.0]


@dataclass(frozen=True)
class Data:
    """The set S with its frequencies n_α, on the product of alphabets of the given
    sizes.
    """

    sizes: tuple[int, ...]
    rows: np.ndarray
    counts: np.ndarray

    @property
    def blocks(self) -> Blocks:
        return Blocks.rooted(self.sizes, [0, 1])

    def frame(self):
        import pandas as pd

        names = ["y", "z", *(f"x{i}" for i in range(2, len(self.sizes)))]
        return pd.DataFrame(np.repeat(self.rows, self.counts, axis=0), columns=names)

    def reweighted(self, tau: float) -> np.ndarray:
        """w as the library computes it."""
        codes = self.blocks.pool(self.rows)
        empirical = tally(codes[:, 0], self.counts, self.blocks.levels[0]).reshape(
            self.sizes[:2]
        )
        counts = self.counts.astype(float)
        return reweigh(
            Table(codes, counts, counts, counts), algorithm_1(empirical, tau).ravel()
        ).counts


def random_data(rng, sizes) -> Data:
    """Dependent attributes with biased frequencies; every level and every cell (y, z)
    occurs.
    """
    latent = rng.random((40, 1))
    drawn = np.floor(
        (0.5 * latent + 0.5 * rng.random((40, len(sizes)))) ** rng.uniform(0.5, 2)
        * sizes
    ).astype(int)
    drawn[: max(sizes)] = np.arange(max(sizes))[:, None] % sizes
    drawn[-2 * sizes[0] :, :2] = points(sizes[:2])
    rows = np.unique(drawn, axis=0)
    return Data(tuple(int(s) for s in sizes), rows, rng.integers(1, 12, len(rows)))


def random_datasets(count, *, outcomes=(2,)):
    for seed in range(times(count)):
        rng = np.random.default_rng([seed, 1])
        yield (
            rng,
            random_data(
                rng,
                [
                    int(rng.choice(outcomes)),
                    2,
                    *rng.integers(2, 4, int(rng.integers(1, 4))),
                ],
            ),
        )


def dense_prior(data: Data, w, C: float) -> np.ndarray:
    """q_C^w(α) = C·u(α) + (1 − C)·w(α) of every point."""
    weight = {
        tuple(row): share for row, share in zip(data.rows.tolist(), w, strict=True)
    }
    grid = points(data.sizes).tolist()
    return np.array(
        [C / len(grid) + (1 - C) * weight.get(tuple(point), 0.0) for point in grid]
    )


def tilt(q, alphas, multipliers) -> np.ndarray:
    """p(α) ∝ q(α)·e^⟨λ,α⟩ of every point."""
    weights = q * np.exp(alphas @ multipliers)
    return weights / weights.sum()


def prior_table(prior) -> np.ndarray:
    """The library's q(Y = y, Z = z)."""
    blocks = prior.blocks
    return (
        prior.tilt(np.zeros(blocks.width))
        .levels[blocks.slices[0]]
        .reshape(blocks.shape(0))
    )


def yz_table(p, sizes) -> np.ndarray:
    """p(Y = y, Z = z)."""
    return p.reshape(sizes).sum(axis=tuple(range(2, len(sizes))))


def fitted_point_probabilities(fit) -> np.ndarray:
    return np.exp(
        fit.distribution.density.log_probability(points(fit.distribution.blocks.levels))
    )


@dataclass(frozen=True)
class Binary:
    """A problem on {0,1}^d: the prior q_C^w and the target θ, with the library's dual
    in the paper's coordinates.
    """

    data: Data
    w: np.ndarray
    C: float
    theta: np.ndarray

    @property
    def input(self):
        """What Algorithms 2 to 4 are given, less λ."""
        return self.data.rows, self.w, self.C, self.theta

    @cached_property
    def q(self):
        return dense_prior(self.data, self.w, self.C)

    @cached_property
    def alphas(self):
        return points(self.data.sizes)

    @cached_property
    def dual(self) -> Dual:
        blocks = self.data.blocks
        base = Product.of(blocks, np.ones(blocks.width))
        rows = Rows.weighted(blocks, blocks.pool(self.data.rows), self.w)
        pairs = np.column_stack([1 - self.theta, self.theta])
        levels = np.concatenate([np.outer(pairs[0], pairs[1]).ravel(), *pairs[2:]])
        features = attribute_features(blocks, [None] * len(self.theta), levels)
        return Dual(
            Mixture.of((self.C, 1 - self.C), (base, rows)),
            features,
            features.mean(levels),
        )

    @cached_property
    def signs(self):
        """The library's feature is the indicator of the rarer level, the paper's that
        of level 1.
        """
        return np.where(self.theta > 0.5, -1.0, 1.0)

    def at(self, multipliers):
        """Value, gradient and Hessian of the library's dual."""
        point = self.dual.at(self.signs * multipliers)
        return (
            point.value,
            self.signs * point.gradient,
            np.outer(self.signs, self.signs) * point.hessian(),
        )

    def solve(self, solver):
        solution = solver.solve(self.dual)
        return solution, self.signs * solution.multipliers


def random_problem(seed, *, d=None, margin=0.03) -> Binary:
    """Few attributes and any C, or ``d`` attributes and C = 0.3; θ keeps the margin
    from the boundary.
    """
    rng = np.random.default_rng([seed, 2])
    data = random_data(rng, [2] * (d or int(rng.integers(2, 7))))
    w = transcribed_algorithm_1(data, float(rng.choice(TAUS)))
    theta = rng.uniform(margin, 1 - margin, len(data.sizes))
    return Binary(data, w, 0.3 if d else float(rng.choice(SHARES)), theta)


def iterative_scaling(q, d, theta):
    """The primal program, solved without its dual: scale to one wanted marginal after
    the other.
    """
    p = q.reshape([2] * d).copy()
    for _ in range(20_000):
        worst = 0.0
        for axis, share in enumerate(theta):
            front = np.moveaxis(p, axis, 0)
            mass = front[1].sum() / front.sum()
            worst = max(worst, abs(mass - share))
            front[0] *= (1 - share) / (1 - mass)
            front[1] *= share / mass
        if worst < 1e-14:
            break
    return p.ravel() / p.sum()


def transcribed_algorithm_1(data: Data, tau: float) -> np.ndarray:
    """Re-weighting; Y_α and Z_α are the first two entries of α."""
    c, c_joint = {}, {}
    for y in range(data.sizes[0]):
        c[y] = sum(n for a, n in zip(data.rows, data.counts, strict=True) if a[0] == y)
        c_joint[y, 0] = (
            sum(
                n
                for a, n in zip(data.rows, data.counts, strict=True)
                if (a[0], a[1]) == (y, 0)
            )
            / tau
        )
        c_joint[y, 1] = sum(
            n
            for a, n in zip(data.rows, data.counts, strict=True)
            if (a[0], a[1]) == (y, 1)
        )
    w = np.array(
        [
            n * c[a[0]] / c_joint[a[0], a[1]]
            for a, n in zip(data.rows, data.counts, strict=True)
        ]
    )
    return w / w.sum()


def value_oracle(rows, w, C, theta, multipliers):
    """Algorithm 2, with s_j⁰ = (1 + e^{λ_j})/2 in place of the printed e^{λ_j}/2."""
    g1 = 1.0
    for multiplier in multipliers:
        g1 *= (1 + np.exp(multiplier)) / 2
    g2 = 0.0
    for alpha, weight in zip(rows, w, strict=True):
        g2 += weight * np.exp(alpha @ multipliers)
    return log(C * g1 + (1 - C) * g2) - theta @ multipliers


def gradient_oracle(rows, w, C, theta, multipliers):
    """Algorithm 3, with s_j⁰ as in Algorithm 2 and α_i in place of the printed α."""
    n = len(theta)
    basis = np.eye(n)
    s0 = [(1 + np.exp(multiplier)) / 2 for multiplier in multipliers]
    s1 = [basis[j] * np.exp(multipliers[j]) / 2 for j in range(n)]
    g1 = np.zeros(n)
    for j in range(n):
        t = 1.0
        for k in range(n):
            t *= s0[k] if k != j else 1.0
        g1 += s1[j] * t
    g2 = np.zeros(n)
    for alpha, weight in zip(rows, w, strict=True):
        g2 += alpha * weight * np.exp(alpha @ multipliers)
    v = value_oracle(rows, w, C, theta, multipliers) + theta @ multipliers
    return (C * g1 + (1 - C) * g2) / np.exp(v) - theta


def hessian_oracle(rows, w, C, theta, multipliers):
    """Algorithm 4, with s_j² (printed s_i²), α_i, exp(v₁) and (v₂ + θ)(v₂ + θ)ᵀ; all
    sums shifted by θ.
    """
    n = len(theta)
    basis = np.eye(n)
    up, down = np.exp((1 - theta) * multipliers) / 2, np.exp(-theta * multipliers) / 2
    s0, s1 = up + down, basis * up
    g1 = np.zeros((n, n))
    for j in range(n):
        t1, t2 = 1.0, np.zeros((n, n))
        for k in range(n):
            if k == j:
                continue
            t1 *= s0[k]
            t3 = 1.0
            for other in range(n):
                t3 *= s0[other] if other not in (j, k) else 1.0
            t2 += np.outer(s1[j], s1[k]) * t3
        g1 += np.outer(basis[j], basis[j]) * up[j] * t1 + t2
    g2 = np.zeros((n, n))
    for alpha, weight in zip(rows, w, strict=True):
        g2 += np.outer(alpha, alpha) * weight * np.exp((alpha - theta) @ multipliers)
    v1 = value_oracle(rows, w, C, theta, multipliers)
    v2 = gradient_oracle(rows, w, C, theta, multipliers)
    return (C * g1 + (1 - C) * g2) / np.exp(v1) - np.outer(v2 + theta, v2 + theta)


def radius_and_limit(n, C, epsilon):
    """R and T of Algorithm 5."""
    R = 8 * n * log(1 / (C * epsilon))
    return R, 16 * n * R * log(1 / (C * epsilon))


def transcribed_algorithm_5(problem: Binary, epsilon: float, iterations: int):
    """The first iterates of the full algorithm, its quadratic program solved by trying
    every active set.
    """
    n = len(problem.theta)
    R, _ = radius_and_limit(n, problem.C, epsilon)
    multipliers = np.zeros(n)
    yield multipliers
    for _ in range(iterations):
        g, H = (
            gradient_oracle(*problem.input, multipliers),
            hessian_oracle(*problem.input, multipliers),
        )
        low, high = (
            np.maximum(-1 / (8 * n), -R - multipliers),
            np.minimum(1 / (8 * n), R - multipliers),
        )
        multipliers = multipliers + smallest_in_box(g, H / e, low, high) / e**2
        yield multipliers


def smallest_in_box(g, H, low, high):
    """argmin ⟨g, y⟩ + yᵀHy/2 in a box: the best feasible point over all 3ⁿ active
    sets.
    """
    best, best_value = None, np.inf
    for active in product((-1, 0, 1), repeat=len(g)):
        free = np.array(active) == 0
        y = np.where(np.array(active) < 0, low, high)
        y[free] = np.linalg.solve(
            H[np.ix_(free, free)], -(g + H[:, ~free] @ y[~free])[free]
        )
        if (
            np.all(y >= low - 1e-15)
            and np.all(y <= high + 1e-15)
            and g @ y + y @ H @ y / 2 < best_value
        ):
            best, best_value = y, g @ y + y @ H @ y / 2
    return best


def count_given(problem: Binary, multipliers, prefix):
    """Σ q(α)·e^⟨λ,α⟩ over the α that begin with ``prefix``: the counting oracle of
    Theorem A.1.
    """
    d, k = len(multipliers), len(prefix)
    uniform = (
        np.exp(np.dot(prefix, multipliers[:k]))
        * np.prod(1 + np.exp(multipliers[k:]))
        / 2**d
    )
    begins = (problem.data.rows[:, :k] == prefix).all(axis=1)
    rows = problem.w[begins] @ np.exp(problem.data.rows[begins] @ multipliers)
    return problem.C * uniform + (1 - problem.C) * rows


def zero_probability(problem: Binary, multipliers, prefix):
    """P[A_k = 0 | A_1, …, A_{k−1}], the coin that the sampler of Theorem A.1 tosses."""
    return count_given(problem, multipliers, [*prefix, 0]) / count_given(
        problem, multipliers, list(prefix)
    )


def distance_to_faces(share):
    """η for an attribute of many levels: how far θ is from the faces Ax ≤ b of the
    simplex of its indicators.
    """
    theta = np.sort(share)[:-1]
    A, b = (
        np.vstack([-np.eye(len(theta)), np.ones(len(theta))]),
        np.append(np.zeros(len(theta)), 1.0),
    )
    return ((b - A @ theta) / np.linalg.norm(A, axis=1)).min()
