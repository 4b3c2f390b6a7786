"""The session: the table that is open, the scenario, its fit, and what was pinned."""

import os
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from click import ClickException

from fairmaxent.app.jobs import (
    EXAMPLES,
    Jobs,
    LatestOnly,
    StaleError,
    SupersededError,
    explained,
)
from fairmaxent.app.page_options import forms
from fairmaxent.app.scenario import RATES, Fitted, OpenedTable, Readings, Scenario
from fairmaxent.app.shown import (
    cells_of,
    curve,
    is_quick,
    look_at,
    looked_at,
    quick_fit,
    says_all,
    seen,
)
from fairmaxent.app.taking import command_text, python_text, take
from fairmaxent.app.upload import cool_down, safe_name
from fairmaxent.cli.inspect import domain_draft
from fairmaxent.errors import FairMaxEntError, InputError
from fairmaxent.files.formats import COMPRESSED, FORMATS, READ_SUFFIXES
from fairmaxent.files.write import remove
from fairmaxent.fit.pipeline import fit_read, with_estimate
from fairmaxent.plain_text import Values, plain_json, visible
from fairmaxent.progress import Progress

MOST_PINS = 3
_PIN_LENGTH = 60  # of the name of a pin
# Roles before any is chosen.
_ROLES: Values = {
    "outcome": "",
    "protected": [],
    "favourable": [],
}
_ACCEPTED = ",".join((*READ_SUFFIXES, *COMPRESSED))
_TITLES = list(dict.fromkeys(format.title for format in FORMATS.values()))
_STALE = "Another table was opened, perhaps in another tab. Reload this page."
_CHANGED = (
    "What you ask for has changed meanwhile, so this was stopped. Start it again."
)
_ELSEWHERE = (
    "Something else was asked for since, perhaps in another tab. What you see here is"
    " shown anew; try again."
)


@dataclass(frozen=True, eq=False)
class Pin:
    """A scenario that is kept by name, with its fit, to be put back at once."""

    number: int
    name: str
    fitted: Fitted
    answer: Values  # what See showed


class Session:
    """All that the page shows, so that a reload or a second tab finds it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._live = LatestOnly("fit")
        self._curves = LatestOnly("curve")
        self._drawn: tuple[Values, Future[Values]] = {}, Future()
        self.jobs = Jobs(hide=str(folder))
        self.opened: OpenedTable | None = None
        # a file that could not be read, and perhaps can be in another way
        self._unread: OpenedTable | None = None
        # why the file that the command named could not be opened
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._look: Values | None = None
        self._guessed: list[Values] = []  # roles, before any was chosen
        self._options: Values = {}
        self._looked_for: Values = {}  # the options of the newest look
        self._fitted: Fitted | None = None
        self._answer: Values | None = None
        self._pins: list[Pin] = []
        self._readings = Readings()
        self._files: list[Values] = []
        self._past: set[tuple[int, str]] = set()  # files of earlier scenarios
        self._numbers = 0
        # of tables that were opened: when another one is, they are removed
        self._copies: list[Path] = []

    # ------------------------------------------------------------ opening a table

    def open_given(self, path: str) -> None:
        """Open the file that the command named; the page says what is wrong with it."""
        title = os.path.basename(path)
        opened = OpenedTable(
            self._next(),
            Path(path),
            typed=path,
            title=title,
        )
        try:
            self._show(opened)
        except Exception as problem:
            self.problem = explained(problem, hide=str(self.folder))[0]

    def open_uploaded(self, values: Values) -> Values:
        """Open a file that the browser sent, kept under a harmless form of its name."""
        target = self._new_folder() / safe_name(values["name"])
        os.rename(values["uploaded"], target)
        return self._show(
            OpenedTable(
                self._next(),
                target,
                typed=target.name,
                title=target.name,
                is_upload=True,
            )
        )

    def demo(self, values: Values, *, is_first: bool = False) -> Values:
        """Open a table that comes with the package."""
        from fairmaxent import datasets
        from fairmaxent.files.write import write_table

        name = str(values.get("name"))
        if name not in EXAMPLES:
            raise InputError("there is no such example; reload the page")
        target = self._new_folder() / f"{name}.csv"
        example = datasets.load(name, library="polars")  # type: ignore[arg-type]
        write_table(example.frame, target)
        opened = OpenedTable(
            self._next(),
            target,
            typed=target.name,
            title=EXAMPLES[name],
            can_be_taken=True,
        )
        self._show(replace(opened, is_first=is_first))
        # known ones first
        self._options["protected"].sort(
            key=lambda name: [*example.protected, name].index(name)
        )
        return self.state({})

    def read(self, values: Values) -> Values:
        """Read the same file in another way; the roles that it still has stay."""
        unread = self._unread
        if unread and unread.number == values.get("table"):
            opened = unread
        else:
            opened = self.current_table(values)
        again = replace(opened, number=self._next(), asked=_options(values))
        try:
            roles = None
            if opened is self.opened:
                roles = self._roles_in(again)
            return self._show(again, roles)
        # The table has other columns or levels by now.
        except (ClickException, FairMaxEntError):
            return self._show(again)

    def _show(self, opened: OpenedTable, roles: Values | None = None) -> Values:
        self._unread = opened  # until it is read
        try:
            opened.stamp  # noqa: B018 (what the file is like before it is read)
            look = look_at(opened, roles or {})
        finally:  # one that is being read stays, whatever is opened meanwhile
            self._copies.append(opened.path)
        with self._lock:
            self.jobs.stop_all(why=_CHANGED)
            self._unread = None
            self.opened = opened
            self._look = look
            if roles is None:
                self._guessed = look["reasons"]
            self._past |= _keys(self._files)
            self._fitted = None
            self._answer = None
            self._pins = []
            self._files = []
            self._options = self._looked_for = {
                name: (roles or look)[name] or none for name, none in _ROLES.items()
            }
        for path in [
            path
            for path in self._copies
            if path != opened.path and self.folder in path.parents
        ]:
            self._copies.remove(path)
            remove(path.parent)
        return self.state({})

    def _roles_in(self, again: OpenedTable) -> Values | None:
        """The roles that were chosen, if any, the good outcomes by their new names."""
        roles = {name: self._options.get(name) or none for name, none in _ROLES.items()}
        if not (self.opened and roles["outcome"] and roles["protected"]):
            return None
        old, new = (
            (one.reading().levels or {}).get(str(roles["outcome"]), {})
            for one in (self.opened, again)
        )
        codes = [
            [code for code in old if old[code] == level] or [level]
            for level in roles["favourable"]
        ]
        return {
            **roles,
            "favourable": [
                *dict.fromkeys(new.get(code, code) for each in codes for code in each)
            ],
        }

    def _next(self) -> int:
        with self._lock:
            self._numbers += 1
            return self._numbers

    def _new_folder(self) -> Path:
        folder = self.folder / str(self._next())
        folder.mkdir(mode=0o700)
        return folder

    # ------------------------------------------------------------ looking and fitting

    def state(self, values: Values) -> Values:
        """Everything that the page shows."""
        opened = self.opened
        unread = self._unread
        always = {
            "unread": unread and unread.shown,
            "forms": forms(),
            "suffixes": _ACCEPTED,
            "formats": f"{', '.join(_TITLES[:-1])} or {_TITLES[-1]}",
        }
        if opened is None:
            return {
                "table": None,
                "problem": self.problem,
                **always,
            }
        return {
            **always,
            "table": opened.shown,
            "look": self._look,
            "guessed": self._guessed,
            "options": self._options,
            "answer": self._answer,
            "outdated": self._is_outdated(),
            **self._shown_pins(),
            "files": self._files,
            "jobs": [vars(job) for job in self.jobs.running()],
        }

    def look(self, values: Values) -> Values:
        """Inspect the table again with the roles that the page chose."""
        opened = self.current_table(values)
        options = _options(values)
        # at once: what is asked for meanwhile is newer
        self._options = self._looked_for = options
        look = look_at(opened, options)
        if self._looked_for is options:
            self._look = look
        return {"look": look}

    def draft(self, values: Values) -> Values:
        """Draft a declared domain from the table, to be read and edited."""
        opened = self.current_table(values)
        return {
            "text": domain_draft(
                opened.file().form, *looked_at(opened, _options(values))
            )
        }

    def fit(self, values: Values) -> Future[Values]:
        """Fit the newest wish, in the thread of the live fits: what See shows."""
        return self._live.submit(partial(self._fit, values))

    def _fit(self, values: Values, progress: Progress) -> Values:
        """Fit what the page asks for; a private fit needs leave to spend its budget."""
        opened = self.current_table(values)
        options = _options(values)
        opened.check_unchanged()
        self._options = options
        if self._is_outdated():
            self.jobs.stop_all(why=_CHANGED)
        scenario = Scenario.from_json(options, opened)
        fitted = self._known(scenario)
        if fitted is None:
            spend = values.get("spend") is True
            fitted = self._made(scenario, progress, spend=spend)
        progress("done", 1.0)
        return self._answered(opened, fitted)

    def _known(self, scenario: Scenario) -> Fitted | None:
        """The newest fit, or that of a pin, if it is the same for this scenario."""
        for fitted in (self._fitted, *(pin.fitted for pin in reversed(self._pins))):
            if fitted is not None and fitted.scenario.fits_like(scenario):
                return replace(fitted, scenario=scenario)
        return None

    def _made(
        self,
        scenario: Scenario,
        progress: Progress,
        *,
        spend: bool = False,
        whole: bool = False,
    ) -> Fitted:
        """Fit the cells alone if that says all, unless the whole fit is needed."""
        request = scenario.request()
        data = self._readings.get(
            scenario,
            request,
            spend=spend,
            progress=progress,
        )
        cells = None
        if is_quick(request, data):
            cells = cells_of(data)
        if cells is not None and not whole:
            quick = quick_fit(cells, request.kept(), progress)
            if says_all(quick):
                return Fitted(
                    scenario,
                    quick,
                    cells=cells,
                    is_whole=False,
                )
        fit = fit_read(scenario.file.frame, data, request.kept(), progress)
        return Fitted(scenario, fit, cells=cells)

    def curve(self, values: Values) -> Future[Values]:
        """The trade-off of one rate, in a thread of its own; two tabs share it."""
        known, drawn = self._drawn
        if known != values or (drawn.done() and drawn.exception()):
            drawn = self._curves.submit(partial(self._curve, values))
            self._drawn = values, drawn
        return drawn

    def _curve(self, values: Values, progress: Progress) -> Values:
        """What one rate does over its whole range, from the fair tables alone."""
        fitted = self._spoken_of(values)
        kind = values.get("kind")
        column = values.get("column")
        if kind not in RATES or column not in (None, *fitted.scenario.roles.protected):
            raise InputError("there is no such curve; reload the page")
        if fitted.cells is None:
            return {"skipped": "each point would take a fit of all rows"}
        return {
            "curve": curve(
                fitted.bare,
                fitted.cells,
                kind,
                column,
                progress,
                is_sketch=values.get("sketch") is True,
            )
        }

    def _spoken_of(self, values: Values) -> Fitted:
        """The fit of the present scenario, or of a pin."""
        for pin in self._pins:
            if pin.answer["scenario"] == values.get("scenario"):
                return pin.fitted
        try:
            return self.current(values)[1]
        except InputError as problem:
            raise SupersededError from problem

    def _answered(self, opened: OpenedTable, fitted: Fitted) -> Values:
        scenario = fitted.scenario
        privacy = fitted.bare.request.privacy
        answer = plain_json(
            {
                "scenario": scenario.given,
                "wishes": scenario.options.wishes,
                "see": seen(fitted.fit, is_whole=fitted.is_whole),
                "command": command_text(fitted),
                "python": python_text(fitted),
                "spent": opened.spent(getattr(privacy, "delta", None)),
            }
        )
        with self._lock:
            if self.opened is not opened:
                raise StaleError(_STALE)
            self._past |= _keys(self._files)
            self._fitted = fitted
            self._answer = answer
            self._files = []
        return {"answer": answer}

    def current_table(self, values: Values) -> OpenedTable:
        """The table that a page speaks of, if it is that of the session."""
        if self.opened is None or values.get("table") != self.opened.number:
            raise StaleError(_STALE)
        return self.opened

    # ------------------------------------------------------------ slow work

    def start(self, values: Values) -> Values:
        """Begin slow work on what the page speaks of."""
        kind = str(values.get("kind"))
        if kind not in ("estimate", "take"):
            raise InputError("there is no such work; reload the page")
        self.current(values)
        return vars(self.jobs.start(kind, partial(getattr(self, f"_{kind}"), values)))

    def job(self, values: Values) -> Values:
        """How far it is."""
        return vars(self.jobs.get(values.get("number")))

    def stop(self, values: Values) -> Values:
        """Stop it."""
        return vars(self.jobs.get(values.get("number")).stop())

    def _estimate(self, values: Values, progress: Progress) -> Values:
        """Estimate what a model trained on the result will do, also for its pins."""
        opened, fitted = self._whole(values, progress)
        fit = with_estimate(fitted.bare, fitted.output, progress=progress)
        estimated = replace(fitted, estimates={**fitted.estimates, fitted.output: fit})
        self._check_current(fitted)
        answer = self._answered(opened, estimated)["answer"]
        with self._lock:
            for at, pin in enumerate(self._pins):
                if pin.answer["scenario"] == answer["scenario"]:
                    self._pins[at] = replace(pin, fitted=estimated, answer=answer)
        return {"answer": answer, **self._shown_pins()}

    def _take(self, values: Values, progress: Progress) -> Values:
        """Write the files to take."""
        opened, fitted = self._whole(values, progress)
        files = take(fitted, self._new_folder(), progress)
        opened.check_unchanged()
        self._check_current(fitted)
        self._files = files
        return {"files": files, "answer": self._answer}

    def current(self, values: Values) -> tuple[OpenedTable, Fitted]:
        """The table and the fit that a page speaks of, if they are the session's."""
        opened = self.current_table(values)
        fitted = self._fitted
        answer = self._answer
        if fitted is None or answer is None:
            raise InputError(
                "there is no result yet; open a table, and choose the outcome and the"
                " groups"
            )
        if self._is_outdated():
            raise InputError(
                "there is no result for what you asked for last; change it, and try"
                " again"
            )
        if values.get("scenario") != answer["scenario"]:
            raise StaleError(_ELSEWHERE)
        return opened, fitted

    def _whole(self, values: Values, progress: Progress) -> tuple[OpenedTable, Fitted]:
        """The same with all rows fitted, as files, models and estimates need."""
        opened, fitted = self.current(values)
        opened.check_unchanged()
        if not fitted.is_whole:
            scenario = Scenario.from_json(fitted.scenario.given, opened)
            whole = self._made(scenario, progress, whole=True)
            self._check_current(fitted)
            self._answered(opened, whole)
            fitted = whole
        return opened, fitted

    def _is_outdated(self) -> bool:
        """Whether a fit of the newest wish failed, or is under way."""
        return self._answer is not None and self._answer["scenario"] != self._options

    def _check_current(self, fitted: Fitted) -> None:
        if self._fitted is not fitted:
            raise InputError(_CHANGED)

    def file(self, folder: int, name: str) -> Path | None:
        """The path of a file that was made, or of an example table.

        Nothing that is not on the list is ever opened.
        """
        opened = self.opened
        key = (folder, name)
        if opened is not None and opened.can_be_taken and key == (0, opened.typed):
            return opened.path
        if key in _keys(self._files):
            return self.folder / str(folder) / name
        if key in self._past:
            raise StaleError("That file is of an earlier scenario; make it again.")
        return None

    # ------------------------------------------------------------ scenarios to compare

    def pin(self, values: Values) -> Values:
        """Keep the present scenario; no other goes for it, as people may name them."""
        _, fitted = self.current(values)
        with self._lock:
            if len(self._pins) >= MOST_PINS:
                raise InputError(
                    f"{MOST_PINS} scenarios are pinned already; remove one of them"
                    " first"
                )
            number = 1 + max((pin.number for pin in self._pins), default=0)
            self._pins.append(Pin(number, f"Pin {number}", fitted, self._answer or {}))
        return self.rename({**values, "number": number})

    def rename(self, values: Values) -> Values:
        """Give a pinned scenario another name; an empty one changes nothing."""
        name = values.get("name")
        if isinstance(name, str):
            name = visible(name).strip()[:_PIN_LENGTH]
        else:
            name = ""
        with self._lock:
            for at, pin in enumerate(self._pins):
                if pin.number == values.get("number"):
                    self._pins[at] = replace(pin, name=name or pin.name)
        return self._shown_pins()

    def unpin(self, values: Values) -> Values:
        """Forget a scenario."""
        with self._lock:
            self._pins = [
                pin for pin in self._pins if pin.number != values.get("number")
            ]
        return self._shown_pins()

    def _shown_pins(self) -> Values:
        return {
            "pins": [
                {
                    "number": pin.number,
                    "name": pin.name,
                    "answer": pin.answer,
                }
                for pin in self._pins
            ]
        }

    def end(self) -> None:
        """Stop all work."""
        self._live.stop()
        self._curves.stop()
        self.jobs.stop_all()
        cool_down()


def _keys(files: Iterable[Values]) -> set[tuple[int, str]]:
    return {(file["folder"], file["name"]) for file in files}


def _options(values: Values) -> Values:
    options = values.get("options")
    if not isinstance(options, dict) or not isinstance(
        options.get("favourable", []), list
    ):
        raise InputError("the page sent no options; reload it")
    return options
