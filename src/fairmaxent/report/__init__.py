"""A report on a fit, for readers who did not run it: one HTML, Markdown or JSON file.

`build` collects the numbers, which the files beside it compute; `html`, `markdown` and `json` only show them.
"""

from fairmaxent.report.build import Report, build_report
from fairmaxent.report.raking_report import write_raking_report
from fairmaxent.report.source import Source
from fairmaxent.report.writer import write_report

__all__ = ["Report", "Source", "build_report", "write_raking_report", "write_report"]
