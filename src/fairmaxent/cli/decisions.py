"""What the student of a relabelled fit decided, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairmaxent.cli.text import text_table

if TYPE_CHECKING:
    from fairmaxent.fit.fit import Fit
    from fairmaxent.fit.relabel import DecidedRate


def decisions_table(fit: Fit) -> str:
    """Rates and shares of its decisions about people it has not learned from; nothing if none were asked for."""
    known = fit.certificate.decisions
    if known is None:
        return ""
    rates = [
        [f"statistical rate of {rate.grouping}", _wanted(rate), rate.rate, rate.low, rate.high] for rate in known.rates
    ]
    shares = [[f"{share.group}: {share.outcome}", "", share.share, share.low, share.high] for share in known.shares]
    head = f"decisions of {known.student} about new people"
    return text_table([head, "wanted", "reached", "from", "to (95 %)"], [*rates, *shares])


def _wanted(rate: DecidedRate) -> str:
    return "any" if rate.wanted is None else f"{rate.wanted:.4f}"
