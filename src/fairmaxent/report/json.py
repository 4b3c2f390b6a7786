"""The report as JSON."""

from __future__ import annotations

import json

from fairmaxent.plain_text import escaped_json
from fairmaxent.report.build import Report


def to_json(report: Report) -> str:
    """Return every number of the report, at full precision."""
    return escaped_json(json.dumps(report.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)) + "\n"
