"""Optimized preprocessing: the optimum against cvxpy on the program written out,
conditions by brute force.
"""

from functools import cache
from itertools import permutations, product

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import fairmaxent
import reproduction.calmon
from fairmaxent.data.roles import Roles
from reproduction import datasets
from reproduction.calmon import Distortion, calmon

pytestmark = pytest.mark.more

# groups of each protected column, outcomes, ε, distortion, largest change
PROGRAMS = [
    ((2,), 2, 0.0, 0.5, 2),
    ((2,), 2, 0.0, 0.1, 1),
    ((2,), 3, 0.1, 0.2, 2),
    ((3,), 2, 0.05, 0.15, 3),
    ((3,), 3, 0.0, 0.4, 1),
    ((2, 2), 2, 0.3, 0.12, 2),
    ((2,), 2, 0.0, 0.02, 2),
]
programs = pytest.mark.parametrize(
    ("groups", "outcomes", "epsilon", "distortion", "largest"), PROGRAMS
)


def small_table(groups, outcomes, seed, rows=120) -> pd.DataFrame:
    """An ordered column with gaps, one of words and one of numbers; outcomes depend on
    the groups.
    """
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, rows) for size in groups]
    y = (
        (rng.random(rows) * outcomes + 0.2 * sum(codes))
        .astype(int)
        .clip(max=outcomes - 1)
    )
    grade = pd.Series(rng.choice(["low", "mid", "high"], rows, p=[0.3, 0.2, 0.5])).mask(
        rng.random(rows) < 0.1
    )
    frame = {
        f"z{number}": [f"g{code}" for code in column]
        for number, column in enumerate(codes)
    }
    frame["y"] = [f"o{code}" for code in y]
    frame["grade"] = pd.Categorical(grade, ["low", "mid", "high"], ordered=True)
    frame["word"] = np.where(rng.random(rows) < 0.3 + 0.2 * (y > 0), "a", "b")
    frame["number"] = rng.choice([10, 20, 40], rows)
    return pd.DataFrame(frame)


def delta(one, other) -> int:
    """δ of two rows (outcome, grade, word, number), from the definition."""
    y, grade, word, number = zip(one, other, strict=True)
    if pd.isna(grade[0]) or pd.isna(grade[1]):
        graded = int(pd.isna(grade[0]) != pd.isna(grade[1]))
    else:
        graded = abs(
            ["low", "mid", "high"].index(grade[0])
            - ["low", "mid", "high"].index(grade[1])
        )
    numbered = abs([10, 20, 40].index(number[0]) - [10, 20, 40].index(number[1]))
    return (y[0] != y[1]) + graded + (word[0] != word[1]) + numbered


class Dense:
    """The program as the paper of Calmon et al. states it: every seen (x, y, z) against
    every (x̂, ŷ) there could be.
    """

    def __init__(self, frame, columns, largest):
        plain = frame.astype({"grade": object}).where(frame.notna(), None)
        counts = plain.groupby(
            [*columns, "y", "grade", "word", "number"], dropna=False
        ).size()
        self.rows = [
            tuple(None if pd.isna(cell) else cell for cell in key)
            for key in counts.index
        ]
        self.share = counts.to_numpy() / len(frame)
        self.groups = [row[: len(columns)] for row in self.rows]
        self.before = [row[len(columns) :] for row in self.rows]
        levels = [
            dict.fromkeys(plain[name]) for name in ("y", "grade", "word", "number")
        ]
        self.after = list(product(*levels))
        self.delta = np.array(
            [[delta(one, other) for other in self.after] for one in self.before]
        )
        self.allowed = self.delta <= largest
        self.data = np.zeros(len(self.after))
        for row, share in zip(self.before, self.share, strict=True):
            self.data[self.after.index(row)] += share

    def rates(self, mapping):
        """p(ŷ | z) as (group, outcome) → expression or number."""
        result = {}
        for group in set(self.groups):
            inside = np.array([own == group for own in self.groups])
            given = self.share * inside / (self.share * inside).sum()
            for outcome in {row[0] for row in self.after}:
                has = np.array([row[0] == outcome for row in self.after], dtype=float)
                result[group, outcome] = given @ mapping @ has
        return result

    def optimum(self, epsilon, distortion) -> float:
        mapping = cp.Variable(self.delta.shape, nonneg=True)
        rates = self.rates(mapping)
        limits = [
            cp.sum(mapping, axis=1) == 1,
            cp.sum(cp.multiply(mapping, self.delta), axis=1) <= distortion,
        ]
        limits.append(cp.multiply(mapping, ~self.allowed) == 0)
        for one, other in permutations(set(self.groups), 2):
            for outcome in {row[0] for row in self.after}:
                first, second = rates[one, outcome], rates[other, outcome]
                limits += [
                    first - second <= epsilon * second,
                    second - first <= epsilon * second,
                ]
        problem = cp.Problem(
            cp.Minimize(cp.norm1(self.share @ mapping - self.data) / 2), limits
        )
        # not the algorithm under test
        problem.solve(solver=cp.SCIPY, scipy_options={"method": "highs-ipm"})
        return (
            float("inf")
            if problem.status.startswith("infeasible")
            else float(problem.value)
        )

    def matrix(self, result) -> np.ndarray:
        """The mapping as a dense table, read row by row through the user's own
        values.
        """
        mapping, domain = result.mapping, result.distribution.domain
        rng = np.random.default_rng(0)
        from_rows, to_rows = (
            domain.decode(codes, rng=rng).astype({"grade": object})
            for codes in (mapping.rows[mapping.source], mapping.targets)
        )
        protected = [name for name in domain.names if name.startswith("z")]
        assert from_rows[protected].equals(to_rows[protected])
        dense = np.zeros(self.delta.shape)
        names = [*protected, "y", "grade", "word", "number"]
        befores = self._tuples(from_rows[names])
        afters = self._tuples(to_rows[names[len(protected) :]])
        for before, after, chance in zip(
            befores, afters, mapping.probability, strict=True
        ):
            dense[self.rows.index(before), self.after.index(after)] += chance
        return dense

    @staticmethod
    def _tuples(frame):
        return [
            tuple(None if pd.isna(cell) else cell for cell in row)
            for row in frame.itertuples(index=False)
        ]


def columns_of(groups) -> list[str]:
    return [f"z{number}" for number in range(len(groups))]


@cache
def solved(groups, outcomes, epsilon, distortion, largest, seed) -> tuple[Dense, float]:
    twin = Dense(small_table(groups, outcomes, seed), columns_of(groups), largest)
    return twin, twin.optimum(epsilon, distortion)


@programs
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_optimum_is_that_of_the_program_written_out(
    groups, outcomes, epsilon, distortion, largest, seed
):
    frame, columns = small_table(groups, outcomes, seed), columns_of(groups)
    twin, wanted = solved(groups, outcomes, epsilon, distortion, largest, seed)
    options = {"epsilon": epsilon, "distortion": distortion, "largest_change": largest}
    if wanted == float("inf"):
        with pytest.raises(fairmaxent.InfeasibleError, match="Raise distortion"):
            calmon(frame, "y", columns, **options)
        return
    result = calmon(frame, "y", columns, **options)
    assert result.reached.total_variation == pytest.approx(wanted, abs=1e-6)
    check_by_brute_force(twin, result, epsilon, distortion)


def check_by_brute_force(twin, result, epsilon, distortion):
    dense = twin.matrix(result)
    np.testing.assert_allclose(dense.sum(axis=1), 1, atol=1e-12)
    assert (dense[~twin.allowed] == 0).all()
    assert result.reached.unknowns == twin.allowed.sum()
    expected = (dense * twin.delta).sum(axis=1)
    assert expected.max() <= distortion + 1e-7
    assert result.reached.largest_distortion == pytest.approx(expected.max(), abs=1e-12)
    rates = twin.rates(dense)
    ratios = [
        rates[one, outcome] / rates[other, outcome]
        for one, other in permutations(set(twin.groups), 2)
        for outcome in {row[0] for row in twin.after}
        if rates[other, outcome] > 0
    ]
    assert max(abs(ratio - 1) for ratio in ratios) <= epsilon + 1e-7
    assert result.reached.worst_ratio == pytest.approx(min(ratios))
    assert abs(twin.share @ dense - twin.data).sum() / 2 == pytest.approx(
        result.reached.total_variation, abs=1e-12
    )


def test_some_of_these_programs_bind_and_some_do_not():
    """Else the comparison above would prove little."""
    values = [solved(*program, seed)[1] for program in PROGRAMS for seed in (0, 1)]
    assert sum(value < 1e-6 for value in values) >= 2
    assert sum(1e-3 < value < 1 for value in values) >= 3
    assert sum(value == float("inf") for value in values) >= 1


def test_the_marginal_is_that_of_the_mapped_rows():
    frame = small_table((2,), 2, seed=2)
    result = calmon(frame, "y", "z0", distortion=0.3)
    twin = Dense(frame, ["z0"], 2)
    dense = twin.share[:, None] * twin.matrix(result)
    by_hand: dict[tuple, float] = {}
    for source, target in zip(*np.nonzero(dense), strict=True):
        key = (*twin.groups[source], twin.after[target][0], twin.after[target][3])
        by_hand[key] = by_hand.get(key, 0.0) + dense[source, target]
    exact = result.marginal(["z0", "y", "number"]).set_index(["z0", "y", "number"])[
        "probability"
    ]
    assert exact[exact > 0].to_dict() == pytest.approx(by_hand)
    groups = result.marginal("z0").set_index("z0")["probability"]
    assert groups.to_dict() == pytest.approx(
        (frame["z0"].value_counts() / len(frame)).to_dict()
    )


def test_of_all_optima_one_that_changes_little_is_taken():
    """Two groups alike already: total variation 0 is met by many mappings, and by
    leaving all as it is.
    """
    half = pd.DataFrame({"y": ["no", "yes"] * 20, "x": ["a", "a", "b", "b"] * 10})
    frame = pd.concat([half.assign(z="f"), half.assign(z="m")], ignore_index=True)
    result = calmon(frame, "y", "z")
    assert result.reached.largest_distortion == 0.0
    assert result.reached.total_variation == 0.0


def test_any_change_of_the_outcome_is_one_step():
    frame = small_table((2,), 2, seed=0).assign(points=[1, 2, 3, 4] * 30)
    costs = Distortion.of(Roles.of(fairmaxent.Domain.infer(frame), "points", ["z0"]))
    assert costs.steps[0].tolist() == (1 - np.eye(4, dtype=int)).tolist()
    assert costs.columns == (5, 1, 2, 3, 4)


@pytest.mark.parametrize("largest", [1, 2, 3, 6])
def test_every_pair_is_listed_once_and_a_program_that_is_too_large_not_at_all(
    monkeypatch, largest
):
    frame = small_table((2,), 3, seed=4)
    domain = fairmaxent.Domain.infer(frame)
    costs = Distortion.of(Roles.of(domain, "y", ["z0"]))
    codes = domain.encode(frame)[:, costs.columns]
    source, targets, steps = costs.pairs_within(codes, largest)
    assert steps.max() <= largest
    assert len(np.unique(np.column_stack([source, targets]), axis=0)) == len(source)
    monkeypatch.setattr(reproduction.calmon, "LARGEST_PROGRAM", len(source))
    assert len(costs.pairs_within(codes, largest)[0]) == len(source)
    monkeypatch.setattr(reproduction.calmon, "LARGEST_PROGRAM", len(source) - 1)
    with pytest.raises(
        fairmaxent.InputError, match=f"more than {len(source) - 1:,} unknowns"
    ):
        costs.pairs_within(codes, largest)


def test_a_huge_domain_is_refused_at_once():
    """25 columns of 8 levels have more points than 64 bits can count."""
    rng = np.random.default_rng(0)
    words = {
        f"x{number}": rng.choice([f"v{level}" for level in range(8)], 2000)
        for number in range(25)
    }
    frame = pd.DataFrame(
        {
            "y": rng.choice(["no", "yes"], 2000),
            "z": rng.choice(["f", "m"], 2000),
            **words,
        }
    )
    for largest in (2, 26):
        with pytest.raises(
            fairmaxent.InputError, match=f"largest_change={largest} allows"
        ):
            calmon(frame, "y", "z", largest_change=largest)


def test_too_little_distortion_names_the_knob_that_is_enough():
    frame = pd.DataFrame(
        {"z": ["f", "m"] * 20, "y": ["no", "yes"] * 20, "x": ["a"] * 40}
    )
    with pytest.raises(
        fairmaxent.InfeasibleError,
        match=r"Raise distortion \(0.5 is always enough\) or epsilon",
    ):
        calmon(frame, "y", "z", distortion=0.4)
    assert calmon(frame, "y", "z", distortion=0.5).reached.worst_ratio == pytest.approx(
        1
    )


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("epsilon", (-0.1, np.nan)),
        ("distortion", (np.inf, True, "0.5")),
        ("largest_change", (0, 1.5, True)),
    ],
)
def test_options_that_mean_nothing_are_refused(option, values):
    for value in values:
        with pytest.raises(fairmaxent.InputError, match=option):
            calmon(small_table((2,), 2, seed=0), "y", "z0", **{option: value})


def test_taking_it_costs_no_total_variation(monkeypatch):
    """Where change and total variation pull apart, the latter still is what it is
    without a cost of change.
    """
    data = datasets.load("adult-small")
    result = calmon(data.frame, data.outcome, "sex", distortion=0.2).reached
    # the name is the function, too
    monkeypatch.setattr(reproduction.calmon, "STEP_COST", 0.0)
    free = calmon(data.frame, data.outcome, "sex", distortion=0.2).reached
    assert (
        0.001 < result.total_variation == pytest.approx(free.total_variation, abs=1e-6)
    )


@pytest.mark.parametrize(
    ("name", "protected", "least"),
    [
        ("adult-small", "sex", 0.96),
        ("compas-small", "sex", 0.87),
        ("compas-small", "race", 0.93),
    ],
)
def test_on_the_papers_data_drawn_rows_are_fair(name, protected, least):
    data = datasets.load(name)
    result = calmon(data.frame, data.outcome, protected)
    assert result.reached.worst_ratio == pytest.approx(1, abs=1e-6)
    assert result.reached.largest_distortion <= 0.5 + 1e-9
    drawn = (result.sample(10_000, random_state=seed, iid=True) for seed in range(20))
    rates = [
        float(
            fairmaxent.metrics.statistical_rate(
                rows, data.outcome, protected, favourable=data.favourable
            )
        )
        for rows in drawn
    ]
    assert np.mean(rates) >= least
