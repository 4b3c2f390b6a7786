"""What was asked for, in words and as a call to repeat."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from fairmaxent import paper
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.pipeline import debias
from fairmaxent.report.delivered import Delivered
from fairmaxent.report.rates import is_targeted
from fairmaxent.report.source import Source

_OUTCOMES = 3  # outcome levels named before the rest is counted
_BASES = {
    "tree": "a model of the same rows that keeps the strongest ties between columns",
    "product": "a model of the same rows that keeps only each column's own shares",
    "uniform": "in which all combinations are equally likely",
}
_DROP = {"pandas": "columns=", "polars": "", "pyarrow": ""}


def wishes(fit: Fit) -> tuple[str, ...]:
    """What was asked for, one sentence each."""
    return (*_rates(fit), *_targets(fit.options), *_others(fit.options))


def call(fit: Fit, delivered: Delivered, source: Source) -> str:
    """Return the Python that makes the fit and what was delivered again; options at their defaults are left out."""
    name, function = ("debias", debias) if "base_share" in fit.options else ("paper.fit", paper.fit)
    known = inspect.signature(function).parameters
    given = [
        f"    {option}={value!r},"
        for option, value in fit.options.items()
        if option in known and not _is_default(value, known[option].default)
    ]
    expected = fit.certificate.downstream
    given += [] if expected is None else [f"    downstream={expected.output!r},"]
    given += ["    domain=domain,"] if source.domain else []
    read = list(_reading(fit, source))
    return "\n".join(
        [
            "import fairmaxent",
            "",
            *read,
            f"fit = fairmaxent.{name}(",
            "    frame,",
            *given,
            ")",
            _drawing(fit, delivered),
        ]
    )


def _reading(fit: Fit, source: Source) -> Iterator[str]:
    """From the table in the file to the one that was fitted, and to its domain."""
    if source.dropped:
        yield f"frame = {_without(fit, list(source.dropped))}"
    if source.domain:
        weight = fit.options.get("weight")
        table = "frame" if weight is None else _without(fit, [weight])
        options = [f"{name}={value!r}" for name, value in source.domain.items()]
        options += [] if weight is None else [f"weight=frame[{weight!r}].to_numpy()"]
        yield f"domain = fairmaxent.Domain.infer({', '.join([table, *options])})"


def _without(fit: Fit, names: list[str]) -> str:
    return f"frame.drop({_DROP.get(fit.domain.library, '')}{names!r})"


def _drawing(fit: Fit, delivered: Delivered) -> str:
    if delivered.mode == "weights":
        return "weights = fit.weights()" if fit.soft is None else "weighted = fit.weigh(frame)"
    seed = "" if delivered.seed is None else f"random_state={delivered.seed}"
    unknown = "  # drawn with a seed that is not known here" if delivered.seed is None else ""
    if delivered.mode == "top-up":
        return f"added = fit.top_up({seed}){unknown}"
    first, at_once = len(delivered.frame), delivered.rows == len(delivered.frame)
    options = [str(delivered.rows), "" if at_once else f"size={first}", seed, "iid=True" if delivered.iid else ""]
    drawing = "rows = fit.sample" if at_once else "batches = fit.sample_batches"
    return f"{drawing}({', '.join(filter(None, options))}){unknown}"


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def _rates(fit: Fit) -> Iterator[str]:
    wanted, groupings = fit.certificate.wanted, fit.certificate.measure.groupings
    for (name, rate), axes in zip(wanted["representation_rate"].items(), groupings, strict=True):
        if rate is not None and not is_targeted(fit, axes):
            yield (
                f"All groups of {name} equally large."
                if rate == 1
                else f"The smallest group of {name} at least {rate:.3g} times as large as the largest."
            )
    for name, rate in wanted["statistical_rate"].items():
        if rate is not None:
            yield (
                f"{_outcomes(fit)} equally often in all groups of {name}."
                if rate == 1
                else f"{_outcomes(fit)} in each group of {name} at least {rate:.3g} times as often as in any other."
            )


def _outcomes(fit: Fit) -> str:
    """Name the outcomes that the statistical rate is about."""
    own, levels = fit.roles.attributes[0], fit.certificate.measure.favourable
    if len(levels) == own.size > 1:
        return f"Each level of {own.name}"
    shown = ", ".join(f"{own.name} = {own.labels[level]}" for level in levels[:_OUTCOMES])
    return shown if len(levels) <= _OUTCOMES else f"{shown} and {len(levels) - _OUTCOMES} more levels, each"


def _targets(options: Mapping[str, Any]) -> Iterator[str]:
    for name, shares in (options.get("target") or {}).items():
        if shares is None:
            yield f"The shares of {name} as they are in the data."
        else:
            yield f"Shares of {name}: {', '.join(f'{level} {share:.4g}' for level, share in shares.items())}."


def _others(options: Mapping[str, Any]) -> Iterator[str]:
    if options.get("groups") == "joint":
        yield "Groups are the intersections of the protected columns."
    if options.get("absorb") == "relabel":
        yield (
            "Outcomes change rather than how much rows count: each row counts with every outcome in part, as likely as "
            "a model of the table says and as the rates ask for."
        )
    if options.get("parity") == "predictions":
        yield (
            "Also as many in each group, up to the statistical rate, beyond the threshold "
            f"{options['threshold']:g} where a model decides for the outcome."
        )
    for combination in options.get("forbid") or ():
        yield f"Never: {', '.join(f'{name} = {value}' for name, value in combination.items())}."
    if options.get("weight") is not None:
        yield f"Rows count by the design weights in {options['weight']}."
    if "base_share" in options:
        yield (
            f"Otherwise as close to the data as possible, with a share of {options['base_share']:.3g} for the base "
            f"{options['base']!r}, {_BASES[options['base']]}: it gives a chance to combinations that no row has."
        )
    else:
        yield (
            f"The paper's own configuration: prior q^{options['prior']} with C = {options['C']:.3g}, expectation "
            f"θ^{options['theta']}, τ = {options['tau']:.3g}."
        )
