"""Fair models on the page: what was missed first, then what was promised, then every
cell.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any

from benchmarks.fair_models import GRADIENT, ITERATIONS, OURS, WISHES
from benchmarks.learners import LEARNERS
from benchmarks.outcome import Bar, Cell, Outcome, Table
from benchmarks.people import MOST_JUDGED

# the rate, and the share of the cells that should reach it
WANTED, MOST_CELLS = 0.95, 0.9
# of a fit in the median, and of any; CPU against ExponentiatedGradient's
MEDIAN_TRAININGS, MOST_TRAININGS, MOST_COST = 12, 25, 1.5
_MORE_ACCURATE, _FAIRER = 0.005, 0.01  # by which another method beats ours, if by both
# By the first, a method is more accurate than ours although it is no less fair and
# decides for as many, within the other two.
_BETTER, _AS_FAIR, _AS_MANY = 0.01, 0.01, 0.02

Means = Mapping[str, float]
# wish, table, classifier → method → means over the splits
Places = dict[tuple[str, str, str], dict[str, Means]]


def grouped(cells: Sequence[Mapping[str, Any]]) -> Places:
    """Means over the splits that all methods of a cell have in common, their standard
    errors, and their number.
    """
    found: dict[tuple[str, str, str], dict[str, dict[int, Mapping[str, Any]]]] = {}
    for cell in cells:
        if "failed" not in cell and cell["rate"] is not None:
            place = found.setdefault((cell["wish"], cell["data"], cell["learner"]), {})
            place.setdefault(cell["method"], {})[cell["split"]] = cell
    means: Places = {}
    for key, methods in found.items():
        splits = set.intersection(*(set(own) for own in methods.values()))
        if splits and OURS in methods:
            means[key] = {
                method: _means([own[split] for split in splits])
                for method, own in methods.items()
            }
    tables = list(dict.fromkeys(cell["data"] for cell in cells))
    order = list(WISHES), tables, list(LEARNERS)
    return dict(
        sorted(
            means.items(),
            key=lambda item: [
                all_.index(own) for all_, own in zip(order, item[0], strict=True)
            ],
        )
    )


def _means(cells: Sequence[Mapping[str, Any]]) -> Means:
    names = (
        "accuracy",
        "auc",
        "rate",
        "fair",
        "error",
        "decided",
        "trainings",
        "seconds",
    )
    values = {name: [cell[name] for cell in cells] for name in names}
    values["most trainings"] = [max(values["trainings"])]
    errors = {
        f"± {name}": stdev(own) / len(own) ** 0.5 if len(own) > 1 else 0.0
        for name, own in values.items()
    }
    return (
        {name: fmean(own) for name, own in values.items()}
        | errors
        | {"splits": len(cells)}
    )


def reaches(ours: Means) -> bool:
    """Whether the rate is reached, but for one standard error of an exactly fair model
    among the people judged on.
    """
    return ours["rate"] + ours["error"] >= WANTED


def dominating(methods: Mapping[str, Means]) -> list[str]:
    """The methods that beat ours in accuracy and in the rate, both by more than
    chance.
    """
    ours = methods[OURS]
    return [
        name
        for name, own in methods.items()
        if own["accuracy"] - ours["accuracy"] > _MORE_ACCURATE
        and own["rate"] - ours["rate"] > _FAIRER
    ]


def more_accurate(methods: Mapping[str, Means]) -> list[str]:
    """The methods that are more accurate than ours, as fair, and decide for as many."""
    ours = methods[OURS]
    return [
        name
        for name, own in methods.items()
        if own["accuracy"] - ours["accuracy"] > _BETTER
        and own["rate"] >= ours["rate"] - _AS_FAIR
        and abs(own["decided"] - ours["decided"]) <= _AS_MANY
    ]


def models_outcome(record: Mapping[str, Any]) -> Outcome:
    """All that was measured of fair models."""
    means = grouped(record["cells"])
    tables = [_missed(means), *(_cells(wish, means) for wish in WISHES)]
    lost = [cell for cell in record["cells"] if "failed" in cell]
    failed = sorted(
        {f"{cell['data']}, {cell['method']}: {cell['failed']}" for cell in lost}
    )
    tables_of = {
        learner: {key[1] for key in means if key[2] == learner} for learner in LEARNERS
    }
    known = list(dict.fromkeys(key[1] for key in means))
    failed += [
        f"{learner} on {', '.join(left)}"
        for learner, there in tables_of.items()
        if (left := [table for table in known if table not in there])
    ]
    words = _words(record, means) + (
        f" Not measured: {'; '.join(failed)}." if failed else ""
    )
    shown = tuple(table for table in tables if table.rows)
    return Outcome("Models that decide equally", words, shown, tuple(_bars(means)))


def places(
    cells: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """Of each table and classifier: rate and accuracy of every method, if the group is
    seen and if it is not.
    """
    drawn: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for (wish, table, learner), methods in grouped(cells).items():
        if WISHES[wish].parity == "decisions":
            mark = "" if WISHES[wish].sees_group else ", group hidden"
            own = {
                f"{method}{mark}": (mean["rate"], mean["accuracy"])
                for method, mean in methods.items()
            }
            drawn.setdefault((table, learner), {}).update(own)
    return drawn


def _words(record: Mapping[str, Any], means: Places) -> str:
    splits = {
        learner: min(
            (
                int(own[OURS]["splits"])
                for key, own in means.items()
                if key[2] == learner
            ),
            default=0,
        )
        for learner in LEARNERS
    }
    parts = [f"{number} of {learner}" for learner, number in splits.items()]
    shown = f"at least {', '.join(parts)}"
    return (
        f"At most {record['sizes']['learn']:,} people of each table to learn from, and"
        f" up to {MOST_JUDGED:,} of the others to judge on; means over splits"
        f" ({shown}). Every method gets the same classifier, as a pipeline that takes"
        " the columns of the table, at its defaults. Rate: the smallest over the"
        " largest group's share of good decisions (equal opportunity: among those"
        " whose outcome is good). Fair: what an exactly fair model would measure among"
        " these people, and its standard error: the mean and the deviation of the rate"
        " if groups of the same sizes are dealt at random. Decided for: of all people."
        " A cell is reached if its"
        f" rate is at most that error of one split below {WANTED}; with nothing"
        f" allowed, {_shares(means)}. A tree decides in whole leaves, so that one tree"
        " cannot always bring the groups together where a random choice among several"
        f" can. {OURS} is `fairmaxent.Model`; {GRADIENT} and ThresholdOptimizer are"
        f" fairlearn's, the first with at most {ITERATIONS} iterations; both decide at"
        " random among several rules, and the second must know the group. OxonFair finds"
        " thresholds on a third of the people, whom its model does not learn from."
        f" {_states(record)}CPU s: from the table to decisions, one thread."
    )


def _shares(means: Places) -> str:
    """How many cells would be reached without an allowance, by wish."""
    counted = {
        wish: [
            own[OURS]["rate"] >= WANTED for key, own in means.items() if key[0] == wish
        ]
        for wish in WISHES
    }
    return ", ".join(
        f"{sum(own)} of {len(own)} ({wish})" for wish, own in counted.items() if own
    )


def _states(record: Mapping[str, Any]) -> str:
    """Whether our cells come from one state of the code; those of other methods are
    kept as long as theirs is.
    """
    found = Counter(
        cell.get("code", "an earlier one")
        for cell in record["cells"]
        if cell["method"] == OURS
    )
    if len(found) == 1:
        return ""
    shown = ", ".join(f"{number} of {code}" for code, number in found.items())
    return (
        f"Splits of {OURS} by the state of the code that they were measured with:"
        f" {shown}. "
    )


def _bars(means: Places) -> list[Bar]:
    bars = []
    for wish in WISHES:
        own = [methods for key, methods in means.items() if key[0] == wish]
        if not own:
            continue
        costs = [
            methods[OURS]["seconds"] / methods[GRADIENT]["seconds"]
            for methods in own
            if GRADIENT in methods
        ]
        ours, better = (
            [one[OURS] for one in own],
            [one for one in own if dominating(one)],
        )
        bars += [
            Bar(
                f"{wish}: cells at a rate of {WANTED}",
                fmean(map(reaches, ours)),
                MOST_CELLS,
                at_least=True,
            ),
            Bar(
                f"{wish}: cells in which another method is better in both",
                len(better),
                0,
            ),
            Bar(
                f"{wish}: cells in which another is more accurate by {_BETTER} at the"
                " same rate and share decided for",
                sum(bool(more_accurate(one)) for one in own),
                0,
            ),
            Bar(
                f"{wish}: trainings, median",
                median(one["trainings"] for one in ours),
                MEDIAN_TRAININGS,
            ),
            Bar(
                f"{wish}: trainings, most",
                max(one["most trainings"] for one in ours),
                MOST_TRAININGS,
            ),
            Bar(f"{wish}: CPU against {GRADIENT}, median", median(costs), MOST_COST),
        ]
    return bars


def _missed(means: Places) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (wish, table, learner), methods in means.items():
        ours, better = methods[OURS], dominating(methods)
        if better or not reaches(ours):
            rows.append((wish, table, learner, *_shown(ours), ", ".join(better)))
    columns = (
        "asked",
        "table",
        "classifier",
        "accuracy",
        "rate",
        "fair",
        "better in both",
    )
    return Table(
        "Missed: a rate not reached, or another method that is more accurate and"
        " fairer",
        columns,
        tuple(rows),
    )


def _cells(wish: str, means: Places) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (asked, table, learner), methods in means.items():
        for method, own in methods.items() if asked == wish else ():
            cost = (
                f"{own['decided']:.3f}",
                round(own["trainings"], 1),
                round(own["seconds"], 2),
            )
            accuracy, rate, fair = _shown(own)
            rows.append(
                (
                    table,
                    learner,
                    method,
                    accuracy,
                    f"{own['auc']:.3f}",
                    rate,
                    fair,
                    *cost,
                )
            )
    columns = (
        "table",
        "classifier",
        "method",
        "accuracy",
        "AUC",
        "rate",
        "fair",
        "decided for",
        "trainings",
        "CPU s",
    )
    return Table(wish, columns, tuple(rows))


def _shown(own: Means) -> tuple[str, str, str]:
    return (
        f"{own['accuracy']:.3f}",
        f"{own['rate']:.3f}",
        f"{own['fair']:.3f} ± {own['error']:.3f}",
    )
