"""The report as PDF: the HTML page, printed on A4 by a browser."""

from __future__ import annotations

from fairmaxent.report.browser import print_pdf
from fairmaxent.report.build import Report
from fairmaxent.report.html import to_html


def to_pdf(report: Report) -> bytes:
    """Render the report."""
    return print_pdf(to_html(report, paper="A4"))
