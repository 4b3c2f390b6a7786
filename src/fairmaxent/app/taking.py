"""What Take makes, by the same functions as the command line: the files, and a judgement of new rows before that."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairmaxent.app.fitted import Fitted
from fairmaxent.app.labels import IN_APP
from fairmaxent.app.looked import plain
from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.page_options import page_options
from fairmaxent.app.repeat import FileNames, evaluation_command
from fairmaxent.app.scenario import Scenario
from fairmaxent.cli.debias import make_report, make_result
from fairmaxent.cli.evaluate import EvaluateOptions, evaluate_command
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.reading import DomainOptions, source_of
from fairmaxent.errors import InputError
from fairmaxent.evaluation.evaluation import evaluate
from fairmaxent.files.formats import as_polars
from fairmaxent.files.write import Staging
from fairmaxent.fit.fit import Fit
from fairmaxent.plain_text import visible
from fairmaxent.progress import Progress
from fairmaxent.report.browser import find_browser
from fairmaxent.report.source import Source

JUDGING_NAMES = ("secrets", "attacks", "random_state")
_WHATS = {"rows": "New rows, to train on", "weights": "Your rows with weights", "top-up": "Rows to add to yours"}


def take(fitted: Fitted, names: FileNames, folder: Path, command: str, progress: Progress) -> list[dict[str, Any]]:
    """Write the fair table, the model and the report into the folder; return what the page says about them."""
    scenario = fitted.scenario
    if scenario.pdf:
        find_browser()  # refuses, before any work, if there is none
    source = scenario.file
    wanted = _wanted(folder, scenario, names, fitted.estimated).in_form(source)
    progress("drawing" if scenario.mode != "weights" else "weighing", 0.1)
    with Staging(wanted.targets, force=True) as staging:
        result = make_result(
            fitted.fit, source, wanted, staging, lambda stage, share: progress(stage, 0.1 + 0.5 * share)
        )
        progress("writing the report", 0.6)
        make_report(result, wanted, scenario.filing, staging, origin_of(scenario.table, scenario.columns_as, command))
        progress("writing the report", 0.95)
    whats = {wanted.output: _WHATS[scenario.mode], wanted.model: "Model", wanted.report: "Report"}
    whats |= {wanted.pdf: "Report as PDF"}
    if names.domain is not None and scenario.domain_text is not None:
        domain = folder / os.path.basename(names.domain)
        domain.write_text(scenario.domain_text, encoding="utf-8")
        whats |= {str(domain): "Public values"}
    return files_in(folder, {os.path.basename(path): what for path, what in whats.items() if path is not None})


def origin_of(table: OpenedTable, columns_as: DomainOptions, command: str) -> Source:
    """Where a table came from, as a report says it: the file as the user knows it, and options as on the page."""
    origin = source_of(str(table.path), columns_as, command)
    return replace(origin, file=os.path.basename(table.typed), front_door=IN_APP)


def files_in(folder: Path, whats: Mapping[str, str]) -> list[dict[str, Any]]:
    """Files by name, with what they are, as the page lists them."""
    return [
        {"name": name, "what": what, "bytes": os.path.getsize(folder / name), "folder": int(folder.name)}
        for name, what in whats.items()
    ]


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


# ---------------------------------------------------------------- judging new rows


@dataclass(frozen=True, eq=False)
class Judging:
    """What the new rows are judged by."""

    options: EvaluateOptions
    typed: tuple[str | None, ...]
    control: OpenedTable | None  # rows of other people

    @classmethod
    def from_json(cls, values: object, scenario: Scenario, control: OpenedTable | None) -> Judging:
        """Read what the page sent; the roles are those of the scenario."""
        roles = {name: scenario.given.get(name) for name in ("outcome", "protected", "favourable")}
        given = {**(values if isinstance(values, dict) else {}), **roles}
        options = page_options(evaluate_command, ["-", "-"], given, names=(*roles, *JUDGING_NAMES))
        typed = options.typed if control is None else (*options.typed, "--control", control.typed)
        return cls(options.record(EvaluateOptions), typed, control)


def judge(scenario: Scenario, fit: Fit, names: FileNames, judging: Judging, progress: Progress) -> dict[str, Any]:
    """Draw the rows, and judge them; ``names`` are those of the files that they will be in."""
    if scenario.mode != "rows":
        raise InputError("Only new rows can be judged; choose “New rows” under Take.")
    rows, wanted, control = scenario.wanted.rows, judging.options, judging.control
    judged = evaluate(
        scenario.table.file(scenario.drop, in_memory=True).frame,
        as_polars(fit.sample(fit.table.size if rows is None else rows, iid=scenario.wanted.iid)),
        control=None if control is None else _without(control, scenario.drop),
        outcome=scenario.roles.outcome,
        protected=list(scenario.roles.protected),
        favourable=scenario.roles.favoured,
        secrets=wanted.secrets,
        attacks=wanted.attacks,
        random_state=wanted.random_state,
        progress=progress,
    )
    return {
        "verdict": visible(judged.verdict),
        "measures": plain(list(judged.to_frame().iter_rows(named=True))),
        "command": evaluation_command(scenario, names, judging.typed),
    }


def _without(control: OpenedTable, drop: tuple[str, ...]) -> Any:
    """Rows of other people, without the columns to drop that they have."""
    return control.file([name for name in drop if name in control.schema], in_memory=True).frame
