"""The front door: from a frame to a fair distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fairmaxent.data.arrays import Reals
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import check_seed
from fairmaxent.data.positions import DetailOption
from fairmaxent.data.reading import Reading
from fairmaxent.data.roles import GroupsOption, check_roles, read_columns
from fairmaxent.data.table import Table
from fairmaxent.engines.reading import read_rows
from fairmaxent.engines.where_rows_are import row_prior
from fairmaxent.errors import check_choice
from fairmaxent.fairness.measure import Measure
from fairmaxent.fairness.weighting import reweigh
from fairmaxent.fit.certificate import certify
from fairmaxent.fit.distribution import Distribution
from fairmaxent.fit.downstream import DownstreamOption, check_downstream, foresee
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.relabel import (
    AbsorbOption,
    Absorption,
    ParityOption,
    check_in_memory,
    relabel,
    soft_labels,
)
from fairmaxent.fit.request import ForbidOption, RateOption, check_base, check_share, read_rates, read_rules
from fairmaxent.fit.target import TargetOption, fair_levels, moment_scores, read_target
from fairmaxent.maxent.features import cell_features
from fairmaxent.maxent.optimum import maximise_entropy
from fairmaxent.maxent.priors.bases import BaseKind, build_base
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.progress import Progress, silent
from fairmaxent.relabelling.labellers import choose_labeller


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
    base_share: float = 0.2,
    absorb: AbsorbOption = "reweigh",
    parity: ParityOption = "probabilities",
    threshold: float = 0.5,
    labeller: Any = None,
    downstream: DownstreamOption | None = None,
    student: Any = None,
    detail: DetailOption | None = None,
    weight: str | None = None,
    forbid: ForbidOption | None = None,
    domain: Domain | None = None,
    random_state: int | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Learn the distribution closest to the data that has the wanted rates, exactly.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, one row per record; or a lazy frame (polars LazyFrame, DuckDB relation, Dask
        DataFrame, …), whose engine then counts the rows: they are never in memory. With a Dask ``distributed.Client``
        open even the distinct rows of a Dask frame stay on the workers.
    outcome, protected
        The outcome column, and the column or columns whose groups are compared.
    representation_rate, statistical_rate
        The smallest ratio allowed between group shares, and between the groups' rates of an outcome: a number in
        (0, 1], one per protected column as ``{"sex": 0.9, "race": None}``, or None to ask for nothing.
    favourable
        Outcome level, or list of levels, that the statistical rate is about, each level on its own; None means every
        level.
    groups
        ``"each"``: every protected column on its own; ``"joint"``: their intersections.
    target
        Wanted marginals, e.g. ``{"sex": {"Female": 0.6, "Male": 0.4}}``. On a protected or outcome column they shape
        the fair table, and on a protected one they take the place of its representation rate (with ``groups="joint"``
        that rate then holds within each of its levels). ``{"age": None}`` keeps a column's marginal as it is in the
        data. Binned numbers are named by the labels of their bins, see :attr:`Fit.domain`.
    base, base_share
        What is mixed into the rows to reach the whole domain (the paper's u), and how much of it (the paper's C):
        ``"tree"`` keeps the strongest dependences between columns, ``"product"`` only their marginals given nothing,
        ``"uniform"`` nothing (as in the paper).
    absorb
        ``"reweigh"``: rows keep their outcome and count more or less. ``"relabel"``: rows count as before and get
        another outcome in part, so that a model trained on the result is fair to the people it was learned from.
    parity, threshold
        With ``absorb="relabel"``, what such a model should have in equal measure for all groups (up to the
        statistical rate): the mean of its ``"probabilities"``, or also its ``"predictions"``, decisions for the
        favourable outcome above this probability. With more than two outcomes the likeliest is predicted.
    labeller
        Classifier with ``fit`` and ``predict_proba`` whose cross-fitted probabilities relabelling starts from, or
        ``"tree"`` for the rooted tree; by default scikit-learn's histogram gradient boosting where it is installed,
        otherwise the tree.
    downstream, student
        Estimate, by cross-fitting, how a model trained on the fit's ``"rows"`` or ``"weights"`` will treat the people
        of the table; the certificate then says it. ``student`` is that model, named like ``labeller``.
    detail
        What a drawn row that is one of the data's rows, and not of the base, shows where a level stands for several
        values, as a bin does: ``"rows"`` the exact values of that real row, ``"bins"`` values drawn again inside the
        level. None is ``"rows"`` where the rows are in memory; of a lazy frame no row is kept.
    weight
        Column of design weights.
    forbid
        Impossible combinations, e.g. ``[{"sex": "Male", "pregnant": "yes"}]``: they get probability zero. Each may name
        any outcome and protected columns, and at most two others.
    domain
        How columns are read (kinds, bins, order); by default :meth:`Domain.infer` decides.
    random_state
        Default seed of the fit's draws, the same for each of them; fitting itself is deterministic.
    progress
        Called as ``progress(stage, share)`` with the stage ("read", "count", "label", "base", "solve", "downstream")
        and how much of it is done, from 0 to 1; while solving, before each iteration. What it raises stops the fit.
    """
    options = {
        "outcome": outcome,
        "protected": protected,
        "representation_rate": representation_rate,
        "statistical_rate": statistical_rate,
        "favourable": favourable,
        "groups": groups,
        "target": target,
        "base": base,
        "base_share": base_share,
        "absorb": absorb,
        "parity": parity,
        "threshold": threshold,
        "detail": detail,
        "weight": weight,
        "forbid": forbid,
        "random_state": random_state,
    }
    check_base(base)
    check_seed(random_state)
    check_share("base_share", base_share)
    Absorption(absorb, parity, threshold, labeller)
    check_downstream(downstream, student)
    if detail is not None:
        check_choice("detail", detail, DetailOption)
    names = read_columns("protected", protected)
    check_roles(outcome, names, weight)
    report = progress or silent
    rows = read_rows(frame, outcome, names, weight=weight, domain=domain, detail=detail, progress=report)
    fit = _fit(rows, options, report, labeller=labeller)
    if downstream is None:
        return fit
    return with_downstream(fit, downstream, student=student, labeller=labeller, progress=report)


def with_downstream(
    fit: Fit,
    output: DownstreamOption,
    *,
    student: Any = None,
    labeller: Any = None,
    progress: Progress = silent,
) -> Fit:
    """Return the fit with the option ``downstream`` of `debias` answered in its certificate."""
    check_in_memory("downstream", fit.table)
    data = _reading(fit)

    def fit_others(table: Table) -> Fit:
        return _fit(replace(data, table=table, positions=None), fit.options, silent, labeller=labeller)

    found = foresee(fit, fit_others, choose_labeller(fit.roles, student), output=output, progress=progress)
    return replace(fit, certificate=replace(fit.certificate, downstream=found))


def refit(fit: Fit, options: Mapping[str, Any]) -> Fit:
    """Fit the rows of a fit again with other options of `debias`; its columns keep their roles and their levels."""
    return _fit(_reading(fit), options, silent, soft=fit.soft)


def _reading(fit: Fit) -> Reading:
    details = fit.distribution.details
    positions = None if details is None else details.positions
    return Reading(fit.columns, fit.roles, fit.table, fit.design_weights, fit.weight_column, positions)


def _fit(
    data: Reading,
    options: Mapping[str, Any],
    progress: Progress,
    *,
    labeller: Any = None,
    soft: Reals | None = None,
) -> Fit:
    """Go from rows in codes to a fair distribution: the fair table, weights, prior, target, maximum entropy."""
    roles, domain, share = data.roles, data.roles.domain, float(options["base_share"])
    groups, favourable = options["groups"], options["favourable"]
    problem = Problem(
        roles=roles,
        table=data.table,
        measure=Measure.of(roles, groups=groups, favourable=favourable),
        representation=read_rates(options["representation_rate"], "representation_rate", roles, groups),
        statistical=read_rates(options["statistical_rate"], "statistical_rate", roles, groups),
        rules=read_rules(roles, options["forbid"]),
        chosen=read_target(domain, options["target"]),
    )
    wishes = Absorption(options["absorb"], options["parity"], options["threshold"], labeller)
    relabels = wishes.absorb == "relabel"
    fair = problem.relabelled_table() if relabels else problem.fair_table(may_fill=share > 0)
    root = fair.table.ravel()
    own = problem
    if relabels:
        check_in_memory("absorb='relabel'", problem.table)
        progress("label", 0.0)
        soft = soft_labels(problem, labeller, soft)
        own = relabel(problem, fair.table, wishes, soft)
    progress("base", 0.0)
    blocks = problem.blocks
    weighted = reweigh(own.counted, root)
    base = build_base(options["base"], blocks, own.counted, weighted, root=root, rules=problem.rules)
    levels = fair_levels(own, weighted, fair.table, base)
    progress("solve", 0.0)
    optimum = maximise_entropy(
        Mixture.of((share, 1 - share), (base, row_prior(blocks, weighted))),
        cell_features(blocks, moment_scores(domain, problem.chosen), levels),
        levels,
        describe=roles.describe_level,
        watch=partial(progress, "solve"),
    )
    progress("solve", 1.0)
    distribution = Distribution.of(domain, optimum).detailed(
        data.positions, data.table, data.design, relabelled=relabels
    )
    certificate = certify(
        problem,
        optimum,
        distribution,
        weighted=weighted,
        simplices=blocks.split(levels),
        base=base,
        base_share=share,
        filled=[cell for cell in fair.filled if not own.empirical[cell]],
        notes=data.notes,
    )
    return Fit(
        options=options,
        columns=data.columns,
        roles=roles,
        table=problem.table,
        weighted=weighted,
        soft=soft if relabels else None,
        target=levels,
        optimum=optimum,
        distribution=distribution,
        certificate=certificate,
        design_weights=data.design,
        weight_column=data.weight_column,
    )
