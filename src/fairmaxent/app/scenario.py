"""A table that was opened, and a scenario: what the page asks of it, and its fit."""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals

from fairmaxent.app.jobs import StaleError
from fairmaxent.app.page_options import (
    FILING_NAMES,
    READING_NAMES,
    PageOptions,
    page_options,
)
from fairmaxent.app.upload import read_upload
from fairmaxent.cli.config import declared
from fairmaxent.cli.options import ledger_beside, name_for, outputs
from fairmaxent.cli.output import OutputOptions
from fairmaxent.cli.reading import DomainOptions, ReadingOptions
from fairmaxent.cli.request import REQUEST_NAMES, ROLES, AskedOptions, RoleOptions
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain
from fairmaxent.data.frames import load_library, open_frame, read_weights
from fairmaxent.data.reading import Reading
from fairmaxent.engines.lazy_frame import collect
from fairmaxent.errors import InputError
from fairmaxent.files.content import file_sha256
from fairmaxent.files.reading import Remark, TableFile
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.models import OutputOption
from fairmaxent.fit.pipeline import read_frame
from fairmaxent.fit.request import Request
from fairmaxent.options.refusals import refuse
from fairmaxent.plain_text import Values
from fairmaxent.privacy.refusals import about_exact_rows
from fairmaxent.privacy.spending import Spending, spent_so_far
from fairmaxent.progress import Progress, silent

_LOOKED_AT = 200_000  # rows of a large Parquet file that Look shows
_SLICES = 20  # from all over the file
ROLE_NAMES = tuple(source.name for source in ROLES)
COLUMN_NAMES = ("bins", "kinds", "order", "max_levels")
_TAKEN_NAMES = ("mode", "rows", "iid", "weight_name", "evaluate", *FILING_NAMES)
# What the page may set beside the domain; the ledger is a path.
_NAMES = {*ROLE_NAMES, *REQUEST_NAMES, *_TAKEN_NAMES, *COLUMN_NAMES, "drop"} - {
    "ledger"
}
RATES = ("statistical_rate", "representation_rate")
_DOMAIN = "domain"  # on the page a text, on the command line a file
# On the page a field of its own: outcomes after the first, with their good levels.
_FURTHER = "further_outcomes"
_UNSPENT = (
    "A private result looks at the table once, which spends its budget. Press “Spend"
    " the budget” under Privacy; after that, the rates can be moved freely, and you can"
    " come back to it."
)


@dataclass(frozen=True, eq=False)
class OpenedTable:
    """A file of the session, read when it is needed."""

    number: int  # so that an old page notices that another table was opened
    path: Path
    # how a command names it: the path given to the app, or the name of the file that
    # was uploaded
    typed: str
    title: str
    # whether the page offers the table itself, because it came with the package
    can_be_taken: bool = False
    # how the page wants it to be read
    asked: Values = field(default_factory=dict)
    is_upload: bool = False  # and may come from anywhere
    # the example that the page begins with, before anybody has opened a table
    is_first: bool = False
    _levels: dict[str, Domain] = field(default_factory=dict, init=False)
    # as it is, and as it was declared last
    _whole: dict[str, TableFile] = field(default_factory=dict, init=False)

    @cached_property
    def options(self) -> PageOptions:
        """How the page wants it to be read."""
        return page_options(self.asked, names=READING_NAMES)

    def reading(self, drop: Sequence[str] = ()) -> ReadingOptions:
        """How it is read, without some columns."""
        return replace(self.options.record(ReadingOptions), drop=list(drop) or None)

    @cached_property
    def _received(self) -> TableFile | None:
        """An upload as it is read by default, unless it is Parquet."""
        if self.is_upload:
            return read_upload(self.path, self.reading())
        return None

    @cached_property
    def _scanned(self) -> TableFile | None:
        if self._received is None:
            return self.reading().scan(str(self.path))
        return None

    def in_memory(self, declaration: Declaration | None = None) -> TableFile:
        """The whole table, as it is or by a declaration.

        The newest is kept, as rates change more often.
        """
        key = repr(declaration)
        if key in self._whole:
            return self._whole[key]
        how = self.reading()
        read = self._received
        if self.is_upload and declaration:
            read = read_upload(self.path, how, declaration)
        table = read or how.read(str(self.path), declaration)
        for other in self._whole.keys() - {repr(None)}:
            del self._whole[other]
        remarks = tuple(map(self._about_file, table.remarks))
        self._whole[key] = replace(table, remarks=remarks)
        return self._whole[key]

    def _about_file(self, remark: Remark) -> Remark:
        """A remark that names the file as the user knows it."""
        if isinstance(remark, str):
            return remark.replace(str(self.path), self.typed)
        return tuple(
            self._about_file(part) if isinstance(part, str) else part for part in remark
        )

    @property
    def is_lazy(self) -> bool:
        """Whether the rows stay in the file."""
        return self._scanned is not None

    def file(
        self,
        drop: Sequence[str] = (),
        *,
        in_memory: bool = False,
        declaration: Declaration | None = None,
    ) -> TableFile:
        """The table without some columns; Parquet is scanned unless it must be read."""
        table = self._scanned
        if table is None:
            table = self.in_memory(declaration)
        elif in_memory:
            table = self.in_memory()
        return self.reading(drop).without_dropped(table)

    @cached_property
    def stamp(self) -> tuple[int, int] | None:
        """What tells a file from a later one in its place; the app's own stay."""
        if self._is_own or not self.path.is_file():
            return None
        return self.path.stat().st_mtime_ns, self.path.stat().st_size

    @property
    def _is_own(self) -> bool:
        """Whether only the app has this copy."""
        return self.is_upload or self.can_be_taken

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that is another one by now."""
        if self.stamp is not None and replace(self).stamp != self.stamp:
            now = "has changed" if self.path.is_file() else "is gone"
            raise StaleError(
                f"{self.typed} {now} since it was opened: press “Read the file again”,"
                " or open another."
            )

    @cached_property
    def content(self) -> str:
        """What recognises the same rows when a file is opened again."""
        which = file_sha256(self.path) if self.path.is_file() else self.number
        return f"{which} {dict(self.asked)}"

    @property
    def ledger(self) -> str | None:
        """The file that adds up its private fits."""
        if self._is_own:  # known by its name
            return str(self.path.parent.parent / f"{self.path.name}.ledger.json")
        return ledger_beside(str(self.path))

    def spent(self, delta: float | None) -> str | None:
        """What private looks have spent together, with this δ, and who counts."""
        if delta is None or self.ledger is None:
            return None
        who = f"{self.ledger} keeps count."
        if self._is_own:
            who = (
                "the app keeps count until it ends. To keep it beside the file, open"
                " that with 'fairmaxent app FILE'."
            )
        return f"{spent_so_far(self.ledger, delta)}; {who}"

    @cached_property
    def schema(self) -> Values:
        """The columns and their types."""
        return dict(self.file().frame.collect_schema())

    @cached_property
    def rows(self) -> int:
        """How many rows it has."""
        if self._scanned is None:
            return len(self.in_memory().frame)
        counted = self._scanned.frame.select(load_library("polars").len())
        return int(_collected(counted).item())

    @cached_property
    def looked_at(self) -> Any:
        """The rows that Look shows: all, or some from all over a large Parquet file."""
        if self._scanned is None:
            return self.in_memory().frame
        lazy = self._scanned.frame
        rows = self.rows
        if rows <= _LOOKED_AT:
            return _collected(lazy)
        slices = [
            lazy.slice(number * rows // _SLICES, _LOOKED_AT // _SLICES)
            for number in range(_SLICES)
        ]
        return load_library("polars").concat(map(_collected, slices))

    def levels(
        self,
        drop: Sequence[str],
        columns_as: DomainOptions,
        weight: str | None,
    ) -> Domain:
        """The levels of the columns that Look shows.

        Those learned last are kept, as roles change more often.
        """
        key = repr((tuple(drop), columns_as, weight))
        if key not in self._levels:
            frame = self.looked_at.drop(list(drop))
            domain = columns_as.domain_of(frame, weight)
            if domain is None:
                weights = read_weights(open_frame(frame), weight)
                rows = frame.drop([] if weight is None else [weight])
                domain = Domain.infer(rows, weight=weights)
            self._levels.clear()
            self._levels[key] = domain
        return self._levels[key]

    @property
    def shown(self) -> Values:
        """What the page knows of it."""
        return {
            "number": self.number,
            "name": self.typed,
            "title": self.title,
            "reading": dict(self.asked),
            "offered": self.can_be_taken,
            "is_first": self.is_first,
        }

    def named(self, what: str) -> str:
        """A name for a file that is made of it, in whatever folder that is."""
        return name_for(self.typed, what)

    @property
    def written(self) -> tuple[str, bool]:
        """The suffix of a table made of it, and whether it has the form of the data."""
        words = outputs(self.typed, self.file().form)
        return os.path.splitext(words[1])[1], "--like-input" in words


def _collected(lazy: Any) -> Any:
    """Read rows of a Parquet file, which may be damaged beyond its footer."""
    return collect(narwhals.from_native(lazy)).to_native()


@dataclass(frozen=True, eq=False)
class Scenario:
    """Roles, wishes and the form of the result, as records of the command line."""

    given: Values
    table: OpenedTable
    options: PageOptions
    roles: RoleOptions
    asked: AskedOptions
    wanted: OutputOptions
    columns_as: DomainOptions
    domain_text: str | None
    declaration: Declaration | None  # which that is

    @classmethod
    def from_json(cls, values: Values, table: OpenedTable) -> "Scenario":
        """Read what the page sent; what is not given has its default."""
        is_compared = values.get("protected") or values.get("likely")
        if not values.get("outcome") or not is_compared:
            raise InputError(
                "Choose the outcome and at least one column of groups first."
            )
        given = {**values}
        text = given.pop(_DOMAIN, None)
        further = given.pop(_FURTHER, None) or {}
        if not isinstance(further, dict) or given["outcome"] in further:
            raise InputError("the page sent outcomes that are no table; reload it")
        if further:
            given["outcome"] = {str(given["outcome"]): None, **further}
        if not isinstance(text, str | None):
            raise InputError("the page sent a domain that is not a text; reload it")
        options = page_options({"random_state": 0, **given}, names=_NAMES)
        roles = options.record(RoleOptions)
        asked = AskedOptions.of(
            **{name: options.values[name] for name in REQUEST_NAMES}
        )
        declaration = None
        if not (asked.has("epsilon") or asked.has("release")):
            text = None
        if text:
            declaration = asked.declared(declared(text, "The list of public values"))
        with about_exact_rows() if asked.has("epsilon") else nullcontext():
            source = table.file(options.drop, declaration=declaration)
        return cls(
            given=values,
            table=table,
            options=options,
            roles=roles.checked(source, table.typed, declaration),
            asked=asked,
            wanted=options.record(OutputOptions),
            columns_as=options.record(DomainOptions),
            domain_text=text or None,
            declaration=declaration,
        )

    def fits_like(self, other: "Scenario") -> bool:
        """Whether both have the same fit: they differ at most in what is taken."""
        return (
            self.table is other.table
            and self.needs_rows_in_memory == other.needs_rows_in_memory
            and self._fitted_options == other._fitted_options
        )

    @property
    def _fitted_options(self) -> Values:
        names = self.given.keys() - {*_TAKEN_NAMES}
        return {name: self.given[name] for name in names}

    @property
    def needs_rows_in_memory(self) -> bool:
        """Whether a model, or --release, needs the rows of a Parquet file."""
        has = self.asked.has
        if has("model"):
            return True
        return has("release") and self.domain_text is None

    @property
    def file(self) -> TableFile:
        """The table as it is fitted."""
        return self.table.file(
            self.options.drop,
            in_memory=self.needs_rows_in_memory,
            declaration=self.declaration,
        )

    def request(self) -> Request:
        """Make the request, with the domain that was declared, if one was."""
        spending = None
        if self.table.ledger is not None and self.asked.has("epsilon"):
            spending = Spending(self.table.ledger, "fairmaxent app")
        asked = AskedOptions(self.asked.values | {"ledger": spending})
        request = asked.request(self.roles, self.declaration)
        added = {"domain": self.domain_text, "report": "report.html"}
        refuse(request, self.wanted, self.columns_as, **added)
        return request


class Readings:
    """The rows in codes: the newest reading, and every private one, paid for once."""

    def __init__(self) -> None:
        self._newest: tuple[str, Reading] | None = None
        self._paid: dict[str, Reading] = {}  # also of files that were opened before

    def get(
        self,
        scenario: Scenario,
        request: Request,
        *,
        spend: bool,
        progress: Progress = silent,
    ) -> Reading:
        """Read the rows, unless they are there.

        A new private look needs leave to ``spend`` its budget.
        """
        can_repeat = request.provenance.repeats_with_seed
        key = _reading_key(scenario, request)
        if key in self._paid:
            return self._paid[key]
        if self._newest is not None and self._newest[0] == key:
            return self._newest[1]
        if request.provenance.spends and not spend:
            raise InputError(_UNSPENT)
        self._newest = None  # two tables need not be in memory at once
        frame = scenario.file.frame
        domain = request.domain or scenario.columns_as.domain_of(frame, request.weight)
        data = read_frame(frame, replace(request, domain=domain, progress=progress))
        if can_repeat:
            self._newest = key, data
        else:
            self._paid[key] = data
        return data


def _reading_key(scenario: Scenario, request: Request) -> str:
    """All that a reading depends on."""
    table = scenario.table
    depends: list[Any] = [
        request.outcome_names,
        request.protected_names,
        request.likely,
        request.within_names,
        request.weight,
        scenario.options.drop,
        scenario.columns_as,
        scenario.domain_text,
        request.detail,
        request.release,
    ]
    if request.provenance.repeats_with_seed:
        depends += [table.number, scenario.needs_rows_in_memory]
        depends += sorted(request.named_columns)
    else:
        depends += [table.content, request.privacy, request.forbid]
    return repr(depends)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A scenario and its fit, and estimates, by what the model is trained on."""

    scenario: Scenario
    bare: Certified  # without an estimate
    estimates: Mapping[OutputOption, Certified] = field(default_factory=dict)
    # that the fit can be made again of at once; None: it takes all rows
    cells: Reading | None = None
    is_whole: bool = True  # or a fit of the cells alone, which can draw nothing

    @property
    def output(self) -> OutputOption:
        """What a model will be trained on, if this is taken."""
        return "weights" if self.scenario.wanted.mode == "weights" else "rows"

    @property
    def fit(self) -> Certified:
        """The fit, with the estimate for what is taken, if there is one."""
        return self.estimates.get(self.output, self.bare)
