"""What Take makes, as the command line does, and the text that repeats it."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fairmaxent.app.page_options import IN_APP
from fairmaxent.app.scenario import Fitted
from fairmaxent.cli.options import command_line
from fairmaxent.cli.output import OutputOptions, source_of
from fairmaxent.cli.result import make_report, make_result
from fairmaxent.files.write import Staging
from fairmaxent.options import python_lines
from fairmaxent.plain_text import Values
from fairmaxent.progress import Progress
from fairmaxent.report.source import Source, reading_lines

# What can be taken: what the page calls it, and the end of its file's name.
_WHATS = {
    "rows": ("New rows", "fair"),
    "weights": ("Your rows with weights", "fair-weights"),
    "top-up": ("Rows to add to yours", "fair-added"),
}
_UNTYPABLE = (
    "# Some names in this table cannot be typed in a command; the Python below"
    " repeats it."
)


def named(fitted: Fitted) -> OutputOptions:
    """What is taken, with the files as the command names them."""
    scenario = fitted.scenario
    table = scenario.table
    suffix, like_input = table.written
    _, ending = _WHATS[scenario.wanted.mode]
    is_private = scenario.asked.has("epsilon")
    wanted = replace(
        scenario.wanted,
        output=table.named(f"{ending}{suffix}"),
        like_input=like_input and not is_private,  # whose form would say something
        save=table.named("fit.fme"),
        report=table.named("report.html"),
    )
    if fitted.output in fitted.estimates:
        wanted = replace(wanted, estimate=fitted.output)
    return wanted


def _domain_file(fitted: Fitted) -> str | None:
    """The name of a file for the declared domain, if there is one."""
    if fitted.scenario.domain_text is None:
        return None
    return fitted.scenario.table.named("domain.toml")


def command_text(fitted: Fitted) -> str:
    """The command, on one line, or why there is none; defaults are left out."""
    table = fitted.scenario.table
    wanted = named(fitted)
    words: list[str | None] = ["fairmaxent", "debias", table.typed]
    words += [*fitted.scenario.options.typed, *table.options.typed]
    files = {
        "--domain": _domain_file(fitted),
        "--estimate": wanted.estimate,
        "-o": wanted.output,
        "--save": wanted.save,
        "--report": wanted.report,
    }
    for flag, value in files.items():
        if value is not None:
            words += [flag, value]
    if wanted.like_input:
        words.append("--like-input")
    return command_line(words) or _UNTYPABLE


def python_text(fitted: Fitted) -> str:
    """The Python that writes the same table."""
    scenario = fitted.scenario
    is_lazy = scenario.table.is_lazy and not scenario.needs_rows_in_memory
    lines = _reading(fitted, is_lazy=is_lazy)
    frame = "table"
    narrowed = list(_narrowing(fitted, is_lazy=is_lazy))
    if narrowed:
        frame = "frame"
        lines += ["frame = table", *narrowed]
    options = python_lines(fitted.fit.request)
    if any(line.startswith("domain =") for line in lines):
        options += ["    domain=domain,"]
    lines += ["fit = fairmaxent.debias(", f"    {frame},", *options, ")"]
    lines += _writing(fitted, is_lazy=is_lazy)
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    imports.sort(key=lambda line: (line.startswith("from "), line))
    return "\n".join(
        [*imports, "", *(line for line in lines if line not in imports), ""]
    )


def _writing(fitted: Fitted, *, is_lazy: bool) -> list[str]:
    """From the fit to the table in its file; rows of many, in pieces."""
    wanted = named(fitted)
    target = repr(wanted.output)
    rows = wanted.rows or fitted.fit.table.size
    iid = ", iid=True" if wanted.iid else ""
    if is_lazy and wanted.mode == "rows":
        return [
            "from fairmaxent.cli.output import write_drawn",
            "from fairmaxent.files.write import Staging",
            f"with Staging([{target}]) as staging:",
            f"    write_drawn(fit, {rows}, staging, {target}, format=None{iid})"
            "  # in pieces",
        ]
    result = {
        "weights": f"weigh(table, weight_name={wanted.weight_name!r})",
        "top-up": "top_up()",
        "rows": f"sample({rows}{iid})",
    }[wanted.mode]
    form = ", form=file.form" if wanted.like_input else ""
    return [
        "from fairmaxent.files.write import write_table",
        f"result = fit.{result}",
        f"write_table(result, {target}{form})",
    ]


def _reading(fitted: Fitted, *, is_lazy: bool) -> list[str]:
    """The table in the file, and the domain that was declared for it."""
    table = fitted.scenario.table
    lines = ["import fairmaxent"]
    arguments = [repr(table.typed)]
    how = vars(table.reading())
    given = [
        f"{name}={value!r}" for name, value in how.items() if value not in (None, ())
    ]
    if given and not is_lazy:
        lines.append("from fairmaxent.files.reading import FileReading")
        arguments.append(f"FileReading({', '.join(given)})")
    declared = _domain_file(fitted)
    if declared is not None:
        lines.append("from fairmaxent.cli.config import read_domain")
        lines.append(f"domain = read_domain({declared!r})")
        arguments.append("declaration=domain")
    if not is_lazy:
        lines.append("from fairmaxent.files.formats import read_table")
        lines.append(f"file = read_table({', '.join(arguments)})")
        return [*lines, "table = file.frame"]
    lines.append("import polars")
    lines.append(f"table = polars.scan_parquet({table.typed!r})")
    levels = table.reading().levels
    if levels:
        lines.append("from fairmaxent.files.reading import FileReading")
        lines.append(f"table = FileReading(levels={levels!r}).renamed(table)")
    return lines


def _narrowing(fitted: Fitted, *, is_lazy: bool) -> Iterator[str]:
    """From the table in the file to the one that is fitted, and to its domain."""
    scenario = fitted.scenario
    given = scenario.columns_as.given
    # `Domain.infer` cannot learn from a file.
    own_way = is_lazy and given
    source = Source(
        dropped=scenario.options.drop,
        domain={} if own_way else given,
    )
    for line in reading_lines(fitted.fit, source):
        if "Domain.declare" not in line:
            yield line
    if own_way:
        yield "from fairmaxent.cli.reading import DomainOptions"
        yield (
            f"domain = {scenario.columns_as!r}"
            f".domain_of(frame, {scenario.roles.weight!r})"
        )


def take(fitted: Fitted, folder: Path, progress: Progress) -> list[Values]:
    """Write the fair table, the fit and the report into the folder.

    Returns what the page says about them.
    """
    scenario = fitted.scenario
    wanted = named(fitted)
    source = scenario.file
    paths: Values = {
        what: str(folder / getattr(wanted, what))
        for what in ("output", "save", "report")
        if getattr(wanted, what) is not None
    }
    wanted = replace(wanted, **paths, force=True).in_form(source)
    progress("weighing" if wanted.mode == "weights" else "drawing", 0.1)
    with Staging(wanted.targets, force=True) as staging:
        result = make_result(
            fitted.fit,
            source,
            wanted,
            staging,
            lambda stage, share: progress(stage, 0.1 + 0.5 * share),
        )
        progress("writing the report", 0.6)
        table = scenario.table
        origin = source_of(str(table.path), scenario.columns_as, command_text(fitted))
        known_name = os.path.basename(table.typed)  # to the user of the page
        origin = replace(origin, file=known_name, front_door=IN_APP)
        make_report(result, wanted, staging, origin)
        progress("writing the report", 0.95)
    whats = {
        wanted.output: _WHATS[wanted.mode][0],
        wanted.save: "Saved fit",
        wanted.report: "Report",
    }
    domain = _domain_file(fitted)
    if domain is not None:
        path = folder / domain
        path.write_text(scenario.domain_text or "", encoding="utf-8")
        whats[str(path)] = "Public values"
    return _files(whats)


def _files(whats: Mapping[str | None, str]) -> list[Values]:
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
