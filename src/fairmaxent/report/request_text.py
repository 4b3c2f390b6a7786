"""What was asked for, in words."""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.data.roles import read_within
from fairmaxent.fairness.rates import outcome_axis
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.plans import PaperRequest, Relabel
from fairmaxent.fit.request import Request
from fairmaxent.report.compared_outcomes import EACH, levels_compared
from fairmaxent.report.rates import is_targeted

_BASES = {
    "tree": "a model of the same rows that keeps the strongest relations between columns",
    "product": "a model of the same rows that keeps only each column's own shares",
    "uniform": "in which all combinations are equally likely",
}


def wishes(fit: Fit) -> tuple[str, ...]:
    """What was asked for, one sentence each."""
    return (*_rates(fit), *_targets(fit.request), *_others(fit.request))


def _rates(fit: Fit) -> Iterator[str]:
    wanted, measure = fit.certificate.wanted, fit.certificate.measure
    for (name, rate), axes in zip(wanted["representation_rate"].items(), measure.groupings, strict=True):
        if rate is not None and not is_targeted(fit, axes) and not outcome_axis(axes):
            groups = measure.groups_of(name)
            yield (
                f"All groups of {groups} have the same size."
                if rate == 1
                else f"The smallest group of {groups} is at least {rate:.3g} times as large as the largest."
            )
    for (name, rate), axes in zip(wanted["statistical_rate"].items(), measure.groupings, strict=True):
        if rate is not None:
            outcomes, groups = levels_compared(fit, axes), measure.groups_of(name)
            yield (
                f"{_sentence(outcomes)} is equally common in all groups of {groups}."
                if rate == 1
                else f"{_sentence(outcomes)} is at least {rate:.3g} times as common in each group of {groups} as in "
                "any other."
            )


def _sentence(outcomes: str) -> str:
    """Begin a sentence with outcomes; a column's name stays as it is."""
    return f"E{outcomes[1:]}" if outcomes.startswith(EACH) else outcomes


def _targets(request: Request | PaperRequest) -> Iterator[str]:
    for name, shares in (request.target or {}).items():
        if isinstance(shares, str):
            yield f"The shares of {name} may change."
        elif shares is None:
            yield f"{name} keeps the shares that it has in the data."
        else:
            yield f"Shares of {name}: {', '.join(f'{level} {share:.4g}' for level, share in shares.items())}."
    if isinstance(request, Request) and request.means is None:
        for name in (request.outcome, *request.also_names):
            if name not in (request.target or {}):
                yield f"{name} keeps the shares that it has in the data."


def _others(request: Request | PaperRequest) -> Iterator[str]:
    if isinstance(request, PaperRequest):
        yield (
            f"The paper's own configuration: prior q^{request.prior} with C = {request.C:.3g}, expectation "
            f"θ^{request.theta}, τ = {request.tau:.3g}."
        )
        return
    if request.missing == "compare":
        yield "Missing values are compared like any other group or outcome."
    if request.largest_weight is not None:
        yield f"No row counts more than {request.largest_weight:g} times as much as before."
    if request.groups == "joint":
        yield "Groups are the intersections of the protected columns."
    yield from _within(request)
    if request.means is not None:
        yield f"The mean of {request.outcome} is equal in all groups, and overall what it is in the data."
    if request.relabelling is not None:
        yield from _relabelling(request.relabelling)
    for combination in request.forbid or ():
        yield f"Never: {', '.join(f'{name} = {value}' for name, value in combination.items())}."
    if request.keep_columns:
        yield f"Kept, even if they look like identifiers: {', '.join(request.kept_names)}."
    if request.weight is not None:
        yield f"Rows are weighted by the design weights in {request.weight}."
    if request.privacy is not None:
        yield f"The result is private with {request.privacy}: everything is learned from noisy counts."
    elif request.release:
        yield "The rows can be shared: none is a copy, and values that fewer than 10 rows have were replaced."
    yield "Otherwise the result is as close to the data as possible."
    if request.privacy is not None:
        return
    yield (
        f"A share of {request.base_share:.3g} comes from the base {request.base!r}, {_BASES[request.base]}; it makes "
        "combinations possible that no row has."
    )


def _within(request: Request) -> Iterator[str]:
    asked = read_within(request.within)
    if not asked:
        return
    columns = " × ".join(asked)
    yield f"Groups are compared with the others of their stratum only; the strata are those of {columns}."
    for name, level in asked.items():
        if level is not None:
            levels = level if isinstance(level, list | tuple | set | frozenset) else [level]
            named = ", ".join(map(str, levels))
            yield f"Only strata with {name} = {named} are compared; all others stay as they are."
    if not set(asked) & {*(request.target or {})}:
        kept = "" if request.outcome in (request.target or {}) else f", and its shares of {request.outcome}"
        yield f"Each stratum of {columns} keeps its size{kept}."


def _relabelling(plan: Relabel) -> Iterator[str]:
    yield (
        "Outcomes change, not how much rows count: each row keeps its weight, which is split between the outcomes "
        "according to a model of the table and the wanted rates."
    )
    if plan.parity == "predictions":
        yield (
            f"The share of each group that a model trained on the result decides for (at a probability of "
            f"{plan.threshold:g} or more) is equal, up to the statistical rate. This comes first: if the model cannot "
            "decide equally and learn from groups with equal outcomes, the outcomes give way."
        )
