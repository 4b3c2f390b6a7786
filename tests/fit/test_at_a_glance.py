"""A fit at a glance: its summary as a frame, its plot, its report, and what a notebook
shows.
"""

import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairmaxent
from fairmaxent.debiasing import debias
from fairmaxent.fit import groups as group_plot
from tables import random_frame

pytest.importorskip("matplotlib", reason="it draws the plots").use("Agg")
HOSTILE = "<script>alert(1)</script>$\\frac{$ \u202e&\x1b[31m"


@pytest.fixture(scope="module")
def frame():
    return random_frame(np.random.default_rng(3), (2, 3), 2)


@pytest.fixture(scope="module")
def fit(frame):
    return debias(
        frame,
        "y",
        ["z0", "z1"],
        favourable="o1",
        representation_rate=0.9,
        statistical_rate=0.8,
    )


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def test_a_summary_is_what_a_group_by_gives(frame, fit):
    weights = fit.weights()
    summary = fit.summary().set_index(["column", "group"])
    assert len(summary) == 5
    for column in ("z0", "z1"):
        for group, rows in frame.groupby(column):
            line, inside = (
                summary.loc[(column, group)],
                (frame[column] == group).to_numpy(),
            )
            favoured = (frame["y"] == "o1").to_numpy()
            assert line["outcome"] == "o1"
            assert line["rows"] == len(rows)
            assert line["share_before"] == pytest.approx(inside.mean())
            assert line["share_after"] == pytest.approx(
                (weights * inside).sum() / len(frame), abs=1e-7
            )
            assert line["weight_factor"] == pytest.approx(
                weights[inside].mean(), abs=1e-7
            )
            assert line["rate_before"] == pytest.approx(favoured[inside].mean())
            after = (weights * inside * favoured).sum() / (weights * inside).sum()
            assert line["rate_after"] == pytest.approx(after, abs=1e-7)


@pytest.mark.some(1)
@pytest.mark.parametrize("groups", ["each", "joint"])
def test_its_intervals_are_those_of_the_metric(frame, groups):
    weighted = frame.assign(w=np.random.default_rng(1).uniform(0.5, 3, len(frame)))
    fit = debias(weighted, "y", ["z0", "z1"], groups=groups, weight="w")
    rate = fairmaxent.metrics.statistical_rate(
        weighted, "y", ["z0", "z1"], groups=groups, weight="w", confidence=0.9
    )
    expected = {
        (group.columns, group.group, group.outcome): (group.rate, *group.interval)
        for group in (*rate.groups, *rate.set_apart)
    }
    for line in fit.summary(confidence=0.9).to_dict("records"):
        shown = (line["rate_before"], line["rate_before_low"], line["rate_before_high"])
        names = (tuple(line[name].split(" × ")) for name in ("column", "group"))
        assert shown == pytest.approx(expected.pop((*names, line["outcome"])), abs=1e-9)
    assert not expected


@pytest.mark.parametrize(
    ("convert", "kind"),
    [(pl.from_pandas, pl.DataFrame), (pa.Table.from_pandas, pa.Table)],
)
def test_a_summary_is_a_frame_of_the_same_library(frame, fit, convert, kind):
    summary = debias(
        convert(frame),
        "y",
        ["z0", "z1"],
        favourable="o1",
        representation_rate=0.9,
        statistical_rate=0.8,
    )
    summary = summary.summary()
    assert isinstance(summary, kind)
    measured = summary.to_pandas()
    pd.testing.assert_frame_equal(
        measured, fit.summary(), check_dtype=False, check_exact=False, atol=1e-9
    )


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert all(
            name in ("class", "role", "scope", "aria-label", "data-label")
            for name, _ in attrs
        )

    def handle_data(self, data):
        self.text += data


def test_a_notebook_shows_what_was_asked_reached_paid_and_comes_next(fit):
    page = _Tags()
    page.feed(fit._repr_html_())
    for text in (
        "representation rate of z0",
        "0.9000",
        "✓ reached",
        "fit.report(",
    ):
        assert text in page.text
    assert "short" not in page.text
    assert repr(fit).count("\n") < 24


def test_what_is_shown_at_a_glance_is_in_the_certificate_in_the_same_words(fit):
    everything = str(fit.certificate).splitlines()
    _, *shown = repr(fit).splitlines()
    costs = shown[: shown.index("next:")]
    order = [everything.index(line) for line in costs]
    assert order == sorted(order)


@pytest.mark.more
def test_a_rate_that_was_not_reached_is_marked(frame):
    short = debias(frame, "y", ["z0", "z1"], favourable="o1", largest_weight=1.01)
    assert "✗ short" in short._repr_html_()
    assert "✗ short" in repr(short)
    estimated = debias(
        frame, "y", "z0", favourable="o1", estimate=fairmaxent.Estimate(model="tree")
    )
    line = next(
        line
        for line in repr(estimated).splitlines()
        if line.startswith("Statistical rate of its predictions, z0")
    )
    assert f"{estimated.certificate.estimate.after.by_predictions['z0']:.4f}" in line


def test_names_from_data_are_never_markup(frame):
    hostile = frame.rename(columns={"z0": HOSTILE}).assign(
        y=frame["y"].where(frame["y"] == "o0", HOSTILE)
    )
    fit = debias(hostile, "y", HOSTILE, favourable=HOSTILE)
    page = _Tags()
    page.feed(fit._repr_html_())
    assert set(page.tags) <= {
        "div",
        "h4",
        "p",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
    }
    for steering in ("\x1b", "\u202e"):
        assert steering not in repr(fit) + repr(fit.distribution)
        assert steering not in page.text + str(
            fairmaxent.metrics.statistical_rate(hostile, "y", HOSTILE)
        )
    axes = fit.plot()
    axes.figure.draw_without_rendering()  # a formula that is none would raise here
    assert "$\\frac{$" in axes.get_title()


def _drawn(axes, marker):
    """Values of the points with a marker, from top to bottom."""
    return [
        value
        for line in axes.lines
        if line.get_marker() == marker
        for value in line.get_xdata()
    ]


@pytest.mark.parametrize(("what", "name"), [("rates", "rate"), ("shares", "share")])
def test_a_plot_shows_before_and_after(fit, what, name):
    axes, summary = fit.plot(what), fit.summary()
    assert [text.get_text() for text in axes.get_yticklabels()] == summary[
        "group"
    ].tolist()
    assert _drawn(axes, "o") == pytest.approx(summary[f"{name}_before"].tolist())
    assert _drawn(axes, "D") == pytest.approx(summary[f"{name}_after"].tolist())
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert (
        labels
        == ["before", "after", "95 % interval before"][: 3 if what == "rates" else 2]
    )
    if what == "rates":
        ends = summary[["rate_before_low", "rate_before_high"]].to_numpy()
        assert np.array(axes.collections[0].get_segments())[:, :, 0] == pytest.approx(
            ends
        )


@pytest.mark.parametrize("parity", ["decisions", "opportunity"])
def test_a_plot_of_a_fit_for_a_model_shows_what_it_would_decide(frame, parity):
    """With intervals; what the table teaches it is not shown as if it were that."""
    model = fairmaxent.Model("logistic", parity=parity)
    fit = debias(frame, "y", "z1", favourable="o1", model=model, random_state=1)
    shares = fit.certificate.decisions.shares
    axes = fit.plot()
    assert _drawn(axes, "D") == pytest.approx([one.share for one in shares])
    assert _drawn(axes, "o") == []
    ends = np.array(axes.collections[0].get_segments())[:, :, 0]
    assert ends == pytest.approx(np.array([(one.low, one.high) for one in shares]))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["expected decisions", "95 % interval"]
    groups = [text.get_text() for text in axes.get_yticklabels()]
    assert [f"z1 = {group}" for group in groups] == [one.group for one in shares]
    student = fit.certificate.decisions.student
    title = f"How often {student} is expected to decide for y = o1"
    whom = ", among people whose outcome is good"
    assert axes.get_title() == title + (whom if parity == "opportunity" else "")
    taught = fit.plot("shares")
    of_table = f"Share of each group in the table that {student} learns from"
    assert taught.get_title() == of_table
    assert _drawn(taught, "D") == pytest.approx(fit.summary()["share_after"].tolist())


def test_of_many_groups_those_that_change_most_are_drawn(monkeypatch):
    frame = random_frame(np.random.default_rng(5), (6,), 2)
    fit = debias(frame, "y", "z0", favourable="o1")
    monkeypatch.setattr(group_plot, "MOST_LINES", 2)
    axes, summary = fit.plot(), fit.summary()
    change = (summary["rate_after"] - summary["rate_before"]).abs()
    shown = [text.get_text() for text in axes.get_yticklabels()]
    assert shown == summary["group"][change.rank(ascending=False) <= 2].tolist()
    assert "4 groups with smaller changes are not shown" in axes.get_title()


def test_a_plot_needs_matplotlib_and_goes_on_the_axes_given(fit, monkeypatch):
    from matplotlib import pyplot

    first = pyplot.figure().add_subplot()
    assert fit.plot(ax=first) is first
    with pytest.raises(
        fairmaxent.InputError, match="what is 'rate'; did you mean 'rates'"
    ):
        fit.plot("rate")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        fairmaxent.errors.DependencyError, match="pip install matplotlib"
    ):
        fit.plot()
