"""``fairmaxent rake``: weights for known margins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from fairmaxent.cli.options import (
    SectionedCommand,
    chosen_seed,
    next_step,
    resolved,
    taking,
)
from fairmaxent.cli.output import SEED, FileOptions, source_of
from fairmaxent.cli.reading import DomainOptions, ReadingOptions, table_command
from fairmaxent.cli.terminal import bar, echo, json_record
from fairmaxent.cli.values import as_typed
from fairmaxent.data.levels import cell_text
from fairmaxent.errors import spelled
from fairmaxent.files.reading import STANDARD, TableFile
from fairmaxent.files.write import Staging
from fairmaxent.options import option
from fairmaxent.options.refusals import refuse

if TYPE_CHECKING:
    from fairmaxent.data.domain import Domain
    from fairmaxent.raking.certificate import RakingCertificate
    from fairmaxent.raking.raking import Raking
    from fairmaxent.report import Source


@dataclass(frozen=True)
class RakeOptions(FileOptions):
    """What is known, how it is to be reached, and where the result is written."""

    margins: tuple[str, ...] = option(
        (),
        main=True,
        text="files",
        required=True,
        help=(
            "Table of known shares or totals: a line 'columns,level,value', then lines"
            " such as 'sex,female,0.52'; or 'sex,age,value', then 'female,old,0.1';"
            " repeatable."
        ),
    )
    weight: str | None = option(
        None,
        main=True,
        metavar="COLUMN",
        help="Column of design weights; the new weights stay close to them.",
    )
    bounds: tuple[float | None, float | None] | None = option(
        None,
        main=True,
        text="bounds",
        help=(
            "Smallest and largest factor by which a weight may change: 0.3,3. 'none'"
            " leaves a side open."
        ),
    )
    relax: list[list[str]] | None = option(
        None,
        main=True,
        text="several columns",
        help=(
            "If margins contradict each other, come as close as possible: 'all', or the"
            " columns of a margin that may be missed; repeatable."
        ),
    )
    replicates: int = option(
        0,
        main=True,
        text="whole",
        least=0,
        shows_default=False,
        help=(
            "Also write this many columns of bootstrap replicate weights, each raked to"
            " the same margins."
        ),
    )
    random_state: int | None = option(
        None,
        main=True,
        least=0,
        help=(
            "The same seed gives the same replicates; chosen at random by default, and"
            " shown."
        ),
        page_help="The same seed gives the same result.",
        **SEED,
    )
    weight_name: str = option(
        "raked_weight",
        help="Name of the column of weights.",
        page_help="The name of the column of weights in the file.",
    )

    def raked(
        self,
        frame: Any,
        margins: Sequence[TableFile],
        domain: Domain | None = None,
    ) -> Raking:
        """Rake a table as asked."""
        from fairmaxent.raking.raking import rake

        relax: Any = [tuple(columns) for columns in self.relax or ()]
        if ("all",) in relax:
            relax = "all"
        return rake(
            frame,
            [table.frame for table in margins],
            relax=relax or None,
            domain=domain,
            weight=self.weight,
            bounds=self.bounds,
            replicates=self.replicates,
            random_state=self.random_state,
        )


@table_command(
    taking(RakeOptions, "wanted"),
    cls=SectionedCommand,
    epilog=(
        "Without -o and --report nothing is written; the margins before and"
        " after are always shown."
    ),
)
def rake_command(
    ctx: click.Context,
    data: str,
    wanted: RakeOptions,
    columns_as: DomainOptions,
    reading: ReadingOptions,
) -> None:
    """Add weights to the table in the file DATA (- is stdin) that give it known
    margins.

    Margins are shares or totals of a column, or of crossed columns. Exit code 4: they
    contradict each other, and the message names the smallest set that does.

    \b
    fairmaxent rake survey.csv --margins known.csv --bounds 0.3,3 -o weighted.csv
    """
    refuse(wanted)
    wanted.check()
    seed = None
    if wanted.replicates:
        seed = chosen_seed(wanted.random_state)
        wanted = replace(wanted, random_state=seed)
    repeat = resolved(ctx, seed=seed)
    with Staging(
        wanted.targets, force=wanted.force, readable=wanted.readable
    ) as staging:
        with bar(f"reading {data}"):
            margins = [ReadingOptions().read(path) for path in wanted.margins]
            scanned = None
            if not wanted.replicates:
                scanned = reading.scan(data)
            source = scanned or reading.read(data, columns_as.declaration)
            wanted = wanted.in_form(source)
        with bar("raking"):
            raking = wanted.raked(
                source.frame, margins, columns_as.domain_of(source.frame, wanted.weight)
            )
        notes = [
            note
            for table in (source, *margins)
            for note in table.notes_spelled(as_typed)
        ]
        notes += raking.certificate.notes
        with bar("writing"):
            if wanted.output is not None:
                name = wanted.weight_name
                weighed = raking.weigh(source.complete, weight_name=name)
                notes += wanted.write(weighed, source, staging)
            if wanted.report is not None:
                origin = source_of(data, columns_as, repeat)
                make_report(raking, wanted, staging, origin, source)
    if wanted.json:
        record = {
            "rows": raking.certificate.rows,
            "files": wanted.targets,
            "weight_name": wanted.weight_name,
            "replicates": wanted.replicates,
            "seed": seed,
            "notes": notes,
            "certificate": raking.certificate.to_dict(),
        }
        echo(json_record(record))
    else:
        echo(_text(raking.certificate, wanted, notes), err=wanted.output == STANDARD)


def make_report(
    raking: Raking,
    wanted: RakeOptions,
    staging: Staging,
    origin: Source,
    table: TableFile,
) -> None:
    """Write the report; the weighted table is there, so that its digest is named."""
    from fairmaxent.report import source, write_raking_report

    files = [
        source.written_file("Margins", path)
        for path in wanted.margins
        if os.path.isfile(path)
    ]
    if wanted.output not in (None, STANDARD):
        files.append(
            source.written_file(
                "Weighted table", staging.path_for(wanted.output), name=wanted.output
            )
        )
    notes = table.notes_spelled(origin.front_door.spell)
    origin = replace(
        origin,
        written=tuple(files),
        dropped=table.dropped,
        reading=notes,
    )
    write_raking_report(
        raking,
        staging.path_for(wanted.report or ""),
        source=origin,
        **wanted.filing,
    )


def _text(certificate: RakingCertificate, wanted: RakeOptions, notes: list[str]) -> str:
    """Rare levels, margins before and after, what weights cost, what was written."""
    summary = list(certificate.summary())
    if wanted.replicates:
        summary.append(f"seed of the replicates: {wanted.random_state}")
    warnings = [spelled(warning, as_typed) for warning in certificate.few_rows()]
    following = f"use the column {wanted.weight_name!r} as weights in every estimate"
    if wanted.output is None:
        following = (
            "write the weighted table with -o FILE, and a report with --report FILE"
        )
    parts = [
        [f"Warning: {cell_text(warning)}" for warning in warnings],
        certificate.table(),
        summary,
        [f"Note: {cell_text(note)}" for note in notes],
        [*map(cell_text, wanted.written(certificate.rows))],
        [next_step(following)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)
