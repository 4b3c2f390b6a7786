"""Which cells without rows are opened."""

import numpy as np
import pytest

from fairmaxent.fairness.wishes import (
    Row,
    Wanted,
    Wishes,
    conditions_of,
    supported,
)

# Three outcomes in each of four groups z. Group 0 has all of them, group 1 the first
# alone, and 2 and 3 have no rows.
GROUPS = np.repeat(np.arange(4), 3)
OUTCOMES = np.tile(np.arange(3), 4)
SEEN = (GROUPS == 0) | ((GROUPS == 1) & (OUTCOMES == 0))
NEEDED = (GROUPS == 1) & (OUTCOMES == 1)


def opened_by(*rows, groups):
    every = np.ones(12, dtype=bool)
    floor = np.where(SEEN, 0.25, 0.0)
    wanted = Wanted(
        groupings=((1,),),
        representation=(None,),
        statistical=(None,),
        favourable=(1,),
        describe=str,
        fill=0.01,
    )
    return supported(
        Wishes.of(floor.reshape(4, 3).T, wanted, {}),
        conditions_of(12, [Row(every, 1.0), *rows]),
        seen=SEEN,
        allowed=every,
        floor=floor,
        describe=str,
        groups=groups,
    )


@pytest.mark.parametrize("by_group", [True, False])
def test_a_needed_cell_is_opened_alone_and_a_group_without_rows_as_a_whole(
    by_group,
):
    opened = opened_by(
        Row(NEEDED, 0.1), Row(GROUPS == 2, 0.2), groups=GROUPS if by_group else None
    )
    assert opened[SEEN | NEEDED].all()
    assert not opened[(GROUPS == 1) & (OUTCOMES == 2)].any()
    assert opened[GROUPS == 2].sum() == (3 if by_group else 1)
    assert not opened[GROUPS == 3].any()


def test_a_group_is_opened_by_the_fewest_cells_if_as_a_whole_it_would_leave_no_room():
    first = (GROUPS == 2) & (OUTCOMES == 0)
    opened = opened_by(Row(GROUPS == 2, 0.2), Row(first, 0.2), groups=GROUPS)
    assert (opened == (SEEN | first)).all()
