"""The report as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from fairmaxent.plain_text import escaped_json
from fairmaxent.report.build import Report
from fairmaxent.report.first_page import first_page


def to_json(report: Report) -> str:
    """Return the first page as it is shown, then every number of the report at full precision."""
    record = {"first_page": asdict(first_page(report)), **report.to_dict()}
    return escaped_json(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"
