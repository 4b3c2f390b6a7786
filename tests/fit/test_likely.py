"""`debias` with groups that nobody wrote down, on populations whose groups are known.

`tests/fairness/test_likely.py` has the mathematics; this is what users meet.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize

import fairmaxent
from fairmaxent import Domain, Likely, debias, load
from fairmaxent.data.likely import KnownPeople
from fairmaxent.errors import InputError

GROUPS = ("a", "b", "c", "d")
SHARES = np.array([0.14, 0.05, 0.14, 0.67])
RATES = np.array([0.49, 0.30, 0.24, 0.42])
COLUMNS = {group: f"p_{group}" for group in GROUPS}
RACE = Likely("race", COLUMNS, told_by="names")


def population(seed=1, rows=4000, differ=2.15):
    """A table of names' probabilities, the true groups, and who has the outcome."""
    rng = np.random.default_rng(seed)
    chances = np.exp(differ * rng.normal(size=(3000, 4)))
    chances /= chances.sum(axis=0)
    group = rng.choice(4, rows, p=SHARES)
    paid = rng.random(rows) < RATES[group]
    name = [rng.choice(3000, p=chances[:, number]) for number in group]
    joint = (chances * SHARES)[name]
    frame = pd.DataFrame(joint / joint.sum(axis=1, keepdims=True))
    frame.columns = list(COLUMNS.values())
    frame["paid"] = np.where(paid, "yes", "no")
    frame["sex"] = rng.choice(["f", "m"], rows)
    frame["age"] = rng.integers(20, 70, rows)
    return frame, group, paid


def rate_of(group, paid, weights):
    """The lowest share with the outcome in a true group, over the highest."""
    rates = np.bincount(group, weights * paid) / np.bincount(group, weights)
    return rates.min() / rates.max()


def test_weights_make_the_true_groups_equal_and_say_how_much():
    frame, group, paid = population()
    fit = debias(frame, "paid", RACE, favourable="yes")
    (before,) = fit.certificate.likely.before
    (after,) = fit.certificate.likely.after
    truth = rate_of(group, paid, np.ones(len(paid)))
    reached = rate_of(group, paid, fit.weights())
    likeliest = frame[list(COLUMNS.values())].to_numpy().argmax(axis=1)
    cut = debias(frame.assign(race=likeliest.astype(str)), "paid", "race")
    assert reached > rate_of(group, paid, cut.weights()) + 0.05
    assert reached > 0.85
    for rate, seen in ((before, truth), (after, reached)):
        low, high = rate.interval
        assert low <= seen <= high
        assert rate.bounds[0] <= seen <= rate.bounds[1]
    assert after.names == pytest.approx(1)
    assert before.columns > truth  # weighing by p is blind to half of the gap
    assert fit.certificate.likely.contradiction > 0.05


@pytest.mark.more
def test_chance_is_the_same_for_the_same_data_and_other_for_others():
    frame, _, _ = population(seed=1, rows=1000)
    others, _, _ = population(seed=2, rows=1000)
    tables = debias(frame, "paid", RACE).weighed.true_tables
    again = debias(frame.sample(frac=1, random_state=0), "paid", RACE)
    assert again.weighed.true_tables == pytest.approx(tables, rel=1e-9)
    of_others = debias(others, "paid", RACE).weighed.true_tables
    together = np.corrcoef(tables[:, 0, 0], of_others[:, 0, 0])[0, 1]
    assert abs(together) < 0.3


def test_known_groups_give_the_weights_of_a_column():
    frame, group, _ = population()
    for number, name in enumerate(COLUMNS.values()):
        frame[name] = (group == number) * 1.0
    names = np.array(GROUPS)[group]
    plain = debias(frame.assign(race=names), "paid", "race", base_share=0)
    for told_by in ("names", "columns"):
        fit = debias(frame, "paid", Likely("race", COLUMNS, told_by=told_by))
        assert fit.weights() == pytest.approx(plain.weights(), rel=1e-9)
        assert fit.certificate.likely is None


@pytest.mark.more
def test_true_groups_of_some_count_as_certain():
    frame, group, paid = population()
    names = np.array(GROUPS, dtype=object)[group]
    names[::2] = None
    told = Likely("race", COLUMNS, told_by="names", known_groups="truth")
    fit = debias(frame.assign(truth=names), "paid", told)
    (some,) = fit.certificate.likely.before
    (none,) = debias(frame, "paid", RACE).certificate.likely.before
    assert np.ptp(some.bounds) < np.ptp(none.bounds)
    assert rate_of(group, paid, fit.weights()) > 0.9


@pytest.mark.more
@pytest.mark.parametrize("more", [{}, {"within": "sex"}, {"weight": "age"}])
def test_a_file_and_the_table_give_the_same_weights(tmp_path, more):
    frame, _, _ = population()
    fit = debias(frame, "paid", RACE, **more)
    fit.save(tmp_path / "fit")
    again = load(tmp_path / "fit")
    assert again.weights() == pytest.approx(fit.weights(), rel=1e-12)
    for one in (fit, again):
        weighed = one.weigh(frame)["fair_weight"]
        assert weighed.to_numpy() == pytest.approx(fit.weights(), rel=1e-6)
    assert list(again.certificate.to_dict()) == list(fit.certificate.to_dict())


@pytest.mark.more
def test_drawn_rows_have_no_probabilities_and_the_rates_of_the_weights():
    frame, _, _ = population()
    fit = debias(pl.from_pandas(frame), "paid", [RACE, "sex"])
    rows = fit.sample(4000, random_state=0)
    assert rows.columns == ["paid", "sex", "age"]
    kept = debias(frame, "paid", RACE, keep_columns=["p_a"]).sample(10)
    assert "p_a" in kept.columns
    weights = frame.assign(weight=fit.weights()).groupby("paid")["weight"].sum()
    drawn = rows["paid"].value_counts().sort("paid")["count"].to_numpy()
    assert drawn == pytest.approx(weights.to_numpy(), abs=2)


@pytest.mark.more
def test_the_report_says_what_is_assumed_and_what_is_known(tmp_path):
    frame, _, _ = population()
    fit = debias(frame, "paid", RACE, favourable="yes")
    for told in (str(fit), fit.report(tmp_path / "r.md") or (tmp_path / "r.md")):
        text = told if isinstance(told, str) else told.read_text()
        assert "Nobody's race is known for certain. Assumed: names or" in text
        assert "The data do not contradict that (p = 0." in text
        assert "whatever is assumed" in text
        assert "expected by the true groups" in text


def test_where_names_is_wrong_the_data_say_so():
    rng = np.random.default_rng(0)
    profile = rng.integers(0, 12, 3000)
    chances = rng.dirichlet(8 * SHARES, 12)[profile]
    paid = rng.random(3000) < rng.uniform(0.1, 0.9, 12)[profile]
    frame = pd.DataFrame(chances, columns=list(COLUMNS.values()))
    frame["paid"] = np.where(paid, "yes", "no")
    likely = debias(frame, "paid", RACE, largest_weight=3).certificate.likely
    assert likely.contradiction < 1e-3
    fit = debias(frame, "paid", Likely("race", COLUMNS, told_by="columns"))
    assert "Nothing in the data can contradict that." in str(fit)


@pytest.mark.some(1)
@pytest.mark.parametrize("more", [{}, {"weight": "age"}, {"within": "sex"}])
def test_a_lazy_frame_is_counted_by_its_engine(more):
    frame, _, _ = population(rows=2000)
    frame.loc[:20, list(COLUMNS.values())] = None
    eager = debias(frame, "paid", RACE, favourable="yes", **more)
    lazy = debias(pl.from_pandas(frame).lazy(), "paid", RACE, favourable="yes", **more)
    (one,) = eager.certificate.likely.after
    (other,) = lazy.certificate.likely.after
    assert one.expected == pytest.approx(other.expected, rel=1e-6)
    assert one.interval == pytest.approx(other.interval, rel=1e-6)
    assert one.bounds == pytest.approx(other.bounds, rel=1e-6)
    doubts = [fit.certificate.likely.contradiction for fit in (eager, lazy)]
    assert doubts[0] == pytest.approx(doubts[1], rel=1e-6)
    cells = [fit.certificate.costs.worst_cell for fit in (eager, lazy)]
    heaviest = [cell.most_weight for cell in cells]
    assert heaviest[0] == pytest.approx(heaviest[1], rel=1e-6)
    weighed = lazy.weigh(frame)["fair_weight"].to_numpy()
    assert weighed == pytest.approx(eager.weights(), rel=1e-9)
    with pytest.raises(InputError, match="pass the collected table"):
        lazy.weigh(pl.from_pandas(frame).lazy())


@pytest.mark.more
def test_people_with_the_same_probabilities_count_each():
    frame, group, _ = population(rows=2000)
    certain = frame.drop(columns="age")
    certain[list(COLUMNS.values())] = np.eye(4)[group]
    known = frame[["paid", "sex"]].assign(race=np.array(GROUPS)[group])
    column = debias(known, "paid", "race", base_share=0)
    heaviest = column.certificate.costs.worst_cell.most_weight
    for table in (certain, pl.from_pandas(certain).lazy()):
        costs = debias(table, "paid", RACE).certificate.costs
        assert costs.worst_cell.most_weight == pytest.approx(heaviest, rel=1e-6)


@pytest.mark.more
@pytest.mark.parametrize("columns", [["sex"], ["sex", "age"]])
def test_people_of_uneven_weights_count_each(columns):
    frame, group, _ = population(rows=2000)
    frame[list(COLUMNS.values())] = np.eye(4)[group]
    frame["weight"] = np.where(np.arange(2000) % 5, 1.0, 20.0)
    likely = frame[["paid", "weight", *columns, *COLUMNS.values()]]
    known = likely.drop(columns=COLUMNS.values()).assign(race=np.array(GROUPS)[group])
    column = debias(known, "paid", "race", weight="weight", base_share=0)
    for table in (likely, pl.from_pandas(likely).lazy()):
        fit = debias(table, "paid", RACE, weight="weight")
        for of in ("counts", "rows", "squares"):
            assert fit.problem.cells(of) == pytest.approx(column.problem.cells(of))
        found = zip(
            fit.certificate.costs.groups, column.certificate.costs.groups, strict=True
        )
        for own, of_a_column in found:
            assert own.most_weight == pytest.approx(of_a_column.most_weight)
            assert own.effective_rows == pytest.approx(of_a_column.effective_rows)


def test_people_of_a_known_group_are_counted_whole():
    frame, _, _ = population(seed=2, rows=397)
    summary = debias(frame, "paid", [RACE, "sex"]).summary()
    counted = summary[summary["column"] == "sex"].groupby("group")["rows"].max()
    assert counted.to_dict() == frame["sex"].value_counts().to_dict()


def test_a_dask_frame_is_refused():
    dask = pytest.importorskip("dask.dataframe")
    frame, _, _ = population(rows=300)
    with pytest.raises(InputError, match="Dask frame"):
        debias(dask.from_pandas(frame, npartitions=2), "paid", RACE)


# ---------------------------------------------------------------- known groups


def known_of_some(group):
    names = np.array(GROUPS, dtype=object)[group]
    names[np.random.default_rng(3).random(len(names)) > 0.2] = None
    return names


def softened(frame):
    """Probabilities that are too little sure, and lean to one group."""
    columns = list(COLUMNS.values())
    shares = np.sqrt(np.maximum(frame[columns], 1e-6)) * [1, 2, 1, 0.5]
    return frame.assign(**shares.div(shares.sum(axis=1), axis=0))


@pytest.mark.more
def test_probabilities_are_compared_with_the_groups_that_are_known():
    frame, group, _ = population()
    truth = known_of_some(group)
    told = Likely("race", COLUMNS, told_by="names", known_groups="truth")
    right = debias(frame.assign(truth=truth), "paid", told)
    found = right.certificate.likely.reliability
    assert found.chance > 0.01
    known = pd.Series(truth).value_counts()[list(GROUPS)]
    assert found.observed == tuple(known)
    shares = frame[list(COLUMNS.values())][pd.notna(truth)].sum()
    assert found.expected == pytest.approx(tuple(shares))
    assert "people is known. That it is as far from" in str(right)
    assert "contradict the probabilities" not in str(right)
    swapped = frame.rename(columns={"p_a": "p_b", "p_b": "p_a"})
    fit = debias(swapped.assign(truth=truth), "paid", told)
    assert fit.certificate.likely.reliability.chance < 1e-6
    assert "the groups that are known contradict the probabilities: look" in str(fit)
    look = fairmaxent.inspect(swapped.assign(truth=truth), "paid", told)
    assert "contradict the probabilities: look" in str(look).splitlines()[0]


@pytest.mark.more
def test_probabilities_are_corrected_by_the_groups_that_are_known(tmp_path):
    frame, group, paid = population()
    frame = softened(frame).assign(truth=known_of_some(group))
    reached = []
    for is_corrected in (False, True):
        told = Likely(
            "race",
            COLUMNS,
            told_by="names",
            known_groups="truth",
            recalibrated=is_corrected,
        )
        fit = debias(frame, "paid", told, favourable="yes")
        reached.append(rate_of(group, paid, fit.weights()))
    assert reached[0] < 0.85
    assert reached[1] > 0.92
    fit.save(tmp_path / "fit")
    again = load(tmp_path / "fit")
    assert again.certificate.likely == fit.certificate.likely
    weighed = again.weigh(frame)["fair_weight"].to_numpy()
    assert weighed == pytest.approx(fit.weights(), rel=1e-6)


def test_what_cannot_be_corrected_is_refused():
    frame, group, _ = population()
    swapped = frame.rename(columns={"p_a": "p_b", "p_b": "p_a"})
    told = Likely(
        "race", COLUMNS, told_by="names", known_groups="truth", recalibrated=True
    )
    with pytest.raises(InputError, match="even corrected probabilities contradict"):
        debias(swapped.assign(truth=known_of_some(group)), "paid", told)
    with pytest.raises(InputError, match="needs people whose group is known"):
        Likely("race", COLUMNS, told_by="names", recalibrated=True)


def test_correction_is_that_of_a_general_optimiser():
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([0.5, 0.7, 1.0], 400)
    truth = rng.integers(0, 3, 400)
    people = rng.integers(1, 4, 400).astype(float)
    known = KnownPeople(shares, truth, people)

    def loss(theta):
        odds = theta[3] * np.log(shares) + theta[:3]
        logarithms = odds - np.log(np.exp(odds).sum(axis=1, keepdims=True))
        told = people @ logarithms[np.arange(400), truth]
        return ((theta - [0, 0, 0, 1]) ** 2).sum() / 2 - told

    best = minimize(loss, [0, 0, 0, 1.0], method="BFGS", tol=1e-12).x
    assert known.theta == pytest.approx(best, abs=1e-5)


# ---------------------------------------------------------------- what is refused


def spoiled(name, value, rows=(5, 9)):
    frame, _, _ = population(rows=300)
    frame = frame.astype({name: object})
    frame.loc[list(rows), name] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            spoiled("p_a", 0.9),
            r"row 5 has 0\.9, .*in all: 2\): they do not add up to 1",
        ),
        (spoiled("p_b", -0.1), r"row 5 has .*not from 0 to 1"),
        (spoiled("p_c", None), r"row 5 has .*some are missing"),
        (spoiled("p_a", "many"), "p_a"),
    ],
)
def test_probabilities_that_make_no_sense_are_refused_with_the_first_row(
    frame, message
):
    with pytest.raises(InputError, match=message):
        debias(frame, "paid", RACE)


def test_misfits_are_scaled_on_request():
    frame = spoiled("age", 3)
    told = Likely("race", COLUMNS, told_by="names", slack=0.02)
    frame["p_a"] += 0.01 * (frame["p_a"] < 0.5)
    assert debias(frame, "paid", told).weights().sum() == pytest.approx(300)
    with pytest.raises(InputError, match=r"slack=0\.01"):
        debias(frame, "paid", RACE)


def test_nobody_in_a_group_is_said():
    frame, _, _ = population(rows=300)
    frame["p_d"] += frame["p_b"]
    frame["p_b"] = 0.0
    with pytest.raises(InputError, match="nobody can be 'b'; leave it out"):
        debias(frame, "paid", RACE)


@pytest.mark.more
def test_rows_without_probabilities_are_a_missing_group():
    frame, _, _ = population()
    frame.loc[:99, list(COLUMNS.values())] = None
    fit = debias(frame, "paid", RACE)
    assert fit.weights()[:100] == pytest.approx(1, abs=0.05)


def test_equal_probabilities_for_all_are_said_to_tell_nothing():
    frame, _, _ = population(rows=600)
    frame[list(COLUMNS.values())] = 0.25
    fit = debias(frame, "paid", RACE)
    assert "nothing about anybody's race" in str(fit)
    assert fit.certificate.likely.needed is None
    assert "people like these would be needed" not in str(fit)


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Likely("race", COLUMNS), "needs to know what tells the group"),
        (lambda: Likely("race", COLUMNS, told_by="x"), "known: 'names', 'columns'"),
        (lambda: Likely("race", {"a": "p"}, told_by="names"), "name the groups"),
        (
            lambda: Likely("race", {"a": "p", "b": ["q"]}, told_by="names"),
            "name the groups",
        ),
        (
            lambda: Likely("race", {"a": "p", "b": "p"}, told_by="names"),
            "name the groups",
        ),
        (
            lambda: Likely("race", COLUMNS, told_by="names", slack=2),
            "lie between 0 and 0.5",
        ),
        (lambda: debias(population()[0], "paid", [RACE, RACE]), "only one"),
        (lambda: debias(population()[0], "paid", [RACE, "p_a"]), "two roles"),
        (
            lambda: debias(population()[0].assign(race="x"), "paid", RACE),
            "has a column 'race'; give the groups of likely another name",
        ),
        (
            lambda: debias(population()[0].drop(columns="p_a"), "paid", RACE),
            "p_a",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "door",
    [
        lambda frame: fairmaxent.evaluate(frame, frame, outcome="paid", protected=RACE),
        lambda frame: fairmaxent.compare(frame, "paid", RACE),
        lambda frame: fairmaxent.metrics.calibration(
            frame, "paid", frame["p_a"], RACE, favourable="yes"
        ),
        lambda frame: fairmaxent.metrics.statistical_rate(
            frame, frame["p_a"], RACE, favourable="yes", as_probability=True
        ),
        lambda frame: fairmaxent.metrics.statistical_rate(
            frame, "paid", RACE, cluster="age"
        ),
        lambda frame: fairmaxent.FairMaxEnt(protected=RACE).fit(
            frame.drop(columns="paid"), frame["paid"]
        ),
        lambda frame: fairmaxent.FairClassifier("tree", protected=RACE).fit(
            frame.drop(columns="paid"), frame["paid"]
        ),
        lambda frame: fairmaxent.paper.fit(frame, outcome="paid", protected=[RACE]),
        lambda frame: debias(frame, ["paid", "sex"], RACE),
        lambda frame: debias(frame, "paid", RACE, model="logistic", favourable="yes"),
        lambda frame: debias(frame, "paid", RACE, privacy=fairmaxent.Privacy()),
        lambda frame: debias(frame, "paid", RACE).top_up(),
    ],
)
def test_doors_that_do_not_know_likely_groups_say_so(door):
    frame, _, _ = population(rows=200)
    with pytest.raises(InputError, match=r"ikely|probabilities"):
        door(frame)


@pytest.mark.more
def test_the_estimator_takes_them_by_name():
    frame, group, paid = population()
    model = fairmaxent.FairMaxEnt(likely=RACE, random_state=0)
    model.fit(frame.drop(columns="paid"), frame["paid"])
    assert rate_of(group, paid, model.sample_weight_) > 0.85


@pytest.mark.more
def test_inspect_says_what_is_expected_and_what_contradicts_it():
    frame, group, paid = population()
    look = fairmaxent.inspect(frame, "paid", ["sex", RACE], favourable="yes")
    (rate,) = look.likely.before
    fit = debias(frame, "paid", ["sex", RACE], favourable="yes")
    (of_these,) = fit.certificate.likely.before
    assert (rate.names, rate.columns) == (of_these.names, of_these.columns)
    assert rate.bounds == of_these.bounds
    assert np.ptp(rate.interval) > np.ptp(of_these.interval)  # of people like these
    assert look.likely.after == ()
    truth = rate_of(group, paid, np.ones(len(paid)))
    assert rate.interval[0] <= truth <= rate.interval[1]
    said = str(look)
    assert "The statistical rate of race is about 0." in said
    assert "whatever is assumed" in said
    assert [one.name for one in look.groupings] == ["sex"]
    for option in ({"cluster": "age"}, {"reference": "f"}):
        with pytest.raises(InputError, match="cannot go together with likely"):
            fairmaxent.inspect(frame, "paid", RACE, **option)


def test_exact_values_of_drawn_rows_are_as_common_as_their_weights_say():
    rng = np.random.default_rng(3)
    share = rng.uniform(0.02, 0.98, 3_000)
    frame = pd.DataFrame(
        {
            "paid": np.where(rng.random(3_000) < 0.2 + 0.6 * share, "yes", "no"),
            "a": share,
            "b": 1 - share,
            "score": np.round(share + 0.01 * rng.random(3_000), 4),
        }
    )
    likely = Likely("race", {"A": "a", "B": "b"}, told_by="names")
    domain = Domain.infer(frame[["paid", "score"]], bins=2)
    fit = debias(frame, "paid", likely, favourable="yes", domain=domain)
    weights = fit.weights()
    yes = frame["paid"] == "yes"
    drawn = fit.sample(20_000, random_state=0)
    found = drawn.loc[drawn["paid"] == "yes", "score"].mean()
    before = frame.loc[yes, "score"].mean()
    wanted = np.average(frame.loc[yes, "score"], weights=weights[yes])
    assert found == pytest.approx(wanted, abs=0.005)
    assert abs(before - wanted) > 0.01
