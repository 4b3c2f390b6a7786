"""Evaluation: what judging 20,000 new rows costs beside anonymeter, and what is said of which rows."""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.meter import reading
from benchmarks.outcome import Bar, Cell, Outcome, Table
from benchmarks.process import JobFailedError, fresh

SECONDS = 10.0  # of CPU

# An interpreter that has anonymeter, where this one has not.
PEERS_PYTHON = "FAIRMAXENT_EVALUATION_PYTHON"
TABLES: Mapping[str, tuple[str, str]] = {
    "adult": ("income", "sex"),
    "german": ("credit", "sex"),
    "compas": ("two_year_recid", "race"),
}
MADE = ("default", "base_share=1", "base_share=1, 5 % copies planted", "private, ε = 1")
_EDGES = 17  # of each number, in private rows


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int  # of each table: real, new and control
    seconds: float  # that one library may take


FULL = Sizes(rows=20_000, seconds=1800)
QUICK = Sizes(rows=1_000, seconds=300)


def measure(sizes: Sizes) -> Outcome:
    """Measure each job in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        verdicts = {
            (name, made): fresh(judged, f"{folder}/{name}", name, made, sizes.rows)
            for name in TABLES
            for made in MADE
        }
        costs: dict[str, tuple[Cell, Cell]] = {}
        for name, job in JOBS.items():
            python = (
                sys.executable
                if name == OURS
                else os.environ.get(PEERS_PYTHON, sys.executable)
            )
            try:
                seconds = fresh(
                    job, f"{folder}/adult", seconds=sizes.seconds, python=python
                )
                costs[name] = seconds, ""
            except JobFailedError as problem:
                costs[name] = None, str(problem)[:120]
    ours, _ = costs[OURS]
    return Outcome(
        "Evaluation",
        f"Adult, {sizes.rows:,} real, new and control rows with 14 columns. Ours is"
        " everything: fidelity, utility and all attacks, each on at most 2,000 people;"
        " anonymeter tries each attack on 500 people, and guesses one column. Rows are"
        " flagged if a risk is surely too high.",
        (
            Table(
                "Adult",
                ("library", "CPU s", ""),
                tuple((name, *cells) for name, cells in costs.items()),
            ),
            Table(
                "Verdicts",
                (
                    "table",
                    "rows",
                    "flagged",
                    "copies",
                    "singling out",
                    "linkability",
                    "inference",
                    "membership",
                ),
                tuple((*key, *cells) for key, cells in verdicts.items()),
            ),
        ),
        (
            Bar(
                "Adult: CPU",
                ours if isinstance(ours, float) else None,
                SECONDS,
                "s",
            ),
            Bar(
                "Adult: risks flagged in default rows",
                _flagged(verdicts["adult", MADE[0]]),
                1,
                at_least=True,
            ),
            Bar(
                "Adult: risks flagged in rows of base_share=1",
                _flagged(verdicts["adult", MADE[1]]),
                0,
            ),
            Bar(
                "Adult: risks flagged with 5 % copies",
                _flagged(verdicts["adult", MADE[2]]),
                1,
                at_least=True,
            ),
            *(
                Bar(
                    f"{name}: risks flagged in private rows",
                    _flagged(verdicts[name, MADE[3]]),
                    0,
                )
                for name in TABLES
            ),
        ),
    )


def _flagged(verdict: list[Any]) -> int:
    return len(verdict[0].split(", ")) if verdict[0] else 0


# ---------------------------------------------------------------- jobs


def judged(folder: str, name: str, made: str, rows: int) -> list[Any]:
    """Make rows, keep them as files, and judge them: what is flagged, and each risk."""
    import polars

    import fairmaxent

    os.makedirs(folder, exist_ok=True)
    outcome, protected = TABLES[name]
    frame = fairmaxent.datasets.load(name, library="polars").frame
    frame = frame.drop(
        [column for column in ("final_weight",) if column in frame.columns]
    )
    frame = frame.sample(fraction=1.0, shuffle=True, seed=0)
    rows = min(rows, len(frame) // 2)
    real, control = frame[:rows], frame[rows : 2 * rows]
    wishes: dict[str, Any] = {"base_share": 0.2 if made == MADE[0] else 1.0}
    if made == MADE[3]:
        wishes = {"privacy": fairmaxent.Privacy(epsilon=1.0), "domain": declared(frame)}
    fit = fairmaxent.debias(
        real, outcome, protected, estimate=None, random_state=0, **wishes
    )
    new = fit.sample(rows)
    if made == MADE[2]:
        new = polars.concat([real.select(new.columns)[: rows // 20], new[rows // 20 :]])
    for kind, table in (("real", real), ("new", new), ("control", control)):
        if made == MADE[0]:
            table.write_parquet(f"{folder}/{kind}.parquet")
    result = fairmaxent.evaluate(real, new, control=control)
    risks = result.risks
    known = (
        risks.copies.risk,
        risks.singling_out,
        risks.linkability,
        risks.inference and risks.inference.average,
    )
    advantage = None if risks.membership is None else risks.membership.risk.value
    return [
        ", ".join(result.flagged),
        *(None if risk is None else risk.value for risk in known),
        advantage,
    ]


def declared(frame: Any) -> Any:
    """The domain of a public table: its levels, and numbers in intervals of equal
    width.
    """
    import fairmaxent

    texts = [name for name in frame.columns if not frame[name].dtype.is_numeric()]
    return fairmaxent.Domain.declare(
        levels={
            name: sorted(frame[name].cast(str).drop_nulls().unique()) for name in texts
        },
        edges={
            name: np.linspace(frame[name].min(), frame[name].max(), _EDGES).tolist()
            for name in frame.columns
            if name not in texts
        },
        missing=[name for name in frame.columns if frame[name].null_count()],
    )


def our_cost(folder: str) -> float:
    """CPU seconds of everything, the import of scikit-learn included."""
    import polars

    import fairmaxent

    real, new, control = (
        polars.read_parquet(f"{folder}/{kind}.parquet")
        for kind in ("real", "new", "control")
    )
    with reading() as cost:
        fairmaxent.evaluate(
            real,
            new,
            control=control,
            outcome="income",
            protected="sex",
            favourable=">50K",
        )
    return cost.cpu


def anonymeter_cost(folder: str) -> float:
    """CPU seconds of the three attacks, the inference of one column."""
    import logging
    import warnings

    import pandas
    from anonymeter.evaluators import (
        InferenceEvaluator,
        LinkabilityEvaluator,
        SinglingOutEvaluator,
    )

    logging.disable()
    warnings.simplefilter("ignore")
    real, new, control = (
        pandas.read_parquet(f"{folder}/{kind}.parquet")
        for kind in ("real", "new", "control")
    )
    real, control, names = real[new.columns], control[new.columns], list(new.columns)
    tables = {"ori": real, "syn": new, "control": control, "n_attacks": 500}
    np.random.seed(0)  # noqa: NPY002 (anonymeter draws with it)
    with reading() as cost:
        SinglingOutEvaluator(**tables, seed=0).evaluate()
        LinkabilityEvaluator(**tables, aux_cols=(names[0::2], names[1::2])).evaluate(
            n_jobs=1
        )
        InferenceEvaluator(**tables, aux_cols=names[:-1], secret=names[-1]).evaluate(
            n_jobs=1
        )
    return cost.cpu


OURS = "fairmaxent, everything"
JOBS: dict[str, Callable[[str], float]] = {
    OURS: our_cost,
    "anonymeter's three attacks": anonymeter_cost,
}
