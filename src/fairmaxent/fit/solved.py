"""What was solved: the record behind every output."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.likely import Chances
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import (
    Blocks,
    Codes,
    Counted,
    Names,
    Reals,
    match_rows,
    tally,
)
from fairmaxent.distribution import Distribution
from fairmaxent.fit.likely import Weighed
from fairmaxent.fit.paper_request import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.maxent.optimum import Optimum
from fairmaxent.privacy.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solved:
    """What was asked for, the data in codes, and the solution."""

    request: Request | PaperRequest  # what was asked for
    columns: Names  # columns of the input, in order
    problem: Problem  # of the data, before relabelling
    # the rows that the prior stands on, counting by their fair weights w: the same, or
    # relabelled
    weighted: Counted
    # π(y | x, z) of the profiles, where outcomes were relabelled
    soft: Reals | None = None
    labels: Reals | None = None  # g(y | x, z): how their outcomes were split
    # the trained model that the table was made for; a file does not hold it
    student: Any = None
    target: Reals  # wanted probability of each level
    optimum: Optimum
    distribution: Distribution  # p* over the whole domain
    design_weights: Reals | None = None  # one per input row, scaled
    weight_column: frames.Column | None = None  # a one of the weight column's kind
    weight_scale: float = 1.0  # the average of the raw ones, which they are divided by

    @property
    def weighed(self) -> Weighed | None:
        """People whose groups are probabilities, with weights; None: they are known."""
        return self.problem.weighed

    @property
    def roles(self) -> Roles:
        """Outcome and protected columns, and what they are compared in."""
        return self.problem.roles

    @property
    def table(self) -> Counted:
        """Distinct rows as block codes."""
        return self.problem.table

    @property
    def recorded(self) -> Roles:
        """The roles of columns that the table has, without groups that are likely."""
        return self.roles if self.weighed is None else self.weighed.split.recorded

    @property
    def chances(self) -> Chances | None:
        """The probabilities of groups that nobody knows; None: they are known."""
        return None if self.weighed is None else self.weighed.split.chances

    @property
    def domain(self) -> Domain:
        """The columns as they were learned."""
        return self.distribution.domain

    @property
    def blocks(self) -> Blocks:
        """Those of the distinct rows, which have no groups that are probabilities."""
        return self.distribution.blocks

    @property
    def root_table(self) -> Reals:
        """The exact table of outcome and groups, which sums to 1."""
        if self.weighed is not None:
            return self.weighed.table
        return self.distribution.root_table

    def cells_of(self, codes: Codes) -> Reals:
        """How many of some drawn rows are in each cell of that table."""
        if self.weighed is not None:
            table = self.table.collect()
            rows = match_rows(table.codes, codes, self.blocks.levels)
            return self.weighed.drawn(tally(rows, None, len(table.codes)))
        cells = tally(codes[:, 0], None, self.blocks.levels[0])
        return cells.reshape(self.root_table.shape)

    @property
    def has_chances(self) -> bool:
        """Whether its table tells groups by probabilities, certain ones or not."""
        return self.request.likely is not None

    def with_groups(self, frame: Any) -> Any:
        """A table with the column of groups that its probabilities, all certain, are.

        New rows have that column.
        """
        likely = self.request.likely
        if likely is None or likely.name not in self.domain.names:
            return frame
        if likely.name in frame.collect_schema().names():
            return frame
        return frame.with_columns(likely.known)

    def encoded(self, frame: Any) -> Codes:
        """Rows as block codes."""
        opened = self.with_groups(frames.open_frame(frame))
        return self.blocks.pool(self.domain.encode(opened))

    @property
    def filled(self) -> list[tuple[int, ...]]:
        """Cells that should have a share, but that no row has."""
        if isinstance(self.request, PaperRequest):
            return []  # these have none
        blocks = self.blocks
        (rows,) = self.weighted.tables([(0,)], blocks.levels)
        empty = (self.target[blocks.slices[0]] > 0) & (rows <= 0)
        cells = np.argwhere(empty.reshape(blocks.shape(0)))
        return [tuple(cell) for cell in cells.tolist()]

    @property
    def provenance(self) -> Provenance:
        """What may be shown of its rows; no noise was measured yet."""
        return Provenance.asked(self.request.privacy)

    @property
    def contents(self) -> str:
        """Which rows a saved fit has: the end of a sentence "it holds …"."""
        size = f"{self.table.size:,}"
        if not self.provenance.has_real_rows:
            return (
                f"no row of the data, but {size} drawn from noisy counts; it is private"
                f" with {self.request.privacy}"
            )

        positions = self.distribution.positions or {}
        exact = [repr(self.domain.names[index]) for index in sorted(positions)]
        how = "as levels"
        if exact:
            how = f"with the exact values of {', '.join(exact)}"
        if len(exact) > 4:
            named = ", ".join(exact[:3])
            how = f"with the exact values of {named} and {len(exact) - 3} more columns"
        rows = f"the distinct rows among {size}"
        if self.table.keeps_rows:
            rows = f"all {size} rows"
        return f"{rows}, {how}; protect it like the table itself"
