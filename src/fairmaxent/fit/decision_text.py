"""What a student decided, as lines of a certificate and as remarks."""

from __future__ import annotations

from collections.abc import Iterator

from fairmaxent.data.text_table import counted
from fairmaxent.errors import Option
from fairmaxent.fit.relabel import DecidedRate, Decisions

SLACK = 0.1  # how far below the wanted rate decisions may stay without a remark


def decision_lines(decisions: Decisions | None, width: int) -> list[str]:
    """The rates and shares of the decisions, under the columns of the certificate."""
    if decisions is None:
        return []
    seeing = ", which does not see the protected columns," if decisions.blind else ""
    lines = [
        f"decisions of {decisions.student}{seeing} about people it did not learn from ({decisions.folds} folds, "
        f"best of {counted(decisions.rounds, 'round')}):"
    ]
    for rate in decisions.rates:
        wanted = "any" if rate.wanted is None else f"{rate.wanted:.4f}"
        shown = "–" if rate.rate is None else f"{rate.rate:.4f}{_between(rate.low, rate.high)}"
        lines.append(f"{'  statistical rate of ' + rate.grouping:<{width}}{wanted:>10}{'':>10}{'':>4}{shown}")
    for share in decisions.shares:
        label = f"  {share.outcome} for {share.group}"
        lines.append(f"{label:<{width}}{'':>10}{'':>10}{'':>4}{share.share:.4f}{_between(share.low, share.high)}")
    return lines


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" (between {low:.4f} and {high:.4f})"


def decision_remarks(decisions: Decisions | None) -> Iterator[tuple[object, ...]]:
    """Say where parity means nothing, and where it was not reached."""
    if decisions is None:
        return
    for rate in decisions.rates:
        if rate.vacuous:
            yield _vacuous(decisions, rate)
        elif rate.wanted is not None and rate.rate is not None and rate.rate < rate.wanted - SLACK:
            yield (
                f"the decisions of {decisions.student} for {rate.grouping} have a statistical rate of {rate.rate:.2f} "
                f"(wanted {rate.wanted:.2f}), the best of {counted(decisions.rounds, 'round')}. Try another ",
                Option("student"),
                ", or check the smallest groups",
            )


def _vacuous(decisions: Decisions, rate: DecidedRate) -> tuple[object, ...]:
    outcomes = sorted({share.outcome for share in decisions.shares if share.grouping == rate.grouping})
    nobody = all(share.share == 0 for share in decisions.shares if share.grouping == rate.grouping)
    return (
        f"{decisions.student} decides for {' or '.join(outcomes)} for {'nobody' if nobody else 'everybody'} at a "
        f"probability of {decisions.threshold:g}, so that equal decisions for {rate.grouping} say nothing. Choose a "
        f"{'lower' if nobody else 'higher'} ",
        Option("threshold"),
    )
