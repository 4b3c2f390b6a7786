"""The front door: from a frame to a fair distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairmaxent import frames
from fairmaxent.certificate import Measure
from fairmaxent.certify import certify
from fairmaxent.choice import check_seed
from fairmaxent.distribution import Distribution
from fairmaxent.domain import Domain
from fairmaxent.features import cell_features
from fairmaxent.fit import Fit
from fairmaxent.maxent import maximise_entropy
from fairmaxent.priors.base import BaseKind, build_base
from fairmaxent.priors.mixture import Mixture
from fairmaxent.priors.rows import Rows
from fairmaxent.problem import Problem, compress
from fairmaxent.reading import read_domain, read_weights
from fairmaxent.request import (
    ForbidOption,
    RateOption,
    check_base,
    check_share,
    check_weight_role,
    read_columns,
    read_rates,
    read_rules,
)
from fairmaxent.roles import GroupsOption, Roles
from fairmaxent.target import TargetOption, fair_levels, moment_scores, read_target
from fairmaxent.weighting import reweigh


def debias(
    frame: Any,
    outcome: str,
    protected: str | Sequence[str],
    *,
    representation_rate: RateOption = 1.0,
    statistical_rate: RateOption = 1.0,
    favourable: object = None,
    groups: GroupsOption = "each",
    target: TargetOption | None = None,
    base: BaseKind = "tree",
    base_share: float = 0.5,
    weight: str | None = None,
    forbid: ForbidOption | None = None,
    domain: Domain | None = None,
    random_state: int | None = None,
) -> Fit:
    """Learn the distribution closest to the data that has the wanted rates, exactly.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, one row per record.
    outcome, protected
        The outcome column, and the column or columns whose groups are compared.
    representation_rate, statistical_rate
        The smallest ratio allowed between group shares, and between the groups' rates of an outcome: a number in
        (0, 1], one per protected column as ``{"sex": 0.9, "race": None}``, or None to leave it as it is.
    favourable
        Outcome level, or list of levels, that the statistical rate is about; None means every level.
    groups
        ``"each"``: every protected column on its own; ``"joint"``: their intersections.
    target
        Wanted marginals, e.g. ``{"sex": {"Female": 0.6, "Male": 0.4}}``. On a protected or outcome column they shape
        the fair table. ``{"age": None}`` keeps a column's marginal as it is in the data.
    base, base_share
        What is mixed into the rows to reach the whole domain (the paper's u), and how much of it (the paper's C).
    weight
        Column of design weights.
    forbid
        Impossible combinations, e.g. ``[{"sex": "Male", "pregnant": "yes"}]``: they get probability zero.
    domain
        How columns are read (kinds, bins, order); by default :meth:`Domain.infer` decides.
    random_state
        Default seed of the fit's draws; fitting itself is deterministic.
    """
    options = {name: value for name, value in locals().items() if name not in ("frame", "domain")}
    check_base(base)
    check_seed(random_state)
    share = check_share("base_share", base_share)
    names = read_columns("protected", protected)
    check_weight_role(weight, outcome, names)
    opened = frames.open_frame(frame)
    design = read_weights(opened, weight)
    domain, codes = read_domain(opened, domain, weight=weight, design=design)
    roles = Roles.of(domain, outcome, names)
    problem = Problem(
        roles=roles,
        table=compress(roles, codes, design),
        measure=Measure.of(roles, groups=groups, favourable=favourable),
        representation=read_rates(representation_rate, "representation_rate", roles, groups),
        statistical=read_rates(statistical_rate, "statistical_rate", roles, groups),
        rules=read_rules(roles, forbid),
    )
    chosen = read_target(domain, target)
    fair = problem.fair_table(chosen, may_fill=share > 0)
    weights = reweigh(problem.table.codes, problem.counts, fair.table.ravel())
    levels = fair_levels(problem, weights, fair.table, chosen)
    base_part = build_base(
        base,
        problem.blocks,
        problem.table.codes,
        problem.counts,
        weights=weights,
        root=fair.table.ravel(),
        rules=problem.rules,
    )
    rows_part = Rows.weighted(problem.blocks, problem.table.codes, weights)
    optimum = maximise_entropy(
        Mixture.of((share, 1 - share), (base_part, rows_part)),
        cell_features(problem.blocks, moment_scores(domain, chosen), levels),
        levels,
        describe=roles.describe_level,
    )
    distribution = Distribution.of(domain, optimum)
    return Fit(
        options=options,
        columns=tuple(opened.columns),
        roles=roles,
        table=problem.table,
        row_weights=weights,
        target=levels,
        optimum=optimum,
        distribution=distribution,
        certificate=certify(
            problem, optimum, distribution, levels=levels, base=base_part, base_share=share, filled=fair.filled
        ),
        design_weights=design,
        weight_column=None if weight is None else frames.one_like(frames.column(opened, weight)),
    )
