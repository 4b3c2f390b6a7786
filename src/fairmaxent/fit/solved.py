"""What was solved: the record behind every output, every certificate and every model file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import UNSCALED, WeightScale
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted, Reals
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.plans import PaperRequest
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
    weight_scale: WeightScale = UNSCALED  # what scaled them

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
