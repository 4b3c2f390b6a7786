"""Every figure of the paper and its appendix, from tidy tables; equal tables give equal bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmaxent.experiments.cells import TABLE_2_BLOCKS, Block
from fairmaxent.files.write import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DATASETS = {"adult-small": "Adult", "compas-small": "COMPAS small", "compas-large": "COMPAS large"}
METHODS = {
    "raw": "Raw data",
    "prior": "Prior qʷ",
    "maxent_theta_w": "Max-entropy θʷ",
    "maxent_theta_b": "Max-entropy θᵇ",
    "calmon": "Calmon et al.",
    "kamiran_calders": "Kamiran–Calders",
    "king_zeng": "King–Zeng",
}
METRICS = {
    "data_sr": "Data statistical rate",
    "data_rr": "Representation rate",
    "kl_plugin": "KL from raw data, plug-in",
    "kl_exact": "KL from raw data, exact",
    "correlation_distance": "Correlation distance",
    "covariance_distance": "Covariance distance",
    "tree_accuracy": "Tree accuracy",
    "tree_sr_probabilities": "Tree SR by probabilities",
    "tree_sr_predictions": "Tree SR by predictions",
    "bayes_accuracy": "Bayes accuracy",
    "bayes_sr_probabilities": "Bayes SR by probabilities",
    "bayes_sr_predictions": "Bayes SR by predictions",
}


@dataclass(frozen=True)
class Style:
    """How one method or curve is drawn. The colours are those of Okabe and Ito."""

    colour: str
    marker: str
    line: str
    size: float

    def drawn(self, **more: Any) -> dict[str, Any]:
        """As matplotlib wants it."""
        looks = {"color": self.colour, "marker": self.marker, "linestyle": self.line, "markersize": self.size}
        return looks | {"markeredgecolor": "white"} | more


# In the order of drawing: methods that often lie on top of others are smaller and come later.
_METHOD_STYLES = {
    "prior": Style("#E69F00", "D", "none", 6.5),
    "calmon": Style("#D55E00", "^", "none", 7.0),
    "kamiran_calders": Style("#009E73", "v", "none", 7.0),
    "king_zeng": Style("#CC79A7", "P", "none", 7.5),
    "maxent_theta_b": Style("#56B4E9", "s", "none", 8.0),
    "maxent_theta_w": Style("#0072B2", "o", "none", 5.0),
    "raw": Style("#000000", "X", "none", 5.0),
}
# Curves of the two priors often coincide; those of the second are wider and drawn first, so that both are visible.
_PRIOR_STYLES = {"w": ("#0072B2", 3.5), "d": ("#D55E00", 5.0)}
_THETA_STYLES = {"d": ("o", ":"), "b": ("s", "--"), "w": ("^", "-")}
_CURVES = {
    (prior, theta): Style(colour, marker, line, size)
    for prior, (colour, size) in _PRIOR_STYLES.items()
    for theta, (marker, line) in _THETA_STYLES.items()
}
_LOOK = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "fairmaxent",  # otherwise the names inside a drawing are random
}
_DISTANCES = ("kl_plugin", "kl_exact", "correlation_distance", "covariance_distance")
# Name, caption, description, and for each row of panels what is upright and across; None: the distance from the data.
_GRIDS: tuple[tuple[str, str, str, tuple[tuple[str, str | None], ...]], ...] = (
    (
        "tradeoff",
        "Fairness against accuracy for all methods: means over folds and repetitions; bars show the standard deviation "
        "over folds. Higher is fairer; a smaller distance (KL, correlation) or higher accuracy is closer to the data.",
        "Grid of scatter plots with one column for each data set and protected column. The rows show the statistical "
        "rate of the data, the statistical rate of the tree, and the representation rate, each against distance or "
        "accuracy. The tables contain the same numbers.",
        (("data_sr", None), ("tree_sr_probabilities", "tree_accuracy"), ("data_rr", None)),
    ),
    (
        "tradeoff-predictions",
        "Not in the paper: tree SR by predictions, as the paper's text defines it, against tree accuracy.",
        "Row of scatter plots, one for each data set and protected column: statistical rate of the tree by predictions "
        "against its accuracy. The tables contain the same numbers.",
        (("tree_sr_predictions", "tree_accuracy"),),
    ),
)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with its file name, its caption, and a description in words."""

    name: str
    caption: str
    description: str
    figure: Figure

    def saved(self, kind: str) -> bytes:
        """Return the drawing as SVG or PNG; without metadata, because a date would differ from run to run."""
        from matplotlib import rc_context

        names = ("Creator", "Date", "Format", "Type") if kind == "svg" else ("Software",)
        buffer = io.BytesIO()
        with rc_context(_LOOK):
            self.figure.savefig(buffer, format=kind, dpi=200, metadata=dict.fromkeys(names))
        return buffer.getvalue()


@dataclass(frozen=True)
class CurveFigure:
    """A figure of curves over C: the metrics of one data set in a row, or one row per metric for several data sets."""

    name: str
    caption: str
    datasets: tuple[str, ...]
    metrics: tuple[str, ...]

    def drawing(self, curves: Any) -> Drawing:
        """The figure, with a description of what it shows."""
        datasets = ", ".join(DATASETS[name] for name in self.datasets)
        metrics = ", ".join(METRICS[name] for name in self.metrics)
        lines = "Line charts over C from 0 to 1, each with six lines for two priors and three expectations."
        description = f"{lines} Data: {datasets}. Panels: {metrics}."
        return Drawing(self.name, self.caption, description, draw_curves(curves, self))


_MAIN_METRICS = ("data_sr", "kl_plugin", "tree_sr_probabilities", "tree_accuracy")
_DRAWN_METRICS = ("data_sr", "correlation_distance", "data_rr")
_BAYES = ("bayes_sr_probabilities", "bayes_accuracy")
_MORE = "COMPAS small, by sex: representation rate, and Gaussian naive Bayes, over C."
_ADDED = "Not in the paper: classifier SR by predictions, as the paper's text defines it, over C."
_SMALL, _LARGE, _ADULT = ("compas-small",), ("compas-large",), ("adult-small",)
CURVE_FIGURES = (
    CurveFigure("compas-small", "COMPAS small, by sex: six max-entropy distributions over C.", _SMALL, _MAIN_METRICS),
    CurveFigure("compas-small-more", _MORE, _SMALL, ("data_rr", *_BAYES)),
    CurveFigure("adult", "Adult, by sex: six max-entropy distributions over C.", _ADULT, _MAIN_METRICS),
    CurveFigure("compas-large-data", "COMPAS large, by sex: drawn rows over C.", _LARGE, _DRAWN_METRICS),
    CurveFigure("compas-large-tree", "COMPAS large, by sex: decision tree over C.", _LARGE, _MAIN_METRICS[2:]),
    CurveFigure("compas-large-bayes", "COMPAS large, by sex: Gaussian naive Bayes over C.", _LARGE, _BAYES),
    CurveFigure(
        "curves-predictions", _ADDED, (*_SMALL, *_ADULT, *_LARGE), ("tree_sr_predictions", "bayes_sr_predictions")
    ),
)


def write_figures(table_2: Any, curves: Any, folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG, once all of them are drawn."""
    drawings = draw_figures(table_2, curves)
    files = {folder / f"{drawing.name}.{kind}": drawing.saved(kind) for drawing in drawings for kind in ("svg", "png")}
    for path, content in files.items():
        write_whole(path, content, readable=True)
    return list(files)


def draw_figures(table_2: Any, curves: Any) -> list[Drawing]:
    """Draw every figure for which there is data."""
    grids = _GRIDS if len(table_2) else ()
    present = [plan for plan in CURVE_FIGURES if curves["dataset"].isin(plan.datasets).any()]
    return [
        *(Drawing(name, caption, words, _draw_grid(table_2, rows)) for name, caption, words, rows in grids),
        *(plan.drawing(curves) for plan in present),
    ]


def draw_curves(curves: Any, plan: CurveFigure) -> Figure:
    """Metrics over C for six combinations of prior and θ; bands are the standard deviation over folds."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    present = [dataset for dataset in plan.datasets if dataset in set(curves["dataset"])]
    panels = [[(dataset, metric) for dataset in present] for metric in plan.metrics]
    if len(plan.datasets) == 1:
        panels = [[panel for (panel,) in panels]]
    letters = iter("abcdefgh")
    with rc_context(_LOOK):
        figure = Figure(figsize=(2.6 * len(panels[0]), 2.3 * len(panels) + 0.4))
        axes = figure.subplots(len(panels), len(panels[0]), squeeze=False).tolist()
        for line, row_axes in zip(panels, axes, strict=True):
            for (dataset, metric), panel in zip(line, row_axes, strict=True):
                _draw_curve_panel(panel, curves[(curves["dataset"] == dataset) & (curves["metric"] == metric)], metric)
                heading = METRICS[metric] if len(plan.datasets) == 1 else DATASETS[dataset]
                panel.set_title(f"({next(letters)}) {heading}", loc="left")
            if len(plan.datasets) > 1:
                row_axes[0].set_ylabel(METRICS[line[0][1]])
        marks = {"w": "ʷ", "d": "ᵈ", "b": "ᵇ"}
        labels = {f"q{marks[prior]}, θ{marks[theta]}": style for (prior, theta), style in _CURVES.items()}
        _finish(figure, labels, columns=len(_CURVES))
    return figure


def _draw_grid(table_2: Any, rows: tuple[tuple[str, str | None], ...]) -> Figure:
    """One row per fairness metric and one column per block; without an accuracy, the x-axis shows the distance."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    measured = set(zip(table_2["dataset"], table_2["protected"], strict=True))
    blocks = [block for block in TABLE_2_BLOCKS if block in measured]
    with rc_context(_LOOK):
        figure = Figure(figsize=(2.0 * len(blocks) + 0.6, 2.0 * len(rows) + 0.5))
        axes = figure.subplots(len(rows), len(blocks), sharey="row", squeeze=False).tolist()
        for (fairness, accuracy), line in zip(rows, axes, strict=True):
            for block, panel in zip(blocks, line, strict=True):
                distance = "correlation_distance" if block[0] == "compas-large" else "kl_plugin"
                _draw_scatter_panel(panel, table_2, block, fairness, accuracy or distance)
            line[0].set_ylabel(METRICS[fairness])
        for block, panel in zip(blocks, axes[0], strict=True):
            panel.set_title(block_label(block))
        shown = {label: _METHOD_STYLES[name] for name, label in METHODS.items() if name in set(table_2["method"])}
        _finish(figure, shown, columns=len(shown) if len(blocks) > 3 else 3)
    return figure


def _draw_scatter_panel(panel: Axes, table_2: Any, block: Block, fairness: str, accuracy: str) -> None:
    rows = table_2[(table_2["dataset"] == block[0]) & (table_2["protected"] == block[1])]
    rows = rows.fillna({"sd": 0.0})  # a single fold has no standard deviation, and so no bar
    means, spreads = (rows.set_index(["method", "metric"])[column].to_dict() for column in ("mean", "sd"))
    for method, style in _METHOD_STYLES.items():
        x, y = (method, accuracy), (method, fairness)
        if x in means and y in means:
            looks = style.drawn(markeredgewidth=0.5, elinewidth=0.8)
            panel.errorbar(means[x], means[y], xerr=spreads[x], yerr=spreads[y], **looks)
    panel.set_xlabel(METRICS[accuracy])
    panel.margins(x=0.12, y=0.08)


def _draw_curve_panel(panel: Axes, rows: Any, metric: str) -> None:
    highest = None if metric in _DISTANCES else 1.0  # of a rate or accuracy
    for (prior, theta), style in reversed(list(_CURVES.items())):
        line = rows[(rows["prior"] == prior) & (rows["theta"] == theta)].sort_values("C")
        panel.plot(line["C"], line["mean"], **style.drawn(linewidth=style.size / 3, markeredgewidth=0.4))
        spread = line["sd"].fillna(0.0)
        low, high = (line["mean"] - spread).clip(lower=0.0), (line["mean"] + spread).clip(upper=highest)
        panel.fill_between(line["C"], low, high, color=style.colour, alpha=0.1, linewidth=0)
    panel.set_xlabel("C")
    panel.set_xlim(-0.03, 1.03)
    panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])


def _finish(figure: Figure, styles: Mapping[str, Style], *, columns: int) -> None:
    """Add the legend, then compute the layout once for all formats, because it is slow."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], **style.drawn(markeredgecolor=style.colour, label=label)) for label, style in styles.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, columnspacing=1.4, handlelength=2.6)
    ConstrainedLayoutEngine().execute(figure)


def block_label(block: Block) -> str:
    """Name a data set and its protected column."""
    return f"{DATASETS[block[0]]}, {block[1]}"
