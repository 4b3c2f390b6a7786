"""Every pair of options of `evaluate` is refused, or both are honoured.

To add an option, add a wish to `WISHES`.
"""

from contextlib import nullcontext
from inspect import signature

import pytest
from calls import Wish, together_and_alone, verdicts, wrong

from fairmaxent import evaluate
from fairmaxent.relabelling import classifier
from people import everybody

COLUMNS = ["hired", "sex", "town", "drive", "skill"]
REAL = everybody()[COLUMNS].iloc[:80]
NEW = everybody()[COLUMNS].iloc[80:160].reset_index(drop=True)
CONTROL = everybody()[COLUMNS].iloc[160:230].reset_index(drop=True)
OUTCOME = {"outcome": "hired"}


TOLD = []  # what the last call told of its progress


def called(**options):
    TOLD.clear()
    return evaluate(REAL, NEW, **({"attacks": 30} | options))


def rows_are_counted(options, result):
    """What every evaluation states is true."""
    assert (result.real_rows, result.new_rows) == (len(REAL), len(NEW))
    assert result.confidence == options.get("confidence", 0.95)
    assert (result.utility is not None) == ("outcome" in options)
    assert (result.risks.membership is not None) == ("control" in options)
    copies = NEW.merge(REAL.drop_duplicates())
    assert (result.risks.copies.risk.value > 0) <= (len(copies) > 0)


def control_is_used(options, result):
    assert result.control_rows == len(CONTROL)
    assert result.risks.linkability.control_rate is not None
    if result.utility is not None:
        assert result.utility.judged_on == "control"


def model_is_judged(options, result):
    assert result.utility.outcome == options["outcome"]
    assert 0 < result.utility.people <= len(REAL)


def groups_are_judged(options, result):
    assert [*result.utility.new.rates] == ["sex"]
    assert len(result.utility.new.groups) == REAL["sex"].nunique()


def good_outcome_is_judged(options, result):
    """Who does not get the other outcome gets it."""
    other = called(**(options | {"favourable": "no"}))
    groups = zip(result.utility.new.groups, other.utility.new.groups, strict=True)
    for good, bad in groups:
        assert abs(good.favourable.value + bad.favourable.value - 1) <= 1e-9


def secrets_are_guessed(options, result):
    assert list(result.risks.inference.by_column) == options["secrets"]


def attacks_are_counted(options, result):
    assert result.risks.linkability.attempts == options["attacks"]


def confidence_is_stated(options, result):
    """Narrower intervals than usual."""
    usual = called(**(options | {"confidence": 0.99})).risks.linkability
    own = result.risks.linkability
    assert own.high - own.low < usual.high - usual.low


def seed_is_honoured(options, result):
    assert called(**options).to_dict() == result.to_dict()


def progress_is_told(options, result):
    stages = {stage for stage, _ in TOLD}
    assert {"fidelity", "attacks"} <= stages
    assert ("utility" in stages) == ("outcome" in options)


WISHES = (
    Wish("control", {"control": CONTROL}, control_is_used, together="attacks"),
    Wish("outcome", OUTCOME, model_is_judged),
    Wish("protected", {"protected": "sex"}, groups_are_judged, OUTCOME, "groups"),
    Wish(
        "favourable",
        {"favourable": "yes"},
        good_outcome_is_judged,
        needs=OUTCOME | {"protected": "sex"},
        together="groups",
    ),
    Wish("secrets", {"secrets": ["drive"]}, secrets_are_guessed),
    Wish("attacks", {"attacks": 25}, attacks_are_counted, together="attacks"),
    Wish("confidence", {"confidence": 0.8}, confidence_is_stated),
    Wish("random_state", {"random_state": 5}, seed_is_honoured, together="quiet"),
    Wish(
        "progress",
        {"progress": lambda *told: TOLD.append(told)},
        progress_is_told,
        together="quiet",
    ),
)
PROMISES = (rows_are_counted,)


def test_every_option_has_a_wish():
    options = [*signature(evaluate).parameters][2:]
    assert {wish.option for wish in WISHES} == set(options)


@together_and_alone(WISHES)
def test_every_pair_is_refused_or_honoured(wishes, monkeypatch):
    """With models of few trees, which share the threads of other models."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    defaults = ensemble.HistGradientBoostingClassifier.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "max_iter", 5)
    monkeypatch.setattr(classifier, "_alone", lambda model: nullcontext())
    assert wrong(verdicts(called, wishes, PROMISES)) == []
