"""Published numbers beside ours: which differ by more than noise, and why.

``printed`` and ``printed_sd`` are Table 2 of Celis, Keswani, Vishnoi, "Data preprocessing to mitigate bias: a maximum
entropy based approach", ICML 2020: means over folds and repetitions, and the standard deviation over folds.
``authors_code`` comes from the authors' published code, run unmodified: raw rates are those of all rows, numbers for
maximum entropy are means over the same five folds, and seconds are the CPU time of one fit on all rows and of drawing
10,000 rows. A missing value means that there is no such number. The table's classifier SR is listed as
``tree_sr_probabilities`` and its covariance norm as ``correlation_distance``, because that is what the authors' code
computes.
"""

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal

_FILES = resources.files("fairmaxent.experiments")
KEYS = ["dataset", "protected", "method", "metric"]


def load_published() -> Any:
    """Return dataset, protected, method, metric, printed, printed_sd, authors_code; the metric may be ``seconds``."""
    import pandas as pd

    with _FILES.joinpath("published.csv").open() as file:
        return pd.read_csv(file)


Source = Literal["printed", "authors_code"]

UNEXPLAINED = "unexplained"

# Why a published number differs from ours: `covers` says of which ones a reason speaks.
REASONS: list[dict[str, Any]] = tomllib.loads(_FILES.joinpath("reasons.toml").read_text(encoding="utf-8"))["reason"]
CODE_AGREES = (
    "The authors' code, run unmodified, gives our number and not the printed one; how the printed number was computed "
    "is not known."
)

# How much two runs of one experiment may differ. Trees turn shares near one half into all or nothing, so the rate of
# their predictions jumps from draw to draw.
_BARS: Mapping[str, float] = {"correlation_distance": 0.15, "tree_sr_predictions": 0.05}
_USUAL_BAR = 0.01
_BASELINE_BAR = 0.02  # our code for them is not the authors'
_BASELINES = ("calmon", "kamiran_calders", "king_zeng")
_ROUNDING = 0.005  # of two printed decimals
NOISE = (
    f"Noise is {_USUAL_BAR} ({_BASELINE_BAR} for the methods of others, {_BARS['tree_sr_predictions']} for the rate of "
    f"predictions, {_BARS['correlation_distance']} for the correlation distance) plus two standard errors of our mean "
    "over the drawn repetitions; the folds are the same for all three sources. For a printed number, half a unit of "
    "its last digit is added for rounding."
)


def compare(table_2: Any, published: Any) -> Any:
    """Return each published number that was also measured here, with ours, and why they differ, if they do.

    Columns: dataset, protected, method, metric, printed, printed_sd, authors_code, ours, sd, error, difference (from
    the authors' code if it gives a number, else from the printed one), beyond_printed, beyond_authors_code,
    beyond_noise (either), reason ("" without a difference, `UNEXPLAINED` if none is known). `NOISE` defines noise.
    """
    rows = published.merge(table_2.rename(columns={"mean": "ours"}), on=KEYS)
    from_printed, from_code = rows["ours"] - rows["printed"], rows["ours"] - rows["authors_code"]
    bars = rows["metric"].map(_BARS).fillna(_USUAL_BAR)
    bars = bars.mask(rows["method"].isin(_BASELINES), bars.clip(lower=_BASELINE_BAR))
    noise = bars + 2 * rows["error"].fillna(0.0)
    rows["difference"] = from_code.fillna(from_printed)
    rows["beyond_printed"] = from_printed.abs() > noise + _ROUNDING
    rows["beyond_authors_code"] = from_code.abs() > noise
    rows["beyond_noise"] = rows["beyond_printed"] | rows["beyond_authors_code"]
    rows["reason"] = [_reason(row) for row in rows.itertuples()]
    return rows


def _reason(row: Any) -> str:
    """Say why the numbers of a row differ; one difference without a reason makes the row unexplained."""
    differing: dict[Source, bool] = {"printed": row.beyond_printed, "authors_code": row.beyond_authors_code}
    texts = [_text(row, source) for source, differs in differing.items() if differs]
    return UNEXPLAINED if UNEXPLAINED in texts else " ".join(texts)


def covers(reason: Mapping[str, Any], row: Any, source: Source) -> bool:
    """Whether a reason applies to the published number of this row; what it does not name, it is about all of."""
    about = {"methods": row.method, "metrics": row.metric, "blocks": [row.dataset, row.protected]}
    is_about = all(value in reason[name] for name, value in about.items() if name in reason)
    return is_about and source == reason.get("source", "printed")


def _text(row: Any, source: Source) -> str:
    for reason in REASONS:
        if covers(reason, row, source):
            return str(reason["text"])
    has_code = row.authors_code == row.authors_code  # not NaN
    return CODE_AGREES if source == "printed" and has_code and not row.beyond_authors_code else UNEXPLAINED
