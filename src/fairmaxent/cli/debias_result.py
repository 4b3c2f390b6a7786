"""What ``fairmaxent debias`` made, and what it says about it: to people, and to programs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairmaxent.cli.exit_codes import as_typed
from fairmaxent.cli.next_step import free_name, next_step, outputs
from fairmaxent.cli.text import counted
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.levels import value_text
from fairmaxent.document import Block, Paragraph
from fairmaxent.document.text import sections_text
from fairmaxent.errors import Option, spelled
from fairmaxent.fit.statements import (
    changed_lines,
    copies_of,
    cost_blocks,
    decision_blocks,
    estimate_blocks,
    filled_lines,
    mean_lines,
    outcome_lines,
    privacy_lines,
)
from fairmaxent.inspection.proposals import known_levels, propose_favourable

if TYPE_CHECKING:
    from fairmaxent.cli.before_after import Measured
    from fairmaxent.cli.output_options import EstimateChoice, OutputOptions
    from fairmaxent.files.reading import TableFile
    from fairmaxent.fit.fit import Fit
    from fairmaxent.fit.option_values import Estimate, OutputOption
    from fairmaxent.progress import Progress
    from fairmaxent.report.delivered import Delivered, DeliveredCosts, Mode

_SHOWN = 12  # notes before the rest is counted
_FEW_LEVELS = 3  # of an outcome
_NOT_ESTIMATED = "how a model trained on the result will behave was not estimated"


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
        from fairmaxent.report.delivered import costs_of

        return costs_of(self.fit, self.delivered, None if self.private else self.source.frame)

    @property
    def alerts(self) -> tuple[str, ...]:
        """Costs beyond the line, with their remedies: the first thing that is said."""
        from fairmaxent.fit.remarks import cost_remarks

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
    from fairmaxent.cli import before_after

    certificate, roles = result.fit.certificate, result.fit.roles
    notes = list(result.notes[:_SHOWN])
    if len(result.notes) > _SHOWN:
        notes.append(f"and {len(result.notes) - _SHOWN} more; --json shows them all")
    levels = certificate.measure.favourable
    decided = f", for {before_after.about(result.fit, levels[0])}" if len(levels) == 1 else ""
    sections: list[Sequence[Block]] = [
        _paragraphs("", sharing_text(result)),
        _paragraphs("Warning: ", result.alerts),
        _paragraphs("Outcomes were changed for ", changed_lines(certificate.costs)),
        _costs(result, wanted),
        [before_after.rates(certificate, result.before, result.after)],
        _paragraphs("", mean_lines(certificate.means, roles)),
        [before_after.groups(result.before, result.after)],
        decision_blocks(certificate.decisions),
        estimate_blocks(certificate.estimate, decided),
        _paragraphs("About your file, not private, so do not pass it on: ", result.notes_on_file),
        _paragraphs("Note: ", notes),
        _paragraphs("", _written(result, wanted)),
    ]
    return "\n\n".join(filter(None, [sections_text(sections), following]))


def _paragraphs(lead: str, lines: Iterable[str]) -> list[Block]:
    return [Paragraph(f"{lead}{line}") for line in lines]


def _costs(result: Result, wanted: OutputOptions) -> list[Block]:
    """The outcomes before and after, each group, those that rest on least if there are many, and the worst cell."""
    costs = result.costs
    lines = _paragraphs("", outcome_lines(costs.outcomes))
    if costs.worst_cell is None:
        return lines
    copies = "most copies" if costs.counted else "expected copies"
    last = ["largest weight"] if wanted.mode == "weights" else [copies]
    last = ["largest weight", "expected copies"] if result.delivered is None else last
    blocks = cost_blocks(costs.groups, costs.worst_cell, last, "; --json shows them all")
    return [*lines, *blocks, *_paragraphs("", filled_lines(costs.filled))]


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


def _written(result: Result, wanted: OutputOptions) -> Iterator[str]:
    """Say which files were written, and which rows of people a model holds."""
    if not wanted.targets:
        yield "Nothing was written."
    targets = [target for target in wanted.targets if target != "-"]
    for number, target in enumerate(targets):
        holds = f" (it holds {result.fit.contents})" if target == wanted.model else ""
        rows = (
            f" ({counted(result.rows, 'row')})"
            if number == 0 and result.rows is not None and wanted.output != "-"
            else ""
        )
        yield f"wrote {target}{holds}{rows}"


def result_record(result: Result, wanted: OutputOptions) -> dict[str, Any]:
    """The same for programs; of a private fit, nothing that reading the file showed."""
    return {
        "mode": wanted.mode,
        "rows": result.rows,
        "files": wanted.targets,
        "seed": None if wanted.mode == "weights" else result.fit.request.random_state,
        "model_holds": None if wanted.model is None else result.fit.contents,
        "costs": asdict(result.costs),
        "before": result.before.rates,
        "after": result.after.rates,
        "notes": (*result.alerts, *result.notes),
        "certificate": result.fit.certificate.to_dict(),
    }


# ---------------------------------------------------------------- what is estimated, and what is compared


def with_outlook(
    fit: Fit, asked: EstimateChoice, mode: Mode, trial_of: Callable[[OutputOption], Estimate], progress: Progress
) -> tuple[Fit, str | None]:
    """Return the fit with the estimate in its certificate, or the fit as it is and why it has none."""
    from fairmaxent.fit.pipeline import with_default_estimate, with_estimate

    if asked == "none":
        return fit, None
    if asked != "auto":
        return with_estimate(fit, trial_of(asked), progress=progress), None
    if mode == "top-up":
        return fit, f"{_NOT_ESTIMATED}; to estimate it, use --estimate rows or weights"
    fit = with_default_estimate(fit, trial_of(mode), progress=progress)
    missing = fit.certificate.not_estimated
    if missing is None or not missing.why:
        return fit, None
    return fit, f"{_NOT_ESTIMATED}, because {spelled(missing.why, as_typed)}"


def good_outcome_notes(favourable: object, outcome: Attribute) -> Iterator[str]:
    """Say that every outcome is compared if none is named as good, and which to name."""
    if favourable is not None:
        return
    what = f"no good outcome was named, so every level of {outcome.name!r} is compared"
    proposed = propose_favourable(outcome)
    if proposed:
        typed = " ".join(as_typed(Option("favourable", value_text(one.value))) for one in proposed)
        yield f"{what}; the good one is probably {value_text(proposed[0].value)!r} ({proposed[0].reason}): add {typed}"
    elif len(known_levels(outcome)) <= _FEW_LEVELS:
        choices = " or ".join(as_typed(Option("favourable", level)) for level in known_levels(outcome))
        yield f"{what}; to name one, add {choices}"
