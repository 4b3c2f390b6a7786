"""A scenario: what the page asks for, as the records that the command line makes of the same options, and its fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.page_options import FILING_NAMES, PageOptions, meaningful, page_options
from fairmaxent.cli.config import declared
from fairmaxent.cli.debias import debias_command as debias
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.request import REQUEST_NAMES, AskedOptions, RoleOptions
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.roles import Reading
from fairmaxent.errors import InputError
from fairmaxent.files.reading import TableFile
from fairmaxent.fit.fit import Fit
from fairmaxent.fit.option_values import OutputOption
from fairmaxent.fit.pipeline import read_frame
from fairmaxent.fit.request import Request

ROLE_NAMES = tuple(field.name for field in fields(RoleOptions))
COLUMN_NAMES = ("bins", "kinds", "order", "max_levels")
_TAKEN_NAMES = ("mode", "rows", "iid", "weight_name", "evaluate", *FILING_NAMES)
_DOMAIN, _PDF = "domain", "pdf"  # on the page a text and a tick; on the command line both are files
_UNSPENT = (
    "A private result looks at the table once, which spends its budget. Press “Spend the budget” under Privacy; after "
    "that, the rates can be moved freely."
)


@dataclass(frozen=True, eq=False)
class Scenario:
    """Roles, wishes and the form of the result, each as the record of the command line."""

    given: Mapping[str, Any]
    table: OpenedTable
    options: PageOptions
    roles: RoleOptions
    asked: AskedOptions
    wanted: OutputOptions
    columns_as: DomainOptions
    mode: str  # what is made: rows, weights or rows to add
    drop: tuple[str, ...]  # columns that are left out
    typed: tuple[str | None, ...]  # how the options are typed
    domain_text: str | None  # a declared domain
    pdf: bool  # whether the report is printed, too

    @classmethod
    def from_json(cls, values: Mapping[str, Any], table: OpenedTable) -> Scenario:
        """Read what the page sent; what is not given has its default."""
        if not values.get("outcome") or not values.get("protected"):
            raise InputError("Choose the outcome and at least one column of groups first.")
        given = meaningful(debias, values)
        text, pdf = given.pop(_DOMAIN, None), given.pop(_PDF, None)
        if not isinstance(text, str | None) or not isinstance(pdf, bool | None):
            raise InputError("the page sent a domain that is not a text; reload it")
        names = (*ROLE_NAMES, *REQUEST_NAMES, *_TAKEN_NAMES, *COLUMN_NAMES, "drop")
        options = page_options(debias, ["-"], {"random_state": 0, **given}, names=names)
        with options.context:
            roles = options.record(RoleOptions)
            asked = AskedOptions.of(**{name: options.context.params[name] for name in REQUEST_NAMES})
            wanted = options.record(OutputOptions)
            replace(wanted, report="report.html").check("-")  # there always is one
            asked.check(options.context, roles)
        text = text if asked.has("epsilon") or asked.has("release") else None
        source = table.file(options.drop, texts=_texts(text))
        return cls(
            given=values,
            table=table,
            options=options,
            roles=roles.checked(source, table.typed),
            asked=asked,
            wanted=wanted,
            columns_as=options.record(DomainOptions),
            mode=wanted.mode,
            drop=options.drop,
            typed=options.typed,
            domain_text=text or None,
            pdf=bool(pdf),
        )

    def fits_like(self, other: Scenario) -> bool:
        """Whether both have the same fit: they differ at most in what is taken."""
        same = self.table is other.table and self.needs_rows_in_memory == other.needs_rows_in_memory
        asked = [{name: one.given[name] for name in one.given.keys() - {*_TAKEN_NAMES, _PDF}} for one in (self, other)]
        return same and asked[0] == asked[1]

    @property
    def needs_rows_in_memory(self) -> bool:
        """Whether the rows of a Parquet file have to be read: relabelling writes each several times."""
        asked, weighs = self.asked, self.mode == "weights"
        return (weighs and asked.has("relabel")) or (self.domain_text is None and asked.has("release"))

    @property
    def file(self) -> TableFile:
        """The table as it is fitted."""
        return self.table.file(self.drop, in_memory=self.needs_rows_in_memory, texts=self.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that were declared as text, though the file looks different."""
        return () if self.table.is_lazy else self.table.not_text(_texts(self.domain_text))

    def request(self) -> Request:
        """Make the request, which refuses what makes no sense; its domain is that which was declared, if one was."""
        if self.domain_text is not None and self.columns_as.given:
            raise InputError(
                "“Public values of every column” say how columns are read; leave bins, kinds and orders out"
            )
        return self.asked.request(self.roles, None if self.domain_text is None else _declared(self.domain_text))


def _declared(text: str) -> Declaration:
    return declared(text, "The list of public values")


def _texts(text: str | None) -> tuple[str, ...]:
    return () if not text else _declared(text).texts


class Readings:
    """The rows in codes: the newest reading, and the newest private one, whose noise is paid for only once."""

    def __init__(self) -> None:
        self._newest: dict[bool, tuple[object, Reading]] = {}  # by whether it is private
        self.spent: list[str] = []  # the budget of each private look, as text

    def get(self, scenario: Scenario, request: Request, *, spend: bool) -> Reading:
        """Read the rows, unless they are there; a new private look needs leave to ``spend`` its budget."""
        key, private = _key(scenario, request), request.privacy is not None
        newest = self._newest.get(private)
        if newest is not None and newest[0] == key:
            return newest[1]
        if private and not spend:
            raise InputError(_UNSPENT)
        self._newest.pop(private, None)  # two tables need not be in memory at once
        self.spent += [str(request.privacy)] if private else []
        try:
            frame = scenario.file.frame
            if request.domain is None:
                request = replace(request, domain=scenario.columns_as.domain(frame, request.weight))
            data = read_frame(frame, request)
        except Exception as problem:
            if private and "has spent" not in str(problem):  # as `after_spending` says of what fails too late
                self.spent.pop()
            raise
        self._newest[private] = key, data
        return data


def _key(scenario: Scenario, request: Request) -> object:
    """All that the reading depends on."""
    roles = (request.outcome, request.also_names, request.protected_names, request.within_names, request.weight)
    columns = (scenario.drop, scenario.columns_as, scenario.domain_text, request.detail, request.release)
    if request.privacy is not None:
        return repr((roles, columns, replace(request.privacy), request.forbid))
    return repr((scenario.needs_rows_in_memory, roles, columns, sorted(request.named_columns)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A scenario and its fit; estimates are kept apart, by what the model is trained on."""

    scenario: Scenario
    bare: Fit  # without an estimate
    estimates: Mapping[OutputOption, Fit] = field(default_factory=dict)

    @property
    def output(self) -> OutputOption:
        """What a model will be trained on, if this is taken."""
        return "weights" if self.scenario.mode == "weights" else "rows"

    @property
    def fit(self) -> Fit:
        """The fit, with the estimate for what is taken, if there is one."""
        return self.estimates.get(self.output, self.bare)

    @property
    def estimated(self) -> OutputOption | None:
        """What the estimate is about; None if there is none for what is taken."""
        return self.output if self.output in self.estimates else None
