"""What ``fairmaxent debias`` made, and what it says about it: to people, and to
programs.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from fairmaxent.cli.options import name_for, next_step, outputs
from fairmaxent.cli.output import OutputOptions, write_drawn
from fairmaxent.cli.values import as_typed
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.frames import load_library
from fairmaxent.data.levels import value_text
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Reals
from fairmaxent.document import Block, Paragraph, Table
from fairmaxent.document.text import sections_text
from fairmaxent.document.words import counted
from fairmaxent.errors import Option, spelled
from fairmaxent.files.reading import STANDARD, TableFile
from fairmaxent.files.write import Staging
from fairmaxent.fit import statements
from fairmaxent.fit.certificate import cost_remarks, other_remarks
from fairmaxent.fit.fitted import Fitted
from fairmaxent.fit.groups import group_changes
from fairmaxent.inspection.hints import LEAKS, leak_hints, proxies
from fairmaxent.inspection.proposals import known_levels, propose_favourable
from fairmaxent.progress import Progress, silent
from fairmaxent.report import Source, build_report
from fairmaxent.report import delivered as deliveries
from fairmaxent.report.source import written_file
from fairmaxent.report.writer import save_report

_SHOWN = 12  # notes before the rest is counted
_FEW = 3  # outcomes that each have a line of their own, or are named


@dataclass(frozen=True, eq=False)
class Result:
    """A fit, the table to write, and the rates of what is written."""

    fit: Fitted
    source: TableFile
    table: Reals  # of outcome and protected columns, whose cells sum to one
    rows: int | None = None  # of the table that is written
    # that table; None: it was written as it was drawn, or there is none
    frame: Any = None
    # the new rows or weights in it; None: nothing was written
    delivered: deliveries.Delivered | None = None
    written_notes: tuple[str, ...] = ()  # what to know about the file

    @property
    def private(self) -> bool:
        """Whether the fit is private, so that nothing else may be said about the rows
        of the data.
        """
        return self.fit.certificate.privacy is not None

    @cached_property
    def costs(self) -> deliveries.DeliveredCosts:
        """What the table that is written costs each group."""
        return deliveries.costs_of(
            self.fit, self.delivered, None if self.private else self.source.frame
        )

    @property
    def alerts(self) -> tuple[str, ...]:
        """Costs beyond the line, with their remedies: the first thing that is said."""
        return tuple(
            spelled(remark, as_typed) for remark in cost_remarks(self.fit.certificate)
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What else a user should know about the data, the fit and what is written."""
        good = good_outcome_notes(
            self.fit.request.favourable, self.fit.roles.attributes[0]
        )
        missing = deliveries.absences(self.fit, self.table)
        typed = [
            spelled(remark, as_typed) for remark in other_remarks(self.fit.certificate)
        ]
        if self.private:
            exact = ()
        else:
            exact = self.source.notes_spelled(as_typed)
        leaks: list[str] = []
        # If the rows are in memory to look at; rows to share have other levels.
        if (
            self.fit.table.keeps_rows
            and not self.private
            and not self.fit.request.release
        ):
            outcome, *protected = self.fit.roles.names
            roles = Roles.of(self.fit.domain, outcome, protected)
            codes = self.fit.domain.encode(self.source.frame)
            leaks = [
                spelled(hint.parts, as_typed) for hint in leak_hints(roles, codes, None)
            ]
            decisions = self.fit.certificate.decisions
            hidden = self.fit.roles.protected_names
            for own in (
                proxies(roles, codes, None)
                if decisions and not decisions.sees_protected
                else ()
            ):
                if (
                    own.strength >= LEAKS
                    and own.protected in hidden
                    and own.column not in hidden
                ):
                    what = (
                        f"the model does not see {own.protected!r}, but {own.column!r}"
                        " gives it away; to hide both, "
                    )
                    leaks.append(
                        f"{what}add {as_typed(Option('drop', [own.column]))} and train"
                        " without it"
                    )
        return (*good, *missing, *exact, *leaks, *typed, *self.written_notes)


# ---------------------------------------------------------------- making it


def make_result(
    fit: Fitted,
    source: TableFile,
    wanted: OutputOptions,
    staging: Staging,
    progress: Progress = silent,
) -> Result:
    """Write the model and the table; rows of one that stays on disk or on a cluster are
    written as they are drawn.
    """
    if wanted.model is not None:
        fit.save(staging.path_for(wanted.model))
    if wanted.output is None:
        return Result(fit, source, fit.distribution.root_table)
    # of a private table, not even that is exact
    if wanted.rows is None:
        count = fit.table.size
    else:
        count = wanted.rows
    seed = fit.request.random_state
    is_lazy = source.frame.__class__.__name__ == "LazyFrame"
    if wanted.scheduler is not None:
        folder = staging.path_for(wanted.output)
        readable = wanted.readable_by_others
        fit.write_sample(
            count,
            folder,
            iid=wanted.iid,
            readable_by_others=readable,
            progress=progress,
        )
        drawn = deliveries.DrawnBatches(fit)
        for part in sorted(folder.glob("*.parquet")):
            drawn.add(
                load_library("pandas").read_parquet(part, columns=list(fit.roles.names))
            )
        return Result(fit, source, drawn.table, count)
    if is_lazy and wanted.mode == "rows":
        drawn = deliveries.DrawnBatches(fit)
        form = wanted.output_format
        how: dict[str, Any] = {
            "format": form,
            "drawn": drawn,
            "progress": progress,
            "iid": wanted.iid,
        }
        notes = write_drawn(fit, count, staging, wanted.output, **how)
        made = drawn.delivered(iid=wanted.iid, seed=seed)
        return Result(
            fit, source, made.table, made.rows, delivered=made, written_notes=notes
        )
    given = None
    if wanted.mode == "weights":
        frame = fit.weigh(
            source.frame if source.whole is None else source.whole,
            name=wanted.weight_name,
        )
    else:
        given = frame = (
            fit.top_up()
            if wanted.mode == "top-up"
            else fit.sample(count, iid=wanted.iid)
        )
    made = deliveries.deliver(fit, given, mode=wanted.mode, iid=wanted.iid, seed=seed)
    # A table for stdout is written last, because it cannot be taken back.
    if wanted.output == STANDARD and not is_lazy:
        notes = ()
    else:
        notes = wanted.write(frame, source, staging)
    if is_lazy and given is None:
        rows = fit.table.size
    else:
        rows = len(frame)
    if given is None and rows > fit.table.size:
        split = (
            f"{counted(fit.table.size, 'row')} became {rows:,}, because people are"
            " split between the outcomes"
        )
        notes = (
            *notes,
            f"{split}; always count each row by the column {wanted.weight_name!r}",
        )
    if given is not None and fit.certificate.decisions is not None:
        notes = (
            *notes,
            (
                "the model was tried with weights, and rows are less exact; to train"
                " it, use --mode weights"
            ),
        )
    return Result(
        fit,
        source,
        made.table,
        rows,
        None if is_lazy else frame,
        made,
        written_notes=notes,
    )


def make_report(
    result: Result, wanted: OutputOptions, staging: Staging, origin: Source
) -> None:
    """Write the report; the other files are there, so that it can name their
    digests.
    """
    files = {"Fair table": wanted.output, "Model": wanted.model}
    written = tuple(
        written_file(what, staging.path_for(path), name=path)
        for what, path in files.items()
        if path not in (None, STANDARD)
    )
    # The report on a private fit says nothing about the file's content.
    if result.private:
        exact = {"sha256": None}
    else:
        exact = {"reading": result.source.notes_spelled(origin.front_door.spell)}
    asked: dict[str, Any] = {
        "mode": wanted.mode,
        "iid": wanted.iid,
        "evaluate": wanted.evaluate,
        **wanted.filing,
    }
    asked |= {"delivered": result.delivered, "seed": result.fit.request.random_state}
    source = replace(origin, written=written, dropped=result.source.dropped, **exact)
    report = build_report(
        result.fit,
        data=None if result.private else result.source.frame,
        source=source,
        **asked,
    )
    for path in wanted.reports:
        save_report(report, staging.path_for(path))


# ---------------------------------------------------------------- for people


def result_text(result: Result, wanted: OutputOptions, following: str) -> str:
    """What it costs, the rates before and after, what to know, what was written, and
    the next step.
    """
    certificate = result.fit.certificate
    notes = list(result.notes[:_SHOWN])
    if len(result.notes) > _SHOWN:
        notes.append(f"and {len(result.notes) - _SHOWN} more; --json shows them all")
    is_one = len(certificate.measure.favourable) == 1
    if is_one:
        decided = f", for {certificate.compared_outcomes[0].outcome}"
    else:
        decided = ""
    changes = group_changes(result.fit, result.table)
    groups = [
        (
            change.name,
            change.about,
            statements.rate_text(change.rate_before),
            statements.rate_text(change.rate_after),
        )
        for about in dict.fromkeys((change.column, change.about) for change in changes)
        for change in changes
        if about == (change.column, change.about)
    ]
    # Of a private fit, the report is the place: another fit would be paid for again. A
    # table for a model has its own.
    can_be_estimated = (
        wanted.scheduler is None and not result.fit.roles.others and not result.private
    )
    can_be_estimated &= certificate.decisions is None
    how = Option("estimate", "weights" if wanted.mode == "weights" else "rows")
    estimate = (
        (
            "How a model trained on this will treat people was not estimated; to"
            " estimate it, use "
        ),
        how,
    )
    sections: list[Sequence[Block]] = [
        _paragraphs("", _sharing(result)),
        _paragraphs("", statements.beyond_lines(certificate.decisions)),
        _paragraphs("Warning: ", result.alerts),
        _paragraphs(
            "Outcomes were changed for ", statements.changed_lines(certificate.costs)
        ),
        _costs(result, wanted),
        [
            statements.rates_table(
                list(_rate_lines(result)), ("wanted", "before", "after")
            )
        ],
        _paragraphs("", statements.mean_lines(certificate.means, result.fit.roles)),
        [Table("Groups", ("group", "", "before", "after"), tuple(groups))],
        statements.decision_blocks(certificate.decisions),
        statements.estimate_blocks(certificate.estimate, decided),
        _paragraphs(
            "",
            (
                [spelled(estimate, as_typed)]
                if wanted.estimate is None and can_be_estimated
                else ()
            ),
        ),
        _paragraphs("Note: ", notes),
        _paragraphs("", wanted.written(result.rows, result.fit.contents)),
    ]
    return "\n\n".join(filter(None, [sections_text(sections), following]))


def _paragraphs(lead: str, lines: Iterable[str]) -> list[Block]:
    return [Paragraph(f"{lead}{line}") for line in lines]


def _rate_lines(result: Result) -> Iterator[statements.RateLine]:
    """The rates wanted, before and after; a line for each of a few outcomes, so that it
    is clear what each is about.
    """
    certificate = result.fit.certificate
    fit = result.fit
    before, after = (
        deliveries.outcome_ratios(fit, cells)
        for cells in (fit.problem.data_table, result.table)
    )
    written = deliveries.delivered_rates(fit, result.table)
    for kind, name in certificate.rates_shown:
        what = certificate.measure.rate_name(kind, name)
        wanted = certificate.wanted[kind][name]
        if kind == "statistical_rate":
            levels = before[name]
        else:
            levels = {}
        if 1 < len(levels) <= _FEW:
            for level, rate in levels.items():
                yield statements.RateLine(
                    f"{what}, {level}", wanted, rate, after[name][level]
                )
            continue
        if not levels:
            about = ""
        else:
            about = f", {next(iter(levels))}"
        if len(levels) > _FEW:
            about = f", worst of {len(levels)} outcomes"
        yield statements.RateLine(
            f"{what}{about}",
            wanted,
            certificate.before[kind][name],
            written[kind][name],
        )


def _costs(result: Result, wanted: OutputOptions) -> list[Block]:
    """The outcomes before and after, each group, those that rest on least if there are
    many, and the worst cell.
    """
    costs = result.costs
    lines = _paragraphs("", statements.outcome_lines(costs.outcomes))
    if costs.worst_cell is None:
        return lines
    last = ["most copies" if costs.counted else "expected copies"]
    if wanted.mode == "weights":
        last = ["largest weight"]
    if result.delivered is None:
        last = ["largest weight", "expected copies"]
    blocks = statements.cost_blocks(
        costs.groups, costs.worst_cell, last, "; --json shows them all"
    )
    return [*lines, *blocks, *_paragraphs("", statements.filled_lines(costs.filled))]


def _sharing(result: Result) -> Iterator[str]:
    """What a private fit promises, or how many of the rows written are copies of real
    ones; nothing if none is.
    """
    certificate = result.fit.certificate
    if certificate.privacy is not None:
        yield from (
            line[:1].upper() + line[1:]
            for line in statements.privacy_lines(certificate.privacy)
        )
    elif (
        certificate.copied_share
        and result.delivered is not None
        and result.delivered.mode == "rows"
    ):
        count, (are, mean) = (
            result.delivered.rows,
            statements.copies_of(certificate.redrawn),
        )
        yield (
            f"About {round(certificate.copied_share * count):,} of the"
            f" {counted(count, 'new row')} are copies of {are}, and {mean}; for rows to"
            " share, add --release."
        )


def after_debias(data: str, wanted: OutputOptions, repeat: str, result: Result) -> str:
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
        return next_step(
            f"open {wanted.report} and read its first page before you use the result"
        )
    if wanted.model is not None:
        if data == STANDARD or result.private:
            read = []
        else:
            read = ["--data", data]
        if result.private and wanted.estimate is None:
            estimated = ["--estimate", "rows"]
        else:
            estimated = []
        command = ["report", wanted.model, *read, "--mode", wanted.mode, *estimated]
        why = "write a report to file" + (
            "; this, and drawing more rows, spends nothing" if result.private else ""
        )
        return next_step(why, [*command, "-o", name_for(wanted.model, "report.html")])
    uses = {
        "rows": "use these rows instead of yours",
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
    """Say that every outcome is compared if none is named as good, and which to
    name.
    """
    if favourable is not None:
        return
    what = f"no good outcome was named, so every level of {outcome.name!r} is compared"
    proposed = propose_favourable(outcome)
    if proposed:
        typed = " ".join(
            as_typed(Option("favourable", value_text(level.value)))
            for level in proposed
        )
        yield (
            f"{what}; the good one is probably {value_text(proposed[0].value)!r}"
            f" ({proposed[0].reason}): add {typed}"
        )
    elif len(known_levels(outcome)) <= _FEW:
        choices = " or ".join(
            as_typed(Option("favourable", level)) for level in known_levels(outcome)
        )
        yield f"{what}; to name one, add {choices}"


def result_record(result: Result, wanted: OutputOptions) -> dict[str, Any]:
    """The same for programs; of a private fit, nothing that reading the file showed."""
    return {
        "mode": wanted.mode,
        "rows": result.rows,
        "files": wanted.targets,
        "seed": None if wanted.mode == "weights" else result.fit.request.random_state,
        "model_holds": None if wanted.model is None else result.fit.contents,
        "costs": asdict(result.costs),
        "before": result.fit.certificate.before,
        "after": deliveries.delivered_rates(result.fit, result.table),
        "notes": (*result.alerts, *result.notes),
        "certificate": result.fit.certificate.to_dict(),
    }
