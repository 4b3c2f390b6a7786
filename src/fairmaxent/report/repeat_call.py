"""The Python that makes a fit, and what was delivered, again."""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.fit.fit import Fit
from fairmaxent.fit.request import Request
from fairmaxent.options import python_lines
from fairmaxent.report.delivered import Delivered
from fairmaxent.report.source import Source

_DROP = {"pandas": "columns=", "polars": "", "pyarrow": ""}


def call(fit: Fit, delivered: Delivered, source: Source) -> str:
    """Return the Python that makes the fit and what was delivered again; options at their defaults are left out."""
    name = "debias" if isinstance(fit.request, Request) else "paper.fit"
    given = python_lines(fit.request)
    private = fit.request.privacy is not None
    given += ["    domain=domain,"] if source.domain or private else []
    read = list(reading_lines(fit, source))
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


def reading_lines(fit: Fit, source: Source) -> Iterator[str]:
    """From the table in the file to the one that was fitted, and to its domain."""
    if source.dropped:
        yield f"frame = {_without(fit, list(source.dropped))}"
    if source.domain:
        weight = fit.request.weight
        table = "frame" if weight is None else _without(fit, [weight])
        options = [f"{name}={value!r}" for name, value in source.domain.items()]
        options += [] if weight is None else [f"weight=frame[{weight!r}].to_numpy()"]
        yield f"domain = fairmaxent.Domain.infer({', '.join([table, *options])})"
    elif fit.request.privacy is not None:
        yield "domain = fairmaxent.Domain.declare(...)  # as it was declared; another run also reveals as much again"


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
