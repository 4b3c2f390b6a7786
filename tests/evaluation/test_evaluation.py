"""What evaluate says of rows that are copies, of rows that are not, and of tables that
make no sense.
"""

import json
from functools import cache

import numpy as np
import polars as pl
import pytest
from evaluation_tables import people, with_gaps

import fairmaxent
from fairmaxent.fit import pipeline as private_pipeline
from quiet import Seeded

ROWS = 400
# NEW: other people, so that nobody is given away
REAL, NEW, CONTROL = (people(ROWS, seed) for seed in (1, 2, 3))


def evaluated(new=NEW, real=REAL, control=CONTROL, **options):
    return fairmaxent.evaluate(
        real, new, control=control, **({"attacks": 200} | options)
    )


@cache
def untroubled():
    """New rows of other people, with everything that can be asked for."""
    return evaluated(outcome="hired", protected=["sex", "town"], favourable="yes")


def measures(evaluation):
    """Every number of an evaluation."""
    found = evaluation.to_dict()
    return {name: found[name] for name in ("fidelity", "utility", "risks")}


@pytest.mark.more
def test_rows_of_other_people_are_not_flagged():
    result = untroubled()
    assert result.flagged == ()
    assert result.verdict.startswith("No attack")
    assert "no guarantee" in result.verdict
    assert result.risks.copies.copies == 0
    assert result.risks.membership.auc == pytest.approx(0.5, abs=0.06)


def test_copies_are_flagged_by_every_attack():
    result = evaluated(REAL.sample(ROWS, seed=0, shuffle=True))
    assert result.flagged == (
        "copies",
        "singling out",
        "linkability",
        "inference",
        "membership",
    )
    assert result.verdict.startswith("Do not treat these rows as anonymous")
    assert result.risks.copies.copies == ROWS
    assert result.risks.membership.auc == 1


@pytest.mark.some(2)
@pytest.mark.parametrize("control", [people(1000, 3), people(100, 3), None])
@pytest.mark.parametrize(
    ("copied", "limit"),
    [(0, ""), (20, "is within"), (40, "may be above"), (200, "is above")],
)
def test_copies_are_said_in_people(control, copied, limit):
    """None, .5 %, 1 % and 5 % of the rows; chance explains hardly any."""
    real, others = people(4000, 1), people(4000, 2)
    result = evaluated(
        pl.concat([real[:copied], others[copied:]]), real, control, attacks=1
    )
    found = result.risks.copies.people
    assert copied <= found <= copied + 10
    said = (
        f"{found} of the 4,000 people of the real table are in the new rows with all"
        " their values; chance explains "
    )
    assert (said in result.verdict) == (copied > 0)
    assert f"That {limit} the limit of 40 beyond chance" in result.verdict or not copied
    assert ("copies" in result.flagged) == (limit == "is above")


@pytest.mark.parametrize("control", [CONTROL[:300], None])
def test_rows_that_are_equal_by_chance_are_not_copies(control):
    """With three columns of few values, most people have a double."""
    names = ["sex", "town", "hired"]
    few = [
        None if table is None else table.select(names) for table in (REAL, NEW, control)
    ]
    copies = evaluated(few[1], few[0], few[2]).risks.copies
    assert copies.copies == ROWS
    assert copies.by_chance == pytest.approx(ROWS, rel=0.01)
    assert copies.risk.low == 0


def test_how_many_were_copied_is_said_if_it_is_too_close_to_call():
    few = ["sex", "town", "hired", "age"]
    result = evaluated(NEW.select(few), REAL.select(few), CONTROL[:60].select(few))
    copies = result.risks.copies
    assert (copies.judged(), copies.risk.low) == ("uncertain", 0)
    assert copies.people > 0
    assert (
        f"{copies.people} of the {ROWS} people of the real table are in the new rows"
        " with all their values; chance explains about"
    ) in result.verdict
    assert "close to call for copying" in result.verdict


def test_fair_rows_are_flagged_and_those_of_the_base_are_not():
    for share, flagged in ((0.2, True), (1.0, False)):
        fit = fairmaxent.debias(
            REAL, "hired", "sex", base_share=share, estimate=None, random_state=0
        )
        assert bool(evaluated(fit.sample(ROWS)).flagged) == flagged


@pytest.mark.more
def test_private_rows_are_not_flagged(monkeypatch):
    monkeypatch.setattr(private_pipeline, "OpenDP", lambda: Seeded(0))
    levels = {
        "sex": ["f", "m"],
        "town": ["north", "east", "south", "west"],
        "hired": ["yes", "no"],
    }
    edges = {
        "age": [18, 30, 45, 60, 75, 90],
        "income": [0, 20, 40, 80, 160],
        "height": [130, 160, 170, 180, 220],
    }
    domain = fairmaxent.Domain.declare(levels=levels, edges=edges)
    privacy = fairmaxent.Privacy(epsilon=10.0)
    fit = fairmaxent.debias(
        REAL,
        "hired",
        "sex",
        privacy=privacy,
        domain=domain,
        estimate=None,
        random_state=0,
    )
    assert evaluated(fit.sample(ROWS)).flagged == ()


def test_control_rows_of_the_real_table_are_noticed():
    """With them, copies look like chance."""
    result = evaluated(REAL.sample(ROWS, seed=0, shuffle=True), control=REAL)
    assert result.verdict.startswith(
        "100 % of the control rows are rows of the real table"
    )
    assert result.risks.singling_out.value < 0.1
    assert "control rows are" not in untroubled().verdict


def test_without_control_rows_risks_are_bounded():
    result, known = evaluated(control=None), untroubled()
    judged = result.risks.judgements()
    assert (
        judged["membership"]
        == judged["singling out"]
        == judged["inference"]
        == "needs control"
    )
    assert result.risks.membership is None
    for name in ("singling_out", "linkability"):
        assert getattr(result.risks, name).value >= getattr(known.risks, name).value
    assert "Without control rows" in result.verdict
    assert "at most" in str(result)


@pytest.mark.more
def test_the_same_seed_gives_the_same_result():
    assert evaluated(random_state=3).to_dict() == evaluated(random_state=3).to_dict()
    assert evaluated(random_state=3).to_dict() != evaluated(random_state=4).to_dict()


GAPS = [with_gaps(table, seed) for seed, table in enumerate((NEW, REAL, CONTROL))]


@cache
def gappy():
    return evaluated(*GAPS, outcome="hired")


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda t: t.to_pandas(), lambda t: t.to_arrow()])
def test_every_library_gives_the_same_numbers(change):
    assert measures(evaluated(*map(change, GAPS), outcome="hired")) == measures(gappy())


@pytest.mark.more
def test_libraries_and_types_may_be_mixed():
    """Whole numbers as floats, text as categories."""
    changed = NEW.to_pandas().astype({"age": float, "town": "category"})
    assert measures(evaluated(changed, REAL.to_arrow())) == measures(evaluated())


def test_the_order_of_columns_is_that_of_the_new_rows_and_others_are_left_out():
    result = evaluated(NEW.select("hired", "sex", "age"))
    assert result.columns == ("hired", "sex", "age")
    assert result.left_out == ("income", "town", "height")
    assert "not compared, because the new rows do not have them: 'income'" in str(
        result
    )


def test_a_model_learns_as_much_from_other_people():
    result = untroubled().utility
    assert result.judged_on == "control"
    assert result.people == ROWS
    assert result.auc_lost.low <= 0.02
    assert result.new.auc.low <= result.new.auc.value <= result.new.auc.high
    assert [(one.column, one.group) for one in result.new.groups][:2] == [
        ("sex", "f"),
        ("sex", "m"),
    ]
    assert sum(one.people for one in result.new.groups) == 2 * ROWS
    assert set(result.new.rates) == {"sex", "town"}


@pytest.mark.more
def test_noise_teaches_nothing():
    rng = np.random.default_rng(0)
    noise = NEW.with_columns(hired=pl.Series(rng.permutation(NEW["hired"].to_numpy())))
    result = evaluated(noise, outcome="hired").utility
    assert result.new.auc.value == pytest.approx(0.5, abs=0.1)
    assert result.real.auc.value > 0.75
    assert result.auc_lost.low > 0.1


def test_the_auc_is_that_of_scikit_learn():
    """The same model, made by hand."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import accuracy_score, roc_auc_score

    names = ["age", "income", "height"]
    tables = [table.select(*names, "hired") for table in (NEW, REAL, CONTROL)]
    utility = evaluated(*tables, outcome="hired").utility
    for learned, table in ((utility.new, tables[0]), (utility.real, tables[1])):
        model = HistGradientBoostingClassifier(random_state=0).fit(
            table.select(names).to_numpy(), table["hired"]
        )
        chances = model.predict_proba(CONTROL.select(names).to_numpy())[:, 1]
        assert learned.auc.value == pytest.approx(
            roc_auc_score(CONTROL["hired"] == "yes", chances), abs=1e-9
        )
        decided = np.where(chances > 0.5, "yes", "no")
        assert learned.accuracy.value == pytest.approx(
            accuracy_score(CONTROL["hired"], decided), abs=1e-9
        )


@pytest.mark.more
def test_without_control_rows_some_real_rows_judge():
    result = evaluated(outcome="hired", control=None)
    assert result.utility.judged_on == "real"
    assert result.utility.people == round(0.3 * ROWS)
    assert "the first line is too good" in " ".join(str(result).split())


@pytest.mark.some(1)
@pytest.mark.parametrize("protected", [None, ["sex", "town"]])
def test_without_scikit_learn_the_rooted_tree_learns(monkeypatch, protected):
    monkeypatch.setattr(
        "fairmaxent.relabelling.labellers.has_library", lambda name: False
    )
    utility = evaluated(outcome="hired", protected=protected).utility
    assert utility.model == "rooted tree"
    assert utility.real.auc.value > 0.75


@pytest.mark.more
def test_the_text_fits_and_begins_with_the_verdict():
    result = evaluated(
        REAL, outcome="hired", protected=["sex", "town"], favourable="yes"
    )
    assert " ".join(str(result).split()).startswith(" ".join(result.verdict.split()))
    assert max(map(len, str(result).splitlines())) <= 80
    assert "Do not rely on this distance" in str(result)
    assert "95 % interval" in str(result)


@pytest.mark.more
def test_names_and_levels_cannot_steer_a_terminal():
    odd = {"town": "to\x1b[2Jwn\n|x" + "y" * 90, "sex": "<b>"}
    tables = [
        table.rename(odd).with_columns(hired=pl.col("hired") + "\x1b]0;x")
        for table in (NEW, REAL, CONTROL)
    ]
    text = str(evaluated(*tables, outcome="hired", protected=[odd["town"]]))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_record_is_json_and_holds_everything():
    result = untroubled()
    record = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert record["risks"]["closest_record"]["why_not"].startswith("Do not rely")
    assert record["verdict"] == result.verdict
    assert record["judgements"] == result.risks.judgements()
    assert record["fidelity"]["total_variation"][1]["sets"] == 15


@pytest.mark.some(6)
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            (NEW.rename({"age": "Age"}),),
            {},
            "a column 'Age', which the real table does not have; did you mean 'age'",
        ),
        ((NEW[:0],), {}, "the new rows: the table has no rows"),
        ((NEW, REAL, CONTROL[:0]), {}, "the control rows: the table has no rows"),
        ((NEW, REAL, CONTROL.drop("age")), {}, "the control rows have no column 'age'"),
        (
            (NEW.with_columns(age=pl.lit("x")),),
            {},
            "'age' holds numbers in the real table, but text in the new rows",
        ),
        ((NEW.with_columns(age=pl.lit(np.inf)),), {}, "infinite"),
        ((5,), {}, "the new rows: int is not a table"),
        ((NEW.lazy(),), {}, "collect"),
        ((NEW,), {"outcome": "hird"}, "did you mean 'hired'"),
        ((NEW,), {"outcome": "hired", "protected": "sx"}, "did you mean 'sex'"),
        (
            (NEW,),
            {"outcome": "hired", "protected": "hired"},
            "both the outcome and protected",
        ),
        ((NEW,), {"outcome": "hired", "favourable": "maybe"}, "no level 'maybe'"),
        ((NEW,), {"protected": "sex"}, "protected needs outcome"),
        ((NEW,), {"secrets": ["agee"]}, "did you mean 'age'"),
        *(((NEW,), {"attacks": attacks}, "attacks is") for attacks in (0, 2.5, True)),
    ],
)
def test_what_cannot_be_evaluated_is_refused(arguments, options, message):
    with pytest.raises(fairmaxent.InputError, match=message.replace("(", r"\(")):
        evaluated(*arguments, **options)


def test_a_secret_named_twice_is_guessed_once():
    once = evaluated(NEW, secrets=["age", "sex"], attacks=20)
    twice = evaluated(NEW, secrets=["age", "sex", "age"], attacks=20)
    assert twice.to_dict()["risks"] == once.to_dict()["risks"]


@pytest.mark.more
def test_a_constant_outcome():
    constant = [
        table.with_columns(hired=pl.lit("no")) for table in (NEW, REAL, CONTROL)
    ]
    with pytest.raises(fairmaxent.InputError, match="same value in all rows"):
        evaluated(*constant, outcome="hired")
    with pytest.raises(fairmaxent.InputError, match="single level"):
        evaluated(*constant, outcome="hired", protected="sex")
    # only the new rows are constant
    result = evaluated(constant[0], outcome="hired").utility
    assert result.new.auc.value == pytest.approx(0.5)
    assert result.real.auc.value > 0.7
    assert evaluated(
        constant[0], constant[1], outcome="hired"
    ).utility.real.auc.value == pytest.approx(0.5)


def test_too_few_rows_for_a_model():
    with pytest.raises(fairmaxent.InputError, match="too few to train"):
        evaluated(NEW[:9], outcome="hired")
    with pytest.raises(fairmaxent.InputError, match="control rows to judge models on"):
        evaluated(control=CONTROL[:3], outcome="hired")


@pytest.mark.parametrize(("rows", "control"), [(1, True), (2, False), (5, True)])
def test_tiny_tables(rows, control):
    result = evaluated(NEW[:rows], REAL[:rows], CONTROL[:rows] if control else None)
    assert result.flagged == ()  # nothing is sure
    assert max(map(len, str(result).splitlines())) <= 80
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", ["sex", "age"])
def test_a_single_column(name):
    result = evaluated(*(table.select(name) for table in (NEW, REAL, CONTROL)))
    assert result.risks.linkability is result.risks.inference is None
    assert "need at least two columns" in str(result)
    assert result.flagged == ()


@pytest.mark.more
def test_columns_without_values():
    empty = [
        table.with_columns(age=pl.lit(None), town=pl.lit(None, pl.String))
        for table in (NEW, REAL, CONTROL)
    ]
    for new, real in ((empty[0], REAL), (NEW, empty[1]), empty[:2]):
        result = evaluated(new, real, empty[2])
        assert str(result)
    assert evaluated(
        empty[0], REAL, CONTROL, outcome="hired"
    ).utility.new.auc.value == pytest.approx(0.6, abs=0.1)


@pytest.mark.more
def test_dates_truth_values_and_large_numbers():
    def odd(table, seed):
        rng = np.random.default_rng(seed)
        return table.with_columns(
            born=pl.Series(rng.integers(-9000, 9000, len(table)))
            .cast(pl.Int32)
            .cast(pl.Date),
            truth=pl.Series(rng.random(len(table)) < 0.5),
            key=pl.Series(rng.integers(2**60, 2**61, len(table))),
        )

    tables = [
        odd(table, seed) for seed, table in enumerate((NEW, REAL, CONTROL), start=100)
    ]
    assert evaluated(*tables).flagged == ()
    assert "copies" in evaluated(tables[1], *tables[1:]).flagged
