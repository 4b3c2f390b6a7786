"""What a report says of a model trained on the result, of relabelled rows, and of the
decisions they are for.
"""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from fairmaxent import Estimate, InputError, Model, debias
from fairmaxent.report import build_report
from fairmaxent.report.delivered import weighted_table
from fairmaxent.report.refits import trade_off
from fairmaxent.telling.case import texts_of
from fairmaxent.telling.models import unfair_models
from reportforms import html_report, json_report, markdown_report
from tables import EQUAL_PROBABILITIES, random_frame


@pytest.fixture(scope="module")
def table():
    return random_frame(np.random.default_rng(5), (2, 2), 2, rows=200)


@pytest.fixture(scope="module")
def relabelled(table):
    asked = {
        "model": EQUAL_PROBABILITIES,
        "estimate": Estimate(output="weights", model="tree"),
    }
    return debias(
        table,
        "y",
        ["z0", "z1"],
        favourable="o1",
        representation_rate=1.0,
        random_state=0,
        **asked,
    )


@pytest.fixture(scope="module")
def report(relabelled):
    return build_report(relabelled, mode="weights", trade_off=False)


def with_warning(fit, rate):
    """The fit, with a model that is expected to decide at this rate."""
    known = fit.certificate.estimate
    rates = dict.fromkeys(known.after.by_predictions, rate)
    return estimating(
        fit, replace(known, after=replace(known.after, by_predictions=rates))
    )


def estimating(fit, estimate):
    return replace(fit, certificate=replace(fit.certificate, estimate=estimate))


@pytest.mark.more
def test_every_form_has_every_number(report, relabelled):
    known = relabelled.certificate.estimate
    numbers = [known.after.accuracy, known.after.auc, known.before.auc]
    for kind in (
        "by_predictions",
        "by_probabilities",
        "equal_opportunity",
        "equalised_odds",
        "calibration_gap",
    ):
        for scores in (known.before, known.after):
            numbers += [
                value for value in getattr(scores, kind).values() if value is not None
            ]
    page = re.search(
        r'<section id="model".*?</section>', html_report(report), flags=re.S
    )[0]
    part = (
        markdown_report(report)
        .partition("## A model trained on this")[2]
        .partition("\n## ")[0]
    )
    for text in (page, part):
        for number in numbers:
            assert f"{number:.4f}" in text
        assert known.student in text
        assert "Is statistical parity all there is to fairness?" in html.unescape(text)
    assert (
        json.loads(json_report(report))["certificate"]["estimate"]["after"]["auc"]
        == known.after.auc
    )


def test_how_it_was_estimated_is_said(relabelled):
    def said(**changes):
        fit = estimating(
            relabelled, replace(relabelled.certificate.estimate, **changes)
        )
        return markdown_report(build_report(fit, mode="weights", trade_off=False))

    assert (
        "is the range that holds 95 of 100 measurements of such a model on 67 other"
        " people" in said()
    )
    assert ", without the protected columns" in said(hide_protected=True)
    assert "3 folds, 2 times over, and" in said(rounds=2)


def test_what_helps_is_advised_as_python_spells_it(relabelled):
    report = build_report(
        with_warning(relabelled, 0.5), mode="weights", trade_off=False
    )
    advice, *_ = texts_of(unfair_models(report.case))
    assert advice.startswith("fair data are not enough: if a model is trained")
    assert "its decisions for z0 is expected to be 0.50" in advice
    assert advice.endswith(". To make the table for your model, use model")
    assert advice in report.alerts
    assert advice in html.unescape(html_report(report))


def test_weights_by_outcome_are_counted_as_the_weighed_table_counts_them(
    relabelled, table
):
    weighed = relabelled.weigh(table)
    found = weighted_table(relabelled, relabelled.weights())
    attributes = relabelled.roles.attributes
    for cell in np.ndindex(found.shape):
        rows = np.ones(len(weighed), dtype=bool)
        for attribute, level in zip(attributes, cell, strict=True):
            rows &= (
                weighed[attribute.name].astype(str) == attribute.labels[level]
            ).to_numpy()
        assert found[cell] == pytest.approx(
            weighed["fair_weight"][rows].sum() / len(table)
        )
    with pytest.raises(InputError, match="one weight per row and outcome"):
        weighted_table(relabelled, np.ones(relabelled.table.size))


@pytest.mark.more
def test_the_rates_of_relabelled_weights_are_met_and_the_call_repeats_them(
    report, table, relabelled
):
    assert all(rate.met for rate in report.rates if rate.wanted is not None)
    assert "200 rows and each of its outcomes; no row is new." in report.summary()
    assert "once per outcome" in markdown_report(report)
    assert any(
        "each row keeps its weight, which is split between the outcomes" in wish
        for wish in report.wishes
    )
    scope = {"frame": table}
    exec(report.call, scope)
    assert scope["weighted"].equals(relabelled.weigh(table))
    assert scope["fit"].certificate.estimate == relabelled.certificate.estimate


@pytest.mark.more
def test_every_form_has_each_rate_and_share_with_its_interval_and_no_model_is_trained_again(
    monkeypatch,
):
    table = random_frame(np.random.default_rng(5), (2,), 2, rows=300)
    fit = debias(
        table,
        "y",
        "z0",
        favourable=table["y"].mode()[0],
        model=Model("logistic", hide_protected=True),
    )
    known, report = (
        fit.certificate.decisions,
        build_report(fit, mode="weights", trade_off=False),
    )
    for text in (
        " ".join(write(report).replace("<b>", "").split())
        for write in (html_report, markdown_report)
    ):
        assert "LogisticRegression that does not see the protected columns" in text
        for number in (
            known.rates[0].rate,
            known.rates[0].low,
            *(share.share for share in known.shares),
        ):
            assert f"{number:.4f}" in text
    monkeypatch.setattr("fairmaxent.fit.pipeline.teach", None)
    points = trade_off(fit).points
    assert {point.varied for point in points} == {"base_share"}
    assert all(point.problem is None for point in points)
