"""The search for a fair model: what it promises where the truth is known, how near the
best of all rules it comes, and what it costs.

Five made populations, in which a model may not see the group. P(y | x) and P(g | x) are
known, so that the shares that a model decides for, its accuracy and that of the best
rule with the same shares are known, too (but for the people drawn to count them by).
What is left lying of that accuracy has three parts: what the learner loses although it
is taught the best rule; what it loses more if P(y | x) and P(g | x) are estimated; and
what the search loses more, which does not know how far to move the groups either.
Certified rates are judged over all populations; of one, by what two standard errors
leave.

And a table of 14 columns, with gradient boosting that sees the group. A training counts
as one although a table for a model may split people, who are then learned from twice.

    python benchmarks/search.py --runs 50

writes `search.json` and `search.md` beside this file, or into the folder given. What is
there already is kept: a run measures only what is missing.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import fairmaxent
from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.page import bar_lines, section_lines
from benchmarks.results import setting
from benchmarks.simulated import census
from fairmaxent.relabelling import closed_loop
from fairmaxent.relabelling.rule import Known, known_of, soft_labels
from reproduction.cells import made_with

Reals = NDArray[np.float64]
Groups = NDArray[np.intp]
Record = dict[str, Any]

COUNTED_BY = 40_000  # people drawn to count shares and accuracy by
# of the certificate, at each number of people
PEOPLE = 1000, 4000
PARITIES = "decisions", "opportunity"
NEAR = 4000  # people at which accuracy is compared with the best rule's
# of the cost
ROWS = 5000, 10_000, 40_000, 100_000, 500_000
COLUMNS = 14
_OFF, _LOST = 0.015, 0.01  # certified − true; accuracy left lying
_MEDIAN, _MOST = 12, 25  # trainings
_FEWEST = 4  # tables, by which a population is judged alone


@dataclass(frozen=True)
class Population:
    """People whose group and outcome are known as chances of their columns."""

    shares: Reals  # π_g
    draw: Callable[[Generator, Groups], Any]  # groups -> a frame of x
    # log f(x | g) and P(y | x, g), each (people, groups)
    likelihood: Callable[[Any], Reals]
    chances: Callable[[Any], Reals]

    def people(self, rng: Generator, number: int) -> tuple[Any, Groups, Any]:
        """x, the group and the outcome of so many."""
        group = rng.choice(len(self.shares), number, p=self.shares)
        seen = self.draw(rng, group)
        chance = self.chances(seen)[np.arange(number), group]
        return seen, group, rng.random(number) < chance

    def known(self, seen: Any) -> tuple[Reals, Reals]:
        """P(g | x) and P(g, y = 1 | x)."""
        logs = np.log(self.shares) + self.likelihood(seen)
        joint = np.exp(logs - logs.max(axis=1, keepdims=True))
        groups = joint / joint.sum(axis=1, keepdims=True)
        return groups, groups * self.chances(seen)

    def compared(self, seen: Any, parity: str) -> tuple[Reals, Reals]:
        """What counts in the shares of groups that are compared, and η."""
        groups, joint = self.known(seen)
        if parity == "opportunity":
            groups = joint
        return groups, joint.sum(axis=1)


def _logistic(scores: Any) -> Reals:
    return 1 / (1 + np.exp(-np.asarray(scores, dtype=float)))


def _normal(
    means: Any, spreads: Any, lean: Any, direct: Any, shares: Any
) -> Population:
    """Numbers that are normal in each group; the outcome leans on them, and on the
    group itself.
    """
    centre = np.asarray(means, dtype=float)  # (groups, columns)
    spread = np.asarray(spreads, dtype=float)
    names = [f"x{column}" for column in range(centre.shape[1])]

    def draw(rng: Generator, group: Groups) -> Any:
        noise = rng.normal(size=(len(group), len(names)))
        return pd.DataFrame(centre[group] + spread[group] * noise, columns=names)

    def likelihood(seen: Any) -> Reals:
        distance = (seen.to_numpy()[:, None] - centre) / spread
        return -(distance**2 / 2 + np.log(spread)).sum(axis=2)

    def chances(seen: Any) -> Reals:
        scores = seen.to_numpy() @ np.asarray(lean, dtype=float)
        return _logistic(scores[:, None] + np.asarray(direct, dtype=float))

    return Population(np.asarray(shares), draw, likelihood, chances)


def _profiles(number: int, groups: int, seed: int) -> Population:
    """Columns of levels only: each profile has chances of its own."""
    rng = np.random.default_rng([53, seed])
    of_group = rng.dirichlet(np.full(number, 1.5), groups)  # P(profile | g)
    chance = rng.beta(1.2, 1.2, number)
    names = np.array([f"p{profile:02}" for profile in range(number)])

    def draw(rng: Generator, group: Groups) -> Any:
        below = of_group.cumsum(axis=1)[group]
        profile = (rng.random((len(group), 1)) > below).sum(axis=1)
        return pd.DataFrame({"profile": names[np.minimum(profile, number - 1)]})

    def code(seen: Any) -> Any:
        return np.searchsorted(names, seen["profile"].to_numpy(dtype=names.dtype))

    return Population(
        np.full(groups, 1 / groups),
        draw,
        lambda seen: np.log(of_group[:, code(seen)].T),
        lambda seen: np.repeat(chance[code(seen), None], groups, axis=1),
    )


EVEN = (0.5, 0.5)
POPULATIONS: Mapping[str, Population] = {
    "means differ": _normal(
        [[-0.4, -0.5], [0.4, 0.5]], np.ones((2, 2)), [1.5, 0.8], [0, 0], EVEN
    ),
    "spreads differ": _normal(
        [[-0.3, 0], [0.3, 0]], [[0.7, 1], [1.4, 1]], [1.2, 1], [-0.3, -0.3], EVEN
    ),
    "treated otherwise": _normal(
        [[-0.8, 0, 0], [0.8, 0, 0]], np.ones((2, 3)), [0, 1.2, 0.8], [-0.7, 0.7], EVEN
    ),
    "a small group": _normal(
        [[-0.7, -0.4], [0.2, 0.1]], np.ones((2, 2)), [1, 1], [-0.4, 0.2], (0.2, 0.8)
    ),
    "levels": _profiles(16, 2, seed=1),
}


class Curves(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression with squares and products: it can say what is needed."""

    def fit(self, seen: Any, outcome: Any, sample_weight: Any = None) -> "Curves":
        """Learn scales, levels and coefficients."""
        numbers = seen.select_dtypes("number")
        self.centre_ = numbers.mean().to_numpy()
        self.spread_ = numbers.std().to_numpy()
        self.levels_ = {
            name: np.unique(values)
            for name, values in seen.items()
            if name not in numbers
        }
        model = LogisticRegression(max_iter=1000)
        self.model_ = model.fit(self._terms(seen), outcome, sample_weight=sample_weight)
        self.classes_ = model.classes_
        return self

    def predict_proba(self, seen: Any) -> Any:
        """The chance of each outcome."""
        return self.model_.predict_proba(self._terms(seen))

    def predict(self, seen: Any) -> Any:
        """The likeliest outcome."""
        return self.model_.predict(self._terms(seen))

    def _terms(self, seen: Any) -> Any:
        others = [
            seen[name].to_numpy()[:, None] == levels
            for name, levels in self.levels_.items()
        ]
        numbers = seen.drop(columns=[*self.levels_]).to_numpy(dtype=float)
        scaled = (numbers - self.centre_) / self.spread_
        one, other = np.triu_indices(scaled.shape[1])
        return np.hstack([scaled, scaled[:, one] * scaled[:, other], *others])


def boosting() -> Any:
    """Gradient boosting as scikit-learn has it."""
    columns = make_column_transformer(
        (OrdinalEncoder(), make_column_selector(dtype_exclude="number")),
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    return make_pipeline(columns, HistGradientBoostingClassifier(random_state=0))


def tree() -> Any:
    """A decision tree, a leaf of which has 1 % of the people."""
    return DecisionTreeClassifier(min_samples_leaf=0.01, random_state=0)


STUDENTS: Mapping[str, Callable[[], Any]] = {
    "logistic regression": Curves,
    "decision tree": tree,
    "gradient boosting": boosting,
}
# Those that learn people by heart are tried on these alone, and on fewer tables.
BY_HEART = "treated otherwise", "a small group"
FEWER_RUNS = 10


# ---------------------------------------------------------------- promises


@dataclass(frozen=True, eq=False)
class Judge:
    """Many people of a population, to count shares and accuracy by."""

    seen: Any
    compared: Reals  # P(g | x), or P(g, y = 1 | x) for equal opportunity
    chance: Reals  # η(x)

    @classmethod
    def of(cls, population: Population, parity: str) -> "Judge":
        """Draw them."""
        seen, _, _ = population.people(np.random.default_rng(9), COUNTED_BY)
        compared, chance = population.compared(seen, parity)
        return cls(seen, compared, chance)

    def shares(self, decided: Any) -> Reals:
        """Of each group that are decided for."""
        return np.asarray(decided @ self.compared / self.compared.sum(axis=0))

    def accuracy(self, decided: Any) -> float:
        """How often decisions are right."""
        return float(np.where(decided, self.chance, 1 - self.chance).mean())

    def best(self, shares: Reals) -> tuple[float, Reals]:
        """The accuracy of the best of all rules with these shares, and its λ.

        It decides for x where η(x) − ½ + Σ_g λ_g·P(g | x) is positive. By the dual: min
        over λ of Σ_x max(0, that) − Σ_g λ_g·share_g·Σ_x P(g | x).
        """
        gain = self.chance - 0.5
        wanted = shares * self.compared.mean(axis=0)

        def dual(multipliers: Reals) -> float:
            lifted = gain + self.compared @ multipliers
            return float(np.maximum(lifted, 0).mean() - multipliers @ wanted)

        exact = {"xatol": 1e-5, "fatol": 1e-9}
        start = np.zeros(len(shares))
        found = minimize(dual, start, method="Nelder-Mead", options=exact)
        return float((1 - self.chance).mean() + 2 * found.fun), found.x

    def lost(self, decided: Any) -> float:
        """By how much the best rule that decides for as many is more accurate."""
        accuracy, _ = self.best(self.shares(decided))
        return accuracy - self.accuracy(decided)


def promised(
    judge: Judge,
    population: Population,
    student: Callable[[], Any],
    parity: str,
    people: int,
    run: int,
) -> Record:
    """One table: what its certificate says of a model's decisions, and what is true."""
    rng = np.random.default_rng([run, people, 61])
    seen, group, good = population.people(rng, people)
    table = seen.assign(
        group=np.array(["a", "b", "c"])[group], good=np.where(good, "yes", "no")
    )
    plan = fairmaxent.Model(student(), parity=parity, hide_protected=True)
    asked: list[Known] = []

    def ask(*whom: Any) -> Known:
        asked.append(known_of(*whom))
        return asked[-1]

    with patch.object(closed_loop, "known_of", ask):
        fit = fairmaxent.debias(
            table, "good", "group", favourable="yes", model=plan, random_state=run
        )
    decided = fit.model().predict(judge.seen) == "yes"
    raw = student().fit(seen, good).predict(judge.seen)
    shares = judge.shares(decided)
    decisions = fit.certificate.decisions
    (rate,) = decisions.rates
    true = float(shares.min() / shares.max())
    covered = None
    if rate.low is not None:  # otherwise nothing is promised
        covered = bool(rate.low <= true <= rate.high)
    return {
        "certified": rate.rate,
        "true": true,
        "covered": covered,
        "raw rate": float(judge.shares(raw).min() / judge.shares(raw).max()),
        "lost": judge.lost(decided),
        "lost raw": judge.lost(raw),
        "decided": float(decided.mean()),
        "trainings": decisions.trainings,
    } | losses(judge, population, student, parity, seen, shares, asked[0])


def losses(
    judge: Judge,
    population: Population,
    student: Callable[[], Any],
    parity: str,
    seen: Any,
    shares: Reals,
    known: Known,
) -> Record:
    """What the same learner loses if it is taught, as our table teaches, the best rule.

    Once that rule itself; and once with η and P(g | x) as models estimate them for the
    search: what the search loses more is lost by its λ.
    """
    _, multipliers = judge.best(shares)
    compared, chance = population.compared(seen, parity)

    def lost(told: Reals, moves: Reals) -> float:
        labels = soft_labels(told - 0.5 + moves @ multipliers, 0.5)
        return judge.lost(trained(student(), seen, labels).predict(judge.seen))

    return {
        "lost if taught the best rule": lost(chance, compared),
        "lost by estimates": lost(known.chances, known.moves),
    }


def trained(model: Any, seen: Any, labels: Reals) -> Any:
    """Train on everybody twice: as good, by the label, and as bad, by the rest."""
    twice = pd.concat([seen, seen], ignore_index=True)
    good = np.repeat([True, False], len(seen))
    weight = np.concatenate([labels, 1 - labels])
    name = "sample_weight"
    if isinstance(model, Pipeline):
        name = f"{model.steps[-1][0]}__sample_weight"
    counts = weight > 0
    return model.fit(twice[counts], good[counts], **{name: weight[counts]})


def promises(found: list[Record], runs: int) -> Iterator[Record]:
    """All tables that were not measured yet, run by run."""
    key = ("student", "population", "parity", "people", "run")
    there = {tuple(one[name] for name in key) for one in found}
    judges: dict[tuple[str, str], Judge] = {}
    for run in range(runs):
        for mark in product(STUDENTS, POPULATIONS, PARITIES, PEOPLE, [run]):
            student, name, parity, people, _ = mark
            is_spared = student != "logistic regression" and (
                name not in BY_HEART or run >= FEWER_RUNS
            )
            if mark in there or is_spared:
                continue
            population = POPULATIONS[name]
            if (name, parity) not in judges:
                judges[name, parity] = Judge.of(population, parity)
            yield dict(zip(key, mark, strict=True)) | promised(
                judges[name, parity],
                population,
                STUDENTS[student],
                parity,
                people,
                run,
            )


# ---------------------------------------------------------------- cost


def costs(rows: int) -> Record:
    """CPU seconds of one training on everybody, and of the whole fit.

    A fair table has weights, with which this boosting takes longer.
    """
    table = census(rows).assign(
        **{
            f"n{number}": np.random.default_rng([number, 7]).normal(size=rows).round(2)
            for number in range(COLUMNS - 10)
        }
    )
    seen = table.drop(columns="income")
    last = boosting().steps[-1][0]
    trainings = []
    with threadpool_limits(1):
        for weight in (None, np.ones(rows)):
            began = time.process_time()
            model = clone(boosting())
            model.fit(seen, table["income"], **{f"{last}__sample_weight": weight})
            trainings.append(round(time.process_time() - began, 3))
        plan = fairmaxent.Model(boosting())
        began = time.process_time()
        fit = fairmaxent.debias(table, "income", "sex", favourable="high", model=plan)
        seconds = time.process_time() - began
    return {
        "rows": rows,
        "one training": trainings[0],
        "with weights": trainings[1],
        "fit": round(seconds, 3),
        "trainings": fit.certificate.decisions.trainings,
    }


# ---------------------------------------------------------------- page


EVERYWHERE = "all of them"
Key = tuple[str, str, str, int]  # of a cell: student, population, parity, people


def cells(promised: list[Record]) -> dict[Key, list[Record]]:
    """The tables of each cell, and of all populations together."""
    found: dict[Key, list[Record]] = {}
    for one in promised:
        for name in (EVERYWHERE, one["population"]):
            key = one["student"], name, one["parity"], one["people"]
            found.setdefault(key, []).append(one)
    names = [EVERYWHERE, *POPULATIONS]
    place = [list(STUDENTS), names, list(PARITIES), list(PEOPLE)]

    def order(key: Key) -> list[int]:
        return [own.index(part) for own, part in zip(place, key, strict=True)]

    return {key: found[key] for key in sorted(found, key=order)}


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    error = 0.0
    if len(values) > 1:
        error = stdev(values) / len(values) ** 0.5
    return fmean(values), error


def promises_table(found: Mapping[Key, list[Record]]) -> tuple[Table, list[Bar]]:
    """Certified rates beside true ones. A cell misses by what is more than chance."""
    rows = []
    bars = []
    for (student, name, parity, people), own in found.items():
        sure = [one for one in own if one["covered"] is not None]
        if not sure:
            continue
        off, error = mean_and_error([one["certified"] - one["true"] for one in sure])
        rows.append(
            (
                student,
                name,
                parity,
                people,
                len(own),
                f"{fmean(one['raw rate'] for one in own):.3f}",
                f"{fmean(one['true'] for one in own):.3f}",
                f"{off:+.3f} ± {error:.3f}",
                f"{fmean(one['covered'] for one in sure):.2f}",
                median(one["trainings"] for one in own),
            )
        )
        what = f"{student}, {name}, {parity}, {people:,} people: certified − true"
        if name == EVERYWHERE:
            bars.append(Bar(f"{what}, size", abs(off), _OFF))
        elif len(sure) >= _FEWEST:
            surely = max(0.0, abs(off) - 2 * error)
            bars.append(Bar(f"{what}, size beyond two errors", surely, _OFF))
    titles = (
        "model,population,parity,people,tables,rate as it is,true rate,certified − true,"
        "interval holds,trainings"
    )
    table = Table("Promises, the group hidden", tuple(titles.split(",")), tuple(rows))
    return table, bars


def losses_table(found: Mapping[Key, list[Record]]) -> tuple[Table, list[Bar]]:
    """Accuracy that is left lying, and by what."""
    rows = []
    bars = []
    for (student, name, parity, people), tables in found.items():
        own = [one for one in tables if "lost by estimates" in one]
        if not own or name == EVERYWHERE:
            continue
        lost = fmean(one["lost"] for one in own)
        taught = fmean(one["lost if taught the best rule"] for one in own)
        parts = [one["lost"] - one["lost by estimates"] for one in own]
        by_search, error = mean_and_error(parts)
        rows.append(
            (
                student,
                name,
                parity,
                people,
                len(own),
                f"{fmean(one['lost raw'] for one in own):.3f}",
                f"{lost:.3f}",
                f"{taught:.3f}",
                f"{lost - by_search - taught:+.3f}",
                f"{by_search:+.3f} ± {error:.3f}",
            )
        )
        if people == NEAR:
            what = (
                f"{student}, {name}, {parity}, {people:,} people: accuracy left lying"
            )
            bars.append(Bar(what, lost, _LOST))
            bars.append(Bar(f"{what} by the search", by_search, _LOST))
    titles = (
        "model,population,parity,people,tables,left lying as it is,by the fair model,"
        "of it by the learner,by estimates,by the search"
    )
    table = Table("Accuracy left lying", tuple(titles.split(",")), tuple(rows))
    return table, bars


def costs_table(cost: list[Record]) -> tuple[Table, list[Bar]]:
    """CPU time."""
    bars = [
        Bar(
            f"{one['rows']:,} rows: CPU of a fit, in trainings {name}",
            one["fit"] / one[key],
            _MEDIAN,
        )
        for one in cost
        for name, key in (
            ("with weights", "with weights"),
            ("without weights", "one training"),
        )
    ]
    titles = (
        "rows,CPU s of one training,the same with weights,CPU s of the fit,"
        "trainings counted"
    )
    names = "rows", "one training", "with weights", "fit", "trainings"
    rows = tuple(tuple(one[name] for name in names) for one in cost)
    title = f"Cost: gradient boosting that sees the group, {COLUMNS} columns"
    return Table(title, tuple(titles.split(",")), rows), bars


def outcome(promised: list[Record], cost: list[Record]) -> Outcome:
    """What was measured, with the bars."""
    found = cells(promised)
    tables = []
    bars = []
    for table, own in (promises_table(found), losses_table(found), costs_table(cost)):
        tables.append(table)
        bars += own
    if promised:
        trainings = [one["trainings"] for one in promised]
        bars.append(Bar("trainings, median", median(trainings), _MEDIAN))
        bars.append(Bar("trainings, most", max(trainings), _MOST))
    title = "The search for a fair model"
    return Outcome(title, __doc__ or "", tuple(tables), tuple(bars))


def write(folder: Path, record: Record) -> None:
    """Keep all that was measured, and write the page, misses first."""
    lines = ",\n".join(json.dumps(one) for one in record["promises"])
    heads = json.dumps(record | {"promises": []}, indent=1, ensure_ascii=False)
    text = heads.replace('"promises": []', f'"promises": [\n{lines}\n]')
    (folder / "search.json").write_text(f"{text}\n", encoding="utf-8")
    measured = outcome(record["promises"], record["cost"])
    bars = sorted(measured.bars, key=lambda bar: bar.met)
    page = ["# The search for a fair model", ""]
    page += ["Written by `python benchmarks/search.py`.", "", "## Bars", ""]
    page += bar_lines({"search": bars}, {"search": {"setting": record["setting"]}})
    page += section_lines(measured, record["setting"])
    (folder / "search.md").write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")


def main() -> None:
    """Measure what is missing, keep it after each table, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--most-rows", type=int, default=ROWS[-1])
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    path = asked.out / "search.json"
    record: Record = {"promises": [], "cost": []}
    if path.exists():
        record = json.loads(path.read_text(encoding="utf-8"))
    record["setting"] = setting(quick=False)
    record["code"] = made_with()["fingerprint"]
    there = {one["rows"] for one in record["cost"]}
    for rows in ROWS:
        if rows not in there and rows <= asked.most_rows:
            record["cost"].append(costs(rows))
            write(asked.out, record)
    for one in promises(record["promises"], asked.runs):
        record["promises"].append(one)
        write(asked.out, record)


if __name__ == "__main__":
    main()
