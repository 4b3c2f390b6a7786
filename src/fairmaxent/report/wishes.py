"""What was asked for, in words and as a call to repeat."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from fairmaxent import paper
from fairmaxent.fit import Fit
from fairmaxent.pipeline import debias

_OUTCOMES = 3  # outcome levels named before the rest is counted


def wishes(fit: Fit) -> tuple[str, ...]:
    """What was asked for, one sentence each."""
    return (*_rates(fit), *_targets(fit.options), *_others(fit.options))


def call(fit: Fit, *, rows: int, seed: int | None) -> str:
    """Return the Python that makes the fit and draws the rows again; options at their defaults are left out."""
    name, function = ("debias", debias) if "base_share" in fit.options else ("paper.fit", paper.fit)
    known = inspect.signature(function).parameters
    given = [
        f"    {option}={value!r},"
        for option, value in fit.options.items()
        if option in known and not _is_default(value, known[option].default)
    ]
    drawing = f"rows = fit.sample({rows}, random_state={seed})"
    return "\n".join(["import fairmaxent", "", f"fit = fairmaxent.{name}(", "    frame,", *given, ")", drawing])


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def _rates(fit: Fit) -> Iterator[str]:
    wanted = fit.certificate.wanted
    for name, rate in wanted["representation_rate"].items():
        if rate is not None:
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
    for combination in options.get("forbid") or ():
        yield f"Never: {', '.join(f'{name} = {value}' for name, value in combination.items())}."
    if options.get("weight") is not None:
        yield f"Rows count by the design weights in {options['weight']}."
    if "base_share" in options:
        yield (
            f"Otherwise as close to the data as possible, with a share of {options['base_share']:.3g} for what lies "
            f"between the rows (base {options['base']!r})."
        )
    else:
        yield (
            f"The paper's own configuration: prior q^{options['prior']} with C = {options['C']:.3g}, expectation "
            f"θ^{options['theta']}, τ = {options['tau']:.3g}."
        )
