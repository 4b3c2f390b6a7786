"""What each door shows of a fit, as text, and which case it tells."""

import html
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import get_args

import fits
import pytest

from fairmaxent.app.page_options import as_labelled
from fairmaxent.app.shown import seen
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.result import TOLD, Result, make_result, result_record, result_text
from fairmaxent.cli.terminal import json_record
from fairmaxent.document.html import to_page
from fairmaxent.document.text import to_markdown
from fairmaxent.files.reading import TableFile
from fairmaxent.fit import pipeline
from fairmaxent.fit.verification import Verification, verify
from fairmaxent.plain_text import plain_json
from fairmaxent.report import build_report
from fairmaxent.report.sections import report_document
from fairmaxent.telling.case import Case, Topic, Weight
from quiet import Seeded
from reportforms import json_report

# where a line ends in HTML
_ENDS = re.compile(r"</(?:p|li|tr|h\d|div|summary|caption|dd|title)>|<br>")
_TAGS = re.compile(r"<style.*?</style>|<[^>]*>", re.DOTALL)


@contextmanager
def with_seeds() -> Iterator[None]:
    """Noise that is the same each time, and needs no OpenDP."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "OpenDP", lambda: Seeded(0))
        yield


class Made:
    """A fit, with what each door makes of it; each is made once."""

    def __init__(self, name: str, asked: "fits.Asked | None" = None) -> None:
        self.name = name
        self.asked = asked or fits.FITS[name]

    @cached_property
    def fit(self):
        with with_seeds():
            return self.asked.fit()

    @cached_property
    def wanted(self) -> OutputOptions:
        return OutputOptions(
            mode=self.asked.mode, rows=self.asked.rows, output="out.csv"
        )

    @cached_property
    def result(self) -> Result:
        """What `fairmaxent debias` writes."""
        source = TableFile(self.asked.table, ())
        with tempfile.TemporaryDirectory() as folder:
            wanted = replace(self.wanted, output=str(Path(folder, "out.csv")))
            with wanted.staging() as staging:
                return make_result(self.fit, source, wanted, staging)

    @cached_property
    def report(self):
        """The report on the same rows, weights or rows to add."""
        return build_report(
            self.fit,
            data=None if self.is_private else self.asked.table,
            result=self.result.delivered,
            mode=self.asked.mode,
            trade_off=False,
        )

    @property
    def closed(self) -> set[str]:
        """Doors that this fit does not go through."""
        return {"verify"} if self.asked.how == "paper" else set()

    @property
    def is_private(self) -> bool:
        return self.fit.certificate.privacy is not None

    @cached_property
    def document(self):
        return report_document(self.report)

    @cached_property
    def verified(self) -> Verification:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "fit.fme")
            self.fit.save(path)
            return verify(path)


def of_html(text: str) -> str:
    """The lines of a page, without its marks."""
    return html.unescape(_TAGS.sub(" ", _ENDS.sub("\n", text)))


def of_markdown(text: str) -> str:
    return html.unescape(text.replace("\\", ""))


def strings(values: object) -> Iterator[str]:
    """All texts and numbers of JSON, each on a line; a row of a table on one."""
    match values:
        case dict():
            yield " ".join(str(value) for value in values.values() if is_one(value))
            for value in values.values():
                yield from strings(value)
        case list() if all(isinstance(value, str) for value in values):
            yield " ".join(values)
            yield from values
        case list():
            for value in values:
                yield from strings(value)
        case _:
            yield str(values)


def is_one(value: object) -> bool:
    return not isinstance(value, dict | list)


def of_json(text: str) -> str:
    return "\n".join(strings(json.loads(text)))


@dataclass(frozen=True)
class Door:
    """Where users read of a fit."""

    name: str
    least: Weight  # what it has room for
    case: Callable[[Made], Case]
    read: Callable[[Made], str]
    rest: str = ""  # how it says where the rest is; none: it has no sentence of its own
    topics: tuple[str, ...] = get_args(Topic)  # about which it speaks itself


def _command_case(made: Made) -> Case:
    return made.result.case(made.wanted)


def _report_case(made: Made) -> Case:
    return made.report.case


def _glance_case(made: Made) -> Case:
    return made.fit.case()


def _certificate_case(made: Made) -> Case:
    return Case(facts=made.fit.certificate)


def _first_page(made: Made) -> str:
    return to_markdown(replace(made.document, appendix=()))


def _paper(kind: str) -> Callable[[Made], str]:
    return lambda made: of_markdown(made.fit.document(kind))


def _croissant(made: Made) -> str:
    return of_json(made.fit.document("croissant"))


METHOD = Weight.METHOD
WARNING = Weight.WARNING
DOORS = {
    door.name: door
    for door in (
        Door("glance", WARNING, _glance_case, lambda m: repr(m.fit), "everything"),
        Door(
            "notebook",
            WARNING,
            _glance_case,
            lambda made: of_html(made.fit._repr_html_()),
            "everything",
        ),
        Door(
            "certificate",
            METHOD,
            _certificate_case,
            lambda made: str(made.fit.certificate),
        ),
        Door(
            "command",
            Weight.FACT,
            _command_case,
            lambda made: result_text(made.result, made.wanted, ""),
            "--report",
            TOLD,
        ),
        Door(
            "command --json",
            METHOD,
            _command_case,
            lambda made: of_json(json_record(result_record(made.result, made.wanted))),
        ),
        Door(
            "first page",
            Weight.COST,
            _report_case,
            lambda made: of_markdown(_first_page(made)),
            "appendix",
        ),
        Door(
            "report.md",
            METHOD,
            _report_case,
            lambda made: of_markdown(to_markdown(made.document)),
        ),
        Door(
            "report.html",
            METHOD,
            _report_case,
            lambda made: of_html(to_page(made.document)),
        ),
        Door(
            "report.json",
            METHOD,
            _report_case,
            lambda made: of_json(json_report(made.report)),
        ),
        Door("article 10", WARNING, _glance_case, _paper("article-10"), "verify"),
        Door("card", WARNING, _glance_case, _paper("card"), "verify"),
        Door("croissant", WARNING, _glance_case, _croissant, "verify"),
        Door(
            "page",
            Weight.FACT,
            lambda made: made.fit.case(spell=as_labelled),
            lambda made: of_json(json.dumps(plain_json(seen(made.fit)))),
        ),
        Door(
            "verify",
            WARNING,
            lambda made: made.verified.case,
            lambda made: str(made.verified),
        ),
    )
}
