"""Model files of format version 1: their records as those of version 2.

Version 1 kept what was asked for as a plain dictionary, and the remarks of the certificate as sentences.
"""

from __future__ import annotations

import re
from typing import Any

from fairmaxent.data.column_storage import Arrays, Record
from fairmaxent.fit.estimate import Remedy

_SIZED_GROUP = re.compile(r"(?P<name>.*) \((?P<rows>\d+) rows\)", re.DOTALL)
_WORTH = "the fair weights are worth"  # made anew, from the numbers


def upgraded(record: Record, arrays: Arrays) -> Record:
    """Return the record of a file of version 1 in the form of version 2."""
    rest = {name: value for name, value in record.items() if name not in ("options", "certificate", "measure")}
    values = dict(record["certificate"]["map"])
    notes = [note for note in values["notes"]["list"] if not note.startswith(_WORTH)]
    values |= {
        "rows": int(len(arrays["table/inverse"]) if "table/inverse" in arrays else round(arrays["table/rows"].sum())),
        "small_groups": {"list": [_small_group(text) for text in values["small_groups"]["list"]]},
        "notes": {"list": notes},
        "estimate": _downstream(values.get("estimate")),
        **{name: {"list": []} for name in ("binned_columns", "compared_missing", "forbidden_rows", "outcome_shares")},
    }
    certificate = {"values": {"map": [[key, item] for key, item in values.items()]}, "measure": record["measure"]}
    return rest | {
        "version": 2,
        "request": _request(record["options"], _student_output(values)),
        "certificate": certificate,
    }


def _student_output(values: dict[str, Any]) -> str | None:
    """What the student of an estimate learned from; None if nothing was estimated."""
    return None if values["estimate"] is None else str(dict(values["estimate"]["map"])["output"])


def _request(options: Record, estimate: str | None) -> Record:
    values = dict(options["map"])
    if "base_share" not in values:
        return {"kind": "paper", "options": options}
    absorb, parity, threshold = (values.pop(name) for name in ("absorb", "parity", "threshold"))
    relabel = {"parity": parity, "threshold": threshold, "labeller": None} if absorb == "relabel" else None
    kept = {"map": [[key, item] for key, item in values.items()]}
    return {"kind": "debias", "options": kept, "relabel": relabel, "estimate": estimate}


def _small_group(text: str) -> Record:
    match = _SIZED_GROUP.fullmatch(text)
    if match is None:
        raise ValueError("a small group has no size")
    return {"map": [["name", match["name"]], ["rows", int(match["rows"])]]}


def _downstream(tagged: Any) -> Any:
    """The sentence of a remedy becomes its name."""
    if tagged is None:
        return None
    return {"map": [[key, _remedy(item) if key == "remedy" else item] for key, item in tagged["map"]]}


def _remedy(sentence: str) -> Remedy:
    marks: dict[str, Remedy] = {"absorb=": "relabel", "parity=": "predictions", "train on weights": "weights"}
    return next((remedy for mark, remedy in marks.items() if mark in sentence), "none")
