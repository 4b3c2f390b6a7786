"""A report on a fit, a raking or an inspection, for readers who did not run it: one
HTML, Markdown or JSON file.

`report` collects the numbers, which the files beside it compute; `first_page` and
`sections` make a document of them.
"""

from fairmaxent.report.report import Report, ReportRequest, build_report
from fairmaxent.report.source import Source
from fairmaxent.report.writer import (
    write_inspection_report,
    write_raking_report,
    write_report,
)

__all__ = [
    "Report",
    "ReportRequest",
    "Source",
    "build_report",
    "write_inspection_report",
    "write_raking_report",
]
__all__ += ["write_report"]
