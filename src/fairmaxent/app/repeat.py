"""The command and the Python that repeat what the page shows, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.scenario import Scenario
from fairmaxent.cli.options import command_line
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.request import Request
from fairmaxent.options import as_python, python_lines
from fairmaxent.report.source import Source, reading_lines

_SUFFIXES = {"rows": "-fair", "weights": "-fair-weights", "top-up": "-fair-added"}  # by what is taken
_UNTYPABLE = "# Some names in this table cannot be typed in a command; the Python below repeats it."


@dataclass(frozen=True)
class FileNames:
    """The names of the files to take, as the command gives them."""

    table: str
    model: str
    report: str
    like_input: bool
    pdf: str | None = None
    domain: str | None = None

    @classmethod
    def of(cls, scenario: Scenario) -> FileNames:
        """The names of what a scenario makes; no private table has the form of the file."""
        table, model, report, like_input = scenario.table.file_names()
        stem = os.path.splitext(report)[0]
        return cls(
            _SUFFIXES[scenario.mode].join(table.rsplit("-fair", 1)),
            model,
            report,
            like_input and not scenario.asked.has("epsilon"),
            f"{stem}.pdf" if scenario.pdf else None,
            None if scenario.domain_text is None else f"{'-domain'.join(stem.rsplit('-report', 1))}.toml",
        )


def command_text(scenario: Scenario, names: FileNames, estimated: str | None) -> str:
    """The command, on one line, or why there is none."""
    return typed_text(list(command_tokens(scenario, names, estimated)))


def typed_text(tokens: Sequence[str | None]) -> str:
    """A command on one line; or, if a part of it cannot be typed, that it cannot."""
    return command_line(tokens) or _UNTYPABLE


def command_tokens(scenario: Scenario, names: FileNames, estimated: str | None) -> Iterator[str | None]:
    """The words of the command; None stands for one that cannot be typed. What has its default is left out."""
    yield from ("fairmaxent", "debias", scenario.table.typed)
    yield from scenario.typed
    yield from scenario.table.reading_typed
    yield from () if names.domain is None else ("--domain", names.domain)
    yield from ("--estimate", estimated or "none")
    yield from ("-o", names.table)
    yield from ["--like-input"] if names.like_input else []
    yield from ("--model", names.model, "--report", names.report)
    yield from () if names.pdf is None else ("--pdf", names.pdf)


def python_text(scenario: Scenario, fit: Fit, names: FileNames, estimated: Any) -> str:
    """The Python that writes the same table."""
    reading, writing = _file_functions(scenario, names)
    request = fit.request
    assert isinstance(request, Request)
    plan = "None" if estimated is None else as_python(scenario.asked.trial_of(estimated))
    options = [line for line in python_lines(request) if not line.strip().startswith("estimate=")]
    narrowed = list(_domain_lines(scenario, fit, names))
    has_domain = any(line.startswith("domain =") for line in narrowed)
    lines = ["import fairmaxent", *reading, *(["frame = table"] if narrowed else []), *narrowed]
    lines += ["fit = fairmaxent.debias(", f"    {'frame' if narrowed else 'table'},", *options]
    lines += [*(["    domain=domain,"] if has_domain else []), f"    estimate={plan},", ")"]
    return "\n".join([*lines, *_made(scenario, fit), *writing, ""])


def _domain_lines(scenario: Scenario, fit: Fit, names: FileNames) -> Iterator[str]:
    """From the table in the file to the one that is fitted, and to its domain."""
    said = scenario.columns_as.given
    is_lazy = _is_lazy(scenario)
    own_way = names.domain is not None or (is_lazy and said)  # what `Domain.infer` cannot do
    yield from reading_lines(fit, Source(dropped=scenario.drop, domain={} if own_way else said))
    if names.domain is not None:
        yield f"domain = read_domain({names.domain!r})"
    elif own_way:
        yield f"domain = {scenario.columns_as!r}.domain(frame, {scenario.roles.weight!r})"


def _is_lazy(scenario: Scenario) -> bool:
    return scenario.table.is_lazy and not scenario.needs_rows_in_memory


def _file_functions(scenario: Scenario, names: FileNames) -> tuple[list[str], list[str]]:
    """From the file to the table, and from the result to the file."""
    typed, is_lazy = scenario.table.typed, _is_lazy(scenario)
    imports = ["import polars"] if is_lazy else []
    imports += ["from fairmaxent.cli.config import read_domain"] if names.domain is not None else []
    imports += ["from fairmaxent.cli.reading import DomainOptions"] if is_lazy and scenario.columns_as.given else []
    if not is_lazy:
        reading = _reading_text(scenario.table)
        imports += ["from fairmaxent.files.formats import read_table"]
        imports += ["from fairmaxent.files.reading import Reading"] if reading else []
        imports += ["from fairmaxent.files.write import write_table", ""]
        form = ", form=file.form" if names.like_input else ""
        texts = f", texts={scenario.texts!r}" if scenario.texts else ""
        read = [f"file = read_table({typed!r}{reading}{texts})", "table = file.frame"]
        return [*imports, *read], [f"write_table(result, {names.table!r}{form})"]
    read = [f"table = polars.scan_parquet({typed!r})"]
    if scenario.mode != "rows":
        imports += ["from fairmaxent.files.write import write_table", ""]
        return [*imports, *read], [f"write_table(result, {names.table!r})"]
    imports += ["from fairmaxent.cli.output import write_drawn"]
    imports += ["from fairmaxent.files.write import Staging", ""]
    drawing = ", iid=True" if scenario.wanted.iid else ""
    write = f"    write_drawn(fit, rows, staging, {names.table!r}, format=None{drawing})  # in pieces"
    return [*imports, *read], [f"with Staging([{names.table!r}]) as staging:", write]


def _reading_text(table: OpenedTable) -> str:
    """How the file is read, if anything was said about that."""
    given = {name: value for name, value in vars(table.reading()).items() if value not in (None, ()) and name != "drop"}
    return f", Reading({', '.join(f'{name}={value!r}' for name, value in given.items())})" if given else ""


def _made(scenario: Scenario, fit: Fit) -> list[str]:
    if scenario.mode == "weights":
        return [f"result = fit.weigh(table, name={scenario.wanted.weight_name!r})"]
    if scenario.mode == "top-up":
        return ["result = fit.top_up()"]
    rows = fit.table.size if scenario.wanted.rows is None else scenario.wanted.rows
    if _is_lazy(scenario):
        return [f"rows = {rows}"]
    return [f"result = fit.sample({rows}{', iid=True' if scenario.wanted.iid else ''})"]
