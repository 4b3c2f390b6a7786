"""Weights on rows that give them a table, and the table of the paper's Algorithm 1."""

import numpy as np

from fairmaxent.data.table import Counted, Reals, ratio
from fairmaxent.fairness.likely import People
from fairmaxent.fairness.projection import Conditions, project


def algorithm_1(table: Reals, tau: float) -> Reals:
    """Algorithm 1 of the paper, exactly as written: t(y, z) ∝ c(y)·τ^[z=0].

    For a table of outcome × two groups.

    τ is the *representation* rate of the result; its statistical rate is 1 for every τ
    (Lemma 7.2 (3)). It is stated for tables that have rows in every cell.

    >>> algorithm_1(np.array([[4.0, 3.0], [2.0, 1.0]]), 0.5).round(4)
    array([[0.2333, 0.4667],
           [0.1   , 0.2   ]])
    """
    weighted = np.outer(table.sum(axis=1), [tau, 1.0])
    return weighted / weighted.sum()


def reweigh(rows: Counted, table: Reals) -> Counted:
    """Weights w on the distinct rows that give them the table t.

    w(α) ∝ n_α · t(cell(α)) / e(cell(α)).
    """
    # This changes the mass of each cell and keeps p(x | y, z). `rows` are in block
    # codes, root first; `table` is t over the levels of the root. Cells without rows
    # cannot get any weight, so the result is normalised.
    (empirical,) = rows.tables([(0,)], [len(table)])
    factor = ratio(table, empirical)
    return rows.reweighed(factor / (factor @ empirical))


def likely_factors(
    people: People, memberships: Reals, table: Reals, most: float | None = None
) -> Reals:
    """Factors f on people that give their likely groups a table t, cell by cell.

    Of all with Σ d_i·f_i·q_i(g) = t(y, g) and f ≤ ``most``, those that are nearest to
    the weights d that people have (KL): f_i = e^{λ_y·q_i} where no limit is met.
    """
    factor = np.zeros(len(people.order))
    nothing = np.zeros((0, 1))
    for cell, part in people.cells:
        counts = people.weight[part] > 0
        weight = people.weight[part][counts]
        wanted = table[cell] > 0
        rows = memberships[part][counts][:, wanted].T / table[cell][wanted, None]
        conditions = Conditions(
            rows=rows,
            values=np.ones(len(rows)),
            rates=nothing.repeat(len(weight), axis=1),
            block=np.zeros(0, dtype=np.intp),
            least=np.zeros(0),
            ceiling=None if most is None else most * weight,
        )
        found = np.zeros(len(counts))
        found[counts] = project(weight, conditions).point / weight
        factor[part] = found
    return factor
