"""Groups that nobody wrote down: what `Likely` reaches where the truth is known.

Simulated populations of four groups, whose names (or columns) tell the group with some
probability. For each: the rate by the true groups before and after, by weights of the
likeliest group, by weights of p, and by `debias`; whether intervals hold the truth; how
often the test of the assumption rejects; and whether bounds hold.

    python benchmarks/unrecorded.py --populations 100 --processes 8

writes `benchmarks/unrecorded.json`.
"""

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from fairmaxent import InfeasibleError, Likely, debias, inspect

SHARES = np.array([0.14, 0.05, 0.14, 0.67])
RATES = np.array([0.49, 0.30, 0.24, 0.42])
GROUPS = ("a", "b", "c", "d")
COLUMNS = {group: f"p_{group}" for group in GROUPS}
NAMES = 3000
REFUTED = 0.05
Population = tuple[Any, Any, Any]  # groups, outcomes, p
Task = tuple[str, int, int]  # what tells the group, how many people, a seed
# How different names of groups are: the likeliest group is right for so many people.
STRENGTHS = {"strong (97 %)": 3.2, "middling (90 %)": 2.15, "weak (69 %)": 0.8}
SIZES = (6000, 30_000)


def named(rng: Generator, people: int, differ: float) -> Population:
    """Groups, outcomes and p, if a name says nothing but the group."""
    chances = np.exp(differ * rng.normal(size=(NAMES, 4)))
    chances /= chances.sum(axis=0)
    group = rng.choice(4, people, p=SHARES)
    name = np.empty(people, dtype=int)
    for number in range(4):
        own = group == number
        name[own] = rng.choice(NAMES, own.sum(), p=chances[:, number])
    joint = (chances * SHARES)[name]
    return group, rng.random(people) < RATES[group], joint / joint.sum(1, keepdims=True)


def decided_by_columns(rng: Generator, people: int) -> Population:
    """The same, if p was predicted from the columns that decide the outcome."""
    profile = rng.integers(0, 40, people)
    chances = rng.dirichlet(3 * SHARES, 40)[profile]
    lean = rng.uniform(-0.1, 0.1, 40)[profile]
    paid = rng.random(people) < chances @ RATES + lean
    group = (rng.random((people, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return np.minimum(group, 3), paid, chances


def cell_weights(group: Any, paid: Any) -> Any:
    """Weights that make outcome and group independent: t / e of each cell."""
    table = np.zeros((2, 4))
    np.add.at(table, (paid.astype(int), group), 1.0)
    fair = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return (fair / np.maximum(table, 1.0))[paid.astype(int), group]


def true_rate(group: Any, paid: Any, weights: Any) -> float:
    """The lowest share with the outcome in a true group, over the highest."""
    rates = np.bincount(group, weights * paid) / np.bincount(group, weights)
    return float(rates.min() / rates.max())


def measured(task: Task) -> tuple[str, int, dict[str, float]]:
    """One population, made fair three ways."""
    kind, people, seed = task
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, people])
    told = "names"
    if kind == "columns":
        told = "columns"
        group, paid, chances = decided_by_columns(rng, people)
    else:
        group, paid, chances = named(rng, people, STRENGTHS[kind])
    frame = pd.DataFrame(chances, columns=list(COLUMNS.values()))
    frame["paid"] = np.where(paid, "yes", "no")
    found = {"before": true_rate(group, paid, np.ones(people))}
    cut = cell_weights(chances.argmax(axis=1), paid)
    found["likeliest"] = true_rate(group, paid, cut)
    fits = {}
    for told_by in ("columns", "names"):
        try:
            fit = debias(frame, "paid", Likely("race", COLUMNS, told_by=told_by))
        except InfeasibleError:  # "names" where it is wrong
            found[told_by] = np.nan
        else:
            fits[told_by] = fit
            found[told_by] = true_rate(group, paid, fit.weights())
    chosen = fits[told]
    likely = chosen.certificate.likely
    (before,) = likely.before
    (after,) = likely.after
    found["reached"] = true_rate(group, paid, chosen.weights())
    found["expected"] = after.expected
    found["before estimated"] = getattr(before, told)
    truths = {"before": found["before"], "after": found["reached"]}
    for name, rate in (("before", before), ("after", after)):
        low, high = rate.interval
        found[f"{name} is inside"] = bool(low <= truths[name] <= high)
        low, high = rate.bounds
        found[f"{name} is within bounds"] = bool(low <= truths[name] <= high)
    names = Likely("race", COLUMNS, told_by="names")
    tested = inspect(frame, "paid", names).likely.contradiction
    found["rejected"] = bool(tested < REFUTED)
    return kind, people, found


def summary(found: list[dict[str, float]]) -> dict[str, float]:
    """The mean over populations of each number."""
    means = {name: float(np.nanmean([one[name] for one in found])) for name in found[0]}
    off = [one["expected"] - one["reached"] for one in found]
    means["expected − reached"] = float(np.mean(off))
    return {"populations": len(found), **{k: round(v, 4) for k, v in means.items()}}


def main() -> None:
    """Measure every population, and save the means."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--populations", type=int, default=100)
    parser.add_argument("--large", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    tasks = []
    for kind in (*STRENGTHS, "columns"):
        for people in (3000, *SIZES):
            count = asked.large if people == SIZES[-1] else asked.populations
            tasks += [(kind, people, seed) for seed in range(count)]
    results = {}
    with ProcessPoolExecutor(asked.processes) as pool:
        for kind, people, found in pool.map(measured, tasks, chunksize=4):
            results.setdefault(f"{kind}, {people:,} people", []).append(found)
    saved = {name: summary(found) for name, found in results.items()}
    text = json.dumps(saved, indent=1, ensure_ascii=False)
    Path(__file__).with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
    for name, means in saved.items():
        print(name, means)


if __name__ == "__main__":
    main()
