"""What Take makes, by the same functions as the command line: the files, and weights for known margins."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairmaxent.app.opened_table import OpenedTable
from fairmaxent.app.page_options import FILING_NAMES, IN_APP, page_options
from fairmaxent.app.repeat import FileNames, typed_text
from fairmaxent.app.scenario import Fitted
from fairmaxent.cli.debias import make_report, make_result
from fairmaxent.cli.rake import RakeOptions, rake_command
from fairmaxent.cli.rake import make_report as make_raking_report
from fairmaxent.cli.reading import DomainOptions, source_of
from fairmaxent.data.frames import load_library
from fairmaxent.errors import InputError
from fairmaxent.files.formats import read_table
from fairmaxent.files.write import Staging, write_table
from fairmaxent.plain_text import plain_json
from fairmaxent.progress import Progress
from fairmaxent.raking.certificate import few_rows_warnings
from fairmaxent.raking.raking import rake
from fairmaxent.report.browser import find_browser
from fairmaxent.report.source import Source

_WHATS = {"rows": "New rows, to train on", "weights": "Your rows with weights", "top-up": "Rows to add to yours"}


def take(fitted: Fitted, names: FileNames, folder: Path, command: str, progress: Progress) -> list[dict[str, Any]]:
    """Write the fair table, the model and the report into the folder; return what the page says about them."""
    scenario = fitted.scenario
    if scenario.pdf:
        find_browser()  # refuses, before any work, if there is none

    def here(name: str | None) -> str | None:
        return None if name is None else str(folder / os.path.basename(name))

    source = scenario.file
    wanted = replace(
        scenario.wanted,
        output=here(names.table),
        like_input=names.like_input,
        estimate=fitted.estimated or "none",
        model=here(names.model),
        report=here(names.report),
        pdf=here(names.pdf),
        force=True,
    ).in_form(source)
    progress("drawing" if scenario.mode != "weights" else "weighing", 0.1)
    with Staging(wanted.targets, force=True) as staging:
        result = make_result(
            fitted.fit, source, wanted, staging, lambda stage, share: progress(stage, 0.1 + 0.5 * share)
        )
        progress("writing the report", 0.6)
        make_report(result, wanted, staging, _origin(scenario.table, scenario.columns_as, command))
        progress("writing the report", 0.95)
    domain = here(names.domain)
    if domain is not None:
        Path(domain).write_text(scenario.domain_text or "", encoding="utf-8")
    whats = {wanted.output: _WHATS[scenario.mode], wanted.model: "Model", wanted.report: "Report"}
    return _files({**whats, wanted.pdf: "Report as PDF", domain: "Public values"})


def _origin(table: OpenedTable, columns_as: DomainOptions, command: str) -> Source:
    """Where a table came from, as a report says it: the file as the user knows it, and options as on the page."""
    origin = source_of(str(table.path), columns_as, command)
    return replace(origin, file=os.path.basename(table.typed), front_door=IN_APP)


def _files(whats: Mapping[str | None, str]) -> list[dict[str, Any]]:
    """Files by path, with what they are, as the page lists them."""
    paths = {Path(path): what for path, what in whats.items() if path is not None}
    return [
        {"name": path.name, "what": what, "bytes": path.stat().st_size, "folder": int(path.parent.name)}
        for path, what in paths.items()
    ]


# ---------------------------------------------------------------- known margins

_AS_INFERRED = DomainOptions()
_RAKING = ("weight", "bounds", "relax", "replicates", "random_state", "weight_name", *FILING_NAMES)
_SLACK = 1e-6  # how far shares may be from adding up to 1


def weigh(table: OpenedTable, values: Mapping[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    """Rake the table and write the files; return the margins before and after, and the command that repeats it."""
    margins = _margins(values.get("margins"), table)
    asked = {"random_state": 0, **(values.get("options") or {})}
    asked |= {} if asked.get("replicates") else {"random_state": None}  # which is about nothing else
    options = page_options(rake_command, ["-", "--margins", "-"], asked, names=_RAKING)
    written, _, report, like_input = table.file_names()
    stem, suffix = os.path.basename(written).rsplit("-fair", 1)
    names = {"margins": f"{stem}-margins.csv", "output": f"{stem}-weighted{suffix}"}
    names["report"] = "-weighted-report".join(os.path.basename(report).rsplit("-report", 1))
    paths = {what: str(folder / name) for what, name in names.items()}
    write_table(margins, paths["margins"])
    wanted = replace(
        options.record(RakeOptions),
        margins=(paths["margins"],),
        output=paths["output"],
        report=paths["report"],
        like_input=like_input,
        force=True,
    )
    if wanted.weight is not None and wanted.weight not in table.schema:
        raise InputError(f"the table has no column {wanted.weight!r}; reload the page")
    source = table.file(in_memory=bool(wanted.replicates))
    progress("raking", 0.1)
    raking = rake(
        source.frame,
        [read_table(paths["margins"]).frame],
        weight=wanted.weight,
        bounds=wanted.bounds,
        relax=wanted.relaxed,
        replicates=wanted.replicates,
        random_state=wanted.random_state,
    )
    progress("writing", 0.5)
    alike = ["--like-input"] if like_input else []
    words = ["fairmaxent", "rake", table.typed, "--margins", names["margins"], *options.typed, *table.reading_typed]
    command = typed_text([*words, "-o", names["output"], *alike, "--report", names["report"]])
    with Staging(wanted.targets, force=True) as staging:
        form = source.form if like_input else None
        staging.write_table(raking.weigh(source.frame, name=wanted.weight_name), paths["output"], form=form)
        origin = _origin(table, _AS_INFERRED, command)
        make_raking_report(raking, wanted, staging, origin, source)
    certificate = raking.certificate
    return {
        "levels": plain_json(
            [{"margin": margin.name, **vars(level)} for margin in certificate.margins for level in margin.levels]
        ),
        "summary": certificate.summary(),
        "notes": [*map(IN_APP.said, few_rows_warnings(certificate.margins)), *certificate.notes],
        "command": command,
        "files": _files(dict(zip(paths.values(), ("Margins", "Your rows with weights", "Report"), strict=True))),
    }


def _margins(values: object, table: OpenedTable) -> Any:
    """The known shares as the table that `rake` reads: one row for each column and level."""
    if not isinstance(values, list) or not values:
        raise InputError("Choose at least one column whose shares are known.")
    rows = []
    for margin in values:
        column, shares = (margin.get("column"), margin.get("shares")) if isinstance(margin, Mapping) else ("", None)
        if str(column) not in table.schema or not isinstance(shares, list) or not all(map(_is_share, shares)):
            raise InputError("the page sent margins that make no sense; reload it")
        total = sum(share for _, share in shares)
        if abs(total - 1) > _SLACK:
            raise InputError(f"the shares of {column!r} add up to {total:.1%}; they must add up to 100 %")
        rows += [(column, level, share) for level, share in shares]
    return load_library("polars").DataFrame(rows, schema=["columns", "level", "value"], orient="row")


def _is_share(value: object) -> bool:
    return isinstance(value, list) and [*map(type, value)] in ([str, float], [str, int])
