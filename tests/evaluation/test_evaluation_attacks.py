"""Every measure of evaluate against a slow twin that follows its definition word by
word.
"""

import itertools
import math
from collections import Counter
from functools import cache

import numpy as np
import polars as pl
import pytest
from evaluation_tables import people, with_gaps

from fairmaxent.evaluation.attacks import (
    Risk,
    SuccessRate,
    copied_rows,
    inference,
    membership,
)
from fairmaxent.evaluation.pooled import nearest, pool
from fairmaxent.evaluation.quality import fidelity
from fairmaxent.evaluation.singling_out import Ranges, at_size, make_guesses

TABLES = {
    "real": with_gaps(people(60, 1), 11),
    "new": with_gaps(pl.concat([people(40, 2), people(60, 1)[:30]]), 12),
    "control": with_gaps(people(50, 3), 13),
}
NUMBERS = ("age", "income", "height")
NAMES = TABLES["real"].columns


@pytest.fixture(scope="module")
def pooled():
    return pool(TABLES)[0]


@cache
def all_rows():
    return [row for table in TABLES.values() for row in table.iter_rows(named=True)]


@cache
def spans():
    """The range of each column of numbers over all tables."""
    values = {
        name: [row[name] for row in all_rows() if row[name] is not None]
        for name in NUMBERS
    }
    return {name: max(column) - min(column) for name, column in values.items()}


def gower(one, other, names):
    """The distance, word by word."""
    total = 0.0
    for name in names:
        a, b = one[name], other[name]
        if a is None or b is None:
            total += (a is None) != (b is None)
        else:
            total += abs(a - b) / spans()[name] if name in NUMBERS else a != b
    return total


def nearest_by(row, candidates, names):
    """All candidates that are nearest to a row."""
    known = all_rows()
    distances = np.array(
        [gower(known[row], known[candidate], names) for candidate in candidates]
    )
    return candidates[distances <= distances.min() + 1e-6].tolist()


@pytest.mark.parametrize("kept", [0, 30_000, 1 << 27])
def test_the_nearest_rows_are_the_nearest(pooled, monkeypatch, kept):
    # distances of some columns, or of all
    monkeypatch.setattr("fairmaxent.evaluation.pooled._KEPT", kept)
    rng = np.random.default_rng(0)
    rows, candidates = pooled.shuffled("real", rng, 20), pooled.shuffled("new", rng)
    parts = [(0, 2, 4), (1, 3, 5)]
    found = nearest(pooled, rows, candidates, parts=parts, others=range(6))
    known = all_rows()
    for at, row in enumerate(rows):
        near = [nearest_by(row, candidates, [NAMES[i] for i in part]) for part in parts]
        # to break ties
        ways = [one == other for one, other in itertools.product(*near)]
        assert found.linked[at] == pytest.approx(np.mean(ways))
        for k, name in enumerate(NAMES):
            names, chosen = (
                [other for other in NAMES if other != name],
                found.by_others[at, k],
            )
            distances = [
                gower(known[row], known[candidate], names) for candidate in candidates
            ]
            place = candidates.tolist().index(chosen)
            assert distances[place] == pytest.approx(min(distances), abs=1e-6)
            # the first of equals
            assert min(distances[:place], default=9) >= distances[place] - 1e-6
        least = min(
            gower(known[row], known[candidate], NAMES) for candidate in candidates
        )
        assert found.distance[at] == pytest.approx(least, abs=1e-6)


def test_links_and_guesses_are_counted_from_them(pooled):
    rng = np.random.default_rng(1)
    candidates, known = pooled.shuffled("new", rng), all_rows()
    attacked, linked, right = [], [], []
    for name in ("real", "control"):
        rows = pooled.shuffled(name, rng, 30)
        near = nearest(
            pooled, rows, candidates, parts=[(0, 1, 2), (3, 4, 5)], others=range(6)
        )
        attacked.append(near)
        linked.append(near.linked.mean())
        hits = np.zeros((len(rows), 6))
        for at, row in enumerate(rows):
            for k, secret in enumerate(NAMES):
                truth, guess = known[row][secret], known[near.by_others[at, k]][secret]
                close = (
                    secret in NUMBERS
                    and None not in (truth, guess)
                    and abs(truth - guess) <= 0.05 * abs(guess)
                )
                hits[at, k] = truth == guess or close
        right.append(hits)
    risk = Risk.of_hits([near.linked for near in attacked], 0.9)
    assert (risk.rate, risk.control_rate) == pytest.approx(tuple(linked))
    found = inference(pooled, range(6), attacked, confidence=0.9)
    assert found.average.rate == pytest.approx(right[0].mean())
    for k, name in enumerate(NAMES):
        one = found.by_column[name]
        assert (one.rate, one.control_rate) == pytest.approx(
            (right[0][:, k].mean(), right[1][:, k].mean())
        )
        assert found.surely[name] <= one.low


def fits(row, guess, ranks):
    return all(
        least <= ranks[index][row[NAMES[index]]] <= greatest
        for index, least, greatest in guess
    )


def code_tables(pooled):
    """The number of each value of each column, looked up from the rows."""
    pairs = list(zip(NAMES, pooled.columns, strict=True))
    return [
        {row[name]: int(column.codes[at]) for at, row in enumerate(all_rows())}
        for name, column in pairs
    ]


def test_guesses_say_what_a_new_row_says_and_fit_it_alone(pooled):
    rng, ranks = np.random.default_rng(2), code_tables(pooled)
    new = [
        dict(row)
        for row in {
            tuple(row.items()): None for row in TABLES["new"].iter_rows(named=True)
        }
    ]
    guesses = make_guesses(pooled, Ranges.of(pooled.distinct("new")), 50, rng)
    assert len(set(guesses)) == len(guesses) == 50
    by_name = dict(zip(NAMES, ranks, strict=True))
    medians = {
        name: np.median([by_name[name][r[name]] for r in new if r[name] is not None])
        for name in NUMBERS
    }
    for guess in guesses:
        assert len(guess) == 3
        fitting = [row for row in new if fits(row, guess, ranks)]
        assert len(fitting) == 1
        for index, least, greatest in guess:
            name, code = NAMES[index], ranks[index][fitting[0][NAMES[index]]]
            if name not in NUMBERS or code == 0:
                assert least == greatest == code
            elif code > medians[name]:
                assert least == code
                assert greatest >= max(ranks[index].values())
            else:
                assert (least, greatest) == (1, code)


def test_successes_are_guesses_that_fit_one_distinct_person(pooled):
    ranks = code_tables(pooled)
    guesses = make_guesses(
        pooled, Ranges.of(pooled.distinct("new")), 40, np.random.default_rng(3)
    )
    for name, table in TABLES.items():
        distinct = [
            dict(row)
            for row in {tuple(row.items()): None for row in table.iter_rows(named=True)}
        ]
        ranges = Ranges.of(pooled.distinct(name))
        assert [len(ranges.rows(guess)) for guess in guesses] == [
            sum(fits(row, guess, ranks) for row in distinct) for guess in guesses
        ]


@pytest.mark.parametrize("wanted", [20, 50])
def test_successes_in_a_smaller_table(wanted):
    """How many guesses fit exactly one row of a random part: the expectation against
    many draws.
    """
    rng = np.random.default_rng(4)
    counts = rng.poisson(1.2, 300)
    drawn = [(rng.binomial(counts, wanted / 100) == 1).sum() for _ in range(2000)]
    assert at_size(counts, 100, wanted) == pytest.approx(np.mean(drawn), rel=0.02)
    assert at_size(counts, 100, 100) == (counts == 1).sum()


def test_copies_are_rows_of_the_real_table(pooled):
    real = Counter(TABLES["real"].rows())
    copies = copied_rows(pooled, confidence=0.95)
    new = TABLES["new"].rows()
    assert copies.copies == sum(row in real for row in new) > 0
    assert copies.people == sum(row in set(new) for row in TABLES["real"].rows())
    assert (
        copies.by_chance
        == 60 * sum(row in set(new) for row in TABLES["control"].rows()) / 50
    )
    assert copies.limit == 0.6


@pytest.mark.slow
@pytest.mark.parametrize("control", [0, 20, 200, 1000])
@pytest.mark.parametrize(
    ("cells", "rows"), [(20, 400), (2000, 400), (2000, 40), (2000, 2000), (10**4, 400)]
)
def test_chance_is_not_said_to_be_copies(cells, rows, control):
    """New rows of another distribution than the people: chance is taken for copies at
    most once in twenty times.
    """
    rng = np.random.default_rng(12)
    said, shares = 0, np.sort(rng.dirichlet(np.full(cells, 0.5)))
    for _ in range(200):
        sizes = {"real": 400, "control": control} if control else {"real": 400}
        drawn = {
            name: rng.choice(len(shares), size, p=shares)
            for name, size in sizes.items()
        }
        drawn["new"] = rng.choice(
            len(shares), rows, p=np.sqrt(shares) / np.sqrt(shares).sum()
        )
        tables = {name: pl.DataFrame({"a": values}) for name, values in drawn.items()}
        said += copied_rows(pool(tables)[0], confidence=0.95).risk.low > 0
    assert said <= 10


def test_membership_is_the_share_of_pairs():
    rng = np.random.default_rng(7)
    real, control = (
        np.round(rng.gamma(2, 1.0, 150), 1),
        np.round(rng.gamma(3, 1.0, 120), 1),
    )
    found = membership(real, control, confidence=0.95)
    pairs = [
        (one < other) + (one == other) / 2
        for one, other in itertools.product(real, control)
    ]
    assert found.auc == pytest.approx(np.mean(pairs))
    drawn = [
        membership(rng.choice(real, 150), rng.choice(control, 120), confidence=0.95).auc
        for _ in range(400)
    ]
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * np.std(drawn), rel=0.15)
    assert found.risk.value == pytest.approx(2 * found.auc - 1)


def test_rates_are_those_of_wilson():
    """The ends solve (p − k/n)² = z² p (1 − p) / n."""
    for successes, attempts in ((0, 20), (7, 20), (20, 20), (300, 500)):
        rate = SuccessRate.of(successes, attempts, 0.95)
        for end in (rate.value - rate.error, rate.value + rate.error):
            gap = (end - successes / attempts) ** 2 - 1.959964**2 * end * (
                1 - end
            ) / attempts
            assert gap == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("inside", "outside"), [(0.4, 0.2), (0.6, 0.5), (0.3, 0.05)])
def test_the_errors_of_both_rates_are_carried_on(inside, outside):
    """To first order: each error times the slope of the risk (a − c) / (1 − c), by
    finite differences.
    """

    def risk(attack, control):
        return (attack - control) / (1 - control)

    errors, step = (0.01, 0.02), 1e-6
    slopes = [
        (risk(inside + step, outside) - risk(inside - step, outside)) / (2 * step),
        (risk(inside, outside + step) - risk(inside, outside - step)) / (2 * step),
    ]
    found = Risk.beyond(
        SuccessRate(inside, errors[0], inside),
        SuccessRate(outside, errors[1], outside),
        attempts=100,
    )
    assert found.value == pytest.approx(risk(inside, outside))
    expected = math.hypot(
        *(slope * error for slope, error in zip(slopes, errors, strict=True))
    )
    assert (found.high - found.low) / 2 == pytest.approx(expected)


@pytest.mark.slow
def test_intervals_of_risks_cover():
    """Of a true risk of .3 and of 0, at least 93 in 100 intervals contain it."""
    rng = np.random.default_rng(8)
    for inside, outside in ((0.44, 0.2), (0.2, 0.2)):
        truth = (inside - outside) / (1 - outside)
        risks = [
            Risk.of_hits([rng.random(400) < inside, rng.random(300) < outside], 0.95)
            for _ in range(3000)
        ]
        assert np.mean([risk.low <= truth <= risk.high for risk in risks]) > 0.93


def test_total_variation_is_half_the_sum_of_differences():
    names = ["sex", "town", "hired"]
    tables = {name: table.select(names) for name, table in TABLES.items()}
    found = fidelity(pool(tables)[0], rng=np.random.default_rng(9))
    for one in found.total_variation:
        apart = []
        for columns in itertools.combinations(names, one.columns):
            shares = [
                Counter(tables[name].select(columns).rows()) for name in ("real", "new")
            ]
            sizes = [sum(counts.values()) for counts in shares]
            cells = set(shares[0]) | set(shares[1])
            apart.append(
                sum(
                    abs(shares[0][c] / sizes[0] - shares[1][c] / sizes[1])
                    for c in cells
                )
                / 2
            )
        assert one.value == pytest.approx(np.mean(apart))
        assert one.sets == math.comb(3, one.columns)
        assert one.by_chance > 0
