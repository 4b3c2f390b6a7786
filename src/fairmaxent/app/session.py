"""The session: the table that is open, the scenario, its fit, and what was kept for comparison."""

import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from fairmaxent.app.jobs import Jobs, LatestOnly, explained
from fairmaxent.app.page_options import as_labelled, forms
from fairmaxent.app.scenario import Fitted, OpenedTable, Readings, Scenario
from fairmaxent.app.shown import drawn_blocks, look_at, looked_at, seen
from fairmaxent.app.taking import command_text, python_text, take, weigh
from fairmaxent.app.upload import cool_down
from fairmaxent.cli.inspect import domain_draft
from fairmaxent.errors import InputError, Option
from fairmaxent.files.formats import COMPRESSED, SUFFIXES
from fairmaxent.files.write import remove
from fairmaxent.fit.pipeline import fit_read, with_estimate
from fairmaxent.plain_text import plain_json, visible
from fairmaxent.progress import Progress
from fairmaxent.report.refits import evaluated, evaluation_blocks, trade_off

Values = dict[str, Any]

MOST_PINS = 3
_PIN_LENGTH = 40  # of the name of a pin
_NAME_LENGTH = 100  # of a file
_OF_A_FIT = ("estimate", "evaluate", "take", "trade-off")  # slow work that is about one fit
_ACCEPTED = ",".join((*SUFFIXES, *COMPRESSED))
_STALE = "Another table was opened, perhaps in another tab. Reload this page."
_CHANGED = "What you ask for has changed meanwhile, so this was stopped. Start it again."


@dataclass(frozen=True, eq=False)
class Pin:
    """A scenario that is kept by name, with its fit, which need not be made again when the scenario is put back."""

    number: int
    name: str
    fitted: Fitted
    answer: Values  # what See showed


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
        self._pins: list[Pin] = []
        self._readings = Readings()
        self._files: list[Values] = []
        self._raked_files: list[Values] = []
        self._numbers = 0
        self._copies: list[Path] = []  # of tables that were opened: when another one is, they are removed

    # ------------------------------------------------------------ opening a table

    def open_given(self, path: str) -> None:
        """Open the file that the command named; what is wrong with it is said on the page."""
        try:
            self._show(OpenedTable(self._next(), Path(path), typed=path, title=os.path.basename(path)))
        except Exception as problem:
            self.problem = explained(problem, hide=str(self.folder))[0]

    def open_uploaded(self, name: str, uploaded: Path) -> Values:
        """Open a file that the browser sent, and keep it under a harmless form of its name."""
        target = self._new_folder() / safe_name(name)
        os.rename(uploaded, target)
        return self._show(OpenedTable(self._next(), target, typed=target.name, title=target.name, is_upload=True))

    def open_demo(self, name: str, titles: Mapping[str, str]) -> Values:
        """Open a table that comes with the package."""
        from fairmaxent import datasets
        from fairmaxent.files.write import write_table

        if name not in titles:
            raise InputError("there is no such example; reload the page")
        target = self._new_folder() / f"{name}.csv"
        write_table(datasets.load(name, library="polars").frame, target)  # type: ignore[arg-type]
        return self._show(OpenedTable(self._next(), target, typed=target.name, title=titles[name], can_be_taken=True))

    def read_again(self, number: object, values: Mapping[str, Any]) -> Values:
        """Read the same file in another way, e.g. with another separator."""
        unread = self._unread
        opened = unread if unread is not None and unread.number == number else self._current_table(number)
        return self._show(replace(opened, number=self._next(), asked=dict(values)))

    def _show(self, opened: OpenedTable) -> Values:
        self._unread = opened  # until it is read
        try:
            look = look_at(opened, {})
        finally:  # one that is being read stays, whatever is opened meanwhile
            self._copies.append(opened.path)
        with self._lock:
            self.jobs.stop_all()
            self._unread = None
            self.opened, self._look = opened, look
            self._fitted, self._answer, self._pins, self._files = None, None, [], []
            self._options = {name: look[name] for name in ("outcome", "protected", "favourable")}
            self._options["outcome"] = look["outcome"] or ""
        for path in [path for path in self._copies if path != opened.path and self.folder in path.parents]:
            self._copies.remove(path)
            remove(path.parent)
        return self.state()

    def _next(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def _new_folder(self) -> Path:
        folder = self.folder / str(self._next())
        folder.mkdir(mode=0o700)
        return folder

    # ------------------------------------------------------------ looking and fitting

    def state(self) -> Values:
        """Everything that the page shows."""
        opened, unread = self.opened, self._unread
        always = {"unread": None if unread is None else _named(unread), "forms": forms(), "suffixes": _ACCEPTED}
        if opened is None:
            return {"table": None, "problem": self.problem, **always}
        return {
            **always,
            "table": {**_named(opened), "title": opened.title, "offered": opened.can_be_taken},
            "look": self._look,
            "options": self._options,
            "answer": self._answer,
            "outdated": self._is_outdated(),
            **self._shown_pins(),
            "files": self._files,
            "jobs": [vars(job) for job in self.jobs.running()],
        }

    def look(self, number: object, options: Mapping[str, Any]) -> Values:
        """Inspect the table again with the roles that the page chose."""
        look = look_at(self._current_table(number), options)
        with self._lock:
            self._look, self._options = look, dict(options)
        return {"look": look}

    def draft(self, number: object, options: Mapping[str, Any]) -> Values:
        """Draft a declared domain from the table, to be read and edited."""
        opened = self._current_table(number)
        return {"text": domain_draft(opened.file().form, *looked_at(opened, options))}

    def fit(self, number: object, options: Mapping[str, Any], progress: Progress, *, spend: bool = False) -> Values:
        """Fit the scenario, and return what See shows; a private one needs leave to spend its budget."""
        began = perf_counter()
        opened = self._current_table(number)
        with self._lock:
            self._options = dict(options)
        if self._is_outdated():
            self.jobs.stop_all(_OF_A_FIT, _CHANGED)
        scenario = Scenario.from_json(options, opened)
        fits = [self._fitted, *(pin.fitted for pin in reversed(self._pins))]
        alike = next((fit for fit in fits if fit is not None and fit.scenario.fits_like(scenario)), None)
        if alike is not None:
            fitted = replace(alike, scenario=scenario)
        else:
            request = replace(scenario.request(), progress=progress)
            data = self._readings.get(scenario, request, spend=spend)
            fitted = Fitted(scenario, fit_read(scenario.file.frame, data, request.kept(), progress))
        progress("done", 1.0)
        return self._answered(opened, fitted, perf_counter() - began)

    def _answered(self, opened: OpenedTable, fitted: Fitted, seconds: float) -> Values:
        scenario = fitted.scenario
        answer = plain_json(
            {
                "scenario": scenario.given,
                "wishes": scenario.options.wishes,
                "see": seen(fitted.fit),
                "command": command_text(fitted),
                "python": python_text(fitted),
                "seconds": seconds,
                "spent": opened.spent(getattr(fitted.bare.request.privacy, "delta", None)),
            }
        )
        with self._lock:
            if self.opened is not opened:
                raise InputError(_STALE)
            self._fitted, self._answer, self._files = fitted, answer, []
        return {"answer": answer}

    def _current_table(self, number: object) -> OpenedTable:
        if self.opened is None or number != self.opened.number:
            raise InputError(_STALE)
        return self.opened

    # ------------------------------------------------------------ slow work

    def estimate(self, progress: Progress) -> Values:
        """Estimate what a model trained on the result will do; pins of the same scenario have it, too."""
        opened, fitted = self._current()
        fit = with_estimate(fitted.bare, fitted.output, progress=progress)
        estimated = replace(fitted, estimates={**fitted.estimates, fitted.output: fit})
        self._check_current(fitted)
        answer = self._answered(opened, estimated, (self._answer or {}).get("seconds", 0.0))["answer"]
        with self._lock:
            self._pins = [
                replace(pin, fitted=estimated, answer=answer) if pin.answer["scenario"] == answer["scenario"] else pin
                for pin in self._pins
            ]
        return {"answer": answer, **self._shown_pins()}

    def trade_off(self, progress: Progress) -> Values:
        """Fit a few more times with other rates and other shares of the base."""
        _, fitted = self._current()
        curve = trade_off(fitted.fit, progress=progress, spell=as_labelled)
        kinds = {point.varied for point in curve.points}
        names = {kind: "the rate asked for" if kind == "rates" else as_labelled(Option(kind)) for kind in sorted(kinds)}
        return {"points": plain_json(curve.points), "names": names, "skipped": curve.skipped}

    def evaluate(self, progress: Progress) -> Values:
        """Judge the new rows before they are shared, as the report does if asked."""
        _, fitted = self._current()
        scenario = fitted.scenario
        frame = scenario.table.file(scenario.options.drop, in_memory=True).frame
        progress("judging the rows", 0.1)
        judged = evaluated(fitted.fit, frame, mode=scenario.wanted.mode, iid=scenario.wanted.iid, spell=as_labelled)
        self._check_current(fitted)
        return {"blocks": drawn_blocks(evaluation_blocks(judged))}

    def take(self, progress: Progress) -> Values:
        """Write the files to take."""
        _, fitted = self._current()
        files = take(fitted, self._new_folder(), progress)
        self._check_current(fitted)
        with self._lock:
            self._files = files
        return {"files": files}

    def rake(self, values: Mapping[str, Any], progress: Progress) -> Values:
        """Weigh the table so that it has known margins, and write the files."""
        result = weigh(self._current_table(values.get("table")), values, self._new_folder(), progress)
        with self._lock:
            self._raked_files = result["files"]
        return result

    def _current(self) -> tuple[OpenedTable, Fitted]:
        if self.opened is None or self._fitted is None:
            raise InputError("there is no result yet; open a table, and choose the outcome and the groups")
        if self._is_outdated():
            raise InputError("there is no result for what you asked for last; change it, and try again")
        return self.opened, self._fitted

    def _is_outdated(self) -> bool:
        """Whether the newest result is not that of the newest wish, because a fit failed or is under way."""
        return self._answer is not None and self._answer["scenario"] != plain_json(self._options)

    def _check_current(self, fitted: Fitted) -> None:
        if self._fitted is not fitted:
            raise InputError(_CHANGED)

    def file(self, folder: int, name: str) -> Path | None:
        """The path of a file that was made, or of an example table; nothing that is not on the list is ever opened."""
        opened, made = self.opened, [(file["folder"], file["name"]) for file in (*self._files, *self._raked_files)]
        if opened is not None and opened.can_be_taken and (folder, name) == (0, opened.typed):
            return opened.path
        return self.folder / str(folder) / name if (folder, name) in made else None

    # ------------------------------------------------------------ scenarios to compare

    def pin(self) -> Values:
        """Keep the present scenario; none of the others goes for it, as people may have named them."""
        _, fitted = self._current()
        with self._lock:
            if len(self._pins) >= MOST_PINS:
                raise InputError(f"{MOST_PINS} scenarios are pinned already; remove one of them first")
            number = 1 + max((pin.number for pin in self._pins), default=0)
            self._pins.append(Pin(number, f"Pin {number}", fitted, self._answer or {}))
        return self._shown_pins()

    def rename(self, number: object, name: object) -> Values:
        """Give a pinned scenario another name; an empty one changes nothing."""
        given = visible(name).strip()[:_PIN_LENGTH] if isinstance(name, str) else ""
        with self._lock:
            self._pins = [replace(pin, name=given or pin.name) if pin.number == number else pin for pin in self._pins]
        return self._shown_pins()

    def unpin(self, number: object) -> Values:
        """Forget a scenario."""
        with self._lock:
            self._pins = [pin for pin in self._pins if pin.number != number]
        return self._shown_pins()

    def _shown_pins(self) -> Values:
        return {"pins": [{"number": pin.number, "name": pin.name, "answer": pin.answer} for pin in self._pins]}

    def stop(self) -> None:
        """Stop all work."""
        self.live.stop()
        self.jobs.stop_all()
        cool_down()


def _named(opened: OpenedTable) -> Values:
    return {"number": opened.number, "name": opened.typed, "reading": dict(opened.asked)}


def safe_name(name: str) -> str:
    """A file name without folders, hidden beginnings, or characters that mean something to a shell or a page.

    >>> safe_name("../../etc/passwd"), safe_name("my survey (1).csv"), safe_name("<b>.csv"), safe_name("..")
    ('passwd', 'my survey (1).csv', '_b_.csv', 'table')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain_letters = re.sub(r"[^\w .()+-]", "_", last).lstrip(".- ").strip()
    stem, dot, suffix = plain_letters.rpartition(".")
    return f"{stem[:_NAME_LENGTH]}{dot}{suffix[:_NAME_LENGTH]}" or "table"
