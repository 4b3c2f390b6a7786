"""inspection/proposals.py: what is proposed for tables whose roles are known, and what
is not.
"""

import numpy as np
import polars as pl
import pytest

import fairmaxent
from fairmaxent import datasets, inspect
from fairmaxent.data.domain import Domain
from fairmaxent.inspection.proposals import (
    named_in,
    propose_favourable,
    propose_outcome,
    propose_protected,
)

ROWS = 400


def column(name, *levels, seed=0):
    return pl.Series(
        name, np.random.default_rng([seed, len(name)]).choice(levels, ROWS).tolist()
    )


def table(*columns):
    return pl.DataFrame([*columns])


def good_levels(name, *levels):
    proposed = propose_favourable(
        Domain.infer(table(column(name, *levels))).attributes[0]
    )
    return [one.value for one in proposed], {one.confidence for one in proposed}


@pytest.mark.more
@pytest.mark.parametrize("name", ["adult", "german", "compas"])
def test_the_roles_of_well_known_tables_are_proposed(name):
    """Against the roles that the data sets declare."""
    known = datasets.load(name, library="polars")
    look = inspect(known.frame)
    assert look.outcome == known.outcome
    assert look.favourable == (known.favourable,)
    assert set(known.protected) & {"sex", "race"} <= set(look.protected)
    assert all(one.reason for one in look.proposals)


@pytest.mark.parametrize(
    ("name", "levels", "good"),
    [
        ("hired", ("no", "yes"), ["yes"]),
        ("income", ("<=50K", ">50K"), [">50K"]),
        ("exam", ("fail", "pass"), ["pass"]),
        ("Ergebnis", ("bestanden", "nicht bestanden"), ["bestanden"]),
        ("loan_status", ("Charged Off", "Fully Paid", "Current"), ["Fully Paid"]),
        ("credit", ("bad", "good"), ["good"]),
        ("application", ("not approved", "pending approval"), ["pending approval"]),
        ("default", (0, 1), [0]),
        ("default_payment_next_month", ("yes", "no"), ["no"]),
        ("two_year_recid", (0, 1), [0]),
        ("reoffended", (False, True), [False]),
        ("churn", ("Yes", "No"), ["No"]),
        ("Kreditausfall", ("ja", "nein"), ["nein"]),
        ("risk", ("high", "low"), ["low"]),
        ("approved", (-1, 1), [1]),
        ("Bescheid", ("Zusage", "Absage"), ["Zusage"]),
        ("avis", ("admise", "ajournée", "liste"), ["admise"]),
        ("wynik", ("przyjęta", "nie przyjęta"), ["przyjęta"]),
        ("Einkommen", ("unter 30.000 €", "über 30.000 €"), ["über 30.000 €"]),
    ],
)
def test_the_good_outcome_follows_from_the_names(name, levels, good):
    assert good_levels(name, *levels)[0] == good


@pytest.mark.parametrize(
    "levels",
    [("a", "b"), (1, 2), ("x", "y"), ("good", "great"), ("red", "green", "blue")],
)
def test_an_outcome_that_says_nothing_gets_no_good_level(levels):
    assert good_levels("class", *levels) == ([], set())


def test_yes_in_an_unknown_column_is_only_a_guess():
    assert good_levels("y", "no", "yes") == (["yes"], {"guess"})
    assert good_levels("hired", "no", "yes") == (["yes"], {"likely"})


def test_two_outcomes_are_a_question_and_a_table_without_any_sign_gets_none():
    """Nothing tells them apart, so the user has to choose."""
    frame = table(
        column("hired", "no", "yes"),
        column("promoted", "no", "yes"),
        column("city", *"abcdef"),
    )
    proposed = propose_outcome(Domain.infer(frame), [])
    assert {one.value for one in proposed} == {"hired", "promoted"}
    assert {one.confidence for one in proposed} == {"candidate"}
    look = inspect(frame)
    assert (look.outcome, look.groupings) == (None, ())
    assert "Which column is the outcome?" in str(look)
    look = inspect(
        table(column("a", "p", "q"), column("b", "u", "v"), column("c", "x", "y", "z"))
    )
    assert look.outcome is None
    assert look.protected == ()


def test_numbers_are_candidates_with_edges_that_cut_them_in_two():
    rng = np.random.default_rng(3)
    frame = table(
        column("sex", "f", "m"),
        pl.Series("income", rng.lognormal(10, 1, ROWS).round(2)),
    )
    (one,) = inspect(frame).proposed("outcome")
    assert (one.value, one.confidence) == ("income", "candidate")
    domain = Domain.infer(frame, bins={"income": list(one.edges)})
    counts = domain.attribute("income").level_counts()
    assert len(counts) == 2
    assert min(counts) > 0.45 * ROWS


LANGUAGES = """
Gender, applicant_race, hired, churn, yes, no
religion, ethnicity, admitted, defaulted, Y, N
Geschlecht, Altersgruppe, Eingestellt, Kündigung, ja, nein
GESCHLECHT, Schwerbehinderung, BEFOERDERT, Rueckfall, Ja, Nein
sexe, tranche d'âge, embauché, licencié, oui, non
Sexo, Grupo de edad, Contratado, Despedido, Sí, No
Sesso, Fascia d'età, Assunto, licenziato, sì, no
Geslacht, Leeftijdscategorie, Aangenomen, ONTSLAGEN, ja, nee
Płeć, Grupa wiekowa, Zatrudniony, Zwolniony, tak, nie
Gênero, Faixa etária, Contratada, inadimplência, sim, não"""


@pytest.mark.some(2)
@pytest.mark.parametrize("words", LANGUAGES.strip().splitlines())
def test_roles_are_known_in_eight_languages(words):
    sex, group, good, bad, yes, no = words.split(", ")
    groups = column("x", "u", "v", "w"), column(sex, "a", "b"), column(group, "a", "b")
    for outcome, wanted in ((good, yes), (bad, no)):
        look = inspect(table(*groups, column(outcome, no, yes)))
        assert (look.protected, look.outcome, look.favourable) == (
            (sex, group),
            outcome,
            (wanted,),
        )


@pytest.mark.parametrize(
    "name", ["essex", "bracelet", "storage", "average", "terrace", "sextant"]
)
def test_words_inside_other_words_mean_nothing(name):
    assert named_in(name, "protected") is None


def test_groups_are_known_by_names_or_values_and_not_more_than_the_rows_can_bear():
    frame = table(column("g", "F", "M"), column("hired", "no", "yes"))
    (one,) = inspect(frame).proposed("protected")
    assert (one.value, one.confidence) == ("g", "guess")
    named = propose_protected(
        Domain.infer(frame.with_columns(column("sex", "a", "b"))), "hired", ROWS
    )
    assert {one.value: one.confidence for one in named} == {
        "sex": "likely",
        "g": "candidate",
    }
    columns = [column(name, *"abcd") for name in ("sex", "race", "religion")]
    frame = table(*columns, column("hired", "no", "yes"))
    # 4 × 2 cells with 20 rows each, but not 4 × 4 × 2
    assert inspect(frame).protected == ("sex",)
    assert {one.value for one in inspect(frame).proposed("protected")} == {
        "sex",
        "race",
        "religion",
    }
    assert inspect(pl.concat([frame] * 30)).protected == ("sex", "race", "religion")


def test_ages_and_many_countries_need_a_decision_first():
    rng = np.random.default_rng(0)
    age, lands = (
        pl.Series("age", rng.integers(18, 90, ROWS)),
        (f"land {number}" for number in range(15)),
    )
    frame = table(
        column("sex", "f", "m"),
        age,
        column("nationality", *lands),
        column("hired", "no", "yes"),
    )
    look = inspect(frame)
    assert look.protected == ("sex",)
    candidates = {
        one.value: one
        for one in look.proposed("protected")
        if one.confidence == "candidate"
    }
    assert set(candidates) == {"age", "nationality"}
    assert len(candidates["age"].edges) == 4


@pytest.mark.more
def test_what_is_given_is_not_proposed():
    frame = datasets.load("adult", library="polars").frame
    look = inspect(frame, "income", "sex", favourable="<=50K")
    assert look.proposals == ()
    assert (look.outcome, look.favourable, look.protected) == (
        "income",
        ("<=50K",),
        ("sex",),
    )


def test_equal_sizes_are_proposed_only_where_no_group_is_tiny():
    rng = np.random.default_rng(1)
    race = pl.Series(
        "race", rng.choice(["a", "b", "c"], ROWS, p=[0.5, 0.48, 0.02]).tolist()
    )
    frame = table(column("sex", "f", "m"), race, column("hired", "no", "yes"))
    assert inspect(frame, "hired", ["sex", "race"]).representation_rate == {
        "sex": 1.0,
        "race": None,
    }
    assert inspect(frame, "hired", "race").representation_rate is None
    assert inspect(frame, "hired", "sex").representation_rate == 1.0
    # nor where all are too small to compare
    look = inspect(frame, "hired", "sex", smallest_group="60%")
    assert look.representation_rate is None


def test_proposals_work_as_options_of_debias():
    known = datasets.load("german").frame
    look = inspect(known)
    proposed = {
        "favourable": list(look.favourable),
        "representation_rate": look.representation_rate,
    }
    fit = fairmaxent.debias(
        known, look.outcome, look.protected, **proposed, estimate=None
    )
    assert fit.certificate.achieved["statistical_rate"]["sex"] == pytest.approx(
        1.0, abs=1e-6
    )
