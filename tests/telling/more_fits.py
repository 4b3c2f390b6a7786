"""Fits of every kind for the matrix of fact and door, beside those of `fits`."""

import numpy as np
from fits import (
    FITS,
    GOOD,
    Asked,
    ByCell,
    aged,
    by_names,
    emptied,
    hardly_hired,
    odd,
    people,
    private,
    rare,
    refuted,
    strata,
    unequal_pay,
    without_women_hired,
)

from fairmaxent import Estimate, Model


def likely_right(seed=1, rows=900, size=1.0):
    """People whose group is drawn by the probabilities beside them."""
    rng = np.random.default_rng([seed, 64])
    frame = refuted(rows, seed)
    chance = rng.beta(0.5, 0.5, rows)
    frame["p_a"] = chance
    frame["p_b"] = 1 - chance
    is_a = rng.random(rows) < chance
    paid = rng.random(rows) < np.where(is_a, 0.6, 0.6 - 0.25 * size)
    frame["hired"] = np.where(paid, "yes", "no")
    known = np.where(is_a, "a", "b").astype(object)
    known[rng.random(rows) < 0.8] = None
    return frame.assign(known=known)


def certain():
    """Groups that are known, told by probabilities 0 and 1."""
    frame = people()
    return frame.assign(
        p_a=(frame["sex"] == "f") * 1.0, p_b=(frame["sex"] == "m") * 1.0
    ).drop(columns="sex")


def promoted():
    """Two outcomes."""
    frame = people()
    rng = np.random.default_rng(66)
    chance = np.where(frame["sex"] == "m", 0.5, 0.3)
    second = np.where(rng.random(len(frame)) < chance, "yes", "no")
    return frame.assign(promoted=second)


def designed():
    rng = np.random.default_rng(67)
    frame = people()
    return frame.assign(design=rng.choice([0.5, 1.0, 2.0], len(frame)))


def even():
    """A table that is fair already."""
    frame = people().head(200)
    sex = np.array(["f", "m"])[np.arange(200) % 2]
    hired = np.array(["yes", "yes", "no", "no"])[np.arange(200) % 4]
    return frame.assign(sex=sex, hired=hired)


def heavy():
    """One woman was hired."""
    frame = without_women_hired()
    first = frame.index[frame["sex"] == "f"][0]
    frame.loc[first, "hired"] = "yes"
    return frame


def model(*args, **options):
    return GOOD | {"model": Model(*(args or (ByCell(),)), **options)}


LIMIT = {"largest_weight": 3}
BOTH = ["sex", "town"]
MORE: dict[str, Asked] = {
    "likely right": Asked(likely_right(), protected=by_names(), options=GOOD),
    "likely right, few": Asked(
        likely_right(2, 300), protected=by_names(), options=GOOD | LIMIT
    ),
    "likely by columns": Asked(
        refuted(seed=2),
        protected=by_names(told_by="columns"),
        options=GOOD | LIMIT,
    ),
    "likely, weights": Asked(
        likely_right(), protected=by_names(), options=GOOD, mode="weights"
    ),
    "likely, refuted, weights": Asked(
        refuted(seed=3), protected=by_names(), options=GOOD | LIMIT, mode="weights"
    ),
    "likely, some known": Asked(
        likely_right(3, 900),
        protected=by_names(known_groups="known"),
        options=GOOD,
    ),
    "likely, certain": Asked(certain(), protected=by_names(), options=GOOD),
    "likely, mild": Asked(
        likely_right(4, 900, 0.2), protected=by_names(), options=GOOD
    ),
    "private, strict": private(epsilon=0.5),
    "private, sizes": Asked(
        people(), options=private().options | {"representation_rate": 1.0}
    ),
    "private, loose": private(epsilon=8.0),
    "within, lower": Asked(
        strata(), options=GOOD | {"within": "town", "statistical_rate": 0.8}
    ),
    "within, weights": Asked(
        strata(), options=GOOD | {"within": "branch"}, mode="weights"
    ),
    "small, 12": Asked(rare(12), options=GOOD),
    "small, set apart": Asked(rare(12), options=GOOD | {"smallest_group": 20}),
    "small, share": Asked(rare(21), options=GOOD | {"smallest_group": "10%"}),
    "small, counts": Asked(rare(9), options=GOOD | {"smallest_group": 0}),
    "small, weights": Asked(rare(9), options=GOOD, mode="weights"),
    "limit 1.05": Asked(people(), options=GOOD | {"largest_weight": 1.05}),
    "limit, weights": Asked(
        people(), options=GOOD | {"largest_weight": 1.3}, mode="weights"
    ),
    "target": Asked(people(), options=GOOD | {"target": {"sex": {"f": 0.7, "m": 0.3}}}),
    "target of town": Asked(
        people(), options=GOOD | {"target": {"town": {"north": 0.9, "south": 0.1}}}
    ),
    "target free": Asked(people(), options=GOOD | {"target": {"hired": "free"}}),
    "model of hardly anybody": Asked(hardly_hired(0.2), options=model(threshold=0.4)),
    "model of everybody": Asked(hardly_hired(0.93), options=model(threshold=0.2)),
    "model, sizes": Asked(
        hardly_hired(), options=model(threshold=0.6) | {"representation_rate": 1.0}
    ),
    "model, hidden": Asked(people(), options=model(hide_protected=True)),
    "model, opportunity": Asked(people(), options=model(parity="opportunity")),
    "model, lower": Asked(people(), options=model() | {"statistical_rate": 0.8}),
    "model, weights": Asked(people(), options=model(), mode="weights"),
    "relabelled, weights": Asked(
        people(),
        options=model("logistic", parity="probabilities"),
        mode="weights",
    ),
    "forbidden": Asked(
        people(), options=GOOD | {"forbid": [{"sex": "f", "job": "driver"}]}
    ),
    "release": Asked(odd(), options=GOOD | {"release": True}),
    "release, sizes": Asked(
        aged(), options=GOOD | {"release": True, "representation_rate": 1.0}
    ),
    "outcomes": Asked(
        promoted(),
        outcome=["hired", "promoted"],
        options={"favourable": {"hired": "yes", "promoted": "yes"}},
    ),
    "means, weights": Asked(
        unequal_pay(),
        outcome="grade",
        options={"equal_means": True},
        mode="weights",
    ),
    "every level": Asked(unequal_pay(), outcome="grade"),
    "missing compared": Asked(
        odd(), protected="race", options=GOOD | {"compare_missing": True}
    ),
    "missing": Asked(odd(), protected="race", options=GOOD),
    "kept": Asked(odd(), options=GOOD | {"keep_columns": ["name"]}),
    "design": Asked(designed(), options=GOOD | {"weight": "design"}),
    "design, weights": Asked(
        designed(), options=GOOD | {"weight": "design"}, mode="weights"
    ),
    "sizes only": Asked(
        people(), options={"representation_rate": 1.0, "statistical_rate": None}
    ),
    "sizes only, good": Asked(
        people(),
        options=GOOD | {"representation_rate": 0.9, "statistical_rate": None},
    ),
    "lower": Asked(people(), options=GOOD | {"statistical_rate": 0.8}),
    "lower, both": Asked(
        people(),
        protected=BOTH,
        options=GOOD | {"statistical_rate": 0.8, "representation_rate": 0.9},
    ),
    "joint": Asked(people(), protected=BOTH, options=GOOD | {"groups": "joint"}),
    "fair already": Asked(even(), options=GOOD, mode="weights"),
    "nothing asked": Asked(people(), options=GOOD | {"statistical_rate": None}),
    "heavy": Asked(heavy(), options=GOOD),
    "heavy, weights": Asked(heavy(), options=GOOD, mode="weights"),
    "independent": Asked(people(), protected="town", options=GOOD),
    "estimated, weights": Asked(
        people(),
        options=GOOD | {"estimate": Estimate(output="weights", model=ByCell())},
        mode="weights",
    ),
    "filled, free": Asked(
        without_women_hired(),
        options=GOOD | {"base_share": 0.5, "target": {"hired": "free"}},
    ),
    "emptied, weights": Asked(
        emptied(),
        protected=["a", "b"],
        options=GOOD | {"representation_rate": 1.0, "statistical_rate": None},
        mode="weights",
    ),
    "twelve rows": Asked(people(), options=GOOD, rows=12),
}
ALL = FITS | MORE
