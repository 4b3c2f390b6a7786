"""What a report says of the decisions that outcomes were relabelled for."""

from dataclasses import replace

import numpy as np
import pytest

from fairmaxent import Relabel, debias
from fairmaxent.report import build_report
from fairmaxent.report.trade_off import trade_off
from fairmaxent.report.writer import html_report, markdown_report
from tables import random_frame


@pytest.fixture(scope="module")
def fit():
    table = random_frame(np.random.default_rng(5), (2,), 2, rows=300)
    plan = Relabel(parity="predictions", labeller="tree", student="tree", threshold=0.4)
    return debias(table, "y", "z0", favourable="o1", relabel=plan)


def texts(fit):
    report = build_report(fit, mode="weights", trade_off=False)
    return [" ".join(write(report).replace("<b>", "").split()) for write in (html_report, markdown_report)]


def test_every_form_has_each_rate_and_share_with_its_interval(fit):
    known = fit.certificate.decisions
    for text in texts(fit):
        assert "rooted tree with decisions at a probability of 0.4 or more" in text
        for number in (known.rates[0].rate, known.rates[0].low, *(share.share for share in known.shares)):
            assert f"{number:.3f}" in text


@pytest.mark.parametrize("kept", [True, False])
def test_it_says_whether_the_table_is_fair_too(fit, kept):
    known = replace(fit.certificate.decisions, keeps_means=kept, blind=not kept)
    changed = replace(fit, certificate=replace(fit.certificate, decisions=known))
    for text in texts(changed):
        assert ("equally common in all groups as well" in text) == kept
        assert ("had to stay less equal than the decisions are" in text) != kept
        assert ("which does not see the protected columns" in text) != kept


def test_other_fits_say_nothing_of_decisions(fit):
    plain = replace(fit, certificate=replace(fit.certificate, decisions=None))
    assert all("95% interval" not in text for text in texts(plain))


def test_the_trade_off_tries_out_no_student_again(fit, monkeypatch):
    monkeypatch.setattr("fairmaxent.fit.relabel.close_loop", None)
    points = trade_off(fit).points
    assert {point.varied for point in points} == {"base_share"}
    assert all(point.problem is None for point in points)


def test_one_round_is_not_called_the_best_of_several(fit):
    for rounds in (1, 3):
        known = replace(fit.certificate.decisions, rounds=rounds)
        changed = replace(fit, certificate=replace(fit.certificate, decisions=known))
        for text in texts(changed):
            assert ("that was done in 3 rounds, and the best one was kept." in text) == (rounds == 3)
            assert "1 rounds" not in text
        assert "1 rounds" not in str(changed.certificate)
