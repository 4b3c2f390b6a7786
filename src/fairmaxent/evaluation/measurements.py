"""What an evaluation measured, before it is put into words."""

from __future__ import annotations

from dataclasses import dataclass

from fairmaxent.evaluation.closest_record import ClosestRecord
from fairmaxent.evaluation.copied_rows import LIMIT as MOST_COPIES
from fairmaxent.evaluation.copied_rows import CopiedRows
from fairmaxent.evaluation.fidelity import Fidelity
from fairmaxent.evaluation.inference import Inference
from fairmaxent.evaluation.membership import Membership
from fairmaxent.evaluation.success import LIMIT, Judgement, Risk
from fairmaxent.evaluation.utility import Utility


@dataclass(frozen=True)
class Risks:
    """What the new rows give away; None where an attack could not be tried."""

    copies: CopiedRows
    singling_out: Risk | None
    linkability: Risk | None
    inference: Inference | None
    membership: Membership | None
    """Needs control rows."""
    closest_record: ClosestRecord

    def judgements(self) -> dict[str, Judgement]:
        """What is to be said of each attack that was tried."""
        judged: dict[str, Judgement] = {"copies": self.copies.risk.judged(MOST_COPIES)}
        for name, risk in (("singling out", self.singling_out), ("linkability", self.linkability)):
            if risk is not None:
                judged[name] = risk.judged(LIMIT)
        if self.inference is not None:
            judged["inference"] = self.inference.judged(LIMIT)
        judged["membership"] = "needs control" if self.membership is None else self.membership.judged(LIMIT)
        return judged


@dataclass(frozen=True)
class Measurements:
    """Everything that was measured of new rows."""

    real_rows: int
    new_rows: int
    control_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    """Columns of the real table that the new rows do not have."""
    confidence: float
    fidelity: Fidelity
    utility: Utility | None
    """None: no outcome was named."""
    risks: Risks
    library: str

    @property
    def flagged(self) -> tuple[str, ...]:
        """The risks that are surely too high: sharing the rows would give people away."""
        return tuple(name for name, judged in self.risks.judgements().items() if judged == "high")
