"""Golden cases: what debias can be asked for."""

import pytest

import fairmaxent
from fairmaxent import Domain, debias
from golden_results import array, csv, discrete, outputs, people_in_pandas, prefixed
from mixed import TABLES


def _fitted(rows=200, **options):
    """The outputs and the weights of a fit, by default of people by sex."""
    options = {"outcome": "income", "protected": "sex", "random_state": 3} | options
    table = people_in_pandas()
    fit = debias(table, **options)
    return outputs(fit, table, rows) | {"weights": array(fit.weights())}


def many_groups_and_outcomes():
    table = discrete((3, 2), outcomes=3, rows=600)
    fit = debias(
        table,
        "y",
        ["z0", "z1"],
        statistical_rate=0.9,
        representation_rate=0.8,
        random_state=0,
    )
    return outputs(fit, table) | {"weights": array(fit.weights())}


def two_favourable_levels():
    table = discrete((2,), outcomes=4, rows=600, seed=1)
    fit = debias(
        table, "y", "z0", favourable=["o1", "o3"], statistical_rate=0.95, random_state=0
    )
    return outputs(fit, table, 100)


def target_joint_groups():
    target = {"race": {"Black": 0.3, "Other": 0.2, "White": 0.5}, "income": None}
    return _fitted(protected=["sex", "race"], groups="joint", target=target)


def bases():
    results = {}
    for base in ("product", "uniform"):
        results |= prefixed(base, _fitted(100, base=base, base_share=0.5))
    return results


def details():
    results = {}
    for detail in ("rows", "bins"):
        fit = debias(people_in_pandas(), "income", "sex", detail=detail, random_state=3)
        results |= {
            detail: csv(fit.sample(150)),
            f"{detail}, given": csv(fit.sample(50, given={"age": 40})),
            f"{detail}, iid": csv(fit.sample(50, iid=True)),
        }
    return results


def domain_options():
    table = people_in_pandas()
    domain = Domain.infer(
        table,
        bins={"age": [0, 18, 40, 65, 120], "hours": 5},
        order={"job": ["nurse", "clerk", "cook"], "race": ["White", "Black", "Other"]},
    )
    fit = debias(
        table,
        "income",
        ["sex", "age"],
        domain=domain,
        statistical_rate=0.8,
        representation_rate=0.5,
    )
    return outputs(fit, table, random_state=1) | {
        "levels": {
            attribute.name: [attribute.kind, list(attribute.labels)]
            for attribute in fit.domain.attributes
        },
        "codes": array(domain.encode(table)),
        "weights": array(fit.weights()),
    }


def moment_features():
    table = people_in_pandas()
    domain = Domain.infer(table, features={"age": "moment", "hours": "moment"})
    fit = debias(
        table,
        "income",
        "sex",
        domain=domain,
        target={"age": None, "hours": None},
        random_state=0,
    )
    means = {name: fit.distribution.expectation(name) for name in ("age", "hours")}
    return outputs(fit, table) | {"means": means, "weights": array(fit.weights())}


def missing_values():
    results = {}
    for name, make in TABLES.items():
        table = make()
        fit = debias(
            table,
            "paid",
            "group",
            statistical_rate=0.9,
            representation_rate=0.5,
            random_state=1,
        )
        results |= prefixed(name, outputs(fit, table, 150))
    return results | {"given": csv(fit.sample(40, given={"group": None}))}


def filled_cells():
    """Nobody in one group has the favourable outcome, so only the base gives it to that
    group.
    """
    table = people_in_pandas()
    table.loc[(table["race"] == "Other") & (table["income"] == ">50K"), "income"] = (
        "<=50K"
    )
    fit = debias(table, "income", "race", favourable=">50K", random_state=0)
    with pytest.raises(fairmaxent.InfeasibleError):
        fit.weights()
    return outputs(fit, table)
