"""Published numbers beside ours: which differ by more than noise, and why.

``printed`` and ``printed_sd`` are Table 2 of Celis, Keswani, Vishnoi, "Data preprocessing to mitigate bias: a maximum
entropy based approach", ICML 2020: means over folds and repetitions, and the standard deviation over folds.
``authors_code`` comes from the authors' published code, run unmodified: raw rates are those of all rows, numbers for
maximum entropy are means over the same five folds, and seconds are the CPU time of one fit on all rows and of drawing
10,000 rows. A missing value means that there is no such number. The table's classifier SR is listed as
``tree_sr_probabilities`` and its covariance norm as ``correlation_distance``, because that is what the authors' code
computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from fairmaxent.experiments.plan import Block

KEYS = ["dataset", "protected", "method", "metric"]


def load_published() -> Any:
    """Return dataset, protected, method, metric, printed, printed_sd, authors_code; the metric may be ``seconds``."""
    import pandas as pd

    with resources.files("fairmaxent.experiments").joinpath("published.csv").open() as file:
        return pd.read_csv(file)


Source = Literal["printed", "authors_code"]

UNEXPLAINED = "unexplained"

_ADULT: Block = ("adult-small", "sex")
_SMALL_SEX: Block = ("compas-small", "sex")
_SMALL_RACE: Block = ("compas-small", "race")
_LARGE_SEX: Block = ("compas-large", "sex")
_LARGE_RACE: Block = ("compas-large", "race")
_MAXENT = ("maxent_theta_w", "maxent_theta_b")
_REWEIGHING = ("kamiran_calders", "king_zeng")


@dataclass(frozen=True)
class Reason:
    """Why a published number differs from ours. An empty tuple means all methods, metrics or blocks."""

    text: str
    source: Source = "printed"
    methods: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()

    def covers(self, row: Any, source: Source) -> bool:
        """Whether the reason applies to the published number of this row."""
        return (
            source == self.source
            and (not self.methods or row.method in self.methods)
            and (not self.metrics or row.metric in self.metrics)
            and (not self.blocks or (row.dataset, row.protected) in self.blocks)
        )


# The first reason that covers a number is used.
REASONS = (
    Reason(
        "The printed number is the divergence of p* from its prior, KL(p* ‖ q_C^w), which is minus the optimal dual "
        "value. The divergence of p* from the raw data, which is what the text defines, is larger.",
        methods=_MAXENT,
        metrics=("kl_plugin",),
        blocks=(_ADULT,),
    ),
    Reason(
        "The printed row is about another group: its raw rates compare race “Other” with the rest, a group that the "
        "authors' code picked by the order of a Python set. Here, and in the row's maximum entropy columns, the groups "
        "are Caucasian and not Caucasian, as in the text.",
        methods=("raw", *_REWEIGHING),
        blocks=(_LARGE_RACE,),
    ),
    Reason(
        "Reweighing, and resampling by its weights, change only the table of outcome and group. So their exact "
        "divergence is the mutual information of the two, and the correlations between other columns hardly change. "
        "The printed number is too large for that; the paper does not say how its rows were made.",
        methods=("kamiran_calders",),
        metrics=("kl_plugin", "correlation_distance"),
    ),
    Reason(
        "The printed correlation distance shows that the paper's rows were not made by reweighing alone, so a "
        "classifier trained on them is a different one.",
        methods=("kamiran_calders",),
        metrics=("tree_accuracy", "tree_sr_probabilities"),
        blocks=(_LARGE_SEX,),
    ),
    Reason(
        "The exact divergence of q_C^w at C = 0.5 is a sum over 144 points, and it is smaller than the printed number "
        "by more than sampling can add; only a larger C gives the printed number.",
        methods=("prior",),
        metrics=("kl_plugin",),
        blocks=(_SMALL_SEX, _SMALL_RACE),
    ),
    Reason(
        "Half of this prior's rows are uniform over the domain, and half follow the data. The means of the two halves "
        "differ in almost every column, which by itself makes the columns correlated. The printed number is too small "
        "for such rows at C = 0.5.",
        methods=("prior",),
        metrics=("correlation_distance",),
    ),
    Reason(
        "Each group has half of the mass of q_C^w, so drawn rows fall short of 1 only by chance. The printed number "
        "falls short by more than 10,000 independent rows would.",
        methods=("prior",),
        metrics=("data_rr",),
    ),
    Reason(
        "Optimized preprocessing depends on the cost of changing a row and on how much change is allowed. The paper "
        "does not state these choices; here they follow from the kinds of the columns, and the rates are met exactly.",
        methods=("calmon",),
        metrics=("data_sr", "kl_plugin", "tree_accuracy", "tree_sr_probabilities"),
    ),
    Reason(
        "Optimized preprocessing does not change the protected column of any row, so the representation rate is the "
        "one of the raw data; the printed number is not.",
        methods=("calmon",),
        metrics=("data_rr",),
        blocks=(_SMALL_RACE,),
    ),
    Reason(
        "The degree of the charge enters the correlations as a number. In the authors' code its levels have the order "
        "of a Python set, so even their number differs from run to run.",
        source="authors_code",
        metrics=("correlation_distance",),
        blocks=(_LARGE_SEX, _LARGE_RACE),
    ),
)

CODE_AGREES = (
    "The authors' code, run unmodified, gives our number and not the printed one; how the printed number was computed "
    "is not known."
)

# How much two runs of one experiment may differ. Trees turn shares near one half into all or nothing, so the rate of
# their predictions jumps from draw to draw.
_BARS: Mapping[str, float] = {"correlation_distance": 0.15, "tree_sr_predictions": 0.05}
_USUAL_BAR = 0.01
_BASELINE_BAR = 0.02  # our code for them is not the authors'
_BASELINES = ("calmon", *_REWEIGHING)
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
    noise = _bars(rows) + 2 * rows["error"].fillna(0.0)
    rows["difference"] = from_code.fillna(from_printed)
    rows["beyond_printed"] = from_printed.abs() > noise + _ROUNDING
    rows["beyond_authors_code"] = from_code.abs() > noise
    rows["beyond_noise"] = rows["beyond_printed"] | rows["beyond_authors_code"]
    rows["reason"] = [_reason(row) for row in rows.itertuples()]
    return rows


def _bars(rows: Any) -> Any:
    bars = rows["metric"].map(_BARS).fillna(_USUAL_BAR)
    return bars.mask(rows["method"].isin(_BASELINES), bars.clip(lower=_BASELINE_BAR))


def _reason(row: Any) -> str:
    """Say why the numbers of a row differ; one difference without a reason makes the row unexplained."""
    differing: dict[Source, bool] = {"printed": row.beyond_printed, "authors_code": row.beyond_authors_code}
    texts = [_text(row, source) for source, differs in differing.items() if differs]
    return UNEXPLAINED if UNEXPLAINED in texts else " ".join(texts)


def _text(row: Any, source: Source) -> str:
    for reason in REASONS:
        if reason.covers(row, source):
            return reason.text
    has_code = row.authors_code == row.authors_code  # not NaN
    return CODE_AGREES if source == "printed" and has_code and not row.beyond_authors_code else UNEXPLAINED
