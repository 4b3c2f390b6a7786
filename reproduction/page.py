"""The reproduction on one page: published numbers beside ours, and every figure.

It says which differ by more than noise, and why. ``printed`` and ``printed_sd`` are
Table 2 of Celis, Keswani, Vishnoi, "Data preprocessing to mitigate bias: a maximum
entropy based approach", ICML 2020: means over folds and repetitions, and the standard
deviation over folds. ``authors_code`` comes from the authors' published code, run
unmodified: raw rates are those of all rows, numbers for maximum entropy are means over
the same five folds, and seconds are the CPU time of one fit on all rows and of drawing
10,000 rows. A missing value means that there is no such number. The table's classifier
SR is listed as ``tree_sr_probabilities`` and its covariance norm as
``correlation_distance``, because that is what the authors' code computes.
"""

import html
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from reproduction.cells import TABLE_2_BLOCKS, TableBlock
from reproduction.figures import (
    FILES,
    METHODS,
    METRICS,
    Drawing,
    block_label,
    draw_figures,
)

KEYS = ["dataset", "protected", "method", "metric"]
Source = Literal["printed", "authors_code"]
UNEXPLAINED = "unexplained"
# Why a published number differs from ours: `covers` says of which ones a reason speaks.
REASONS: list[dict[str, Any]] = tomllib.loads(
    FILES.joinpath("reasons.toml").read_text(encoding="utf-8")
)["reason"]
CODE_AGREES = (
    "The authors' code, run unmodified, gives our number and not the printed one; how"
    " the printed number was computed is not known."
)
# How much two runs of one experiment may differ. Trees turn shares near one half into
# all or nothing, so the rate of their predictions jumps from draw to draw.
_BARS: Mapping[str, float] = {"correlation_distance": 0.15, "tree_sr_predictions": 0.05}
_USUAL_BAR = 0.01
_BASELINE_BAR = 0.02  # our code for them is not the authors'
_BASELINES = ("calmon", "kamiran_calders", "king_zeng")
_ROUNDING = 0.005  # of two printed decimals
NOISE = (
    f"Noise is {_USUAL_BAR} ({_BASELINE_BAR} for the methods of others,"
    f" {_BARS['tree_sr_predictions']} for the rate of predictions,"
    f" {_BARS['correlation_distance']} for the correlation distance) plus two standard"
    " errors of our mean over the drawn repetitions; the folds are the same for all"
    " three sources. For a printed number, half a unit of its last digit is added for"
    " rounding."
)
_NO_REASON = "Unexplained: the reason for this difference is not known."
_MISSING = "–"
# a number as shown, and the note that explains why ours differs from it
Entry = tuple[str, int | None]
Line = tuple[str, list[Entry]]  # one number for each method, all from one source


def load_published() -> Any:
    """Return dataset, protected, method, metric, printed, printed_sd, authors_code.

    The metric may be ``seconds``.
    """
    import pandas as pd

    with FILES.joinpath("published.csv").open() as file:
        return pd.read_csv(file)


def compare(table_2: Any, published: Any) -> Any:
    """Return each published number with ours, and why they differ, if they do.

    Columns: dataset, protected, method, metric, printed, printed_sd, authors_code,
    ours, sd, error, difference (from the authors' code if it gives a number, else from
    the printed one), beyond_printed, beyond_authors_code, beyond_noise (either), reason
    ("" without a difference, `UNEXPLAINED` if none is known). `NOISE` defines noise.
    """
    rows = published.merge(table_2.rename(columns={"mean": "ours"}), on=KEYS)
    from_printed = rows["ours"] - rows["printed"]
    from_code = rows["ours"] - rows["authors_code"]
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
    """Say why the numbers of a row differ.

    One difference without a reason makes the row unexplained.
    """
    differing: dict[Source, bool] = {
        "printed": row.beyond_printed,
        "authors_code": row.beyond_authors_code,
    }
    texts = [
        _reason_from(row, source) for source, differs in differing.items() if differs
    ]
    if UNEXPLAINED in texts:
        return UNEXPLAINED
    return " ".join(texts)


def covers(reason: Mapping[str, Any], row: Any, source: Source) -> bool:
    """Whether a reason applies to the published number of this row.

    What it does not name, it is about all of.
    """
    about = {
        "methods": row.method,
        "metrics": row.metric,
        "blocks": [row.dataset, row.protected],
    }
    is_about = all(
        value in reason[name] for name, value in about.items() if name in reason
    )
    return is_about and source == reason.get("source", "printed")


def _reason_from(row: Any, source: Source) -> str:
    for reason in REASONS:
        if covers(reason, row, source):
            return str(reason["text"])
    has_code = row.authors_code == row.authors_code  # not NaN
    if source == "printed" and has_code and not row.beyond_authors_code:
        return CODE_AGREES
    return UNEXPLAINED


def render_page(
    table_2: Any, curves: Any, runtimes: Any, *, settings: Mapping[str, Any]
) -> str:
    """Return the page, one self-contained HTML file.

    Blocks that are not in the tables are left out.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    published = load_published()
    comparison = compare(table_2, published)
    measured = set(zip(table_2["dataset"], table_2["protected"], strict=True))
    blocks = [block for block in TABLE_2_BLOCKS if block in measured]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = FILES.joinpath("page.html").read_text(encoding="utf-8")
    drawings = draw_figures(table_2, curves)
    return environment.from_string(template).render(
        methods=list(METHODS.values()),
        sheets=[
            _block_sheet(block, table_2, published, comparison) for block in blocks
        ],
        times=_time_sheet(blocks, runtimes, published),
        figures=[(drawing, Markup(_inline(drawing))) for drawing in drawings],
        settings={name: str(value) for name, value in settings.items()},
        noise=NOISE,
        compared=len(comparison),
        beyond=int(comparison["beyond_noise"].sum()),
        unexplained=int((comparison["reason"] == UNEXPLAINED).sum()),
    )


def _block_sheet(
    block: TableBlock, table_2: Any, published: Any, comparison: Any
) -> dict[str, Any]:
    """A table of the page with its notes; groups are the lines of each metric."""
    ours, printed, compared = (
        _by_method_and_metric(frame, block)
        for frame in (table_2, published, comparison)
    )
    notes: dict[str, int] = {}  # in the order of their first use

    def note(row: Any, beyond: str) -> int | None:
        if row and getattr(row, beyond):
            return notes.setdefault(row.reason, len(notes) + 1)
        return None

    groups = []
    for metric, label in METRICS.items():
        lines: dict[str, list[Entry]] = {"printed": [], "authors' code": [], "ours": []}
        for key in ((method, metric) for method in METHODS):
            row = printed.get(key)
            found = ours.get(key)
            differs = compared.get(key)
            lines["printed"].append(
                (
                    _spread(row, "printed", "printed_sd", 2),
                    note(differs, "beyond_printed"),
                )
            )
            lines["authors' code"].append(
                (_text(row, "authors_code"), note(differs, "beyond_authors_code"))
            )
            digits = 3 if found is None or found.mean < 100 else 0
            lines["ours"].append((_spread(found, "mean", "sd", digits), None))
        groups.append((label, _lines(lines)))
    return {
        "key": "-".join(block),
        "caption": f"{block_label(block)}: mean ± standard deviation over folds",
        "heading": block_label(block),
        "groups": [(label, lines) for label, lines in groups if lines],
        "notes": [_NO_REASON if text == UNEXPLAINED else text for text in notes],
    }


def _by_method_and_metric(frame: Any, block: TableBlock) -> dict[tuple[str, str], Any]:
    rows = frame[(frame["dataset"] == block[0]) & (frame["protected"] == block[1])]
    return {(row.method, row.metric): row for row in rows.itertuples()}


def _time_sheet(
    blocks: Iterable[TableBlock], runtimes: Any, published: Any
) -> dict[str, Any]:
    groups = []
    for block in blocks:
        known, ours = (
            _by_method_and_metric(rows, block)
            for rows in (published, runtimes.assign(metric="seconds"))
        )
        lines: dict[str, list[Entry]] = {"printed": [], "authors' code": [], "ours": []}
        for key in ((method, "seconds") for method in METHODS):
            lines["printed"].append((_text(known.get(key), "printed"), None))
            lines["authors' code"].append((_text(known.get(key), "authors_code"), None))
            lines["ours"].append((_text(ours.get(key), "seconds", digits=3), None))
        groups.append((block_label(block), _lines(lines)))
    caption = "Seconds to learn and to draw 10,000 rows"
    return {
        "key": "times",
        "caption": caption,
        "heading": "Times",
        "groups": groups,
        "notes": (),
    }


def _lines(numbers: Mapping[str, list[Entry]]) -> list[Line]:
    """A line for each source that has any number."""
    return [
        line for line in numbers.items() if any(text != _MISSING for text, _ in line[1])
    ]


def _text(row: Any, column: str, *, digits: int = 4) -> str:
    value = None
    if row is not None:
        value = getattr(row, column)
    if value is None or value != value:
        return _MISSING
    return f"{value:.{digits}g}"


def _spread(row: Any, column: str, deviation: str, digits: int) -> str:
    """A mean and its standard deviation, if there is one."""
    if row is None or getattr(row, column) != getattr(row, column):
        return _MISSING
    mean = f"{getattr(row, column):.{digits}f}"
    spread = getattr(row, deviation)
    if spread != spread:  # NaN
        return mean
    return f"{mean} ± {spread:.{digits}f}"


def _inline(drawing: Drawing) -> str:
    """Return a drawing as part of a page, with unique names.

    It has a title for readers who cannot see it.
    """
    svg = drawing.saved("svg").decode()
    svg = svg[svg.index("<svg") :]
    # All drawings use the same names for their parts; on one page the names must
    # differ.
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{drawing.name}-", svg)
    opening, rest = svg.split(">", maxsplit=1)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    title = f"{drawing.name}-title"
    text = html.escape(drawing.description)
    return (
        f'{opening} role="img" aria-labelledby="{title}"><title'
        f' id="{title}">{text}</title>{rest}'
    )
