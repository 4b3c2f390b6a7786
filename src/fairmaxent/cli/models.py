"""``fairmaxent sample``, ``verify`` and ``report``: what to do with a saved fit."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import click

from fairmaxent.cli import output as shared
from fairmaxent.cli.options import (
    after_report,
    chosen_seed,
    name_for,
    next_step,
    taking,
)
from fairmaxent.cli.reading import ReadingOptions, check_files, reading_options
from fairmaxent.cli.request import typed_level
from fairmaxent.cli.terminal import bar, echo, json_record
from fairmaxent.cli.values import FILE, as_typed
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.document import Block
from fairmaxent.document.text import on_one_line, sections_text
from fairmaxent.document.words import counted, first
from fairmaxent.engines.rows import tilted_rows
from fairmaxent.errors import Option
from fairmaxent.files.formats import FileFormat, output_format
from fairmaxent.files.reading import STANDARD
from fairmaxent.files.write import Staging
from fairmaxent.fit.refused import OUTPUTS
from fairmaxent.options import option
from fairmaxent.options.refusals import Refused, refuse
from fairmaxent.options.values import number_of
from fairmaxent.plain_text import Values
from fairmaxent.telling.case import Topic, Weight
from fairmaxent.telling.entries import alerts, as_values, sections_of

# What is said of drawn rows; what they cost each group is in the report.
_TOPICS: tuple[Topic, ...] = (
    "warning", "likely", "privacy", "model", "copies", "reached",
)  # fmt: skip
_REST = "; 'fairmaxent report' shows them"
_ROOM = 6  # notes, and rows of a table
_WARNINGS = 3

fit_argument = click.argument("saved", type=FILE, metavar="FIT")


def _of_debias(option: Option) -> str:
    """Spell an option of the command that makes fits."""
    return f"{as_typed(option)} of 'fairmaxent debias'"


@dataclass(frozen=True)
class SampleOptions:
    """Which rows are drawn, and where they go."""

    rows: int = option(
        flags=("-n", "--rows"),
        text="whole",
        least=1,
        required=True,
        help="How many rows.",
    )
    given: tuple[dict[str, str], ...] = option(
        (),
        text="pairs",
        help=(
            "Fix columns exactly: sex=Female, or numbers in a range: age=18..65 (from"
            " 18, below 65). Repeat a column to allow another value."
        ),
    )
    output: str = option(
        "-",
        flags=("-o", "--output"),
        text="target",
        shows_default=False,
        help="File for the rows; stdout by default.",
    )
    output_format: FileFormat | None = option(None, **shared.FORMAT)
    iid: bool = option(
        False, text="flag", help="Draw rows independently instead of by quota."
    )
    random_state: int | None = option(
        None,
        help=(
            "The same seed gives the same rows; by default they differ each time,"
            " whatever the seed of the fit."
        ),
        **shared.SEED,
    )
    readable_by_others: bool = option(False, **shared.READABLE)
    force: bool = option(False, **shared.FORCE)


@click.command()
@fit_argument
@taking(SampleOptions, "wanted")
def sample_command(saved: str, wanted: SampleOptions) -> None:
    """Draw rows from FIT, a file that 'fairmaxent debias --save' or fit.save() wrote.

    \b
    fairmaxent sample fit.fme -n 1000 --given sex=Female -o women.csv
    """
    from fairmaxent.debiasing import load
    from fairmaxent.report.delivered import DrawnBatches

    rows = wanted.rows
    target = wanted.output
    check_files([target])
    output_format(target, wanted.output_format)
    with Staging(
        [target],
        force=wanted.force,
        readable=[target] if wanted.readable_by_others else [],
    ) as staging:
        with bar(f"reading {saved}"):
            fit = load(saved)
        # Otherwise the seed of the fit would draw the rows of 'debias' again.
        seed = chosen_seed(wanted.random_state)
        with bar(f"drawing {counted(rows, 'row')}") as progress:
            given = _evidence(wanted.given, fit.domain)
            drawn = DrawnBatches(fit)
            notes = shared.write_drawn(
                fit,
                rows,
                staging,
                target,
                format=wanted.output_format,
                drawn=drawn,
                progress=progress,
                given=given,
                random_state=seed,
                iid=wanted.iid,
            )
    delivered = drawn.delivered(iid=wanted.iid, seed=seed)
    said = [sections_text(_told_of_rows(fit, delivered, given))]
    if target != STANDARD:
        said += [f"Note: {on_one_line(note)}" for note in notes]
        said.append(f"wrote {on_one_line(target)} ({counted(rows, 'row')})")
        report = name_for(saved, "report.html")
        command = ["report", saved, "--result", target, "-o", report]
        said.append(next_step("write a report on these rows, for the rest", command))
    echo("\n\n".join(filter(None, said)), err=target == STANDARD)


def _told_of_rows(
    fit: Any, delivered: Any, given: Values | None
) -> Iterator[list[Block]]:
    """What nobody should miss about drawn rows, with room for a little."""
    from fairmaxent.report.delivered import costs_of, output_of

    source = fit.distribution
    topics = _TOPICS
    output = output_of(fit, delivered, costs_of(fit, delivered, None))
    if given is not None:  # whoever is left out is so on purpose
        source = source.condition(given)
        topics = tuple(topic for topic in topics if topic != "reached")
        output = replace(output, absent=())
    copied = tilted_rows(source.tilted)
    case = fit.case(output, table=delivered.table, spell=_of_debias, rest=_REST)
    if copied is not None and fit.provenance.has_real_rows:
        facts = replace(case.facts, copied_share=copied[0])
        case = replace(case, facts=facts)
    case = replace(case, rows=_ROOM)
    yield from sections_of(case, least=Weight.COST, topics=topics)


def _evidence(given: Iterable[dict[str, str]], domain: Domain) -> Values | None:
    """Columns with the value, or the list of values, that is allowed."""
    evidence: Values = {}
    for pairs in given:
        for column, text in pairs.items():
            value = _value(text, domain.attribute(column))
            evidence.setdefault(column, []).append(value)
    for column, values in evidence.items():
        if len(values) == 1:
            evidence[column] = values[0]
    return evidence or None


def _value(text: str, attribute: Attribute) -> object:
    """A level by its label, or else a boolean, number or range, as the column holds."""
    if text in attribute.labels:
        return text
    low, dots, high = text.partition("..")
    if dots and attribute.kind == "numeric":
        with contextlib.suppress(ValueError):
            return slice(_end(low), _end(high))
    return typed_level(text, attribute.values.dtype)


def _end(text: str) -> float | None:
    """An end of a range; nothing leaves it open."""
    if text.strip():
        return float(number_of(text))
    return None


_ANSWERS = (
    "Exit code 0: verified. 1: the document differs from what the fit gives. 5: the"
    " fit is damaged or forged, or a file is something else."
)


@click.command(epilog=_ANSWERS)
@fit_argument
@click.option(
    "--document",
    type=FILE,
    help=(
        "A document that 'fairmaxent document' wrote: make it again from FIT, and"
        " show the lines that differ. Only people's own words may: lines that begin"
        " with >, and properties that were 'To be written by'."
    ),
)
@click.option("--json", is_flag=True, help="Print JSON, for programs.")
def verify_command(*, saved: str, document: str | None, json: bool) -> None:
    """Check FIT, a file that 'fairmaxent debias --save' or fit.save() wrote.

    Digests, types and ranges are checked, and the certificate is made again from the
    rows and the distribution in the file. Nothing in the file is run. An audit is
    made again from its table, which then stands in place of FIT.

    \b
    fairmaxent verify fit.fme
    fairmaxent verify --document article-10.md fit.fme
    fairmaxent verify --document audit.md decisions.csv
    """
    from fairmaxent.debiasing import load
    from fairmaxent.fit.verification import verify
    from fairmaxent.gate.papers import is_audit, verify_audit

    compared = None
    record = {"table": saved}
    with bar(f"checking {saved}"):
        if document is not None and is_audit(document):
            compared = verify_audit(document, saved)
        else:
            verified = verify(saved)
            case = replace(verified.case, spell=_of_debias, rest=_REST)
            verified = replace(verified, case=case)
            record = _as_record(verified)
            if document is not None:
                compared = load(saved).verify_document(document)
    if json:
        echo(json_record({**record, "document": compared}))
    elif compared is not None:
        echo(f"{on_one_line(str(document))}: {compared}")
    else:
        echo(str(verified))
        command = ["sample", saved, "-n", "1000", "-o", name_for(saved, "rows.csv")]
        echo(f"\n{next_step('draw rows from it', command)}")
    if compared is not None and compared.differences:
        sys.exit(1)


def _as_record(verified: Any) -> Values:
    """What was verified, for programs."""
    record = {"fit": verified.path, "verified": True}
    for name in ("sha256", "version", "holds", "unverified"):
        record[name] = getattr(verified, name)
    for name in ("wanted", "before", "achieved"):
        record[name] = getattr(verified.certificate, name)
    record["told"] = as_values(verified.case)
    return record


@dataclass(frozen=True)
class ReportOptions(shared.FilingOptions):
    """What the report is about, and where it goes."""

    REFUSED = (
        *OUTPUTS,
        Refused("result", "mode", "weights are not drawn", beside=("weights",)),
    )

    output: str = option(
        "report.html",
        flags=("-o", "--output"),
        text="target",
        help="Where to write the report: .html, .md or .json.",
    )
    data: str | None = option(
        None,
        text="file",
        help="The table that the fit was made from, to count copies exactly.",
    )
    result: str | None = option(
        None,
        text="file",
        help="The rows that were drawn or added; by default new ones are drawn.",
    )
    mode: shared.Mode = option(
        "rows",
        choices=get_args(shared.Mode),
        help="What was made from the fit, as in 'fairmaxent debias'.",
    )
    trade_off: bool = option(
        True,
        flags=("--trade-off/--no-trade-off",),
        text="flag",
        help="Also show what other options would cost.",
    )
    estimate: shared.TrainedOn | None = option(
        None,
        choices=get_args(shared.TrainedOn),
        help=(
            "Also estimate how a model trained on the rows or weights will treat"
            " people; of a private fit, on drawn rows, which spends nothing."
        ),
    )
    evaluate: bool = option(False, **shared.EVALUATE)


@click.command()
@fit_argument
@taking(ReportOptions, "wanted")
@reading_options
def report_command(saved: str, wanted: ReportOptions, reading: ReadingOptions) -> None:
    """Write a report on FIT, a file of 'fairmaxent debias --save' or fit.save().

    \b
    fairmaxent report fit.fme --data census.csv -o report.html
    """
    from fairmaxent.debiasing import load
    from fairmaxent.report import build_report, source, writer

    data = wanted.data
    targets = [wanted.output]
    refuse(wanted)
    check_files(targets)
    shared.check_report(wanted.output)
    with Staging(targets, force=wanted.force, readable=targets) as staging:
        with bar(f"reading {saved}"):
            fit = load(saved)
            drawn = wanted.result and reading.read(wanted.result).frame
            origin = shared.source_of(data, None, None)
            frame = None
            if data is not None:
                table = None
                # If an engine counted the rows, it also looks for copies.
                if not fit.table.keeps_rows:
                    table = reading.scan(data)
                table = table or reading.read(data)
                frame = table.frame
                notes = table.notes_spelled(origin.front_door.spell)
                origin = replace(origin, dropped=table.dropped, reading=notes)
            files = {"Fair table": wanted.result, "Saved fit": saved}
            written = tuple(
                source.written_file(what, path)
                for what, path in files.items()
                if path and os.path.isfile(path)
            )
        with bar("writing"):
            report = build_report(
                fit,
                data=frame,
                result=drawn,
                source=replace(origin, written=written),
                mode=wanted.mode,
                trade_off=wanted.trade_off,
                estimate=wanted.estimate,
                evaluate=wanted.evaluate,
                **wanted.filing,
            )
            writer.save_report(report, staging.path_for(wanted.output))
    warnings = [f"Warning: {on_one_line(text)}" for text in alerts(report.case)]
    for line in first(warnings, _WARNINGS, "warning", " in the report"):
        echo(line)
    echo(f"wrote {on_one_line(wanted.output)}")
    echo(f"\n{after_report(wanted.output)}")
