"""Treatments: each method as one function from a fold to what a model is trained on.

To add one, write a function and name it in TREATMENTS. Weights are one per row of the
frame that is returned, so a method with soft labels returns each row once per label.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from benchmarks.massaging import massage
from benchmarks.people import Fold


@dataclass(frozen=True, eq=False)
class Training:
    """Rows to train on, in the columns of the fold, and their weights."""

    frame: Any
    weights: NDArray[Any] | None = None


@dataclass(frozen=True)
class Treatment:
    """A method; ``treat`` is None where it takes hold of the training itself instead of
    the table.
    """

    treat: Callable[..., Training] | None
    ours: bool = False


def _raw(fold: Fold) -> Training:
    return Training(fold.train)


def _kamiran_calders(fold: Fold) -> Training:
    from fairmaxent import baselines

    return Training(
        fold.train,
        baselines.kamiran_calders(fold.train, fold.outcome, fold.protected).weights(),
    )


def _resampled(fold: Fold) -> Training:
    """Real rows drawn with replacement: what drawing alone costs, with no base and
    every number as it was.
    """
    from fairmaxent import baselines

    fair = baselines.kamiran_calders(
        fold.train, fold.outcome, fold.protected, random_state=fold.seed
    )
    return Training(fair.sample(len(fold.train)))


def _king_zeng(fold: Fold) -> Training:
    from fairmaxent import baselines

    return Training(
        fold.train,
        baselines.king_zeng(fold.train, fold.outcome, fold.protected).weights(),
    )


def _massaging(fold: Fold) -> Training:
    return Training(massage(fold))


def _paper(fold: Fold) -> Training:
    """The paper's configuration: q_C^w with C = 1/2 over a uniform base, θ^w, every
    column by its own marginal.
    """
    from fairmaxent import paper

    fit = paper.fit(
        fold.train,
        outcome=fold.outcome,
        protected=fold.protected,
        favourable=fold.favourable,
    )
    return Training(fit.sample(len(fold.train), random_state=fold.seed))


def _tabfairgdt(fold: Fold) -> Training:
    """Rows drawn by a process of the environment that TABFAIRGDT_PYTHON names; see
    tabfairgdt_rows.py.
    """
    import pandas as pd

    interpreter = os.environ.get("TABFAIRGDT_PYTHON")
    if interpreter is None:
        raise RuntimeError(
            "set TABFAIRGDT_PYTHON to the Python of an environment with tabfairgdt"
        )
    numbers = fold.train.drop(columns=[fold.protected, fold.outcome]).select_dtypes(
        "number"
    )
    kinds = dict.fromkeys(fold.train.columns, "category")
    whole = [
        name
        for name, column in numbers.items()
        if column.dtype.kind in "iu" and not column.hasnans
    ]
    kinds |= {name: "int" if name in whole else "float" for name in numbers}
    with tempfile.TemporaryDirectory() as folder:
        source, target = (
            str(Path(folder, "source.csv")),
            str(Path(folder, "target.csv")),
        )
        fold.train.to_csv(source, index=False)
        script = str(Path(__file__).with_name("tabfairgdt_rows.py"))
        roles = [json.dumps(kinds), fold.protected, fold.outcome, str(fold.seed)]
        subprocess.run(
            [interpreter, script, source, target, *roles],
            check=True,
            capture_output=True,
        )
        known = {name: fold.train[name].dtype for name in fold.train.columns}
        return Training(
            pd.read_csv(target, dtype=known, keep_default_na=False, na_values=[""])
        )


def _weights(fold: Fold) -> Training:
    return Training(fold.train, _debias(fold).weights())


def _rows(fold: Fold, **options: Any) -> Training:
    return Training(_debias(fold, **options).sample(len(fold.train)))


def _given(fold: Fold, *, output: str, **options: Any) -> Training:
    """The rows with their weights, once per outcome if they are relabelled; or rows
    that are drawn.
    """
    fit = _debias(fold, **options)
    if output == "rows":
        return Training(fit.sample(len(fold.train)))
    frame = fit.weigh(fold.train, weight_name=_WEIGHT)
    return Training(frame.drop(columns=_WEIGHT), frame[_WEIGHT].to_numpy())


def _equal_probabilities(fold: Fold, *, output: str) -> Training:
    from fairmaxent import Model

    model = Model("boosting", parity="probabilities")
    return _given(fold, output=output, model=model)


def _debias(fold: Fold, **options: Any) -> Any:
    import fairmaxent

    return fairmaxent.debias(
        fold.train,
        fold.outcome,
        fold.protected,
        favourable=fold.favourable,
        random_state=fold.seed,
        **options,
    )


RAW, REFERENCE, RESAMPLED, GRADIENT = (
    "raw",
    "kamiran-calders",
    "kamiran-calders, rows",
    "exponentiated-gradient",
)
WEIGHTS, ROWS = "weights", "rows"  # ours, with every option of debias() at its default

# Rows alone are the same whatever the base.
BASES = (
    ("tree", 0.0),
    *((base, share) for base in ("tree", "product", "uniform") for share in (0.5, 1.0)),
)

_WEIGHT = "fair_weight"


def with_base(base: str, share: float) -> str:
    """Name the treatment that draws rows with this base and this share of it."""
    return "rows, no base" if share == 0 else f"rows, {base} {share:g}"


def relabelled(output: str) -> str:
    """Name the treatment that makes probabilities equal, and gives this output."""
    return f"relabel probabilities, {output}"


TREATMENTS: Mapping[str, Treatment] = {
    RAW: Treatment(_raw),
    REFERENCE: Treatment(_kamiran_calders),
    RESAMPLED: Treatment(_resampled),
    "king-zeng": Treatment(_king_zeng),
    "massaging": Treatment(_massaging),
    GRADIENT: Treatment(None),
    "tabfairgdt": Treatment(_tabfairgdt),
    "paper": Treatment(_paper),
    WEIGHTS: Treatment(_weights, ours=True),
    ROWS: Treatment(_rows, ours=True),
    **{
        with_base(base, share): Treatment(
            partial(_rows, base=base, base_share=share), ours=True
        )
        for base, share in BASES
    },
    **{
        relabelled(output): Treatment(
            partial(_equal_probabilities, output=output), ours=True
        )
        for output in ("weights", "rows")
    },
    "rows, detail in bins": Treatment(partial(_rows, detail="bins"), ours=True),
}
