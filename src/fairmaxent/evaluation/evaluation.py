"""The evaluation of new rows: everything that was measured, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fairmaxent.data import frames
from fairmaxent.evaluation.measurements import Measurements
from fairmaxent.evaluation.text import evaluation_text
from fairmaxent.evaluation.verdict import verdict


@dataclass(frozen=True, repr=False)
class Evaluation(Measurements):
    """How faithful new rows are to the real table, what a model learns from them, and what they give away."""

    @property
    def verdict(self) -> str:
        """Whether the rows may be shared, in a few sentences."""
        return " ".join(verdict(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON; a number that is not finite is None."""
        record: dict[str, Any] = _plain(asdict(self))
        del record["library"]
        judged = {"verdict": self.verdict, "flagged": list(self.flagged), "judgements": self.risks.judgements()}
        return judged | record

    def to_frame(self) -> Any:
        """One row for each number, with its interval if it has one, as a frame of the real table's library."""
        names = ("about", "measure", "value", "low", "high")
        rows = list(_measures(self))
        return frames.new_frame({name: [row[at] for row in rows] for at, name in enumerate(names)}, self.library)

    def __repr__(self) -> str:
        return evaluation_text(self)


Measure = tuple[str, str, float, float | None, float | None]


def _measures(evaluation: Measurements) -> Iterator[Measure]:
    fidelity, risks, utility = evaluation.fidelity, evaluation.risks, evaluation.utility
    for distance in fidelity.total_variation:
        yield "fidelity", f"{distance.columns}-way total variation", distance.value, None, None
    if fidelity.quality.score is not None:
        yield "fidelity", "quality", fidelity.quality.score, None, None
    for name, learned in () if utility is None else (("new rows", utility.new), ("real rows", utility.real)):
        for measure, one in (("AUC", learned.auc), ("accuracy", learned.accuracy)):
            if one is not None:
                yield "utility", f"{measure}, trained on {name}", one.value, one.low, one.high
    yield "risk", "copies", risks.copies.risk.value, risks.copies.risk.low, risks.copies.risk.high
    tried = {"singling out": risks.singling_out, "linkability": risks.linkability}
    if risks.inference is not None:
        tried["inference, average"] = risks.inference.average
        tried |= {f"inference of {name}": risk for name, risk in risks.inference.by_column.items()}
    for name, risk in tried.items():
        if risk is not None:
            yield "risk", name, risk.value, risk.low, risk.high
    if risks.membership is not None:
        yield "risk", "membership", *risks.membership.advantage


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
