"""Pictures as SVG that takes its colours from the page, so that it is at home in light, dark and print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree import ElementTree

from fairmaxent.plain_text import isolated

_LETTER = 6.2  # about the width of a letter of the small text, in pixels
_LONGEST = 18  # letters of a name
_READABLE = 460  # narrower than this in pixels, the names in a large map could not be read; it is scrolled instead
_WIDTH, _HEIGHT = 320.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 14.0, 40.0


def heat_map(names: Sequence[str], matrix: Sequence[Sequence[float]], *, title: str) -> str:
    """Draw a square of cells, the stronger the deeper; each cell says its value when pointed at.

    How deep the strongest is says the page, which keeps the numbers readable on it in light and in dark.
    """
    cell = max(18, min(30, 460 // len(names)))
    shown = [shorten(name) for name in names]
    margin = 10 + _LETTER * max(map(len, shown))
    size = margin + cell * len(names) + 4
    svg = _svg(size, size, title)
    svg.set("style", f"min-width:{min(size, _READABLE):.0f}px")
    for row, values in enumerate(matrix):
        middle = margin + cell * (row + 0.5)
        _text(svg, shown[row], margin - 6, middle + 4, anchor="end", full=names[row])
        turned = f"rotate(-90 {middle + 4:.1f} {margin - 6:.1f})"
        _text(svg, shown[row], middle + 4, margin - 6, turn=turned, full=names[row])
        for column, value in enumerate(values):
            if row != column:
                _cell(svg, margin + cell * column, margin + cell * row, cell, value, f"{names[row]}, {names[column]}")
    return _written(svg)


def curve(
    points: Sequence[tuple[float, float]], this_fit: float | None, *, title: str, across: str, unit: str = ""
) -> str:
    """Draw values over a share from 0 to 1, with the point that the report is about marked."""
    top = _rounded_up(max(value for _, value in points))
    svg = _svg(_WIDTH, _HEIGHT, title)
    for part in (0.0, 0.5, 1.0):
        y = _y(part)
        _add(svg, "line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, **{"class": "grid"})
        _text(svg, f"{_number(part * top)}{unit}", _LEFT - 6, y + 4, anchor="end")
        _text(svg, f"{part:g}", _x(part), _HEIGHT - _BOTTOM + 16, anchor="middle")
    _text(svg, across, (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, anchor="middle")
    placed = [(_x(share), _y(value / top)) for share, value in points]
    _add(svg, "polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in placed), **{"class": "line"})
    for (share, value), (x, y) in zip(points, placed, strict=True):
        is_this_fit = share == this_fit
        dot = _add(
            svg, "circle", cx=x, cy=y, r=6.0 if is_this_fit else 3.5, **{"class": "own" if is_this_fit else "dot"}
        )
        _add(dot, "title").text = f"{across} {share:g}: {_number(value)}{unit}"
    return _written(svg)


def shorten(name: str) -> str:
    """Cut a long name.

    >>> shorten("years of education and training")
    'years of educatio…'
    """
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _cell(svg: ElementTree.Element, x: float, y: float, size: int, value: float, pair: str) -> None:
    shape = _add(svg, "rect", x=x + 0.5, y=y + 0.5, width=size - 1.0, height=size - 1.0, **{"class": "cell"})
    shape.set("style", f"--strength:{0.04 + 0.96 * value:.2f}")
    _add(shape, "title").text = f"{pair}: {value:.3f}"
    if size >= 24:
        _text(svg, f"{100 * value:.0f}", x + size / 2, y + size / 2 + 3.5, anchor="middle")


def _svg(width: float, height: float, title: str) -> ElementTree.Element:
    box = f"0 0 {width:.0f} {height:.0f}"
    return ElementTree.Element("svg", {"viewBox": box, "role": "img", "aria-label": title, "width": f"{width:.0f}"})


def _add(parent: ElementTree.Element, tag: str, **attributes: str | float) -> ElementTree.Element:
    texts = {name: value if isinstance(value, str) else f"{value:.1f}" for name, value in attributes.items()}
    return ElementTree.SubElement(parent, tag, texts)


def _text(
    svg: ElementTree.Element,
    text: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    turn: str | None = None,
    full: str | None = None,
) -> None:
    element = _add(svg, "text", x=x, y=y, **{"text-anchor": anchor})
    element.text = text
    if turn is not None:
        element.set("transform", turn)
    if full not in (None, text):
        _add(element, "title").text = full


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(part: float) -> float:
    return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def _rounded_up(value: float) -> float:
    """Return the next of 1, 2, 4, 6, 8 times a power of ten.

    >>> _rounded_up(15.1), _rounded_up(0.77), _rounded_up(1000.0)
    (20.0, 0.8, 1000.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value * (1 - 1e-9)))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _written(svg: ElementTree.Element) -> str:
    return isolated(ElementTree.tostring(svg, encoding="unicode"))
