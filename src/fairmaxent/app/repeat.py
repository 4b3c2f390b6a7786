"""The command and the Python that repeat what the page shows, byte for byte."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.scenario import Scenario
from fairmaxent.cli import option_types
from fairmaxent.cli.output_options import WEIGHT_NAME
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.request import Estimate, Request
from fairmaxent.plain_text import visible
from fairmaxent.report.repeat_call import request_lines

_UNTYPABLE = "# Some names in this table cannot be typed in a command; the Python below repeats it."


@dataclass(frozen=True)
class FileNames:
    """The names of the files to take, as the command gives them."""

    table: str
    model: str
    report: str
    like_input: bool


def command_text(opened: OpenedTable, scenario: Scenario, names: FileNames, estimated: str | None) -> str:
    """The command, on one line, or why there is none."""
    return _typed(list(command_tokens(opened, scenario, names, estimated)))


def evaluation_command(opened: OpenedTable, scenario: Scenario, names: FileNames) -> str:
    """The command that judges the rows that the other command writes."""
    tokens: list[str | None] = ["fairmaxent", "evaluate", opened.typed, names.table, "--outcome", scenario.outcome]
    for name in scenario.protected:
        tokens += ["--protected", name]
    for level in scenario.favourable:
        tokens += ["--favourable", option_types.LEVEL.written(level)]
    tokens += ["--drop", option_types.NAMES.written(list(scenario.drop))] if scenario.drop else []
    return _typed(tokens)


def _typed(tokens: Sequence[str | None]) -> str:
    if None in tokens:
        return _UNTYPABLE
    text = shlex.join(token for token in tokens if token is not None)
    return text if visible(text) == text and "\n" not in text else _UNTYPABLE


def command_tokens(
    opened: OpenedTable, scenario: Scenario, names: FileNames, estimated: str | None
) -> Iterator[str | None]:
    """The words of the command; None stands for one that cannot be typed. What has its default is left out."""
    yield from ("fairmaxent", "debias", opened.typed)
    yield from _roles(scenario)
    yield from _wishes(scenario)
    yield from ("--seed", str(scenario.seed), "--estimate", estimated or "none")
    yield from ("--mode", scenario.mode)
    yield from () if scenario.rows is None else ("--rows", str(scenario.rows))
    yield from ["--iid"] if scenario.iid else []
    yield from ("-o", names.table)
    yield from ["--like-input"] if names.like_input else []
    yield from ("--model", names.model, "--report", names.report)
    for name in ("title", "author", "purpose"):
        text = getattr(scenario, name)
        yield from (f"--{name}", text) if text else ()


def _roles(scenario: Scenario) -> Iterator[str | None]:
    yield from ("--outcome", scenario.outcome)
    for name in scenario.protected:
        yield from ("--protected", name)
    for level in scenario.favourable:
        yield from ("--favourable", option_types.LEVEL.written(level))
    yield from ("--groups", scenario.groups) if scenario.groups != "each" else ()
    yield from ("--weight", scenario.weight) if scenario.weight is not None else ()
    for name in ("drop", "keep"):
        names = getattr(scenario, name)
        yield from (f"--{name}", option_types.NAMES.written(list(names))) if names else ()


def _wishes(scenario: Scenario) -> Iterator[str | None]:
    usual = Scenario("", ())
    for name in ("representation_rate", "statistical_rate"):
        rate = getattr(scenario, name)
        if rate != getattr(usual, name):
            yield from (f"--{name.replace('_', '-')}", option_types.RATE.written(rate))
    if scenario.within:
        yield from ("--within", option_types.WITHIN.written(dict.fromkeys(scenario.within)))
    for column, shares in (scenario.target or {}).items():
        yield from ("--target", option_types.TARGET.written((column, shares)))
    for name in ("relabel", "base"):
        if getattr(scenario, name) != getattr(usual, name):
            yield from (f"--{name}", getattr(scenario, name))
    if scenario.relabels and scenario.threshold != usual.threshold:
        yield from ("--threshold", str(scenario.threshold))
    for name in ("base_share", "largest_weight"):
        if getattr(scenario, name) != getattr(usual, name):
            yield from (f"--{name.replace('_', '-')}", str(getattr(scenario, name)))
    for name in ("compare_missing", "share"):
        yield from [f"--{name.replace('_', '-')}"] if getattr(scenario, name) else []


def python_text(opened: OpenedTable, scenario: Scenario, fit: Fit, names: FileNames, estimated: Any) -> str:
    """The Python that writes the same table."""
    reading, writing = _file_functions(opened, scenario, names)
    request = fit.request
    assert isinstance(request, Request)
    plan = "None" if estimated is None else f"fairmaxent.Estimate(output={Estimate(output=estimated).output!r})"
    options = [line for line in request_lines(request) if not line.strip().startswith("estimate=")]
    lines = ["import fairmaxent", *reading]
    fitted = f"table.drop({list(scenario.drop)!r})" if scenario.drop else "table"
    lines += ["fit = fairmaxent.debias(", f"    {fitted},", *options, f"    estimate={plan},", ")"]
    return "\n".join([*lines, *_made(opened, scenario, fit), *writing, ""])


def _file_functions(opened: OpenedTable, scenario: Scenario, names: FileNames) -> tuple[list[str], list[str]]:
    """From the file to the table, and from the result to the file."""
    if not opened.is_lazy or scenario.needs_rows_in_memory:
        imports = ["from fairmaxent.files.tables import read_table, write_table", ""]
        form = ", form=file.form" if names.like_input else ""
        read = [f"file = read_table({opened.typed!r})", "table = file.frame"]
        return [*imports, *read], [f"write_table(result, {names.table!r}{form})"]
    read = [f"table = polars.scan_parquet({opened.typed!r})"]
    if scenario.mode != "rows":
        imports = ["import polars", "from fairmaxent.files.tables import write_table", ""]
        return [*imports, *read], [f"write_table(result, {names.table!r})"]
    imports = ["import polars", "from fairmaxent.cli.streaming import write_drawn"]
    imports += ["from fairmaxent.files.staging import Staging", ""]
    drawing = ", iid=True" if scenario.iid else ""
    write = f"    write_drawn(fit, rows, staging, {names.table!r}, format=None{drawing})  # in pieces"
    return [*imports, *read], [f"with Staging([{names.table!r}]) as staging:", write]


def _made(opened: OpenedTable, scenario: Scenario, fit: Fit) -> list[str]:
    if scenario.mode == "weights":
        return [f"result = fit.weigh(table, name={WEIGHT_NAME!r})"]
    if scenario.mode == "top-up":
        return ["result = fit.top_up()"]
    rows = fit.table.size if scenario.rows is None else scenario.rows
    if opened.is_lazy and not scenario.needs_rows_in_memory:
        return [f"rows = {rows}"]
    return [f"result = fit.sample({rows}{', iid=True' if scenario.iid else ''})"]
