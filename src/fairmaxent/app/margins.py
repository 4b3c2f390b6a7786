"""Known margins: what the page asks of `rake`, by the same functions as the command line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairmaxent.app.looked import plain
from fairmaxent.app.opened_table import AS_INFERRED, OpenedTable, reading_of
from fairmaxent.cli.commands.rake import WEIGHT_NAME, RakeOptions, make_report
from fairmaxent.cli.filing_options import FilingOptions
from fairmaxent.cli.option_types import BOUNDS
from fairmaxent.cli.options import source_of
from fairmaxent.data.frames import load_library
from fairmaxent.errors import InputError
from fairmaxent.files.staging import Staging
from fairmaxent.files.tables import read_table, write_table
from fairmaxent.progress import Progress
from fairmaxent.raking.pipeline import rake

_SLACK = 1e-6  # how far shares may be from adding up to 1


@dataclass(frozen=True)
class KnownMargins:
    """Shares of the levels of some columns, and by how much a weight may change."""

    shares: Mapping[str, Mapping[str, float]]
    bounds: tuple[float, float] | None

    @classmethod
    def from_json(cls, values: object, schema: Mapping[str, Any]) -> KnownMargins:
        """Read what the page sent."""
        given = values if isinstance(values, Mapping) else {}
        shares, bounds = given.get("margins"), given.get("bounds")
        if not isinstance(shares, Mapping) or not shares:
            raise InputError("Choose at least one column whose shares are known.")
        for column, levels in shares.items():
            if column not in schema or not isinstance(levels, Mapping) or not all(map(_is_number, levels.values())):
                raise InputError("the page sent margins that make no sense; reload it")
            if abs(sum(levels.values()) - 1) > _SLACK:
                raise InputError(
                    f"the shares of {column!r} add up to {sum(levels.values()):.1%}; they must add up to 100 %"
                )
        if bounds is not None and not (isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_number, bounds))):
            raise InputError("the page sent bounds that make no sense; reload it")
        return cls(shares, None if bounds is None else (float(bounds[0]), float(bounds[1])))

    def table(self) -> Any:
        """The margins as the table that `rake` reads."""
        rows = [(column, level, share) for column, levels in self.shares.items() for level, share in levels.items()]
        return load_library("polars").DataFrame(rows, schema=["columns", "level", "value"], orient="row")


def weigh(opened: OpenedTable, known: KnownMargins, folder: Path, progress: Progress) -> dict[str, Any]:
    """Rake the table and write the files; return the margins before and after, and the command that repeats it."""
    table, _, report, like_input = opened.file_names()
    stem = os.path.basename(table).split("-fair")[0]
    names = [f"{stem}-margins.csv", os.path.basename(table).replace("-fair", "-weighted", 1), os.path.basename(report)]
    margins, weighted, written = (str(folder / name) for name in names)
    write_table(known.table(), margins)
    wanted = _options(known, margins, weighted, written, like_input=like_input)
    source = opened.file()
    progress("raking", 0.1)
    raking = rake(source.frame, [read_table(margins).frame], bounds=wanted.bounds)
    progress("writing", 0.5)
    command = _command(opened, known, names, like_input=like_input)
    with Staging(wanted.targets, force=True) as staging:
        form = source.form if like_input else None
        staging.write_table(raking.weigh(source.frame, name=WEIGHT_NAME), weighted, form=form)
        origin = source_of(str(opened.path), reading_of(), AS_INFERRED, command)
        origin = replace(origin, file=os.path.basename(opened.typed))
        make_report(raking, wanted, FilingOptions(None, None, None), staging, origin, source.notes)
    certificate = raking.certificate
    whats = ("Margins", "Your rows with weights", "Report")
    return {
        "levels": plain([{"margin": one.name, **vars(level)} for one in certificate.margins for level in one.levels]),
        "summary": certificate.summary(),
        "notes": [*certificate.warnings, *certificate.notes],
        "command": command,
        "files": [
            {"name": name, "what": what, "bytes": os.path.getsize(folder / name), "folder": int(folder.name)}
            for name, what in zip(names, whats, strict=True)
        ],
    }


def _options(known: KnownMargins, margins: str, weighted: str, report: str, *, like_input: bool) -> RakeOptions:
    return RakeOptions(
        margins=(margins,),
        weight=None,
        bounds=known.bounds,
        relax=(),
        replicates=0,
        random_state=None,
        output=weighted,
        output_format=None,
        like_input=like_input,
        weight_name=WEIGHT_NAME,
        report=report,
        pdf=None,
        readable_by_others=False,
        force=True,
        as_json=False,
    )


def _command(opened: OpenedTable, known: KnownMargins, names: list[str], *, like_input: bool) -> str:
    margins, weighted, report = names
    tokens = ["fairmaxent", "rake", opened.typed, "--margins", margins]
    tokens += [] if known.bounds is None else ["--bounds", str(BOUNDS.written(known.bounds))]
    tokens += ["-o", weighted, *(["--like-input"] if like_input else []), "--report", report]
    return shlex.join(tokens)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
