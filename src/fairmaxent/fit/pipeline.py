"""From a frame to a fair distribution."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import generator
from fairmaxent.data.reading import Reading, ReadingRequest
from fairmaxent.data.table import Counted, Reals, effective_rows
from fairmaxent.distribution import Distribution
from fairmaxent.engines.reading import read_rows
from fairmaxent.engines.rows import row_prior
from fairmaxent.errors import (
    KEEP_COLUMNS,
    ColumnError,
    InputError,
    Option,
    did_you_mean,
)
from fairmaxent.facts.fitted import UnderivedFacts
from fairmaxent.facts.groups import LikelyFacts
from fairmaxent.fairness.compare import Compare
from fairmaxent.fairness.fair_table import FairTable, reweigh
from fairmaxent.fit.certificate import certify
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.estimate import Tryout, estimate_model, represented
from fairmaxent.fit.facts import wanted_rates
from fairmaxent.fit.likely import Weighed, likely_facts
from fairmaxent.fit.models import EstimateOption
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.relabel import Labelling, check_in_memory, relabelled
from fairmaxent.fit.request import Request
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.storage import KeptCounts
from fairmaxent.fit.student import Taught, teach
from fairmaxent.fit.target import fair_levels, level_means
from fairmaxent.maxent.features import cell_features
from fairmaxent.maxent.optimum import maximise_entropy
from fairmaxent.maxent.priors.bases import BASES, build_base, rerooted
from fairmaxent.maxent.priors.learned_tree import refuse_large_tables
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.protocol import Prior
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.options import python_lines, shared
from fairmaxent.privacy.budget import Privacy
from fairmaxent.privacy.measurements import Noise, OpenDP
from fairmaxent.privacy.model import (
    PrivateReading,
    check_visible,
    learn_private_model,
    private_reading,
)
from fairmaxent.privacy.refusals import (
    after_spending,
    check_read,
    checked_declaration,
    without_values,
)
from fairmaxent.privacy.spending import Spending
from fairmaxent.progress import Progress, silent

# a cell of outcome and groups with fewer effective rows says too little about what it
# is like
_FEW_ROWS = 30
_NO_LABELS = Labelling()


def fit_frame(
    frame: Any, request: Request, kept: KeptCounts | None = None
) -> Certified:
    """Fit a frame as a request asks; its counts may be ``kept``, or are now."""
    progress = frames.checked_progress(request.progress)
    data = read_frame(frame, request, kept)
    with after_spending(request.privacy):
        fit = fit_read(frame, data, request.kept(), progress)
        if request.estimate is None:
            return fit
        return with_estimate(fit, request.estimate, progress=progress)


def read_frame(frame: Any, request: Request, kept: KeptCounts | None = None) -> Reading:
    """Read the rows as a request needs them; those of a private one are drawn anew."""
    if request.privacy is None:
        return _read(frame, request, kept)

    # what is not possible is refused before any row is read
    privacy = request.privacy
    declared = checked_declaration(request.domain)
    noise = OpenDP()
    spending = Spending.of(privacy)
    if spending is not None:
        spending.check(privacy)
    domain = replace(declared, undeclared=privacy.undeclared)
    with without_values():
        data = _read(frame, replace(request, domain=domain))
    return _private_reading(data, request, privacy, noise, spending)


def _read(frame: Any, request: Request, kept: KeptCounts | None = None) -> Reading:
    """Read the columns that a request names, and those that it does not leave out."""
    domain = request.domain
    if request.release:
        _check_shared(domain)
    asked = ReadingRequest(
        outcome=request.outcome_name,
        protected=request.recorded_names,
        likely=request.likely,
        within=request.within_names,
        also=request.further_outcomes,
        weight=request.weight,
        domain=domain,
        detail=request.detail,
        keep=request.named_columns,
        shared=request.release and domain is None,
        progress=frames.checked_progress(request.progress),
    )
    data = None if kept is None else kept.reading(asked)
    if data is None:
        data = read_rows(frame, asked)
        if kept is not None:
            kept.keep(data)
    for name in request.kept_names:
        if name not in data.columns:
            hint = did_you_mean(name, data.columns)
            raise ColumnError(
                KEEP_COLUMNS, f" names {name!r}, which is not a column; {hint}"
            )
    return data


def _private_reading(
    data: Reading,
    request: Request,
    privacy: Privacy,
    noise: Noise,
    spending: Spending | None,
) -> PrivateReading:
    """Spend the budget: learn a model from noisy counts, and draw rows from it."""
    # What is wrong with the request is found before anything is spent; that looks at
    # what was declared, and at no row.
    rules = Problem.of(request, replace(data, positions=None, design=None)).rules
    if len(data.roles.blocks.levels) > 2:
        refuse_large_tables(data.roles.blocks.levels)
    progress = frames.checked_progress(request.progress)
    progress("measure", 0.0)
    if spending is not None:
        # with what recognises the request
        asked = python_lines(replace(request.kept(), random_state=None, estimate=None))
        spending.pay(privacy, repr((asked, request.domain)))
    with after_spending(privacy):
        promised = replace(privacy, ledger=None, budget=None)
        model = learn_private_model(
            data.table, data.roles, promised, rules=rules, noise=noise
        )
        check_visible(model, data.roles)
        return private_reading(data, model, generator(request.random_state))


def _check_shared(domain: Domain | Declaration | None) -> None:
    """Refuse a domain that may hold values of people whose rows are shared."""
    if isinstance(domain, Declaration):  # what is declared is public as it is
        check_read(domain)
    elif domain is not None:
        raise InputError(
            Option("release"),
            " chooses how columns are read; leave the domain out, or declare it",
        )


def fit_read(
    frame: Any,
    data: Reading,
    request: Request,
    progress: Progress,
) -> Certified:
    """Fit a frame that was read; a student to be trained sees the frame itself."""
    taught = None
    if request.training is not None:
        taught = teach(frame, data, request, progress)
    return fit_rows(data, request, progress, learned=Labelling(taught=taught))


def fit_rows(
    data: Reading,
    request: Request,
    progress: Progress,
    *,
    learned: Labelling = _NO_LABELS,
) -> Certified:
    """Go from rows in codes to a fair distribution."""
    # Step 1: the fair table t(y, z), and outcomes that are split for it.
    problem = Problem.of(request, data)
    fair, labelled, labelling = relabelled(problem, request, data, learned, progress)
    progress("base", 0.0)
    # Step 2: the rows' weights w, the prior q and the target θ.
    if problem.weighed is None:
        given = _given_known(data, request, labelled, fair.table)
    else:
        given = _given_likely(data, problem.weighed)
    progress("solve", 0.0)
    # Step 3: maximum entropy relative to q, with the levels' shares θ: p*.
    blocks = given.prior.blocks
    optimum = maximise_entropy(
        given.prior,
        cell_features(blocks, problem.moment_scores, given.target),
        given.target,
        describe=data.roles.describe_level,
        watch=partial(progress, "solve"),
    )
    progress("solve", 1.0)
    # Step 4: p* over all columns, with the exact values of rows.
    distribution = Distribution.of(data.roles.domain, optimum).detailed(
        data.positions,
        data.table,
        given.row_weights,
        profiles=None if labelling.soft is None else problem.profiles,
        by_cell=problem.values is not None,
    )
    # Step 5: the certificate, which measures all of it.
    taught = labelling.taught
    solved = Solved(
        request=request,
        columns=data.columns,
        problem=problem,
        weighted=given.weighted,
        soft=labelling.soft,
        labels=labelling.labels,
        student=None if taught is None else taught.student,
        target=given.target,
        optimum=optimum,
        distribution=distribution,
        design_weights=data.design,
        weight_column=data.weight_column,
        weight_scale=data.weight_scale,
    )
    told = _told(data, solved, fair)
    if taught is not None:
        told = replace(told, decisions=taught.decisions)
    return Certified(**vars(solved), certificate=certify(solved, told))


def likely_rates(frame: Any, outcome: str, compare: Compare) -> LikelyFacts:
    """What is known of groups that are probabilities, if nothing is made fair."""
    request = Request(outcome, **shared(compare, Request))
    problem = Problem.of(request, _read(frame, request))
    assert problem.split is not None
    return likely_facts(problem.split.before, problem.judged, {})


def _told(data: Reading, solved: Solved, fair: FairTable) -> UnderivedFacts:
    """What does not follow from the rows and the distribution."""
    problem = solved.problem
    likely = None
    if solved.weighed is not None:
        wanted = wanted_rates(problem, None)
        likely = likely_facts(solved.weighed, problem.judged, wanted)
    return UnderivedFacts(
        emptied_cells=tuple(map(problem.roles.describe_cell, fair.emptied)),
        needed_limit=fair.needed_limit,
        redrawn=data.redrawn,
        left_out_columns=data.left_out,
        privacy=data.ledger if isinstance(data, PrivateReading) else None,
        likely=likely,
    )


@dataclass(frozen=True)
class _Given:
    """What maximum entropy is given."""

    weighted: Counted  # the distinct rows, counting by their fair weights w
    row_weights: Reals | None  # of each row, for its exact values; None: all are one
    prior: Prior  # q
    target: Reals  # θ


def _given_known(
    data: Reading, request: Request, problem: Problem, fair: Reals
) -> _Given:
    """What it is given of known groups: base and weighted rows, mixed."""
    weighted = reweigh(problem.counted, fair.ravel())
    base, borrowed = _base(data, request, problem, weighted, fair.ravel())
    target = fair_levels(problem, weighted, fair, base, borrowed=borrowed)
    parts = (base, row_prior(problem.blocks, weighted))
    prior = Mixture.of((request.C, 1 - request.C), parts)
    return _Given(weighted, data.design, prior, target)


def _given_likely(data: Reading, weighed: Weighed) -> _Given:
    """What it is given of likely groups: rows alone, which have their weights."""
    weighted = weighed.weighted_rows(data.table.collect())
    prior = row_prior(data.roles.blocks, weighted)
    target = level_means(prior.blocks, weighted)
    return _Given(weighted, weighed.weights, prior, target)


def _base(
    data: Reading,
    request: Request,
    problem: Problem,
    weighted: Counted,
    root: Reals,
) -> tuple[Prior, Reals]:
    """The paper's u, and how much of p(x | y, z) it lends to each cell.

    A private fit has its tree already, which then lends all of it.
    """
    if isinstance(data, PrivateReading):
        tree = rerooted(data.tree, root, problem.rules)
        return tree, np.ones(problem.blocks.levels[0])

    base = build_base(
        request.base,
        problem.blocks,
        problem.counted,
        weighted,
        root=root,
        rules=problem.rules,
    )
    # All of it in a cell without rows, a part in one with few: otherwise the few would
    # be taken for what their cell is like, and other cells be tilted towards them.
    lent = request.C if BASES[request.base].lends else 0.0
    total = problem.counted.tables([(0,)], problem.blocks.levels)[0]
    squares = problem.counted.tables([(0,)], problem.blocks.levels, of="squares")[0]
    few = np.nan_to_num(effective_rows(total, squares)) < _FEW_ROWS
    return base, np.where(total == 0, 1.0, np.where(few, lent, 0.0))


def refit(fit: Certified, request: Request) -> Certified:
    """Fit the rows of a fit again with another request.

    Its columns keep their roles and their levels.
    """
    data = _reading(fit)
    learned = _learned(fit, request)
    return fit_rows(data, replace(request, estimate=None), silent, learned=learned)


def _learned(fit: Certified, request: Request) -> Labelling:
    """What a refit takes over: the labels, or the soft labels alone.

    Labels stay if nothing that they depend on is asked differently.
    """
    same = isinstance(fit.request, Request) and request.has_labels_of(fit.request)
    decisions = fit.certificate.decisions
    if decisions is None:
        return Labelling(fit.soft, fit.labels if same else None)
    if not same:
        raise InputError(
            Option("model"),
            " has to be trained again for that; call debias() with the table",
        )

    table = fit.root_table
    return Labelling(taught=Taught(table, decisions, fit.student, fit.labels))


def with_estimate(
    fit: Certified, estimate: EstimateOption, *, progress: Progress = silent
) -> Certified:
    """Estimate what a model trained on the fit's output will do.

    The answer is in the certificate of the fit that is returned.
    """
    if not isinstance(fit.request, Request):
        raise InputError(
            Option("estimate"),
            " is available for fits made by debias(), not for the paper's own"
            " configurations",
        )

    request = replace(fit.request, estimate=estimate)
    plan = request.estimating
    assert plan is not None
    check_in_memory(Option("estimate"), fit.table)
    tryout = Tryout(
        fit=fit,
        data=represented(_reading(fit)),
        request=request,
        refit=partial(fit_rows, progress=silent),
        plan=plan,
    )
    estimated = estimate_model(tryout, progress)
    return replace(
        fit, request=request, certificate=replace(fit.certificate, estimate=estimated)
    )


def _reading(fit: Certified) -> Reading:
    """The reading that a fit was made from."""
    ledger = fit.certificate.privacy
    if ledger is not None:
        # its rows were drawn from a private model, which is the prior of its fits
        prior = fit.optimum.dual.prior
        assert isinstance(prior, Tree)
        return PrivateReading(
            columns=fit.columns,
            roles=fit.roles,
            table=fit.table,
            design=None,
            weight_column=None,
            tree=prior,
            ledger=ledger,
        )

    return Reading(
        columns=fit.columns,
        roles=fit.recorded,
        table=fit.table,
        design=fit.design_weights,
        weight_column=fit.weight_column,
        positions=fit.distribution.positions,  # None if rows are not kept
        redrawn=fit.certificate.redrawn,
        weight_scale=fit.weight_scale,
        left_out=fit.certificate.left_out_columns,
        chances=fit.chances,
    )
