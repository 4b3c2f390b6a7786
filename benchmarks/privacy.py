"""What privacy costs: models trained on private rows, judged on real people, for one budget after the other.

Adult is prepared as in private-pgm: 14 columns, numbers in their own levels or in 100 bins of equal width. 70 % of the
people are fitted, and the models are judged on the other 30 %. ``python benchmarks/privacy.py`` writes privacy.json
and the table of docs/questions/privacy-cost.md; ``--quick`` only prints a few runs of Adult with ε = 1.
"""

import argparse
import contextlib
import json
import math
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "src"))

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from fairmaxent import Domain, InfeasibleError, Privacy, datasets, debias
from fairmaxent.fit import pipeline

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
DELTA = 1e-9
RUNS = {"Adult": 3, "COMPAS": 5, "German credit": 5}
RUNS_AT_ONE = 5
PAGE = HERE.parent / "docs" / "questions" / "privacy-cost.md"
_PLACE = re.compile(r"(<!-- measured: privacy -->\n).*?(<!-- measured: end -->)", re.S)

# Columns of COMPAS that were made from the outcome, or that scores were made from.
TELLING = (
    "is_recid",
    "is_violent_recid",
    "decile_score",
    "score_text",
    "v_decile_score",
    "v_score_text",
    "days_b_screening_arrest",
    "age_cat",
)

# MST of private-pgm on the same table, with ε = 1 and δ = 1e-9: measured once, elsewhere (150 CPU seconds).
MST = {"epsilon": 1.0, "auc": 0.832, "rate_of_predictions": 0.429, "one_way": 0.0087, "two_way": 0.0525, "cpu": 150.0}


class NoNoise:
    """ε = ∞: the exact counts."""

    def counts(self, table: np.ndarray[Any, Any], scale: float) -> np.ndarray[Any, Any]:
        """Counts as they are."""
        return table.copy()

    def choice(self, scores: np.ndarray[Any, Any], scale: float) -> int:
        """The best score."""
        return int(np.argmax(scores))


@dataclass(frozen=True)
class Coded:
    """A table of whole numbers, from 0 to one below the number of levels of its column."""

    name: str
    frame: pd.DataFrame
    sizes: dict[str, int]
    outcome: str
    protected: str

    def split(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The people who are fitted, and those whom models are judged on."""
        order = np.random.default_rng(0).permutation(len(self.frame))
        cut = int(0.7 * len(order))
        return tuple(self.frame.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))  # type: ignore[return-value]

    @property
    def domain(self) -> Any:
        """Every level, declared."""
        return Domain.declare(levels={name: list(range(size)) for name, size in self.sizes.items()})


# ---------------------------------------------------------------- tables


def adult() -> Coded:
    """Adult as in private-pgm."""
    frame = datasets.load("adult").frame.drop(columns="education")
    codes, sizes = {}, {}
    for name in frame.columns:
        values = frame[name]
        if name == "age":
            codes[name], sizes[name] = (values - 17).clip(0, 84), 85
        elif name == "hours_per_week":
            codes[name], sizes[name] = values - 1, 99
        elif values.dtype.kind in "iuf" and values.nunique() > 16:
            edges = np.linspace(values.min(), values.max(), 101)
            codes[name], sizes[name] = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, 99), 100
        else:
            codes[name], sizes[name] = _categories(values)
    return Coded("Adult", pd.DataFrame(codes).astype(int), sizes, "income", "sex")


def other(name: str, title: str) -> Coded:
    """Another public table, numbers in 16 bins, without columns that tell the outcome."""
    loaded = datasets.load(name)
    frame = loaded.frame.drop(columns=[column for column in TELLING if column in loaded.frame])
    codes, sizes = {}, {}
    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind in "iuf" and values.nunique() > 16:
            edges = np.linspace(values.min(), values.max(), 17)
            codes[column], sizes[column] = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, 15), 16
        else:
            codes[column], sizes[column] = _categories(values)
    protected = loaded.protected if isinstance(loaded.protected, str) else loaded.protected[0]
    return Coded(title, pd.DataFrame(codes).astype(int), sizes, loaded.outcome, protected)


def _categories(values: Any) -> tuple[Any, int]:
    coded = pd.Categorical(values.astype(str).where(values.notna(), "missing"))
    return coded.codes, len(coded.categories)


# ---------------------------------------------------------------- measuring


def measured(table: Coded, epsilon: float, seed: int, **wishes: Any) -> dict[str, float]:
    """One private fit: what a model trained on its rows does to real people, and how far its tables are off."""
    people, judged = table.split()
    began = time.process_time()
    fit = debias(
        people,
        table.outcome,
        table.protected,
        domain=table.domain,
        privacy=Privacy(epsilon=min(epsilon, 1e6), delta=DELTA),
        random_state=seed,
        estimate=None,
        **wishes,
    )
    rows = fit.sample(fit.table.size)
    seconds = time.process_time() - began
    rate = fit.certificate.achieved["statistical_rate"][table.protected]
    return {
        **quality(table, rows, judged),
        "rate": float(rate),
        "one_way": distance(table, people, rows, 1),
        "two_way": distance(table, people, rows, 2),
        "cpu": seconds,
    }


def quality(table: Coded, rows: pd.DataFrame, judged: pd.DataFrame) -> dict[str, float]:
    """Gradient boosting trained on the rows, judged on real people."""
    inputs = [name for name in table.sizes if name != table.outcome]
    model = HistGradientBoostingClassifier(random_state=0).fit(rows[inputs].to_numpy(), rows[table.outcome].to_numpy())
    chances = model.predict_proba(judged[inputs].to_numpy())
    auc = roc_auc_score(judged[table.outcome], chances[:, 1])
    decided = chances[:, 1] > 0.5
    shares = [decided[judged[table.protected] == level].mean() for level in judged[table.protected].unique()]
    return {"auc": float(auc), "rate_of_predictions": float(min(shares) / max(max(shares), 1e-9))}


def distance(table: Coded, real: pd.DataFrame, rows: pd.DataFrame, ways: int) -> float:
    """Total variation between the tables of some columns at a time, on average."""
    return float(np.mean(list(_distances(table, real, rows, ways))))


def _distances(table: Coded, real: pd.DataFrame, rows: pd.DataFrame, ways: int) -> Iterator[float]:
    for columns in combinations(table.sizes, ways):
        shape = [table.sizes[name] for name in columns]
        both = [
            np.bincount(np.ravel_multi_index([one[name] for name in columns], shape), minlength=math.prod(shape))
            / len(one)
            for one in (real, rows)
        ]
        yield float(np.abs(both[0] - both[1]).sum() / 2)


def _runs(table: Coded, epsilon: float, count: int, wishes: dict[str, Any]) -> Iterator[dict[str, float]]:
    """The runs in which the noise left something of the groups."""
    for seed in range(count):
        with contextlib.suppress(InfeasibleError):
            yield measured(table, epsilon, seed, **wishes)


def mean_of(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every number over the runs, and how many there are."""
    names = runs[0] if runs else ()
    return {name: float(np.mean([run[name] for run in runs])) for name in names} | {"runs": len(runs)}


def curve(table: Coded) -> list[dict[str, Any]]:
    """Private and fair rows, for one budget after the other."""
    points = []
    for epsilon in EPSILONS:
        noise = pipeline.OpenDP
        if math.isinf(epsilon):
            pipeline.OpenDP = NoNoise  # type: ignore[assignment, misc]
        try:
            count = 1 if math.isinf(epsilon) else RUNS_AT_ONE if epsilon == 1 else RUNS[table.name]
            plain, fair = (
                mean_of(list(_runs(table, epsilon, count, wishes))) for wishes in ({"statistical_rate": None}, {})
            )
        finally:
            pipeline.OpenDP = noise  # type: ignore[misc]
        point = {"epsilon": None if math.isinf(epsilon) else epsilon, "private": plain, "fair": fair}
        print(table.name, epsilon, json.dumps(point), flush=True)
        points.append(point)
    return points


# ---------------------------------------------------------------- results


def markdown(results: dict[str, Any]) -> str:
    """The curve as a table for each data set."""
    lines = []
    for name, record in results.items():
        lines += [f"**{name}** ({record['rows']:,} rows fitted, {record['columns']} columns)", ""]
        lines += ["| ε | AUC, private | AUC, private and fair | off, one column | off, two columns | CPU seconds |"]
        lines += ["| ---: | ---: | ---: | ---: | ---: | ---: |"]
        real = record["real"]
        lines.append(f"| real rows | {real['auc']:.3f} | – | – | – | – |")
        for point in reversed(record["curve"]):
            plain, fair = point["private"], point["fair"]
            epsilon = "no noise" if point["epsilon"] is None else f"{point['epsilon']:g}"
            if not (plain["runs"] and fair["runs"]):
                lines.append(f"| {epsilon} | the noise hides the groups | – | – | – | – |")
                continue
            lines.append(
                f"| {epsilon} | {plain['auc']:.3f} | {fair['auc']:.3f} | {plain['one_way']:.1%} | "
                f"{plain['two_way']:.1%} | {plain['cpu']:.1f} |"
            )
        if "mst" in record:
            mst = record["mst"]
            lines.append(
                f"| MST, {mst['epsilon']:g} | {mst['auc']:.3f} | – | {mst['one_way']:.1%} | {mst['two_way']:.1%} | "
                f"{mst['cpu']:.0f} |"
            )
        lines.append("")
    return "\n".join(lines)


def write(results: dict[str, Any]) -> None:
    """Keep the results, and fill the page."""
    (HERE / "privacy.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_PLACE.sub(lambda match: f"{match[1]}{markdown(results)}{match[2]}", page), encoding="utf-8")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five runs of Adult with ε = 1, and nothing written")
    parser.add_argument("--relabel", action="store_true", help="the same for relabelled decisions")
    given = parser.parse_args()
    if given.quick or given.relabel:
        wishes = {"relabel": "probabilities", "favourable": 1} if given.relabel else {"statistical_rate": None}
        runs = [measured(adult(), 1.0, seed, **wishes) for seed in range(RUNS_AT_ONE)]
        for run in (*runs, mean_of(runs)):
            print({name: round(value, 4) for name, value in run.items()}, flush=True)
        return
    results = {}
    for table in (adult(), other("compas", "COMPAS"), other("german", "German credit")):
        people, judged = table.split()
        results[table.name] = {
            "rows": len(people),
            "columns": len(table.sizes),
            "real": quality(table, people, judged),
            "curve": curve(table),
        }
        if table.name == "Adult":
            results[table.name]["mst"] = MST
        write(results)


if __name__ == "__main__":
    main()
