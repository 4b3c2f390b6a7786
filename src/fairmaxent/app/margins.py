"""Known margins: what the page asks of `rake`, by the same functions as the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from fairmaxent.app.labels import IN_APP
from fairmaxent.app.looked import plain
from fairmaxent.app.opened_table import OpenedTable, numbered
from fairmaxent.app.page_options import page_options
from fairmaxent.app.repeat import typed_text
from fairmaxent.app.taking import files_in, origin_of
from fairmaxent.cli.output import FilingOptions
from fairmaxent.cli.rake import RakeOptions, make_report, rake_command
from fairmaxent.cli.reading import DomainOptions
from fairmaxent.data.frames import load_library
from fairmaxent.errors import InputError
from fairmaxent.files.formats import read_table
from fairmaxent.files.write import Staging, write_table
from fairmaxent.progress import Progress
from fairmaxent.raking.certificate import few_rows_warnings
from fairmaxent.raking.raking import rake

_AS_INFERRED = DomainOptions()
_RAKING = ("weight", "bounds", "relax", "replicates", "random_state", "weight_name")
_NAMES = (*_RAKING, *(field.name for field in fields(FilingOptions)))
_SLACK = 1e-6  # how far shares may be from adding up to 1
_NO_SENSE = "the page sent margins that make no sense; reload it"


@dataclass(frozen=True)
class SharesOf:
    """The shares of the levels of a column, or of the combinations of crossed columns."""

    columns: tuple[str, ...]
    values: tuple[tuple[tuple[str, ...], float], ...]

    @classmethod
    def from_json(cls, values: object, schema: Mapping[str, Any]) -> SharesOf:
        """Read one margin that the page sent."""
        given = values if isinstance(values, Mapping) else {}
        columns, shares = given.get("columns"), given.get("shares")
        if not (_is_texts(columns) and columns and all(name in schema for name in columns)):
            raise InputError(_NO_SENSE)
        if not isinstance(shares, list) or not all(_is_share(share, len(columns)) for share in shares):
            raise InputError(_NO_SENSE)
        total = sum(share for _, share in shares)
        if abs(total - 1) > _SLACK:
            name = " × ".join(columns)
            raise InputError(f"the shares of {name!r} add up to {total:.1%}; they must add up to 100 %")
        return cls(tuple(columns), tuple((tuple(levels), share) for levels, share in shares))


@dataclass(frozen=True, eq=False)
class KnownMargins:
    """What is known, and how it is to be reached."""

    shares: tuple[SharesOf, ...]
    options: RakeOptions
    filing: FilingOptions
    typed: tuple[str | None, ...]

    @classmethod
    def from_json(cls, values: object, table: OpenedTable) -> KnownMargins:
        """Read what the page sent."""
        given = values if isinstance(values, Mapping) else {}
        margins = given.get("margins")
        if not isinstance(margins, list) or not margins:
            raise InputError("Choose at least one column whose shares are known.")
        shares = tuple(SharesOf.from_json(margin, table.schema) for margin in margins)
        asked = {"random_state": 0, **(given.get("options") or {})}
        asked |= {} if asked.get("replicates") else {"random_state": None}  # which is about nothing else
        options = page_options(rake_command, ["-", "--margins", "-"], asked, names=_NAMES)
        wanted = options.record(RakeOptions)
        if wanted.weight is not None and wanted.weight not in table.schema:
            raise InputError(f"the table has no column {wanted.weight!r}; reload the page")
        return cls(shares, wanted, options.record(FilingOptions), options.typed)

    def tables(self) -> dict[str, Any]:
        """The margins as the tables that `rake` reads, by what they are: all single columns, and each crossing."""
        polars = load_library("polars")
        single = [margin for margin in self.shares if len(margin.columns) == 1]
        rows = [(*margin.columns, *levels, share) for margin in single for levels, share in margin.values]
        tables = {"": polars.DataFrame(rows, schema=["columns", "level", "value"], orient="row")} if rows else {}
        crossed = [margin for margin in self.shares if len(margin.columns) > 1]
        return tables | {
            numbered("-crossed", number): polars.DataFrame(
                [(*levels, share) for levels, share in margin.values], schema=[*margin.columns, "value"], orient="row"
            )
            for number, margin in enumerate(crossed, 1)
        }


def weigh(table: OpenedTable, known: KnownMargins, folder: Path, number: int, progress: Progress) -> dict[str, Any]:
    """Rake the table and write the files; return the margins before and after, and the command that repeats it.

    ``number`` is that of the set of files.
    """
    written, _, report, like_input = table.file_names()
    written, report = os.path.basename(written), os.path.basename(report)
    stem = written.split("-fair")[0]
    margins = {f"{stem}{numbered('-margins', number)}{tag}.csv": frame for tag, frame in known.tables().items()}
    weighted = numbered("-weighted", number).join(written.rsplit("-fair", 1))
    report = numbered("-weighted-report", number).join(report.rsplit("-report", 1))
    for name, frame in margins.items():
        write_table(frame, folder / name)
    wanted = replace(
        known.options,
        margins=tuple(str(folder / name) for name in margins),
        output=str(folder / weighted),
        like_input=like_input,
        report=str(folder / report),
        force=True,
    )
    source = table.file(in_memory=bool(wanted.replicates))
    progress("raking", 0.1)
    raking = rake(
        source.frame,
        [read_table(path).frame for path in wanted.margins],
        weight=wanted.weight,
        bounds=wanted.bounds,
        relax=wanted.relaxed,
        replicates=wanted.replicates,
        random_state=wanted.random_state,
    )
    progress("writing", 0.5)
    command = _command(table, known, [*margins], weighted, report, like_input=like_input)
    with Staging(wanted.targets, force=True) as staging:
        form = source.form if like_input else None
        staging.write_table(raking.weigh(source.frame, name=wanted.weight_name), wanted.output or "", form=form)
        make_report(raking, wanted, known.filing, staging, origin_of(table, _AS_INFERRED, command), source)
    certificate = raking.certificate
    return {
        "levels": plain(
            [{"margin": margin.name, **vars(level)} for margin in certificate.margins for level in margin.levels]
        ),
        "summary": certificate.summary(),
        "notes": [*map(IN_APP.said, few_rows_warnings(certificate.margins)), *certificate.notes],
        "command": command,
        "files": files_in(
            folder, {**dict.fromkeys(margins, "Margins"), weighted: "Your rows with weights", report: "Report"}
        ),
    }


def _command(
    table: OpenedTable, known: KnownMargins, margins: list[str], weighted: str, report: str, *, like_input: bool
) -> str:
    tokens: list[str | None] = ["fairmaxent", "rake", table.typed]
    for name in margins:
        tokens += ["--margins", name]
    tokens += [*known.typed, *table.reading_typed, "-o", weighted, *(["--like-input"] if like_input else [])]
    return typed_text([*tokens, "--report", report])


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_share(value: object, columns: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and _is_texts(value[0])
        and len(value[0]) == columns
        and isinstance(value[1], int | float)
        and not isinstance(value[1], bool)
    )
