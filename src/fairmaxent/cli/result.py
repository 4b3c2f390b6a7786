"""What ``fairmaxent debias`` made, and what it says to people and to programs."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import narwhals

from fairmaxent.cli.options import after_report, name_for, next_step, outputs
from fairmaxent.cli.output import OutputOptions, write_drawn
from fairmaxent.cli.values import as_typed
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.draws import generator
from fairmaxent.data.frames import load_library, open_frame
from fairmaxent.data.levels import Notes, value_text
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Reals
from fairmaxent.document import Block, Note, Paragraph
from fairmaxent.document.text import sections_text
from fairmaxent.document.words import counted, first
from fairmaxent.engines.cluster_output import part_name
from fairmaxent.errors import Option, spelled
from fairmaxent.facts.output import DeliveredCosts
from fairmaxent.files.reading import STANDARD, TableFile
from fairmaxent.files.write import Staging
from fairmaxent.fit.certified import BATCH, Certified
from fairmaxent.inspection.hints import LEAKS, leak_hints, proxies
from fairmaxent.inspection.proposals import known_levels, propose_favourable
from fairmaxent.plain_text import Values
from fairmaxent.progress import Progress, silent
from fairmaxent.report import Source, build_report
from fairmaxent.report import delivered as deliveries
from fairmaxent.report.source import written_file
from fairmaxent.report.writer import save_report
from fairmaxent.telling.case import Case, Topic, Weight
from fairmaxent.telling.entries import as_values, sections_of, warnings

_SHOWN = 12  # notes before the rest is counted
_REST = "What nobody should use this for is said in a report (--report), and by --json."
_FEW = 3  # outcomes that are named
# a report says what nobody should do with the output
TOLD: tuple[Topic, ...] = tuple(
    topic for topic in get_args(Topic) if topic != "not-for"
)


@dataclass(frozen=True, eq=False)
class Result:
    """A fit, the table to write, and the rates of what is written."""

    fit: Certified
    source: TableFile
    table: Reals  # of outcome and protected columns, whose cells sum to one
    rows: int | None = None  # of the table that is written
    # that table; None: it was written as it was drawn, or there is none
    frame: Any = None
    # the new rows or weights in it; None: nothing was written
    delivered: deliveries.Delivered | None = None
    written_notes: Notes = ()  # what to know about the file

    @property
    def readable_frame(self) -> Any:
        """The table that was read, with its groups; None if the fit is private."""
        if self.fit.is_on_cluster or not self.fit.provenance.shows_rows:
            return None
        return self.fit.with_groups(narwhals.from_native(self.source.frame)).to_native()

    @cached_property
    def costs(self) -> DeliveredCosts:
        """What the table that is written costs each group."""
        return deliveries.costs_of(self.fit, self.delivered, self.readable_frame)

    def case(self, wanted: OutputOptions) -> Case:
        """What there is to say of the fit and of what is written."""
        estimable = None
        if wanted.estimate is None and not self.fit.is_on_cluster:
            estimable = wanted.mode
        output = None
        if self.delivered is not None:
            output = deliveries.output_of(self.fit, self.delivered, self.costs)
        return self.fit.case(
            output,
            estimable=estimable,
            table=self.table,
            spell=as_typed,
            rest="; --json shows them all",
        )

    @cached_property
    def notes(self) -> Notes:
        """What a user should know about the data, and about what is written."""
        reading: Notes = ()
        if self.fit.provenance.shows_rows:
            reading = self.source.notes_spelled(as_typed)
        return (
            *good_outcome_notes(
                self.fit.request.favourable, self.fit.roles.attributes[0]
            ),
            *reading,
            *_leaks(self),
            *self.written_notes,
        )


def _leaks(result: Result) -> Iterator[str]:
    """Columns that give the outcome away, or what the model is not to see."""
    fit = result.fit
    # If the rows are in memory to look at; rows to share have other levels.
    is_hidden = fit.request.release or not fit.provenance.shows_rows
    if is_hidden or not fit.table.keeps_rows:
        return
    if fit.weighed is not None:  # nobody's group gives anything away
        return
    outcome, *protected = fit.roles.names
    roles = Roles.of(fit.domain, outcome, protected)
    frame = open_frame(result.source.frame)
    codes = fit.domain.encode(fit.with_groups(frame))
    for hint in leak_hints(roles, codes, None):
        yield spelled(hint.parts, as_typed)
    decisions = fit.certificate.decisions
    if decisions is None or not decisions.hide_protected:
        return
    hidden = fit.roles.protected_names
    for proxy in proxies(roles, codes, None):
        gives_away = proxy.strength >= LEAKS and proxy.protected in hidden
        if gives_away and proxy.column not in hidden:
            yield (
                f"the model does not see {proxy.protected!r}, but {proxy.column!r}"
                " gives it away; to hide both, add"
                f" {as_typed(Option('drop', [proxy.column]))} and train without it"
            )


# ---------------------------------------------------------------- making it


def make_result(
    fit: Certified,
    source: TableFile,
    wanted: OutputOptions,
    staging: Staging,
    progress: Progress = silent,
) -> Result:
    """Write the fit and the table."""
    if wanted.save is not None:
        fit.save(staging.path_for(wanted.save))
    if wanted.output is None:
        return Result(fit, source, fit.root_table)
    is_lazy = source.frame.__class__.__name__ == "LazyFrame"
    if wanted.scheduler is not None:
        return _on_workers(fit, source, wanted, staging, progress)
    if is_lazy and wanted.mode == "rows":
        return _in_batches(fit, source, wanted, staging, progress)
    new_rows = None
    if wanted.mode == "weights":
        frame = fit.weigh(source.complete, weight_name=wanted.weight_name)
    elif wanted.mode == "top-up":
        frame = new_rows = fit.top_up()
    else:
        frame = new_rows = fit.sample(_count(fit, wanted), iid=wanted.iid)
    made = deliveries.deliver(
        fit,
        new_rows,
        mode=wanted.mode,
        iid=wanted.iid,
        seed=fit.request.random_state,
    )
    notes: Notes = ()
    # A table for stdout is written last, because it cannot be taken back.
    if wanted.output != STANDARD or is_lazy:
        notes = wanted.write(frame, source, staging)
    rows = fit.table.size if is_lazy and new_rows is None else len(frame)
    if new_rows is None and rows > fit.table.size:
        note = (
            f"{counted(fit.table.size, 'row')} became {rows:,}, because people are"
            " split between the outcomes; always count each row by the column"
            f" {wanted.weight_name!r}"
        )
        notes += (note,)
    return Result(
        fit,
        source,
        made.table,
        rows=rows,
        frame=None if is_lazy else frame,
        delivered=made,
        written_notes=notes,
    )


def _count(fit: Certified, wanted: OutputOptions) -> int:
    """How many rows to draw: as many as the table has, if nobody says."""
    return wanted.rows or fit.table.size


def _on_workers(
    fit: Certified,
    source: TableFile,
    wanted: OutputOptions,
    staging: Staging,
    progress: Progress,
) -> Result:
    """Let the workers of a cluster write, and count the rows that they drew."""
    assert wanted.output is not None
    folder = staging.path_for(wanted.output)
    seed = fit.request.random_state
    if wanted.mode == "weights":
        weighed = fit.weigh(source.complete, weight_name=wanted.weight_name)
        # a part for each part of the input, with its rows in their order
        weighed.to_parquet(folder, write_index=False, name_function=part_name)
        made = deliveries.deliver(fit, None, mode="weights", iid=False, seed=None)
        return Result(fit, source, made.table, rows=fit.table.size, delivered=made)
    if wanted.mode == "top-up":
        fit.write_cells(
            fit.cells_to_add(),
            folder,
            generator(seed),
            readable=wanted.readable_by_others,
            progress=progress,
        )
    else:
        fit.write_sample(
            _count(fit, wanted),
            folder,
            iid=wanted.iid,
            readable_by_others=wanted.readable_by_others,
            progress=progress,
        )
    made = _drawn_in(folder, fit, wanted)
    return Result(fit, source, made.table, made.rows, delivered=made)


def _drawn_in(
    folder: Path, fit: Certified, wanted: OutputOptions
) -> deliveries.Delivered:
    """Count the rows in the files of a folder; some of each are kept for a report."""
    drawn = deliveries.DrawnBatches(fit)
    parquet = load_library("pyarrow.parquet")
    parts = sorted(folder.glob("*.parquet"))
    heads = []
    for part in parts:
        with parquet.ParquetFile(part) as file:
            for batch in file.iter_batches(BATCH, columns=list(fit.roles.names)):
                drawn.add(batch.to_pandas())
            heads.append(next(file.iter_batches(-(-BATCH // len(parts)))).to_pandas())
    if heads:
        drawn.shown = load_library("pandas").concat(heads, ignore_index=True)
    return drawn.delivered(
        iid=wanted.iid, seed=fit.request.random_state, mode=wanted.mode
    )


def _in_batches(
    fit: Certified,
    source: TableFile,
    wanted: OutputOptions,
    staging: Staging,
    progress: Progress,
) -> Result:
    """Write rows as they are drawn, because the table is not in memory."""
    assert wanted.output is not None
    drawn = deliveries.DrawnBatches(fit)
    notes = write_drawn(
        fit,
        _count(fit, wanted),
        staging,
        wanted.output,
        format=wanted.output_format,
        drawn=drawn,
        progress=progress,
        iid=wanted.iid,
    )
    made = drawn.delivered(iid=wanted.iid, seed=fit.request.random_state)
    return Result(
        fit,
        source,
        made.table,
        made.rows,
        delivered=made,
        written_notes=notes,
    )


def make_report(
    result: Result,
    wanted: OutputOptions,
    staging: Staging,
    origin: Source,
) -> None:
    """Write the report; it names the digests of the other files, which are there.

    The folder that a cluster writes into has none.
    """
    files = {"Saved fit": wanted.save}
    if wanted.scheduler is None:
        files = {"Fair table": wanted.output} | files
    written = tuple(
        written_file(what, staging.path_for(path), name=path)
        for what, path in files.items()
        if path not in (None, STANDARD)
    )
    source = replace(origin, written=written, dropped=result.source.dropped)
    # The report on a private fit says nothing about the file's content.
    if result.fit.provenance.shows_rows:
        reading = result.source.notes_spelled(origin.front_door.spell)
        source = replace(source, reading=reading)
    else:
        source = replace(source, sha256=None)
    report = build_report(
        result.fit,
        data=result.readable_frame,
        source=source,
        mode=wanted.mode,
        iid=wanted.iid,
        evaluate=wanted.evaluate,
        result=result.delivered,
        seed=result.fit.request.random_state,
        **wanted.filing,
    )
    save_report(report, staging.path_for(wanted.report or ""))


# ---------------------------------------------------------------- for people


def result_text(result: Result, wanted: OutputOptions, following: str) -> str:
    """What there is to say, what was written, and what next."""
    notes = first(result.notes, _SHOWN, "note", "; --json shows them all")
    sections: list[Iterable[Block]] = [
        *sections_of(result.case(wanted), least=Weight.FACT, topics=TOLD),
        [Note(f"Note: {note}") for note in notes],
        [] if wanted.report is not None else [Paragraph(_REST)],
        map(Paragraph, wanted.written(result.rows, result.fit.contents)),
    ]
    return "\n\n".join(filter(None, [sections_text(sections), following]))


def after_debias(
    data: str,
    wanted: OutputOptions,
    repeat: str,
    result: Result,
) -> str:
    """Write what was only shown, read the report, or use the result."""
    if wanted.scheduler is not None:
        if wanted.targets:
            return ""
        return next_step("name a folder with -o, where the workers write the table")
    if not wanted.targets:
        return next_step(
            "write the table and a report",
            [*shlex.split(repeat)[1:], *outputs(data, result.source.form)],
        )
    if wanted.report is not None:
        return after_report(wanted.report)
    if wanted.save is not None:
        command = ["report", wanted.save]
        if data != STANDARD and result.fit.provenance.shows_rows:
            command += ["--data", data]
        command += ["--mode", wanted.mode]
        why = "write a report to file"
        if result.fit.provenance.spends:
            why += "; this, and drawing more rows, spends nothing"
            if wanted.estimate is None:
                command += ["--estimate", "rows"]
        return next_step(why, [*command, "-o", name_for(wanted.save, "report.html")])
    uses = {
        "rows": "use these rows in place of yours",
        "weights": (
            f"pass the column {wanted.weight_name!r} as sample weights when you train a"
            " model"
        ),
        "top-up": "add these rows to yours",
    }
    return next_step(
        f"{uses[wanted.mode]}; for a report to file, run it again with --report"
        " report.html --force"
    )


def good_outcome_notes(favourable: object, outcome: Attribute) -> Iterator[str]:
    """Say that every outcome is compared if none is named, and which to name."""
    if favourable is not None:
        return
    what = f"no good outcome was named, so every level of {outcome.name!r} is compared"
    proposed = propose_favourable(outcome)
    known = known_levels(outcome)
    if proposed:
        names = [value_text(level.value) for level in proposed]
        typed = " ".join(as_typed(Option("favourable", name)) for name in names)
        yield (
            f"{what}; the good one is probably {names[0]!r} ({proposed[0].reason}): add"
            f" {typed}"
        )
    elif len(known) <= _FEW:
        choices = " or ".join(as_typed(Option("favourable", name)) for name in known)
        yield f"{what}; to name one, add {choices}"


def result_record(result: Result, wanted: OutputOptions) -> Values:
    """The same for programs; of a private fit, nothing that reading the file showed."""
    case = result.case(wanted)
    return {
        "mode": wanted.mode,
        "rows": result.rows,
        "files": wanted.targets,
        "seed": None if wanted.mode == "weights" else result.fit.request.random_state,
        "fit_holds": None if wanted.save is None else result.fit.contents,
        "costs": asdict(result.costs),
        "before": result.fit.certificate.before,
        "after": deliveries.delivered_rates(result.fit, result.table),
        "notes": (*warnings(case), *result.notes),
        "told": as_values(case),
        "certificate": result.fit.certificate.to_dict(),
    }
