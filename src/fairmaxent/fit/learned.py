"""What a fit learned: the record behind every output, and all that a model file holds."""

from __future__ import annotations

from dataclasses import dataclass

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Counted
from fairmaxent.data.weights import UNSCALED, WeightScale
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.option_values import PaperRequest
from fairmaxent.fit.request import Request
from fairmaxent.maxent.optimum import Optimum


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """What was asked for, the data in codes, the solution, and what it reached."""

    request: Request | PaperRequest  # what was asked for
    columns: tuple[str, ...]  # columns of the input, in order
    roles: Roles
    table: Counted  # distinct rows as block codes
    weighted: Counted  # the rows that the prior stands on, counting by their fair weights w: the same, or relabelled
    soft: Reals | None  # π(y | x, z) of the profiles, where outcomes were relabelled
    labels: Reals | None  # g(y | x, z): how their outcomes were split
    target: Reals  # wanted probability of each level
    optimum: Optimum
    distribution: Distribution  # p* over the whole domain
    certificate: Certificate
    design_weights: Reals | None  # one per input row, scaled
    weight_column: frames.Column | None  # a one of the weight column's kind
    weight_scale: WeightScale = UNSCALED  # what scaled them

    @property
    def domain(self) -> Domain:
        """The columns as they were learned."""
        return self.roles.domain
