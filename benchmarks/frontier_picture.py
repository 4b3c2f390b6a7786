"""The frontier as a picture: fairness to the right, accuracy upwards, one panel per
data set and classifier.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fair_models import OURS

# data set, classifier → method → x, y
Places = Mapping[tuple[str, str], Mapping[str, tuple[float, float]]]

_MARKERS = "osD^v<>PXhd*p"


def draw(places: Places, path: Path) -> None:
    """Draw all panels, ours in colour and the others in grey; the same places give the
    same file.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    tables, learners = (
        (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
        if places
        else ([], [])
    )
    if not tables:
        return
    ordered = list(
        dict.fromkeys(method for methods in places.values() for method in methods)
    )
    styles = _styles(ordered, matplotlib.colormaps["tab10"].colors)
    with matplotlib.rc_context(
        {"svg.hashsalt": "fairmaxent", "svg.fonttype": "none", "font.size": 9}
    ):
        size = (4.2 * len(learners), 3.4 * len(tables) + 1.2)
        figure, axes = pyplot.subplots(
            len(tables),
            len(learners),
            figsize=size,
            squeeze=False,
            layout="constrained",
        )
        for (table, learner), methods in places.items():
            axis = axes[tables.index(table)][learners.index(learner)]
            for method, (x, y) in methods.items():
                axis.plot([x], [y], label=method, linestyle="none", **styles[method])
            axis.set(
                title=f"{table}, {learner}",
                xlabel="statistical rate by predictions",
                ylabel="accuracy",
            )
            axis.grid(visible=True, linewidth=0.3)
        shown: dict[str, Any] = {}
        for axis in axes.flat:
            handles, labels = axis.get_legend_handles_labels()
            shown |= dict(zip(labels, handles, strict=True))
        figure.legend(
            [shown[method] for method in ordered],
            ordered,
            loc="outside lower center",
            ncols=5,
            frameon=False,
        )
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _styles(methods: Sequence[str], colours: Any) -> dict[str, dict[str, Any]]:
    """A marker of its own for each method."""
    styles = {}
    for number, method in enumerate(methods):
        hollow = {"markerfacecolor": "white", "markeredgecolor": "0.35"}
        colour = (
            {"color": colours[number % len(colours)]}
            if method.startswith(OURS)
            else hollow
        )
        styles[method] = {
            "marker": _MARKERS[number % len(_MARKERS)],
            "markersize": 6,
            **colour,
        }
    return styles
