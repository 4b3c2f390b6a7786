"""Tables that are larger than memory: rows that are written as they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairmaxent.files.excel_writer import check_sheet_rows
from fairmaxent.files.formats import as_polars, output_format
from fairmaxent.files.parquet import as_lazy, with_categories
from fairmaxent.progress import Progress, silent

if TYPE_CHECKING:
    from fairmaxent.files.formats import FileFormat
    from fairmaxent.files.write import Staging
    from fairmaxent.fit.distribution import Evidence
    from fairmaxent.fit.fit import Fit
    from fairmaxent.report.delivered import DrawnBatches


def write_drawn(
    fit: Fit,
    n: int,
    staging: Staging,
    target: str,
    *,
    format: FileFormat | None,
    given: Evidence | None = None,
    random_state: int | None = None,
    iid: bool = False,
    drawn: DrawnBatches | None = None,
    progress: Progress = silent,
) -> None:
    """Draw rows and write them as they are drawn; Parquet takes texts as categories."""
    source, schema = fit, None
    kind = output_format(target, format)[0]
    if kind == "xlsx":
        check_sheet_rows(n)
    if kind == "parquet":
        schema = as_polars(fit.sample(1)).schema
        distribution = replace(fit.distribution, domain=with_categories(fit.domain))
        source = replace(fit, distribution=distribution)
    batches = source.sample_batches(n, given=given, random_state=random_state, iid=iid)
    lazy = as_lazy(watched(map(as_polars, batches), drawn, n, progress))
    staging.write_table(lazy, target, format=format, schema=schema)


def watched(batches: Iterable[Any], drawn: DrawnBatches | None, total: int, progress: Progress) -> Iterator[Any]:
    """Pass batches on, counted and reported."""
    done = 0
    for batch in batches:
        if drawn is not None:
            drawn.add(batch)
        yield batch
        done += len(batch)
        progress("rows", done / total)
