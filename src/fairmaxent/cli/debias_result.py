"""What ``fairmaxent debias`` made, and what it says about it: to people, and to programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.good_outcome import good_outcome_notes
from fairmaxent.cli.next_step import free_name, next_step, outputs
from fairmaxent.cli.text import cell_text, counted
from fairmaxent.errors import spelled
from fairmaxent.fit.sharing_text import copies_of, privacy_lines

if TYPE_CHECKING:
    from fairmaxent.cli.before_after import Measured
    from fairmaxent.cli.output_options import OutputOptions
    from fairmaxent.files.reading import TableFile
    from fairmaxent.fit.fit import Fit
    from fairmaxent.report.delivered import Delivered
    from fairmaxent.report.delivered_costs import DeliveredCosts

_SHOWN = 12  # notes before the rest is counted


@dataclass(frozen=True, eq=False)
class Result:
    """A fit, the table to write, and the rates of what is written."""

    fit: Fit
    source: TableFile
    rows: int | None  # of the table that is written
    frame: Any  # that table; None: it was written as it was drawn, or there is none
    before: Measured
    after: Measured
    delivered: Delivered | None = None  # the new rows or weights in it; None: nothing was written
    not_estimated: str | None = None  # why there is no estimate of a model trained on it
    written_notes: tuple[str, ...] = ()  # what to know about the file

    @property
    def private(self) -> bool:
        """Whether the fit is private, so that nothing else may be said about the rows of the data."""
        return self.fit.certificate.privacy is not None

    @cached_property
    def costs(self) -> DeliveredCosts:
        """What the table that is written costs each group."""
        from fairmaxent.report.delivered_costs import delivered_costs

        return delivered_costs(self.fit, self.delivered, None if self.private else self.source.frame)

    @property
    def alerts(self) -> tuple[str, ...]:
        """Costs beyond the line, with their remedies: the first thing that is said."""
        from fairmaxent.fit.cost_remarks import cost_remarks

        return tuple(spelled(remark, as_typed) for remark in cost_remarks(self.fit.certificate))

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a user should know about the data, the fit and what is written."""
        from fairmaxent.fit.remarks import other_remarks

        good = good_outcome_notes(self.fit.request.favourable, self.fit.roles.attributes[0])
        typed = [spelled(remark, as_typed) for remark in other_remarks(self.fit.certificate)]
        unknown = () if self.not_estimated is None else (self.not_estimated,)
        exact = () if self.private else (*self.source.notes_spelled(as_typed), *self._leaks)
        return (*good, *self.after.absences, *exact, *typed, *unknown, *self.written_notes)

    @property
    def notes_on_file(self) -> tuple[str, ...]:
        """What reading the file of a private fit showed: exact, so it is for the user alone."""
        return self.source.notes_spelled(as_typed) if self.private else ()

    @property
    def _leaks(self) -> tuple[str, ...]:
        """Columns that all but say the outcome, if the rows are in memory to look at."""
        from fairmaxent.data.roles import Roles
        from fairmaxent.inspection.hints import leak_hints

        if not self.fit.table.keeps_rows or self.fit.request.release:  # rows to share have other levels
            return ()
        domain = self.fit.domain
        outcome, *protected = self.fit.roles.names
        roles = Roles.of(domain, outcome, protected)
        hints = leak_hints(roles, domain.encode(self.source.frame), None)
        return tuple(spelled(hint.parts, as_typed) for hint in hints)


def result_text(result: Result, wanted: OutputOptions, following: str) -> str:
    """What it costs, the rates before and after, what to know, what was written, and the next step."""
    from fairmaxent.cli.before_after import groups_table, rates_table
    from fairmaxent.cli.costs import changed_text, costs_text
    from fairmaxent.cli.decisions import decisions_table
    from fairmaxent.cli.model_estimate import outlook_table
    from fairmaxent.fit.mean_text import mean_lines

    notes = list(result.notes[:_SHOWN])
    if len(result.notes) > _SHOWN:
        notes.append(f"and {len(result.notes) - _SHOWN} more; --json shows them all")
    on_file = [cell_text(note) for note in result.notes_on_file]
    written = [_written(target, result, wanted) for target in wanted.targets if target != "-"]
    if result.rows is not None and wanted.output != "-":
        written[0] += f" ({counted(result.rows, 'row')})"
    parts = [
        "\n".join(sharing_text(result)),
        "\n".join(f"Warning: {cell_text(alert)}" for alert in result.alerts),
        changed_text(result.fit.certificate.costs),
        costs_text(result.costs, wanted.mode, delivered=result.delivered is not None),
        rates_table(result.fit.certificate, result.before, result.after),
        "\n".join(cell_text(line) for line in mean_lines(result.fit)),
        groups_table(result.before, result.after),
        decisions_table(result.fit),
        outlook_table(result.fit),
        "\n".join(f"About your file, not private, so do not pass it on: {note}" for note in on_file),
        "\n".join(f"Note: {cell_text(note)}" for note in notes),
        "\n".join(written) if wanted.targets else "Nothing was written.",
        following,
    ]
    return "\n\n".join(part for part in parts if part)


def sharing_text(result: Result) -> Iterator[str]:
    """What a private fit promises, or how many of the rows written are copies of real ones; nothing if none is."""
    certificate = result.fit.certificate
    if certificate.privacy is not None:
        yield from (line[:1].upper() + line[1:] for line in privacy_lines(certificate.privacy))
    elif certificate.copied_share and result.delivered is not None and result.delivered.mode == "rows":
        count, copies = result.delivered.rows, copies_of(redrawn=certificate.redrawn is not None)
        yield (
            f"About {round(certificate.copied_share * count):,} of the {counted(count, 'new row')} are copies of "
            f"{copies.are}, and {copies.mean}; for rows to share, add --release."
        )


def after_debias(data: str, wanted: OutputOptions, repeat: str, result: Result) -> str:
    """Write what was only shown, read the report, or use the result."""
    source, private = result.source, result.private
    if not wanted.targets:
        command = [*shlex.split(repeat), *outputs(data, source.form)]
        return next_step("write the table and a report", command)
    if wanted.report is not None:
        return next_step(f"open {wanted.report} and read its first page before you use the result")
    if wanted.model is not None:
        read = [] if data == "-" or private else ["--data", data]
        command = ["fairmaxent", "report", wanted.model, *read, "--mode", wanted.mode]
        return next_step("write a report to file", [*command, "-o", free_name(wanted.model, "report", ".html")])
    uses = {
        "rows": "use these rows instead of yours",
        "weights": f"pass the column {wanted.weight_name!r} as sample weights when you train a model",
        "top-up": "add these rows to yours",
    }
    return next_step(f"{uses[wanted.mode]}; for a report to file, run it again with --report report.html --force")


def _written(target: str, result: Result, wanted: OutputOptions) -> str:
    """Say that a file was written, and which rows of people a model holds."""
    from fairmaxent.fit.contents import contents

    holds = f" (it holds {cell_text(contents(result.fit))})" if target == wanted.model else ""
    return f"wrote {cell_text(target)}{holds}"


def result_record(result: Result, wanted: OutputOptions) -> dict[str, Any]:
    """The same for programs; of a private fit, nothing that reading the file showed."""
    from fairmaxent.fit.contents import contents

    return {
        "mode": wanted.mode,
        "rows": result.rows,
        "files": wanted.targets,
        "seed": None if wanted.mode == "weights" else result.fit.request.random_state,
        "model_holds": None if wanted.model is None else contents(result.fit),
        "costs": asdict(result.costs),
        "before": result.before.rates,
        "after": result.after.rates,
        "notes": (*result.alerts, *result.notes),
        "certificate": result.fit.certificate.to_dict(),
    }
