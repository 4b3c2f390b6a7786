"""What Take makes, by the same functions as the command line, and the command and the
Python that repeat it.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairmaxent.app.page_options import IN_APP
from fairmaxent.app.scenario import Fitted, OpenedTable
from fairmaxent.cli.options import command_line
from fairmaxent.cli.output import OutputOptions, source_of
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.result import make_report, make_result
from fairmaxent.files.write import Staging
from fairmaxent.options import python_lines
from fairmaxent.progress import Progress
from fairmaxent.report.browser import find_browser
from fairmaxent.report.source import Source, reading_lines

# What can be taken: what the page calls it, and the end of its file's name.
_WHATS = {
    "rows": ("New rows, to train on", "fair"),
    "weights": ("Your rows with weights", "fair-weights"),
    "top-up": ("Rows to add to yours", "fair-added"),
}
_UNTYPABLE = (
    "# Some names in this table cannot be typed in a command; the Python below"
    " repeats it."
)


def named(fitted: Fitted) -> OutputOptions:
    """What is taken, with the files as the command names them; no private table has the
    form of the file.
    """
    table = fitted.scenario.table
    scenario = fitted.scenario
    suffix, like_input = table.written
    return replace(
        scenario.wanted,
        output=table.named(f"{_WHATS[scenario.wanted.mode][1]}{suffix}"),
        like_input=like_input and not scenario.asked.has("epsilon"),
        estimate=fitted.output if fitted.output in fitted.estimates else None,
        model=table.named("model.fme"),
        report=table.named("report.html"),
        pdf=table.named("report.pdf") if scenario.pdf else None,
    )


def _domain_file(fitted: Fitted) -> str | None:
    """The name of a file for the declared domain, if there is one."""
    if fitted.scenario.domain_text is None:
        return None
    return fitted.scenario.table.named("domain.toml")


def command_text(fitted: Fitted) -> str:
    """The command, on one line, or why there is none; what has its default is left
    out.
    """
    table = fitted.scenario.table
    wanted = named(fitted)
    words = [
        "fairmaxent",
        "debias",
        table.typed,
        *fitted.scenario.options.typed,
        *table.options.typed,
    ]
    files = {
        "--domain": _domain_file(fitted),
        "--estimate": wanted.estimate,
        "-o": wanted.output,
    }
    files |= {"--model": wanted.model, "--report": wanted.report, "--pdf": wanted.pdf}
    words += [
        word
        for name, value in files.items()
        if value is not None
        for word in (name, value)
    ]
    return (
        command_line([*words, *(["--like-input"] if wanted.like_input else [])])
        or _UNTYPABLE
    )


def python_text(fitted: Fitted) -> str:
    """The Python that writes the same table."""
    scenario = fitted.scenario
    fit = fitted.fit
    wanted = named(fitted)
    is_lazy = scenario.table.is_lazy and not scenario.needs_rows_in_memory
    in_pieces = is_lazy and wanted.mode == "rows"
    narrowed = list(_narrowing(fitted, is_lazy=is_lazy))
    lines = [
        *_reading(fitted, is_lazy=is_lazy),
        *(["frame = table", *narrowed] if narrowed else []),
    ]
    options = python_lines(fit.request)
    if any(line.startswith("domain =") for line in lines):
        options += ["    domain=domain,"]
    lines += [
        "fit = fairmaxent.debias(",
        f"    {'frame' if narrowed else 'table'},",
        *options,
        ")",
    ]
    if wanted.rows is None:
        rows = fit.table.size
    else:
        rows = wanted.rows
    iid = ", iid=True" if wanted.iid else ""
    if in_pieces:
        lines += [
            "from fairmaxent.cli.output import write_drawn",
            "from fairmaxent.files.write import Staging",
        ]
        lines.append(f"with Staging([{wanted.output!r}]) as staging:")
        lines.append(
            f"    write_drawn(fit, {rows}, staging, {wanted.output!r},"
            f" format=None{iid})  # in pieces"
        )
    else:
        results = {
            "weights": f"weigh(table, name={wanted.weight_name!r})",
            "top-up": "top_up()",
        }
        lines += ["from fairmaxent.files.write import write_table"]
        lines.append(f"result = fit.{results.get(wanted.mode, f'sample({rows}{iid})')}")
        lines.append(
            "write_table(result,"
            f" {wanted.output!r}{', form=file.form' if wanted.like_input else ''})"
        )
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    imports.sort(key=lambda line: (line.startswith("from "), line))
    return "\n".join(
        [*imports, "", *(line for line in lines if line not in imports), ""]
    )


def _reading(fitted: Fitted, *, is_lazy: bool) -> list[str]:
    """The table in the file, and the domain that was declared for it."""
    table = fitted.scenario.table
    declared = _domain_file(fitted)
    domain = [
        "from fairmaxent.cli.config import read_domain",
        f"domain = read_domain({declared!r})",
    ]
    if declared is None:
        domain = []
    if is_lazy:
        lines = [
            "import fairmaxent",
            "import polars",
            *domain,
            f"table = polars.scan_parquet({table.typed!r})",
        ]
        names = f"table = Reading(levels={table.reading().levels!r}).renamed(table)"
        return [
            *lines,
            *(
                ["from fairmaxent.files.reading import Reading", names]
                if table.reading().levels
                else []
            ),
        ]
    how = {
        name: value
        for name, value in vars(table.reading()).items()
        if value not in (None, ())
    }
    if how:
        options = [
            f"Reading({', '.join(f'{name}={value!r}' for name, value in how.items())})"
        ]
    else:
        options = []
    if domain:
        options += ["declaration=domain"]
    imports = [
        "from fairmaxent.files.formats import read_table",
        "from fairmaxent.files.reading import Reading",
    ]
    read = f"file = read_table({', '.join([repr(table.typed), *options])})"
    return [
        *imports[: 2 if how else 1],
        "import fairmaxent",
        *domain,
        read,
        "table = file.frame",
    ]


def _narrowing(fitted: Fitted, *, is_lazy: bool) -> Iterator[str]:
    """From the table in the file to the one that is fitted, and to its domain."""
    scenario = fitted.scenario
    # what `Domain.infer` cannot do
    own_way = is_lazy and bool(scenario.columns_as.given)
    source = Source(
        dropped=scenario.options.drop,
        domain={} if own_way else scenario.columns_as.given,
    )
    yield from (
        line
        for line in reading_lines(fitted.fit, source)
        if "Domain.declare" not in line
    )
    if own_way:
        yield "from fairmaxent.cli.reading import DomainOptions"
        yield (
            f"domain = {scenario.columns_as!r}.domain(frame, {scenario.roles.weight!r})"
        )


def take(fitted: Fitted, folder: Path, progress: Progress) -> list[dict[str, Any]]:
    """Write the fair table, the model and the report into the folder; return what the
    page says about them.
    """
    scenario = fitted.scenario
    wanted = named(fitted)
    if scenario.pdf:
        find_browser()  # refuses, before any work, if there is none
    source = scenario.file
    command = command_text(fitted)
    names = {
        "output": wanted.output,
        "model": wanted.model,
        "report": wanted.report,
        "pdf": wanted.pdf,
    }
    names["domain"] = _domain_file(fitted)
    paths = {
        what: str(folder / name) for what, name in names.items() if name is not None
    }
    domain = paths.pop("domain", None)
    wanted = replace(wanted, **paths, force=True).in_form(source)  # type: ignore[arg-type]
    progress("drawing" if wanted.mode != "weights" else "weighing", 0.1)
    with Staging(wanted.targets, force=True) as staging:
        result = make_result(
            fitted.fit,
            source,
            wanted,
            staging,
            lambda stage, share: progress(stage, 0.1 + 0.5 * share),
        )
        progress("writing the report", 0.6)
        make_report(
            result,
            wanted,
            staging,
            _origin(scenario.table, scenario.columns_as, command),
        )
        progress("writing the report", 0.95)
    if domain is not None:
        Path(domain).write_text(scenario.domain_text or "", encoding="utf-8")
    whats = {
        wanted.output: _WHATS[wanted.mode][0],
        wanted.model: "Model",
        wanted.report: "Report",
    }
    return _files({**whats, wanted.pdf: "Report as PDF", domain: "Public values"})


def _origin(table: OpenedTable, columns_as: DomainOptions, command: str) -> Source:
    """Where a table came from, as a report says it: the file as the user knows it, and
    options as on the page.
    """
    origin = source_of(str(table.path), columns_as, command)
    return replace(origin, file=os.path.basename(table.typed), front_door=IN_APP)


def _files(whats: Mapping[str | None, str]) -> list[dict[str, Any]]:
    """Files by path, with what they are, as the page lists them."""
    paths = {Path(path): what for path, what in whats.items() if path is not None}
    return [
        {
            "name": path.name,
            "what": what,
            "bytes": path.stat().st_size,
            "folder": int(path.parent.name),
        }
        for path, what in paths.items()
    ]
