"""From a frame to a fair distribution."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import shareable
from fairmaxent.data.draws import generator
from fairmaxent.data.roles import Reading
from fairmaxent.data.table import Blocks, Counted, Reals, effective_rows
from fairmaxent.engines.lazy_frame import open_lazy
from fairmaxent.engines.rows import ReadingRequest, read_rows, row_prior
from fairmaxent.errors import (
    KEEP_COLUMNS,
    ColumnError,
    InputError,
    Option,
    did_you_mean,
)
from fairmaxent.fairness.weights import reweigh
from fairmaxent.fit.certificate import certify
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.distribution import Distribution, fair_levels
from fairmaxent.fit.estimate import Tryout, estimate_model, represented
from fairmaxent.fit.facts import UnderivedFacts
from fairmaxent.fit.option_values import EstimateOption
from fairmaxent.fit.problem import Problem
from fairmaxent.fit.relabel import (
    NO_LABELS,
    Labelling,
    check_in_memory,
    relabelled_if_asked,
)
from fairmaxent.fit.request import Request
from fairmaxent.fit.solved import Solved
from fairmaxent.fit.student import Taught, teach
from fairmaxent.maxent.features import cell_features
from fairmaxent.maxent.optimum import maximise_entropy
from fairmaxent.maxent.priors.bases import BASES, build_base, rerooted
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.tree import Tree
from fairmaxent.options import python_lines
from fairmaxent.privacy.measurements import Noise, OpenDP
from fairmaxent.privacy.model import (
    PrivateReading,
    check_visible,
    learn_private_model,
    private_reading,
)
from fairmaxent.privacy.refusals import (
    after_spending,
    check_declared,
    check_read,
    without_values,
)
from fairmaxent.privacy.spending import PaidNoise, Spending
from fairmaxent.progress import Progress, silent

# a cell of outcome and groups with fewer effective rows says too little about what it
# is like
_FEW_ROWS = 30


def fit_frame(frame: Any, request: Request) -> Certified:
    """Fit a frame as a request asks."""
    progress = frames.checked_progress(request.progress)
    data = read_frame(frame, request)
    with after_spending(request.privacy):
        fit = fit_read(frame, data, request.kept(), progress)
        if request.estimate is None:
            return fit
        return with_estimate(fit, request.estimate, progress=progress)


def read_frame(frame: Any, request: Request) -> Reading:
    """Read the rows as a request needs them; a private one spends its budget here, and
    gets rows drawn anew.
    """
    noise: Noise | None = None
    spending = None
    progress = frames.checked_progress(request.progress)
    # refused, if it is not possible, before any row is read
    if request.privacy is not None:
        check_declared(request.domain)
        noise = OpenDP()
        spending = Spending.of(request.privacy)
        if spending is not None:
            spending.check(request.privacy)
    if request.release:
        frame, identifiers = _without_rare_values(frame, request)
    else:
        identifiers = ()
    with nullcontext() if noise is None else without_values():
        roles = (
            request.outcome,
            request.protected_names,
            request.within_names,
            request.also_names,
        )
        domain = request.domain
        if request.privacy is not None and isinstance(domain, Declaration):
            domain = replace(domain, undeclared=request.privacy.undeclared)
        wanted = ReadingRequest(
            *roles,
            request.weight,
            domain,
            request.detail,
            request.named_columns,
            progress,
        )
        data = read_rows(frame, wanted)
    data = replace(data, left_out=(*identifiers, *data.left_out))
    for name in request.kept_names:
        if name not in data.columns:
            hint = did_you_mean(name, data.columns)
            raise ColumnError(
                KEEP_COLUMNS, f" names {name!r}, which is not a column; {hint}"
            )
    if request.privacy is None:
        return data
    assert noise is not None
    # What is wrong with the request is found before anything is spent; that looks at
    # what was declared, and at no row.
    rules = Problem.of(request, replace(data, positions=None, design=None)).rules
    progress("measure", 0.0)
    if spending is not None:
        noise = PaidNoise(noise, partial(_pay, spending, request, data))
    privacy = replace(request.privacy, ledger=None, budget=None)
    model = learn_private_model(
        data.table, data.roles, privacy, rules=rules, noise=noise
    )
    with after_spending(request.privacy):
        check_visible(model, data.roles)
        return private_reading(data, model, generator(request.random_state))


def _pay(spending: Spending, request: Request, data: Reading) -> None:
    """Write down what is about to be spent, with what recognises the table and the
    request.
    """
    assert request.privacy is not None
    levels = data.roles.blocks.levels
    tables = data.table.tables(
        [(0, block) if block else (0,) for block in range(len(levels))], levels
    )
    asked = python_lines(replace(request.kept(), random_state=None, estimate=None))
    content = b"".join(
        np.ascontiguousarray(table, dtype="<f8").tobytes() for table in tables
    )
    spending.pay(request.privacy, content, repr((asked, request.domain)))


def _without_rare_values(frame: Any, request: Request) -> tuple[Any, tuple[str, ...]]:
    """Prepare a table for rows to share; what is declared is public, so it needs no
    preparation.
    """
    if isinstance(request.domain, Declaration):
        check_read(request.domain)
        return frame, ()
    if request.domain is not None:
        raise InputError(
            Option("release"),
            " chooses how columns are read; leave the domain out, or declare it",
        )
    if open_lazy(frame) is not None:
        raise InputError(
            Option("release"),
            " needs the table in memory; collect it first, or declare its domain",
        )
    named = [request.outcome, *request.protected_names]
    return shareable(
        frames.open_frame(frame), named, request.kept_names, request.weight
    )


def fit_read(
    frame: Any, data: Reading, request: Request, progress: Progress
) -> Certified:
    """Fit a frame that was read; a student that is to be trained sees the frame
    itself.
    """
    taught = None
    if request.training is not None:
        taught = teach(frame, data, request, progress)
    return fit_rows(data, request, progress, learned=Labelling(taught=taught))


def fit_rows(
    data: Reading,
    request: Request,
    progress: Progress,
    *,
    learned: Labelling = NO_LABELS,
) -> Certified:
    """Go from rows in codes to a fair distribution: the fair table, weights, prior,
    target, maximum entropy.
    """
    problem = Problem.of(request, data)
    fair, labelled, labelling = relabelled_if_asked(
        problem, request, data, learned, progress
    )
    progress("base", 0.0)
    roles = data.roles
    blocks = problem.blocks
    share = request.C
    root = fair.table.ravel()
    weighted = reweigh(labelled.counted, root)
    private = data if isinstance(data, PrivateReading) else None
    if private is None or private.tree is None or labelling.soft is not None:
        base = build_base(
            request.base,
            blocks,
            labelled.counted,
            weighted,
            root=root,
            rules=problem.rules,
        )
        borrowed = _borrowed_shares(
            blocks, labelled.counted, share if BASES[request.base].lends else 0.0
        )
    else:
        base = rerooted(private.tree, root, problem.rules)
        borrowed = np.ones(blocks.levels[0])
    levels = fair_levels(labelled, weighted, fair.table, base, borrowed=borrowed)
    progress("solve", 0.0)
    prior = Mixture.of((share, 1 - share), (base, row_prior(blocks, weighted)))
    features = cell_features(blocks, problem.moment_scores, levels)
    watch = partial(progress, "solve")
    optimum = maximise_entropy(
        prior, features, levels, describe=roles.describe_level, watch=watch
    )
    progress("solve", 1.0)
    raw = (data.positions, data.table, data.design)
    if labelling.soft is None:
        profiles = None
    else:
        profiles = problem.profiles
    distribution = Distribution.of(roles.domain, optimum).detailed(
        *raw, profiles, by_cell=problem.values is not None
    )
    solved = Solved(
        request=request,
        columns=data.columns,
        problem=problem,
        weighted=weighted,
        soft=labelling.soft,
        labels=labelling.labels,
        student=None if labelling.taught is None else labelling.taught.student,
        target=levels,
        optimum=optimum,
        distribution=distribution,
        design_weights=data.design,
        weight_column=data.weight_column,
        weight_scale=data.weight_scale,
    )
    told = UnderivedFacts(
        emptied_cells=tuple(roles.describe_cell(cell) for cell in fair.emptied),
        redrawn=data.redrawn,
        decisions=None if labelling.taught is None else labelling.taught.decisions,
        left_out_columns=data.left_out,
        privacy=None if private is None else private.ledger,
    )
    return Certified(**vars(solved), certificate=certify(solved, told))


def _borrowed_shares(blocks: Blocks, counted: Counted, in_small_cells: float) -> Reals:
    """How much of p(x | y, z) is to be the base's: all of it in a cell without rows, a
    given share in one with few.
    """
    total, squares = (
        counted.tables([(0,)], blocks.levels, of=of)[0] for of in ("counts", "squares")
    )
    # Otherwise the few would be taken for what their cell is like, and the other cells
    # be tilted towards them.
    few = np.nan_to_num(effective_rows(total, squares)) < _FEW_ROWS
    return np.where(total == 0, 1.0, np.where(few, in_small_cells, 0.0))


def refit(fit: Certified, request: Request) -> Certified:
    """Fit the rows of a fit again with another request; its columns keep their roles
    and their levels.
    """
    # Its labels are taken over if nothing that they depend on is asked differently,
    # otherwise its soft labels alone.
    learned = NO_LABELS
    decisions = fit.certificate.decisions
    same = isinstance(fit.request, Request) and request.has_labels_of(fit.request)
    if fit.soft is not None:
        learned = Labelling(fit.soft, fit.labels if same else None)
    if decisions is not None:
        if not same:
            raise InputError(
                Option("model"),
                " has to be trained again for that; call debias() with the table",
            )
        learned = Labelling(
            taught=Taught(
                fit.distribution.root_table, decisions, fit.student, fit.labels
            )
        )
    return fit_rows(
        _reading(fit), replace(request, estimate=None), silent, learned=learned
    )


def with_estimate(
    fit: Certified, estimate: EstimateOption, *, progress: Progress = silent
) -> Certified:
    """Return the fit with an estimate, in its certificate, of what a model trained on
    its output will do.
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
        fit,
        represented(_reading(fit)),
        request,
        partial(fit_rows, progress=silent),
        plan,
    )
    estimated = estimate_model(tryout, progress)
    return replace(
        fit, request=request, certificate=replace(fit.certificate, estimate=estimated)
    )


def _reading(fit: Certified) -> Reading:
    """The reading that a fit was made from."""
    ledger = fit.certificate.privacy
    prior = fit.optimum.dual.prior
    if ledger is not None:
        tree = prior if fit.soft is None and isinstance(prior, Tree) else None
        return PrivateReading(
            fit.columns, fit.roles, fit.table, None, None, tree=tree, ledger=ledger
        )
    form = (fit.columns, fit.roles, fit.table, fit.design_weights, fit.weight_column)
    details = fit.distribution.details
    if details is None:
        positions = None
    else:
        positions = details.positions
    left_out = fit.certificate.left_out_columns
    return Reading(
        *form, positions, fit.certificate.redrawn, fit.weight_scale, left_out
    )
