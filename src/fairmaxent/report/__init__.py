"""A report on a fit for readers who did not run the fit: one HTML, Markdown or JSON file.

`report` holds the numbers, its neighbours compute them, and `html`, `markdown` and `json` only show them.
"""

from fairmaxent.report.build import Report, build_report
from fairmaxent.report.source import Source
from fairmaxent.report.writer import write_report

__all__ = ["Report", "Source", "build_report", "write_report"]
