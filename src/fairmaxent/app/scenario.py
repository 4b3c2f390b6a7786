"""A scenario: what the page asks for, as the records that the command line makes of the same options."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from fairmaxent.app.looked import COLUMN_NAMES, ROLE_NAMES
from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.page_options import meaningful, page_options
from fairmaxent.cli.config import declared
from fairmaxent.cli.debias import debias_command as debias
from fairmaxent.cli.output import FilingOptions, OutputOptions
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.cli.request import REQUEST_NAMES, AskedOptions, RoleOptions
from fairmaxent.data.declaration import Declaration
from fairmaxent.errors import InputError
from fairmaxent.files.reading import TableFile
from fairmaxent.fit.request import Request

OUTPUT_NAMES = ("mode", "rows", "iid", "weight_name", "evaluate")
FILING_NAMES = tuple(field.name for field in fields(FilingOptions))
_NAMES = (*ROLE_NAMES, *REQUEST_NAMES, *OUTPUT_NAMES, *FILING_NAMES, *COLUMN_NAMES, "drop")
_DOMAIN, _PDF = "domain", "pdf"  # on the page a text and a tick; on the command line both are files


@dataclass(frozen=True, eq=False)
class Scenario:
    """Roles, wishes and the form of the result, each as the record of the command line."""

    given: Mapping[str, Any]
    table: OpenedTable
    roles: RoleOptions
    asked: AskedOptions
    wanted: OutputOptions
    filing: FilingOptions
    columns_as: DomainOptions
    drop: tuple[str, ...]
    domain_text: str | None  # a declared domain
    pdf: bool
    typed: tuple[str | None, ...]

    @classmethod
    def from_json(cls, values: object, table: OpenedTable) -> Scenario:
        """Read what the page sent; what is not given has its default."""
        if not isinstance(values, Mapping):
            raise InputError("the page sent something that is not a scenario; reload it")
        if not values.get("outcome") or not values.get("protected"):
            raise InputError("Choose the outcome and at least one column of groups first.")
        given = meaningful(values)
        text, pdf = given.pop(_DOMAIN, None), given.pop(_PDF, None)
        if not isinstance(text, str | None) or not isinstance(pdf, bool | None):
            raise InputError("the page sent a domain that is not a text; reload it")
        options = page_options(debias, ["-"], {"random_state": 0, **given}, names=_NAMES)
        with options.context:
            roles = options.record(RoleOptions)
            asked = AskedOptions.of(**{name: options.context.params[name] for name in REQUEST_NAMES})
            wanted = options.record(OutputOptions)
            replace(wanted, report="report.html").check("-")  # there always is one
            asked.check(options.context, roles)
        if (asked.private or asked.releases) and wanted.mode != "rows":
            raise InputError("Private rows, and rows to share, are new rows; choose “New rows” under Take.")
        drop = tuple(options.context.params["drop"] or ())
        return cls(
            values,
            table,
            roles.checked(table.file(drop, texts=_texts(text)), table.typed),
            asked,
            wanted,
            options.record(FilingOptions),
            options.record(DomainOptions),
            drop,
            text or None,
            bool(pdf),
            options.typed,
        )

    def to_json(self) -> dict[str, Any]:
        """The scenario as plain values, for the page."""
        return dict(self.given)

    @property
    def mode(self) -> str:
        """What is made: rows, weights or rows to add."""
        return self.wanted.mode

    def fits_like(self, other: Scenario) -> bool:
        """Whether both have the same fit: they differ at most in what is taken."""
        taken = (*OUTPUT_NAMES, *FILING_NAMES, _PDF)
        same = (self.table is other.table, self.needs_rows_in_memory == other.needs_rows_in_memory)
        return all(same) and _but(self.given, taken) == _but(other.given, taken)

    @property
    def needs_rows_in_memory(self) -> bool:
        """Whether the rows of a Parquet file have to be read: relabelling writes each several times."""
        return (self.asked.relabels and self.mode == "weights") or (self.asked.releases and self.domain_text is None)

    @cached_property
    def declaration(self) -> Declaration | None:
        """The domain that was declared on the page."""
        if self.domain_text is None:
            return None
        if self.columns_as.given:
            raise InputError(
                "“Public values of every column” say how columns are read; leave bins, kinds and orders out"
            )
        return _declared(self.domain_text)

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
        return self.asked.request(self.roles, self.declaration)

    def with_domain(self, request: Request, frame: Any) -> Request:
        """The request with the domain learned as asked."""
        if request.domain is not None:
            return request
        return replace(request, domain=self.columns_as.domain(frame, self.roles.weight))


def _but(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _declared(text: str) -> Declaration:
    return declared(text, "The list of public values")


def _texts(text: str | None) -> tuple[str, ...]:
    return () if not text else _declared(text).texts
