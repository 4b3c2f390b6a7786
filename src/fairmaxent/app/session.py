"""The session: the table that is open, the scenario, its fit, and what was kept for comparison."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from fairmaxent.app.fitted import Fitted, Pins, Readings
from fairmaxent.app.jobs import Jobs, LatestOnly
from fairmaxent.app.labels import as_labelled
from fairmaxent.app.looked import drafted, look_at, plain
from fairmaxent.app.margins import KnownMargins, weigh
from fairmaxent.app.opened_table import READING_NAMES, FileSets, OpenedTable
from fairmaxent.app.page_options import page_controls
from fairmaxent.app.refusals import StaleError, problem_text
from fairmaxent.app.repeat import FileNames, command_text, python_text
from fairmaxent.app.scenario import FILING_NAMES, Scenario
from fairmaxent.app.seen import expected, seen
from fairmaxent.app.taking import JUDGING_NAMES, Judging, judge, take
from fairmaxent.app.upload import cool_down
from fairmaxent.cli.debias import debias_command as debias
from fairmaxent.cli.evaluate import evaluate_command as evaluate
from fairmaxent.cli.rake import rake_command as rake
from fairmaxent.errors import InputError
from fairmaxent.fit.pipeline import fit_rows, with_estimate
from fairmaxent.progress import Progress
from fairmaxent.report.trade_off import trade_off

_WISHES = ("equal_means", "compare_missing", "student", "blind", "base", "detail", "random_state")


@cache
def forms() -> dict[str, list[dict[str, Any]]]:
    """The controls of each part of the page, by the name of the form, drawn from the records of the commands."""
    return {
        "reading": page_controls(debias, READING_NAMES),
        "columns": page_controls(debias, ("max_levels",)),
        "ask": page_controls(debias, _WISHES),
        "privacy": page_controls(debias, ("release", "epsilon", "delta")),
        "take": page_controls(debias, ("weight_name", "evaluate")),
        "report": page_controls(debias, FILING_NAMES),
        "judging": page_controls(evaluate, JUDGING_NAMES),
        "raking": page_controls(rake, ("replicates", "random_state", "weight_name", *FILING_NAMES)),
    }


Values = dict[str, Any]

_OF_A_FIT = ("estimate", "evaluate", "take", "trade-off")  # slow work that is about one fit
_CHANGED = "What you ask for has changed meanwhile, so this was stopped. Start it again."
_NAME_LENGTH = 100  # of a file


class Session:
    """All that the page shows is kept here, so that a reload or a second tab finds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live = LatestOnly("fit")
        self.jobs = Jobs(hide=str(folder))
        self.opened: OpenedTable | None = None
        self._unread: OpenedTable | None = None  # a file that could not be read, and perhaps can be in another way
        self.problem: str | None = None  # why the file that the command named could not be opened
        self._lock = threading.Lock()
        self._look: Values | None = None
        self._options: Values = {}
        self._fitted: Fitted | None = None
        self._answer: Values | None = None
        self._pins = Pins()
        self._readings = Readings()
        self._control: OpenedTable | None = None  # rows of other people, to judge the new ones by
        self._files: list[Values] = []
        self._raked_files: list[Values] = []
        self._sets, self._raked_sets = FileSets(), FileSets()
        self._numbers = 0

    # ------------------------------------------------------------ opening a table

    def open_given(self, path: str) -> None:
        """Open the file that the command named; what is wrong with it is said on the page."""
        try:
            self._show(OpenedTable(self._next(), Path(path), typed=path, title=os.path.basename(path)))
        except Exception as problem:
            self.problem = problem_text(problem, hide=str(self.folder))

    def open_uploaded(self, name: str, uploaded: Path) -> Values:
        """Open a file that the browser sent."""
        target = self._kept(name, uploaded)
        return self._show(OpenedTable(self._next(), target, typed=target.name, title=target.name, is_upload=True))

    def open_demo(self, name: str, title: str) -> Values:
        """Open a table that comes with the package."""
        from fairmaxent import datasets
        from fairmaxent.files.write import write_table

        target = self._new_folder() / f"{name}.csv"
        write_table(datasets.load(name, library="polars").frame, target)  # type: ignore[arg-type]
        return self._show(OpenedTable(self._next(), target, typed=target.name, title=title, can_be_taken=True))

    def read_again(self, number: object, values: Mapping[str, Any]) -> Values:
        """Read the same file in another way, e.g. with another separator."""
        unread = self._unread
        opened = unread if unread is not None and unread.number == number else self._current_table(number)
        return self._show(replace(opened, number=self._next(), asked=dict(values)))

    def set_control(self, name: str, uploaded: Path) -> Values:
        """Take rows of other people, which are read like the table."""
        opened = self.opened
        if opened is None:
            raise InputError("open a table first")
        target = self._kept(name, uploaded)
        control = OpenedTable(0, target, target.name, target.name, asked=opened.asked, is_upload=True)
        shown = _control(control)  # which reads it, and refuses what is no table
        with self._lock:
            self._control = control
        return {"control": shown}

    def _show(self, opened: OpenedTable) -> Values:
        self._unread = opened  # until it is read
        look = look_at(opened, {})
        with self._lock:
            self.jobs.stop_all()
            self._unread = None
            if self.opened is None or self.opened.path != opened.path:  # not if it is read again in another way
                self._sets, self._raked_sets = FileSets(), FileSets()
            self.opened, self._look, self._readings, self._control = opened, look, Readings(), None
            self._fitted, self._answer, self._pins, self._files = None, None, Pins(), []
            self._options = {name: look[name] for name in ("outcome", "protected", "favourable")}
            self._options["outcome"] = look["outcome"] or ""
        return self.state()

    def _next(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def _new_folder(self) -> Path:
        folder = self.folder / str(self._next())
        folder.mkdir(mode=0o700)
        return folder

    def _kept(self, name: str, uploaded: Path) -> Path:
        """Keep a file that the browser sent, under a harmless form of its name."""
        target = self._new_folder() / safe_name(name)
        os.rename(uploaded, target)
        return target

    # ------------------------------------------------------------ looking and fitting

    def state(self) -> Values:
        """Everything that the page shows."""
        opened, unread, control = self.opened, self._unread, self._control
        always = {"unread": None if unread is None else _named(unread), "forms": forms()}
        if opened is None:
            return {"table": None, "problem": self.problem, **always}
        return {
            **always,
            "table": {**_named(opened), "title": opened.title, "offered": opened.can_be_taken},
            "control": None if control is None else _control(control),
            "look": self._look,
            "options": self._options,
            "answer": self._answer,
            "outdated": self._is_outdated(),
            "pins": self._pins.to_json(),
            "files": self._files,
            "jobs": [job.to_dict() for job in self.jobs.running()],
        }

    def look(self, number: object, options: Mapping[str, Any]) -> Values:
        """Inspect the table again with the roles that the page chose."""
        look = look_at(self._current_table(number), options)
        with self._lock:
            self._look, self._options = look, dict(options)
        return {"look": look}

    def draft(self, number: object, options: Mapping[str, Any]) -> Values:
        """Draft a declared domain from the table, to be read and edited."""
        return {"text": drafted(self._current_table(number), options)}

    def fit(self, number: object, options: Mapping[str, Any], progress: Progress, *, spend: bool = False) -> Values:
        """Fit the scenario, and return what See shows; a private one needs leave to spend its budget."""
        began = perf_counter()
        opened = self._current_table(number)
        with self._lock:
            self._options = dict(options)
        if self._is_outdated():
            self.jobs.stop_all(_OF_A_FIT, _CHANGED)
        scenario = Scenario.from_json(options, opened)
        fitted = (None if self._fitted is None else self._fitted.taken_as(scenario)) or self._pins.fitted_as(scenario)
        if fitted is None:
            request = replace(scenario.request(), progress=progress)
            data = self._readings.get(scenario, request, spend=spend)
            fitted = Fitted(scenario, fit_rows(data, request.kept(), progress))
        progress("done", 1.0)
        return self._answered(opened, fitted, perf_counter() - began)

    def _answered(self, opened: OpenedTable, fitted: Fitted, seconds: float) -> Values:
        scenario, names = fitted.scenario, self._names(fitted)
        answer = {
            "scenario": scenario.to_json(),
            "see": seen(fitted.fit),
            "estimated_otherwise": bool(fitted.estimates) and fitted.estimated is None,
            "command": command_text(scenario, names, fitted.estimated),
            "python": python_text(scenario, fitted.fit, names, fitted.estimated),
            "seconds": seconds,
            "spent": self._readings.spent if scenario.asked.private else [],
        }
        with self._lock:
            if self.opened is not opened:
                raise StaleError
            self._fitted, self._answer, self._files = fitted, plain(answer), []
        return {"answer": self._answer}

    def expected(self) -> Values:
        """What rates new rows will have, which takes longer than a slider may."""
        fitted = self._fitted
        if fitted is None or self._is_outdated():  # the page asks again when the newest result is there
            return {"rows": 0, "rates": []}
        wanted = fitted.scenario.wanted
        rates = [] if fitted.scenario.mode != "rows" else expected(fitted.fit, wanted.rows, iid=wanted.iid)
        return {"rows": wanted.rows or fitted.fit.table.size, "rates": rates}

    def _current_table(self, number: object) -> OpenedTable:
        if self.opened is None or number != self.opened.number:
            raise StaleError
        return self.opened

    # ------------------------------------------------------------ slow work

    def estimate(self, progress: Progress) -> Values:
        """Estimate what a model trained on the result will do."""
        opened, fitted = self._current()
        plan = fitted.scenario.asked.trial_of(fitted.output)
        estimated = fitted.with_estimate(with_estimate(fitted.bare, plan, progress=progress))
        self._check_current(fitted)
        result = self._answered(opened, estimated, (self._answer or {}).get("seconds", 0.0))
        with self._lock:
            self._pins.update(estimated, result["answer"])
        return {**result, "pins": self._pins.to_json()}

    def trade_off(self, progress: Progress) -> Values:
        """Fit a few more times with other rates and other shares of the base."""
        _, fitted = self._current()
        curve = trade_off(fitted.fit, progress=progress, spell=as_labelled)
        return {"points": plain([vars(point) for point in curve.points]), "skipped": curve.skipped}

    def evaluate(self, values: Mapping[str, Any], progress: Progress) -> Values:
        """Judge the new rows before they are shared."""
        _, fitted = self._current()
        control = self._control if values.get("control") else None
        judging = Judging.from_json(values.get("options"), fitted.scenario, control)
        result = judge(fitted.scenario, fitted.fit, self._names(fitted), judging, progress)
        self._check_current(fitted)
        return result

    def take(self, progress: Progress) -> Values:
        """Write the files to take."""
        _, fitted = self._current()
        folder, command = self._new_folder(), str((self._answer or {}).get("command"))
        files = take(fitted, self._names(fitted), folder, command, progress)
        self._check_current(fitted)
        with self._lock:
            self._sets.add(made_from := self._made_from(fitted))
            number = self._sets.number(made_from)
            self._files = [{**file, "set": number} for file in files]
        return {"files": self._files}

    def rake(self, values: Mapping[str, Any], progress: Progress) -> Values:
        """Weigh the table so that it has known margins, and write the files."""
        opened = self._current_table(values.get("table"))
        margins, made_from = KnownMargins.from_json(values, opened), json.dumps(values, sort_keys=True)
        result = weigh(opened, margins, self._new_folder(), self._raked_sets.number(made_from), progress)
        with self._lock:
            self._raked_sets.add(made_from)
            self._raked_files = result["files"]
        return result

    def _names(self, fitted: Fitted) -> FileNames:
        """The names of the files to take; those of another result have another number."""
        return FileNames.of(fitted.scenario, self._sets.number(self._made_from(fitted)))

    def _made_from(self, fitted: Fitted) -> str:
        """All that the bytes of the files depend on."""
        scenario = fitted.scenario
        spent = self._readings.spent if scenario.asked.private else []
        return json.dumps([scenario.table.number, scenario.to_json(), fitted.estimated, spent], sort_keys=True)

    def _current(self) -> tuple[OpenedTable, Fitted]:
        if self.opened is None or self._fitted is None:
            raise InputError("there is no result yet; open a table, and choose the outcome and the groups")
        if self._is_outdated():
            raise InputError("there is no result for what you asked for last; change it, and try again")
        return self.opened, self._fitted

    def _is_outdated(self) -> bool:
        """Whether the newest result is not that of the newest wish, because a fit failed or is under way."""
        return self._answer is not None and self._answer["scenario"] != plain(self._options)

    def _check_current(self, fitted: Fitted) -> None:
        if self._fitted is not fitted:
            raise InputError(_CHANGED)

    def file(self, folder: int, name: str) -> Path | None:
        """The path of a file that was made, or of an example table; nothing that is not on the list is ever opened."""
        for file in (*self._files, *self._raked_files):
            if (file["folder"], file["name"]) == (folder, name):
                return self.folder / str(folder) / str(file["name"])
        opened = self.opened
        if opened is not None and opened.can_be_taken and (folder, name) == (0, opened.typed):
            return opened.path
        return None

    # ------------------------------------------------------------ scenarios to compare

    def pin(self) -> Values:
        """Keep the present scenario, to compare others with it, or to put it back."""
        _, fitted = self._current()
        number = self._next()
        with self._lock:
            self._pins.add(number, fitted, self._answer or {})
            return {"pins": self._pins.to_json()}

    def rename(self, number: object, name: object) -> Values:
        """Give a pinned scenario another name."""
        with self._lock:
            self._pins.rename(number, name)
            return {"pins": self._pins.to_json()}

    def unpin(self, number: object) -> Values:
        """Forget a scenario."""
        with self._lock:
            self._pins.remove(number)
            return {"pins": self._pins.to_json()}

    def stop(self) -> None:
        """Stop all work."""
        self.live.stop()
        self.jobs.stop_all()
        cool_down()


def _named(opened: OpenedTable) -> Values:
    return {"number": opened.number, "name": opened.typed, "reading": dict(opened.asked)}


def _control(control: OpenedTable) -> Values:
    return {"name": control.typed, "rows": control.rows}


def safe_name(name: str) -> str:
    """A file name without folders, hidden beginnings, or characters that mean something to a shell or a page.

    >>> safe_name("../../etc/passwd"), safe_name("my survey (1).csv"), safe_name("<b>.csv"), safe_name("..")
    ('passwd', 'my survey (1).csv', '_b_.csv', 'table')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain_letters = re.sub(r"[^\w .()+-]", "_", last).lstrip(".- ").strip()
    stem, dot, suffix = plain_letters.rpartition(".")
    return f"{stem[:_NAME_LENGTH]}{dot}{suffix[:_NAME_LENGTH]}" or "table"
