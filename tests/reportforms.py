"""A report in each of its forms, as text."""

import tempfile
from pathlib import Path

from fairmaxent.document.html import to_page
from fairmaxent.document.text import to_markdown
from fairmaxent.report.sections import report_document
from fairmaxent.report.writer import save_report


def html_report(report):
    return to_page(report_document(report))


def markdown_report(report):
    return to_markdown(report_document(report))


def json_report(report):
    with tempfile.TemporaryDirectory() as folder:
        save_report(report, path := Path(folder, "report.json"))
        return path.read_text(encoding="utf-8")
