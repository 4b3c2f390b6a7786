"""Curves as a picture: CPU seconds against size, both axes logarithmic."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.outcome import Curve


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw one panel per size that grows; the same curves give the same file."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    panels = list(dict.fromkeys(curve.panel for curve in curves))
    with matplotlib.rc_context(
        {"svg.hashsalt": "fairmaxent", "svg.fonttype": "none", "font.size": 9}
    ):
        figure, axes = pyplot.subplots(
            1, len(panels), figsize=(4.5 * len(panels), 3.6), squeeze=False
        )
        for axis, panel in zip(axes[0], panels, strict=True):
            _draw_panel(axis, [curve for curve in curves if curve.panel == panel])
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _draw_panel(axis: Any, curves: Sequence[Curve]) -> None:
    for curve in curves:
        if not curve.points:
            continue
        label = (
            curve.name
            if curve.exponent is None
            else f"{curve.name}: size^{curve.exponent:.2f}"
        )
        sizes, seconds = zip(*curve.points, strict=True)
        axis.plot(sizes, seconds, marker="o", markersize=3, linewidth=1, label=label)
    axis.set(xscale="log", yscale="log", xlabel=curves[0].panel, ylabel="CPU seconds")
    axis.grid(visible=True, which="major", linewidth=0.3)
    axis.legend(
        frameon=False,
        title=f"fitted from {curves[0].begin:,.0f} to {curves[0].end:,.0f}",
        title_fontsize=8,
    )
