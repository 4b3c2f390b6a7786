"""What privacy costs: models trained on private rows, judged on real people, for one
budget after the other.

Adult is prepared as in private-pgm: 14 columns, numbers in their own levels or in 100
bins of equal width. 70 % of the people are fitted, and the models are judged on the
other 30 %. ``python benchmarks/privacy.py`` writes privacy.json and the tables of
docs/questions/private.md; ``--quick`` only prints a few runs of Adult with ε = 1, and
``--sizes`` measures parts of Adult alone, of several numbers of rows and columns.
With ``--mst FOLDER``, rows of MST are judged as well: those in the folder, and others
that an interpreter with mbi makes, if FAIRMAXENT_MBI_PYTHON names one. Without it, what
was measured of MST stays.
"""

import argparse
import contextlib
import json
import math
import os
import re
import subprocess
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
from fairmaxent.inspection import inspect

EPSILONS = (0.5, 1.0, 4.0, math.inf)
DELTA = 1e-9
RUNS, FAIR_RUNS, SMALL = 5, 2, 1000
PAGE = HERE.parent / "docs" / "questions" / "private.md"

# Parts of Adult: so many people, and their outcome, sex and further columns.
SIZES = (1_000, 3_000, 10_000, 30_000)
JUDGED = 14_000  # others, on whom models are judged
PARTS = {
    4: ("age", "education_num"),
    8: ("marital_status", "hours_per_week", "occupation", "race"),
    13: None,  # all others, too
}

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

# Upper ends of bins of the numbers of ACS mobility: hours a week, minutes to work,
# income.
ACS_EDGES = {
    "WKHP": [*range(1, 92, 10)],
    "JWMNP": [1, 6, 11, 16, 21, 26, 31, 41, 51, 61, 91],
    "PINCP": [
        0,
        1,
        *(1000 * k for k in (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 150)),
    ],
}


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
    """A table of whole numbers, from 0 to one below the number of levels of its
    column.
    """

    name: str
    frame: pd.DataFrame
    sizes: dict[str, int]
    outcome: str
    protected: str

    def split(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The people who are fitted, and those whom models are judged on."""
        order = np.random.default_rng(0).permutation(len(self.frame))
        cut = int(0.7 * len(order))
        return tuple(
            self.frame.iloc[part].reset_index(drop=True)
            for part in (order[:cut], order[cut:])
        )  # type: ignore[return-value]

    @property
    def runs(self) -> int:
        """More for few people, whom noise treats differently each time."""
        return RUNS if len(self.split()[0]) >= SMALL else 4 * RUNS

    @property
    def domain(self) -> Any:
        """Every level, declared."""
        return Domain.declare(
            levels={name: list(range(size)) for name, size in self.sizes.items()}
        )


@dataclass(frozen=True)
class Part(Coded):
    """So many of the people, in any order; the last ones are judged."""

    rows: int

    def split(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The first ones, and always the same others."""
        return self.frame.iloc[: self.rows], self.frame.iloc[-JUDGED:]


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
            codes[name], sizes[name] = (
                np.clip(np.searchsorted(edges, values, side="right") - 1, 0, 99),
                100,
            )
        else:
            codes[name], sizes[name] = _categories(values)
    return Coded("Adult", pd.DataFrame(codes).astype(int), sizes, "income", "sex")


def other(name: str, title: str) -> Coded:
    """Another public table, numbers in 16 bins, without columns that tell the
    outcome.
    """
    loaded = datasets.load(name)
    frame = loaded.frame.drop(
        columns=[column for column in TELLING if column in loaded.frame]
    )
    codes, sizes = {}, {}
    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind in "iuf" and values.nunique() > 16:
            edges = np.linspace(values.min(), values.max(), 17)
            codes[column], sizes[column] = (
                np.clip(np.searchsorted(edges, values, side="right") - 1, 0, 15),
                16,
            )
        else:
            codes[column], sizes[column] = _categories(values)
    protected = (
        loaded.protected if isinstance(loaded.protected, str) else loaded.protected[0]
    )
    return Coded(
        title, pd.DataFrame(codes).astype(int), sizes, loaded.outcome, protected
    )


def acs() -> Coded | None:
    """ACS mobility, 22 columns, codes as levels; None without the file."""
    folder = Path(
        os.environ.get("FAIRMAXENT_DATA", HERE.parent.parent / "shared" / "data")
    )
    if not (folder / "acs_mobility.parquet").exists():
        print(
            "ACS mobility is left out: acs_mobility.parquet is not in the folder that"
            " FAIRMAXENT_DATA names"
        )
        return None
    frame, codes, sizes = pd.read_parquet(folder / "acs_mobility.parquet"), {}, {}
    for name in frame.columns:
        if name in ACS_EDGES:
            codes[name], sizes[name] = (
                np.searchsorted(ACS_EDGES[name], frame[name], side="right"),
                len(ACS_EDGES[name]) + 1,
            )
        else:
            codes[name], sizes[name] = _categories(frame[name])
    return Coded("ACS mobility", pd.DataFrame(codes).astype(int), sizes, "MIG", "SEX")


def parts_of_adult() -> Iterator[Part]:
    """Adult with numbers in 16 bins, and few rows and columns of it, or many."""
    whole = other("adult", "Adult")
    frame = whole.frame.sample(frac=1.0, random_state=0)
    names = [whole.outcome, whole.protected]
    for more in PARTS.values():
        names += more or [
            name for name in whole.sizes if name not in {*names, "education"}
        ]
        sizes = {name: whole.sizes[name] for name in names}
        for rows in SIZES:
            yield Part(
                name=f"{rows} × {len(names)}",
                frame=frame[names],
                sizes=sizes,
                outcome=whole.outcome,
                protected=whole.protected,
                rows=rows,
            )


def _categories(values: Any) -> tuple[Any, int]:
    coded = pd.Categorical(values.astype(str).where(values.notna(), "missing"))
    return coded.codes, len(coded.categories)


# ---------------------------------------------------------------- measuring


def measured(
    table: Coded, epsilon: float, seed: int, **wishes: Any
) -> dict[str, float]:
    """One private fit: what a model trained on its rows does to real people, and how
    far its tables are off.
    """
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
    model = HistGradientBoostingClassifier(random_state=0).fit(
        rows[inputs].to_numpy(), rows[table.outcome].to_numpy()
    )
    chances = model.predict_proba(judged[inputs].to_numpy())
    auc = roc_auc_score(judged[table.outcome], chances[:, 1])
    decided = chances[:, 1] > 0.5
    shares = [
        decided[judged[table.protected] == level].mean()
        for level in judged[table.protected].unique()
    ]
    return {
        "auc": float(auc),
        "rate_of_predictions": float(min(shares) / max(max(shares), 1e-9)),
    }


def distance(table: Coded, real: pd.DataFrame, rows: pd.DataFrame, ways: int) -> float:
    """Total variation between the tables of some columns at a time, on average."""
    return float(np.mean(list(_distances(table, real, rows, ways))))


def _distances(
    table: Coded, real: pd.DataFrame, rows: pd.DataFrame, ways: int
) -> Iterator[float]:
    for columns in combinations(table.sizes, ways):
        shape = [table.sizes[name] for name in columns]
        both = [
            np.bincount(
                np.ravel_multi_index([one[name] for name in columns], shape),
                minlength=math.prod(shape),
            )
            / len(one)
            for one in (real, rows)
        ]
        yield float(np.abs(both[0] - both[1]).sum() / 2)


def _runs(
    table: Coded, epsilon: float, count: int, wishes: dict[str, Any]
) -> Iterator[dict[str, float]]:
    """The runs in which the noise left something of the groups."""
    for seed in range(count):
        with contextlib.suppress(InfeasibleError):
            yield measured(table, epsilon, seed, **wishes)


def mean_of(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every number over the runs, how many there are, and the standard
    error of the AUC.
    """
    means = {
        name: float(np.mean([run[name] for run in runs]))
        for name in (runs[0] if runs else ())
    }
    if len(runs) > 1:
        means["auc_error"] = float(
            np.std([run["auc"] for run in runs], ddof=1) / math.sqrt(len(runs))
        )
    return means | {"runs": len(runs)}


def mst(table: Coded, epsilon: float, folder: Path) -> dict[str, float]:
    """The same for rows of MST; those that are missing are made, where that is
    possible.
    """
    people, judged = table.split()
    python, runs = os.environ.get("FAIRMAXENT_MBI_PYTHON"), []
    for seed in range(table.runs):
        path = folder / f"{table.name.split()[0]}-{epsilon:g}-{seed}.npz"
        if not path.exists() and python:
            source = folder / f"{table.name.split()[0]}.npz"
            np.savez(
                source,
                codes=people[list(table.sizes)].to_numpy(),
                sizes=np.array([*table.sizes.values()]),
            )
            rho = repr(Privacy(epsilon=epsilon, delta=DELTA).rho)
            subprocess.run(
                [python, str(HERE / "mst.py"), str(source), str(path), rho, str(seed)],
                check=True,
            )
        if not path.exists():
            continue
        with np.load(path) as stored:
            rows, cpu = (
                pd.DataFrame(stored["codes"].astype(int), columns=[*table.sizes]),
                float(stored["cpu"]),
            )
        off = {
            "one_way": distance(table, people, rows, 1),
            "two_way": distance(table, people, rows, 2),
        }
        runs.append({**quality(table, rows, judged), **off, "cpu": cpu})
    return mean_of(runs)


def of_size(table: Coded) -> dict[str, Any]:
    """What models learn from private rows of one size, and what was foreseen."""
    people, judged = table.split()
    worth = inspect(
        people,
        table.outcome,
        table.protected,
        domain=table.domain,
        privacy=Privacy(epsilon=1.0, delta=DELTA),
    ).private
    record = {
        "rows": len(people),
        "columns": len(table.sizes),
        "real": quality(table, people, judged),
        "foreseen": worth.rate_ranges[table.protected],
    }
    for epsilon in EPSILONS[:-1]:
        count = RUNS if len(people) < 10 * SMALL else FAIR_RUNS
        runs = _runs(table, epsilon, count, {"statistical_rate": None})
        record[f"{epsilon:g}"] = mean_of([*runs])
    print(table.name, json.dumps(record), flush=True)
    return record


def curve(
    table: Coded, folder: Path | None, known: dict[str, Any]
) -> list[dict[str, Any]]:
    """Private and fair rows, for one budget after the other, and those of MST."""
    points = []
    of_mst = {point["epsilon"]: point.get("mst") for point in known.get("curve", [])}
    for epsilon in EPSILONS:
        exact, noise = math.isinf(epsilon), pipeline.OpenDP
        if exact:
            pipeline.OpenDP = NoNoise  # type: ignore[assignment, misc]
        try:
            plain = mean_of(
                list(
                    _runs(
                        table,
                        epsilon,
                        1 if exact else table.runs,
                        {"statistical_rate": None},
                    )
                )
            )
            fair = mean_of(list(_runs(table, epsilon, 1 if exact else FAIR_RUNS, {})))
        finally:
            pipeline.OpenDP = noise  # type: ignore[misc]
        point: dict[str, Any] = {
            "epsilon": None if exact else epsilon,
            "private": plain,
            "fair": fair,
        }
        if folder is not None and not exact:
            point["mst"] = mst(table, epsilon, folder)
        elif of_mst.get(point["epsilon"]):
            point["mst"] = of_mst[point["epsilon"]]
        print(table.name, epsilon, json.dumps(point), flush=True)
        points.append(point)
    return points


# ---------------------------------------------------------------- results


def markdown(results: dict[str, Any]) -> str:
    """The AUC of each data set (a column) for each ε (a row)."""
    heads = ["ε"]
    cells: dict[str, list[str]] = {}
    for name, record in results.items():
        heads.append(f"{name}, {record['rows']:,} rows, {record['columns']} columns")
        cells.setdefault("real rows", []).append(f"{record['real']['auc']:.3f}")
        for point in reversed(record["curve"]):
            epsilon = "no noise"
            if point["epsilon"] is not None:
                epsilon = f"{point['epsilon']:g}"
            cells.setdefault(epsilon, []).append(_cell(point))
    rows = [[epsilon, *found] for epsilon, found in cells.items()]
    lines = [heads, ["---:"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def markdown_of_sizes(records: Sequence[dict[str, Any]]) -> str:
    """The parts with the fewest and with the most columns as one table."""
    numbers = [record["columns"] for record in records]
    records = [one for one in records if one["columns"] in (min(numbers), max(numbers))]
    heads = ["Rows fitted", "columns", "AUC, real rows"]
    heads += [f"AUC, ε = {epsilon:g}" for epsilon in EPSILONS[:-1]]
    heads += ["one column", "two columns", "rate of a group, foreseen"]
    lines = [f"| {' | '.join(heads)} |", "| ---: " * len(heads) + "|"]
    for record in records:
        rate, _ = record["foreseen"]
        cells = [f"{record['rows']:,}", str(record["columns"])]
        cells.append(f"{record['real']['auc']:.3f}")
        cells += [
            _shown(record[f"{epsilon:g}"], "auc", ".3f") for epsilon in EPSILONS[:-1]
        ]
        cells += [_shown(record["1"], key, ".2%") for key in ("one_way", "two_way")]
        cells.append(f"± {rate:.1%}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shown(values: dict[str, float], key: str, form: str) -> str:
    return format(values[key], form) if values["runs"] else "–"


def _cell(point: dict[str, Any]) -> str:
    """The AUC as the rates were, with equal rates, and of MST."""
    plain = point["private"]
    fair = point["fair"]
    if not (plain["runs"] and fair["runs"]):
        return "the noise hides the groups"
    text = f"{plain['auc']:.3f}, fair {fair['auc']:.3f}"
    other = point.get("mst", {"runs": 0})
    if other["runs"]:
        text += f", MST {other['auc']:.3f}"
    return text


def known_results(name: str) -> Any:
    """What was measured before."""
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def write(name: str, results: Any) -> None:
    """Keep results, and fill their place in the page."""
    text = json.dumps(results, indent=1) + "\n"
    (HERE / name).write_text(text, encoding="utf-8")
    is_of_sizes = name == "privacy_sizes.json"
    filled = markdown_of_sizes(results) if is_of_sizes else markdown(results)
    mark = "privacy by size" if is_of_sizes else "privacy"
    place = re.compile(
        rf"(<!-- measured: {mark} -->\n).*?(<!-- measured: end -->)", re.S
    )
    page = PAGE.read_text(encoding="utf-8")
    page = place.sub(lambda match: f"{match[1]}{filled}{match[2]}", page)
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="five runs of Adult with ε = 1, and nothing written",
    )
    parser.add_argument(
        "--table",
        metavar="NAME",
        help="measure one table only, and keep what is known of the others",
    )
    parser.add_argument(
        "--mst",
        type=Path,
        metavar="FOLDER",
        help="judge rows of MST in this folder, too",
    )
    parser.add_argument(
        "--sizes", action="store_true", help="measure parts of Adult, and nothing else"
    )
    given = parser.parse_args()
    if given.sizes:
        write("privacy_sizes.json", [of_size(part) for part in parts_of_adult()])
        return
    if given.quick:
        runs = [
            measured(adult(), 1.0, seed, statistical_rate=None) for seed in range(RUNS)
        ]
        for run in (*runs, mean_of(runs)):
            print({name: round(value, 4) for name, value in run.items()}, flush=True)
        return
    for table in (
        other("german", "German credit"),
        other("compas", "COMPAS"),
        adult(),
        acs(),
    ):
        if table is None or given.table not in (None, table.name):
            continue
        people, judged = table.split()
        real, size = (
            quality(table, people, judged),
            {
                "rows": len(people),
                "columns": len(table.sizes),
            },
        )
        results = known_results("privacy.json")
        points = curve(table, given.mst, results.get(table.name, {}))
        results[table.name] = {**size, "real": real, "curve": points}
        write("privacy.json", results)


if __name__ == "__main__":
    main()
