"""inspection/look.py: what is said about several columns holds together (Holm)."""

from functools import partial

import numpy as np
import polars as pl
import pytest

from fairmaxent import inspect
from fairmaxent.fairness.compare import Compare
from fairmaxent.inspection.look import judged_together
from fairmaxent.inspection.verdict import Verdict, judge
from fairmaxent.metrics import representation_rate
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.groups import Comparison
from fairmaxent.metrics.rates import Pair, Rate

GROUPS = (2, 5, 3)
COLUMNS = ["a", "b", "c"]


def table(rng, rows=400, gap=0.0):
    """Three columns of 2, 5 and 3 groups; the first has a gap in the rates."""
    groups = {
        name: rng.integers(0, size, rows)
        for name, size in zip(COLUMNS, GROUPS, strict=True)
    }
    rates = 0.4 - gap * groups["a"]
    texts = {
        name: [f"{name}{code}" for code in codes] for name, codes in groups.items()
    }
    return pl.DataFrame({**texts, "hired": rng.random(rows) < rates})


def inspected(frame):
    return inspect(frame, "hired", COLUMNS, favourable=True)


def alarms(seed, tables):
    """How many fair tables alarm; each column is judged as `inspect` does it."""
    rng = np.random.default_rng(seed)
    groups = table(rng).drop("hired")
    shares = [representation_rate(groups, name) for name in COLUMNS]
    compared = [Comparison(Compare(name, favourable=True), "hired") for name in COLUMNS]
    alarming = 0
    for _ in range(tables):
        frame = groups.with_columns(hired=rng.random(len(groups)) < 0.4)
        judges = []
        for one, share in zip(compared, shares, strict=True):
            (rows,) = one.grouped(frame)
            counts = GroupedTable.of_outcomes(rows, True)
            judges.append(partial(judge, counts, share, "hired"))
        verdicts = judged_together(judges, 0.95)
        alarming += any(verdict.most < 1 for verdict in verdicts)
    return alarming


@pytest.mark.more
def test_few_fair_tables_alarm():
    """Each column on its own alarmed in about 14 of 100."""
    assert alarms(1, 100) <= 5 + 2 * np.sqrt(100 * 0.05 * 0.95)


@pytest.mark.slow
def test_at_most_one_fair_table_in_twenty_alarms():
    assert 20 < alarms(2, 2000) <= 100


def test_a_real_gap_of_one_column_is_found():
    rng = np.random.default_rng(3)
    found = [inspected(table(rng, gap=0.2)).verdicts[0] for _ in range(10)]
    assert sum(one.most < 1 and one.gap.worst.columns == ("a",) for one in found) >= 8


def judges(limits, asked):
    """Columns whose gaps are clear up to some confidence; None: nothing to compare."""

    def judge(number, confidence):
        asked.append((number, round(confidence, 6)))
        limit = limits[number]
        if limit is None:
            return Verdict("hired", None, ())
        high = 0.9 if confidence <= limit else 1.0
        pair = Pair(("sex",), "yes", ("f",), ("m",))
        return Verdict("hired", Rate(0.8, (0.5, high), pair, ()), ())

    return [
        lambda confidence, number=number: judge(number, confidence)
        for number in range(len(limits))
    ]


@pytest.mark.parametrize(
    ("limits", "clear"),
    [
        # p = .03: clear alone, not beside another that is not
        ([0.97], [True]),
        ([0.97, 0.5], [False, False]),
        # p = .01, .02, .04: each in its turn
        ([0.99, 0.98, 0.96], [True, True, True]),
        # p = .01, .03, .04: the second step, at .025, stops the third
        ([0.99, 0.97, 0.96], [True, False, False]),
        # what cannot be compared takes nothing from the others
        ([0.97, None], [True, False]),
        ([], []),
    ],
)
def test_columns_are_settled_step_by_step(limits, clear):
    verdicts = judged_together(judges(limits, []), 0.95)
    assert [one.most < 1 for one in verdicts] == clear


def test_steps_have_the_confidences_of_holm():
    asked = []
    judged_together(judges([0.99, 0.98, 0.5], asked), 0.95)
    assert asked == [
        *((number, round(1 - 0.05 / 3, 6)) for number in range(3)),
        *((number, 0.975) for number in (1, 2)),
        (2, 0.95),
    ]


@pytest.mark.more
def test_an_interval_agrees_with_its_sentence():
    rng = np.random.default_rng(5)
    for gap in (0.0, 0.1, 0.15):
        for verdict in inspected(table(rng, gap=gap)).verdicts:
            is_clear = "unlikely to be chance" in verdict.headline
            assert is_clear == (verdict.gap.interval[1] < 1)
