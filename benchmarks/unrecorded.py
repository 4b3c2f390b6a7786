"""Groups that nobody wrote down: what `Likely` reaches where the truth is known.

Simulated populations of four groups, whose names (or columns) tell the group with some
probability. For each: the rate by the true groups before and after, by weights of the
likeliest group, by weights of p, and by `debias`; whether intervals hold the truth; how
often the test of the assumption rejects; and whether bounds hold. "error before" is the
root of the mean squared error of the estimate before. In "census columns", people are
those of a shipped table, and p is predicted from schooling, marriage and birthplace.

"known rates" is what weights reach if P(y | g) is the true one, and "no prior" if it is
learned by plain maximum likelihood. "drawn again" is what the weights of p would reach
if the groups were drawn again by p: what chance leaves, as nobody knows who is where.

"speed" has the CPU seconds of a fit of a million people, each beside a plain fit; names
repeat, or everybody has probabilities of their own.

    python benchmarks/unrecorded.py --populations 100 --processes 8

writes `benchmarks/unrecorded.json`. In pieces: `--kept FILE --seconds 400`, again and
again.
"""

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from numpy.random import Generator

from fairmaxent import InfeasibleError, Likely, datasets, debias, inspect
from fairmaxent.errors import SolverError
from fairmaxent.fairness.likely import _Combination, likely_factors
from fairmaxent.fairness.people import People

SHARES = np.array([0.14, 0.05, 0.14, 0.67])
RATES = np.array([0.49, 0.30, 0.24, 0.42])
GROUPS = ("a", "b", "c", "d")
COLUMNS = {group: f"p_{group}" for group in GROUPS}
NAMES = 3000
REFUTED = 0.05
NO_PRIOR = 0.01  # people: a prior that hardly counts
Population = tuple[Any, Any, Any]  # groups, outcomes, p
Task = tuple[str, int, int]  # what tells the group, how many people, a seed
# How different names of groups are: the likeliest group is right for so many people.
STRENGTHS = {"strong (97 %)": 3.2, "middling (90 %)": 2.15, "weak (69 %)": 0.8}
SIZES = (6000, 30_000)
LOOK = "only looked at: "
CHUNK = 8  # populations, after which a call may end
MANY = 1_000_000  # people, whose fit is timed
SEVERAL = 6  # groups of them
REPEATED = 5000  # names of them


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


def decided_by_census_columns(rng: Generator, people: int) -> Population:
    """The same for the people of the shipped table, and what they really earn."""
    table = datasets.load("acs", library="pandas").frame
    deciding = ["education", "marital_status", "born_in_us"]
    cells = table.groupby(deciding).ngroup().to_numpy()
    races = pd.Categorical(table["race"]).codes
    _, group = np.unique(races, return_inverse=True)
    largest = np.argsort(-np.bincount(group))[:3].tolist()
    group = np.array([largest.index(g) if g in largest else 3 for g in group])
    counts = np.zeros((cells.max() + 1, 4))
    np.add.at(counts, (cells, group), 1.0)
    usual = np.bincount(group, minlength=4) / len(group)
    chances = (counts + 4 * usual) / (counts.sum(axis=1, keepdims=True) + 4)
    some = rng.integers(0, len(table), people)
    own = chances[cells[some]]
    drawn = (rng.random((people, 1)) > own.cumsum(axis=1)).sum(axis=1)
    paid = (table["income"] == ">50K").to_numpy()[some]
    return np.minimum(drawn, 3), paid, own


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


def measured(task: Task) -> dict[str, float]:
    """One population, made fair three ways."""
    kind, people, seed = task
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, people])
    told = "names" if kind in STRENGTHS else "columns"
    if kind == "columns":
        group, paid, chances = decided_by_columns(rng, people)
    elif kind == "census columns":
        group, paid, chances = decided_by_census_columns(rng, people)
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
    found |= best_possible(told, paid, group, chances)
    chosen = fits[told]
    likely = chosen.certificate.likely
    (before,) = likely.before
    (after,) = likely.after
    found["reached"] = true_rate(group, paid, chosen.weights())
    found["expected"] = after.expected
    found["before estimated"] = getattr(before, told)
    found["before expected"] = before.expected
    truths = {"before": found["before"], "after": found["reached"]}
    for name, rate in (("before", before), ("after", after)):
        low, high = rate.interval
        found[f"{name} is inside"] = bool(low <= truths[name] <= high)
        low, high = rate.bounds
        found[f"{name} is within bounds"] = bool(low <= truths[name] <= high)
    found["rejected"] = bool(likely.contradiction < REFUTED)
    return found


def best_possible(told: str, paid: Any, group: Any, chances: Any) -> dict[str, float]:
    """What weights reach that know more, or as much as there is to know."""
    count = np.ones(len(paid))
    people = People.of(chances, paid.astype(int), (1, 2), count, count)
    if told == "columns":
        weights = fair_weights(people, people.chances)
        rng = np.random.default_rng(0)
        again = []
        for _ in range(10):
            drawn = (rng.random((len(paid), 1)) > chances.cumsum(axis=1)).sum(axis=1)
            again.append(true_rate(np.minimum(drawn, 3), paid, weights))
        return {"drawn again": float(np.mean(again))}
    combination = _Combination.of(people, 0)
    learned = combination.mode(NO_PRIOR, combination.begin).rates
    known = np.stack([1 - RATES, RATES])
    reached = {}
    for name, rates in {"no prior": learned, "known rates": known}.items():
        try:
            weights = fair_weights(people, people.memberships(rates[None]))
        except SolverError:  # without a prior, rates of weak names may be 0
            reached[name] = np.nan
        else:
            reached[name] = true_rate(group, paid, weights)
    return reached


def fair_weights(people: People, memberships: Any) -> Any:
    """Weights that make outcomes and groups independent, if people belong so."""
    table = people.table(memberships, people.weight)[0]
    fair = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return likely_factors(people, memberships, fair[None])[people.place]


def before_alone(task: Task) -> dict[str, float]:
    """What is said of one population of names, without making it fair."""
    kind, people, seed = task
    rng = np.random.default_rng([seed, people, 1])
    group, paid, chances = named(rng, people, STRENGTHS[kind])
    frame = pd.DataFrame(chances, columns=list(COLUMNS.values()))
    frame["paid"] = np.where(paid, "yes", "no")
    look = inspect(frame, "paid", Likely("race", COLUMNS, told_by="names"))
    (rate,) = look.likely.before
    truth = true_rate(group, paid, np.ones(people))
    low, high = rate.interval
    return {
        "before": truth,
        "before expected": rate.expected,
        "before is inside": bool(low <= truth <= high),
        "rejected": bool(look.likely.contradiction < REFUTED),
    }


def speed(different: int) -> dict[str, float]:
    """CPU seconds of a fit of many people, in memory and lazily, beside a plain fit.

    ``different``: how many kinds of probabilities there are.
    """
    rng = np.random.default_rng(0)
    names = [f"p_{number}" for number in range(SEVERAL)]
    chances = rng.dirichlet(np.full(SEVERAL, 0.3), different)
    if different < MANY:
        chances = chances[rng.integers(0, different, MANY)]
    frame = pl.DataFrame(dict(zip(names, chances.T, strict=True)))
    group = (rng.random((MANY, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    group = np.minimum(group, SEVERAL - 1)
    paid = rng.random(MANY) < np.linspace(0.3, 0.6, SEVERAL)[group]
    frame = frame.with_columns(
        paid=pl.Series(np.where(paid, "yes", "no")),
        race=pl.Series(group).cast(str),
        age=pl.Series(rng.integers(18, 80, MANY)),
        town=pl.Series(rng.choice(["n", "s", "e", "w"], MANY)),
    )
    likely = Likely("race", {name[2:]: name for name in names}, told_by="names")
    known = frame.drop(names)
    unknown = frame.drop("race")
    calls = {
        "plain": lambda: debias(known, "paid", "race").weights(),
        "likely": lambda: debias(unknown, "paid", likely).weights(),
        "plain, lazily": lambda: debias(known.lazy(), "paid", "race"),
        "likely, lazily": lambda: debias(unknown.lazy(), "paid", likely),
    }
    seconds = {}
    for name, call in calls.items():
        began = time.process_time()
        call()
        seconds[name] = round(time.process_time() - began, 2)
    return seconds


def summary(found: list[dict[str, float]]) -> dict[str, float]:
    """The mean over populations of each number."""
    means = {}
    for name in found[0]:
        values = np.array([one[name] for one in found], dtype=float)
        if not np.isnan(values).all():  # "names" may be out of reach in all of them
            means[name] = float(np.nanmean(values))
    off = [one["before expected"] - one["before"] for one in found]
    means["error before"] = float(np.sqrt(np.mean(np.square(off))))
    if "reached" in means:
        means["expected − reached"] = means["expected"] - means["reached"]
    return {"populations": len(found), **{k: round(v, 4) for k, v in means.items()}}


def done_before(kept: Path | None) -> dict[Task, dict[str, float]]:
    """What earlier calls found, by task."""
    found: dict[Task, dict[str, float]] = {}
    if kept is not None and kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            *task, numbers = json.loads(line)
            found[tuple(task)] = numbers
    return found


def one(task: Task) -> dict[str, float]:
    """What is found of one population."""
    kind, people, seed = task
    if kind.startswith(LOOK):
        return before_alone((kind.removeprefix(LOOK), people, seed))
    return measured(task)


def main() -> None:
    """Measure every population, and save the means."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--populations", type=int, default=100)
    parser.add_argument("--large", type=int, default=20)
    parser.add_argument("--looks", type=int, default=500)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kept", type=Path, help="file that another call goes on from")
    parser.add_argument("--seconds", type=float, default=np.inf, help="then it ends")
    asked = parser.parse_args()
    tasks = []
    for kind in (*STRENGTHS, "columns", "census columns"):
        for people in SIZES:
            count = asked.large if people == SIZES[-1] else asked.populations
            tasks += [(kind, people, seed) for seed in range(count)]
    tasks += [("census columns", 3000, seed) for seed in range(asked.populations)]
    for kind in STRENGTHS:
        tasks += [(f"{LOOK}{kind}", 6000, seed) for seed in range(asked.looks)]
    tasks.sort(key=lambda task: task[2])  # pieces have a part of each kind
    found = done_before(asked.kept)
    left = [task for task in tasks if task not in found]
    began = time.monotonic()
    with ProcessPoolExecutor(asked.processes) as pool:
        for first in range(0, len(left), CHUNK):
            if time.monotonic() - began > asked.seconds:
                print(f"{len(tasks) - len(found):,} populations are left")
                return
            chunk = left[first : first + CHUNK]
            for task, numbers in zip(chunk, pool.map(one, chunk), strict=True):
                found[task] = numbers
                if asked.kept is not None:
                    with asked.kept.open("a", encoding="utf-8") as file:
                        file.write(f"{json.dumps([*task, numbers])}\n")
    save(tasks, found)


def save(tasks: list[Task], found: dict[Task, dict[str, float]]) -> None:
    """Write the means of each kind of population, and what a large fit costs."""
    results: dict[str, list[dict[str, float]]] = {}
    for task in sorted(tasks):
        kind, people, _ = task
        results.setdefault(f"{kind}, {people:,} people", []).append(found[task])
    saved = {name: summary(several) for name, several in results.items()}
    saved["speed"] = {"populations": 1, **speed(REPEATED)}
    saved["speed, own probabilities"] = {"populations": 1, **speed(MANY)}
    text = json.dumps(saved, indent=1, ensure_ascii=False)
    Path(__file__).with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
    for name, means in saved.items():
        print(name, means)


if __name__ == "__main__":
    main()
