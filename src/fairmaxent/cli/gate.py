"""``fairmaxent check`` and ``document``: pass, fail, or nobody can tell; and drafts of
what people must file.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import click

from fairmaxent.cli import config, options, terminal, values
from fairmaxent.cli.reading import (
    DomainOptions,
    ReadingOptions,
    check_files,
    reading_options,
)
from fairmaxent.errors import FairMaxEntError, StorageError
from fairmaxent.files.write import Staging, write_whole
from fairmaxent.gate import checking
from fairmaxent.gate.audit import AuditRequest
from fairmaxent.gate.papers import KINDS
from fairmaxent.gate.policy import PROJECT, SECTION, Policy, files_of, read_policies
from fairmaxent.gate.result import (
    CODES,
    FORMS,
    MEANINGS,
    SUFFIXES,
    CheckResult,
    is_own,
    worst,
)
from fairmaxent.options import typed_options
from fairmaxent.plain_text import Values

# \b keeps the lines as they are
_DOCUMENTS = "\b\nKinds:\n" + "\n".join(
    f"  {name} ({kind.suffix}): {kind.help}" for name, kind in KINDS.items()
)
# what the file of a document holds
_ABOUT = {
    "saved fit": "a fit; a raking and an evaluation have reports of their own, and no"
    " documents",
    "table": "a table of decisions, which no saved fit holds",
}


@click.command(cls=options.SectionedCommand, epilog=MEANINGS)
@click.argument(
    "data",
    type=values.FILE,
    required=False,
    metavar="[DATA]",
)
@options.taking(
    dict,
    "asked",
    typed_options(Policy),
    required=False,
)
@click.option(
    "--policies",
    type=values.FILE,
    help=f"TOML file with policies; by default [{SECTION}] in {PROJECT}.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMS]),
    default="text",
    help="How the answer is printed.",
)
@click.option(
    "-o",
    "--output",
    type=values.TARGET,
    multiple=True,
    help=f"Also write a file: {', '.join(SUFFIXES)}; one that it wrote is replaced.",
)
@click.option("--force", is_flag=True, help="Replace files of others, too.")
@options.taking(DomainOptions, "columns_as")
@reading_options
@config.config_option
def check_command(
    data: str | None,
    asked: Values,
    columns_as: DomainOptions,
    reading: ReadingOptions,
    **wanted: Any,
) -> None:
    """Check the table in the file DATA (- is stdin), or a model's decisions about its
    rows: pass, fail, or cannot tell.

    Limits are typed, or are policies in a file: sections of TOML, each with the options
    of fairmaxent.check in Python, and with 'data', the file of its table.

    \b
    fairmaxent check hired.csv --outcome hired --favourable yes --protected sex --statistical-rate 0.8 --confident
    fairmaxent check --policies fairness.toml -o check.xml
    """  # noqa: E501 (a command, to be copied)
    # what policies in a file would pass over
    names = [*asked, *vars(columns_as)]
    if data is None:
        names += vars(reading)
    is_typed = any(options.given_options(click.get_current_context(), names))
    if is_typed and (wanted["policies"] or data is None):
        raise click.UsageError(
            "limits, and how a table is read, are typed for one table, or are in a"
            " file; name DATA, and leave --policies out"
        )
    policies = {}
    named = []
    if not is_typed:
        path = wanted["policies"] or PROJECT
        policies = read_policies(path)
        named = [path, *files_of(policies)]
    check_files(wanted["output"], *named)
    forms = _forms_of(wanted["output"])

    def frame_of(path: str | None) -> Any:
        if path is None:
            return None
        scanned = reading.scan(path)
        return (scanned or reading.read(path, columns_as.declaration)).frame

    force = wanted["force"] or all(map(is_own, forms))
    with Staging(list(forms), force=force, readable=list(forms)) as staging:
        with terminal.bar("checking"):
            try:
                frame = frame_of(data)
                if is_typed:
                    domain = columns_as.domain_of(frame, asked["weight"])
                    asked["against"] = frame_of(asked["against"])
                    results = [
                        checking.checked(
                            frame, Policy.typed(asked | {"domain": domain})
                        )
                    ]
                else:
                    results = checking.check_policies(policies, frame)
            except FairMaxEntError as problem:
                results = [
                    CheckResult(name, problem=problem) for name in policies or ["check"]
                ]
            results = [replace(result, file=result.file or data) for result in results]
        for path, form in forms.items():
            write_whole(staging.path_for(path), FORMS[form](results).encode())
    _say(results, wanted["form"])
    sys.exit(CODES[worst(result.answer for result in results)])


def _forms_of(paths: Sequence[str]) -> dict[str, str]:
    """The form of each file, by its suffix."""
    forms = {}
    for path in paths:
        suffix = os.path.splitext(path)[1].lower()
        if suffix not in SUFFIXES:
            raise click.UsageError(
                f"-o is {path}; end its name with one of {', '.join(SUFFIXES)}"
            )
        forms[path] = SUFFIXES[suffix]
    return forms


def _say(results: Sequence[CheckResult], form: str) -> None:
    """Print the answers, and on stderr what could not be checked."""
    # programs and pages see no stderr
    shown = [one for one in results if one.problem is None or form != "text"]
    if shown:
        terminal.echo(FORMS[form](shown).rstrip("\n"))
    for result in results:
        if result.problem is not None:
            text = result.problem.spelled(values.as_typed)
            terminal.echo(f"Error: {' '.join(text.split())}", err=True)


@click.command(cls=options.SectionedCommand, epilog=_DOCUMENTS)
@click.argument("kind", type=click.Choice([*KINDS]))
@click.argument("source", type=values.FILE, metavar="FILE")
@click.option(
    "-o",
    "--output",
    type=values.TARGET,
    required=True,
    help="File for the document.",
)
@click.option(
    "--data",
    type=values.FILE,
    help="The table that the fit was made from, to state its digest; no other will do.",
)
@click.option(
    "--result",
    type=values.FILE,
    help=(
        "The rows that were delivered, to state their digest, number and rates. Of a"
        " CSV file, Croissant describes the columns."
    ),
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@options.taking(dict, "asked", typed_options(AuditRequest), required=False)
def document_command(
    *,
    kind: str,
    source: str,
    output: str,
    force: bool,
    asked: Values,
    **files: str | None,
) -> None:
    """Draft a document about FILE: a fit that 'fairmaxent debias --save' or
    fit.save() wrote, or, for ll144, a table of decisions.

    Each part is filled from that file, or says who must write it; nothing in it is a
    verdict or legal advice. Anybody who has the file can check what was filled in:
    'fairmaxent verify --document DOCUMENT FILE' makes it again.

    \b
    fairmaxent document article-10 fit.fme -o article-10.md
    fairmaxent document ll144 decisions.csv --outcome hired --favourable yes --protected sex,race -o audit.md
    """  # noqa: E501 (a command, to be copied)
    from fairmaxent.debiasing import load
    from fairmaxent.gate.papers import audit_of, document

    names = " ".join(map(quote, map(os.path.basename, (output, source))))
    verify = f"fairmaxent verify --document {names}"
    is_about_table = KINDS[kind].about == "table"
    for name, value in (files if is_about_table else asked).items():
        if value:
            raise click.UsageError(
                f"--{name} says nothing about a {KINDS[kind].about}, which {kind} is"
                " made from; leave it out"
            )
    check_files([output])
    with Staging([output], force=force, readable=[output]) as staging:
        try:
            if is_about_table:
                text = audit_of(source, AuditRequest(**asked), verify)
            else:
                text = document(load(source), kind, **files, verify=verify)
        except StorageError as problem:
            about = _ABOUT[KINDS[kind].about]
            raise StorageError(problem, f". {kind} is about {about}") from problem
        write_whole(staging.path_for(output), text.encode())
