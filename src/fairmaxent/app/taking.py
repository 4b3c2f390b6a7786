"""What Take makes: the fair table, the model and the report, by the same functions as the command line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairmaxent.app.labels import IN_APP
from fairmaxent.app.repeat import FileNames
from fairmaxent.app.scenario import Scenario
from fairmaxent.cli.before_after import measure, measure_data
from fairmaxent.cli.commands.debias import make_report, make_result, stream_table, write_files
from fairmaxent.cli.debias_result import Result
from fairmaxent.cli.options import source_of
from fairmaxent.cli.output_options import OutputOptions
from fairmaxent.files.write import Staging
from fairmaxent.fit.fit import Fit
from fairmaxent.progress import Progress
from fairmaxent.report.browser import find_browser


def take(
    scenario: Scenario,
    fit: Fit,
    *,
    folder: Path,
    names: FileNames,
    command: str,
    estimated: str | None,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Write the files into the folder; return their names, sizes, and what they are."""
    if scenario.pdf:
        find_browser()  # refuses, before any work, if there is none
    wanted = _wanted(folder, scenario, names, estimated)
    table = scenario.table
    source = scenario.file
    wanted = wanted.in_form(source)
    progress("drawing" if scenario.mode != "weights" else "weighing", 0.1)
    with Staging(wanted.targets, force=True) as staging:
        result = _result(fit, source, wanted, staging, progress)
        progress("writing the report", 0.6)
        origin = source_of(str(table.path), scenario.columns_as, command)
        origin = replace(origin, file=os.path.basename(table.typed), front_door=IN_APP)
        make_report(result, wanted, scenario.filing, staging, origin)
        progress("writing the report", 0.95)
    whats = {wanted.output: _WHATS[scenario.mode], wanted.model: "Model", wanted.report: "Report"}
    whats |= {wanted.pdf: "Report as PDF"}
    if names.domain is not None and scenario.domain_text is not None:
        domain = folder / os.path.basename(names.domain)
        domain.write_text(scenario.domain_text, encoding="utf-8")
        whats |= {str(domain): "Public values"}
    return [
        {"name": os.path.basename(path), "what": what, "bytes": os.path.getsize(path)}
        for path, what in whats.items()
        if path is not None
    ]


_WHATS = {"rows": "New rows, to train on", "weights": "Your rows with weights", "top-up": "Rows to add to yours"}


def _wanted(folder: Path, scenario: Scenario, names: FileNames, estimated: str | None) -> OutputOptions:
    """What is written, in the folder instead of beside the data."""

    def here(name: str | None) -> str | None:
        return None if name is None else str(folder / os.path.basename(name))

    return replace(
        scenario.wanted,
        output=here(names.table),
        like_input=names.like_input,
        estimate=estimated or "none",  # type: ignore[arg-type]
        model=here(names.model),
        report=here(names.report),
        pdf=here(names.pdf),
        force=True,
    )


def _result(fit: Fit, source: Any, wanted: OutputOptions, staging: Staging, progress: Progress) -> Result:
    """Write table and model; a table that stays on disk is written in pieces."""
    if source.frame.__class__.__name__ != "LazyFrame":
        result = make_result(fit, source, wanted)
        progress("writing the table", 0.4)
        return replace(result, written_notes=write_files(result, wanted, staging))
    fit.save(staging.path_for(wanted.model or ""))

    def part(stage: str, share: float) -> None:
        progress(stage, 0.1 + 0.5 * share)

    made = stream_table(fit, source, wanted, staging, part)
    rows = fit.table.size if wanted.mode == "weights" else made.rows
    return Result(fit, source, rows, None, measure_data(fit), measure(fit, made.table), made)
