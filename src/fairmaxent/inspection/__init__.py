"""A look at a table before anything is done to it.

What it holds, what to watch out for, and what is proposed.
"""

from fairmaxent.inspection.findings import ColumnSummary, GroupingRates, Inspection
from fairmaxent.inspection.look import inspect
from fairmaxent.inspection.proposals import Proposal
from fairmaxent.inspection.verdict import Verdict

__all__ = [
    "ColumnSummary",
    "GroupingRates",
    "Inspection",
    "Proposal",
    "Verdict",
    "inspect",
]
