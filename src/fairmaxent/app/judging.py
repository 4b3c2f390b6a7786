"""Judging the new rows before they are shared, as `fairmaxent evaluate` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairmaxent.app.looked import plain
from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.page_options import page_options
from fairmaxent.app.repeat import FileNames, evaluation_command
from fairmaxent.app.scenario import Scenario
from fairmaxent.cli.commands.evaluate import EvaluateOptions
from fairmaxent.cli.commands.evaluate import command as evaluate_command
from fairmaxent.errors import InputError
from fairmaxent.evaluation.pipeline import evaluate
from fairmaxent.files.formats import as_polars
from fairmaxent.fit.fit import Fit
from fairmaxent.plain_text import visible
from fairmaxent.progress import Progress

JUDGING_NAMES = ("secrets", "attacks", "random_state")


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
    real = scenario.table.file(scenario.drop, in_memory=True).frame
    rows, wanted = scenario.wanted.rows, judging.options
    new = as_polars(fit.sample(fit.table.size if rows is None else rows, iid=scenario.wanted.iid))
    control = None if judging.control is None else _without(judging.control, scenario.drop)
    judged = evaluate(
        real,
        new,
        control=control,
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
