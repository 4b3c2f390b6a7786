"""Every figure of the paper and its appendix; equal tables give equal bytes."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairmaxent.files.write import write_whole
from reproduction.cells import TABLE_2_BLOCKS, TableBlock

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILES = Path(__file__).parent
_DATA = tomllib.loads(FILES.joinpath("figures.toml").read_text(encoding="utf-8"))
DATASETS, METHODS, METRICS = (
    _DATA[names] for names in ("datasets", "methods", "metrics")
)
_LOOK: dict[str, Any] = _DATA["look"]
_DISTANCES = ("kl_plugin", "kl_exact", "correlation_distance", "covariance_distance")


@dataclass(frozen=True, kw_only=True)
class Style:
    """How one method or curve is drawn."""

    colour: str
    marker: str
    line: str = "none"
    size: float

    def drawn(self, **more: Any) -> dict[str, Any]:
        """As matplotlib wants it."""
        looks = {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": self.line,
            "markersize": self.size,
        }
        return looks | {"markeredgecolor": "white"} | more


_METHOD_STYLES = {
    name: Style(**style) for name, style in _DATA["method_styles"].items()
}
_CURVES = {
    (prior, theta): Style(**look, **marks)
    for prior, look in _DATA["prior_styles"].items()
    for theta, marks in _DATA["theta_styles"].items()
}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with its file name, its caption, and a description in words."""

    name: str
    caption: str
    description: str
    figure: Figure

    def saved(self, kind: str) -> bytes:
        """Return the drawing as SVG or PNG.

        It has no metadata, because a date would differ from run to run.
        """
        from matplotlib import rc_context

        names = {"svg": ["Creator", "Date", "Format", "Type"], "png": ["Software"]}
        metadata = dict.fromkeys(names[kind])
        buffer = io.BytesIO()
        with rc_context(_LOOK):
            self.figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
        return buffer.getvalue()


def write_figures(table_2: Any, curves: Any, folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG, once all of them are drawn."""
    drawings = draw_figures(table_2, curves)
    files = {
        folder / f"{drawing.name}.{kind}": drawing.saved(kind)
        for drawing in drawings
        for kind in ("svg", "png")
    }
    for path, content in files.items():
        write_whole(path, content, readable=True)
    return list(files)


def draw_figures(table_2: Any, curves: Any) -> list[Drawing]:
    """Draw every figure for which there is data."""
    drawings = []
    for grid in _DATA["grid"] if len(table_2) else ():
        figure = _draw_grid(table_2, grid["rows"])
        drawings.append(
            Drawing(grid["name"], grid["caption"], grid["description"], figure)
        )
    for plan in (
        plan
        for plan in _DATA["curves"]
        if curves["dataset"].isin(plan["datasets"]).any()
    ):
        datasets, metrics = (
            ", ".join(_DATA[kind][name] for name in plan[kind])
            for kind in ("datasets", "metrics")
        )
        lines = (
            "Line charts over C from 0 to 1, each with six lines for two priors and"
            " three expectations."
        )
        description = f"{lines} Data: {datasets}. Panels: {metrics}."
        drawings.append(
            Drawing(
                plan["name"], plan["caption"], description, draw_curves(curves, plan)
            )
        )
    return drawings


def draw_curves(curves: Any, plan: Mapping[str, Any]) -> Figure:
    """Metrics over C for six combinations of prior and θ; bands are the standard
    deviation over folds.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    present = [
        dataset for dataset in plan["datasets"] if dataset in set(curves["dataset"])
    ]
    panels = [[(dataset, metric) for dataset in present] for metric in plan["metrics"]]
    has_one_dataset = len(plan["datasets"]) == 1
    if has_one_dataset:
        panels = [[panel for (panel,) in panels]]
    letters = iter("abcdefgh")
    with rc_context(_LOOK):
        figure = Figure(figsize=(2.6 * len(panels[0]), 2.3 * len(panels) + 0.4))
        axes = figure.subplots(len(panels), len(panels[0]), squeeze=False).tolist()
        for line, row_axes in zip(panels, axes, strict=True):
            for (dataset, metric), panel in zip(line, row_axes, strict=True):
                _draw_curve_panel(
                    panel,
                    curves[
                        (curves["dataset"] == dataset) & (curves["metric"] == metric)
                    ],
                    metric,
                )
                if has_one_dataset:
                    heading = METRICS[metric]
                else:
                    heading = DATASETS[dataset]
                panel.set_title(f"({next(letters)}) {heading}", loc="left")
            if not has_one_dataset:
                row_axes[0].set_ylabel(METRICS[line[0][1]])
        marks = {"w": "ʷ", "d": "ᵈ", "b": "ᵇ"}
        labels = {
            f"q{marks[prior]}, θ{marks[theta]}": style
            for (prior, theta), style in _CURVES.items()
        }
        _finish(figure, labels, columns=len(_CURVES))
    return figure


def _draw_grid(table_2: Any, rows: list[list[str]]) -> Figure:
    """One row per fairness metric and one column per block; without an accuracy, the
    x-axis shows the distance.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    measured = set(zip(table_2["dataset"], table_2["protected"], strict=True))
    blocks = [block for block in TABLE_2_BLOCKS if block in measured]
    with rc_context(_LOOK):
        figure = Figure(figsize=(2.0 * len(blocks) + 0.6, 2.0 * len(rows) + 0.5))
        axes = figure.subplots(
            len(rows), len(blocks), sharey="row", squeeze=False
        ).tolist()
        for (fairness, *accuracy), line in zip(rows, axes, strict=True):
            for block, panel in zip(blocks, line, strict=True):
                distance = (
                    "correlation_distance"
                    if block[0] == "compas-large"
                    else "kl_plugin"
                )
                _draw_scatter_panel(
                    panel, table_2, block, fairness, *(accuracy or [distance])
                )
            line[0].set_ylabel(METRICS[fairness])
        for block, panel in zip(blocks, axes[0], strict=True):
            panel.set_title(block_label(block))
        shown = {
            label: _METHOD_STYLES[name]
            for name, label in METHODS.items()
            if name in set(table_2["method"])
        }
        _finish(figure, shown, columns=len(shown) if len(blocks) > 3 else 3)
    return figure


def _draw_scatter_panel(
    panel: Axes, table_2: Any, block: TableBlock, fairness: str, accuracy: str
) -> None:
    rows = table_2[
        (table_2["dataset"] == block[0]) & (table_2["protected"] == block[1])
    ]
    # a single fold has no standard deviation, and so no bar
    rows = rows.fillna({"sd": 0.0})
    means, spreads = (
        rows.set_index(["method", "metric"])[column].to_dict()
        for column in ("mean", "sd")
    )
    for method, style in _METHOD_STYLES.items():
        x = (method, accuracy)
        y = (method, fairness)
        if x in means and y in means:
            looks = style.drawn(markeredgewidth=0.5, elinewidth=0.8)
            panel.errorbar(
                means[x], means[y], xerr=spreads[x], yerr=spreads[y], **looks
            )
    panel.set_xlabel(METRICS[accuracy])
    panel.margins(x=0.12, y=0.08)


def _draw_curve_panel(panel: Axes, rows: Any, metric: str) -> None:
    highest = None if metric in _DISTANCES else 1.0  # of a rate or accuracy
    for (prior, theta), style in reversed(list(_CURVES.items())):
        line = rows[(rows["prior"] == prior) & (rows["theta"] == theta)].sort_values(
            "C"
        )
        panel.plot(
            line["C"],
            line["mean"],
            **style.drawn(linewidth=style.size / 3, markeredgewidth=0.4),
        )
        spread = line["sd"].fillna(0.0)
        low = (line["mean"] - spread).clip(lower=0.0)
        high = (line["mean"] + spread).clip(upper=highest)
        panel.fill_between(
            line["C"], low, high, color=style.colour, alpha=0.1, linewidth=0
        )
    panel.set_xlabel("C")
    panel.set_xlim(-0.03, 1.03)
    panel.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])


def _finish(figure: Figure, styles: Mapping[str, Style], *, columns: int) -> None:
    """Add the legend, then compute the layout once for all formats, because it is
    slow.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], **look.drawn(markeredgecolor=look.colour, label=label))
        for label, look in styles.items()
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        columnspacing=1.4,
        handlelength=2.6,
    )
    ConstrainedLayoutEngine().execute(figure)


def block_label(block: TableBlock) -> str:
    """Name a data set and its protected column."""
    return f"{DATASETS[block[0]]}, {block[1]}"
