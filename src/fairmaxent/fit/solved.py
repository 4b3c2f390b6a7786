"""What was solved: the record behind every output, every certificate and every model file."""

from dataclasses import dataclass

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted, Reals
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.option_values import PaperRequest
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.request import Request
from fairmaxent.maxent.optimum import Optimum


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solved:
    """What was asked for, the data in codes, and the solution."""

    request: Request | PaperRequest  # what was asked for
    columns: tuple[str, ...]  # columns of the input, in order
    problem: Problem  # of the data, before relabelling
    weighted: Counted  # the rows that the prior stands on, counting by their fair weights w: the same, or relabelled
    soft: Reals | None = None  # π(y | x, z) of the profiles, where outcomes were relabelled
    labels: Reals | None = None  # g(y | x, z): how their outcomes were split
    target: Reals  # wanted probability of each level
    optimum: Optimum
    distribution: Distribution  # p* over the whole domain
    design_weights: Reals | None = None  # one per input row, scaled
    weight_column: frames.Column | None = None  # a one of the weight column's kind
    weight_scale: float = 1.0  # the average of the raw ones, which they are divided by

    @property
    def roles(self) -> Roles:
        """Outcome and protected columns, and what they are compared in."""
        return self.problem.roles

    @property
    def table(self) -> Counted:
        """Distinct rows as block codes."""
        return self.problem.table

    @property
    def domain(self) -> Domain:
        """The columns as they were learned."""
        return self.roles.domain

    @property
    def filled(self) -> list[tuple[int, ...]]:
        """Cells that should have a share, but that no row has; the paper's own configurations have none."""
        if isinstance(self.request, PaperRequest):
            return []
        blocks = self.problem.blocks
        (rows,) = self.weighted.tables([(0,)], blocks.levels)
        cells = ((self.target[blocks.slices[0]] > 0) & (rows <= 0)).reshape(blocks.shape(0))
        return [tuple(cell) for cell in np.argwhere(cells).tolist()]

    @property
    def contents(self) -> str:
        """Which rows are in a saved model, as the end of a sentence that begins with "it holds".

        Every model holds rows: its certificate and its weights are made from them. Those of a private one are nobody's.
        """
        size, details = f"{self.table.size:,}", self.distribution.details
        if self.request.privacy is not None:
            return f"no row of the data, but {size} drawn from noisy counts; it is private with {self.request.privacy}"
        exact = [] if details is None else [repr(self.domain.names[index]) for index in sorted(details.positions)]
        more = f" and {len(exact) - 3} more columns" if len(exact) > 3 else ""
        rows = f"all {size} rows" if self.table.keeps_rows else f"the distinct rows among {size}"
        how = f"with the exact values of {', '.join(exact[:3])}{more}" if exact else "as levels"
        return f"{rows}, {how}; protect it like the table itself"
