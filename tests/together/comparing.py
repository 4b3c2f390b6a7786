"""What `check` and `inspect` compare, by pandas: ratios, small groups, clusters."""

from itertools import combinations

import numpy as np
import pandas as pd
from asked import MASS, Asked, tables_by_stratum

from people import EDGES

USUAL = {"outcome": "hired", "protected": ["sex"]}
NAMED = ["[-4, -0.5)", "[-0.5, 0.5)", "[0.5, 4]"]  # bins between `EDGES`
REFERENCE = {"sex": "f", "race": "b", "drive": "bike", "skill": NAMED[1]}


def with_reference(options):
    """The options of a call; a reference has a level of each protected column."""
    options = USUAL | options
    if "reference" in options:
        options["reference"] = {name: REFERENCE[name] for name in options["protected"]}
    return options


def as_compared(options, table):
    """The options and a table as pandas compares them: decisions are the outcome."""
    options = USUAL | options
    if "predictions" in options:
        options["outcome"] = options["predictions"]
    if options.get("domain") is not None:
        bins = pd.cut(table["skill"], EDGES, right=False, labels=NAMED)
        table = table.assign(skill=bins.astype(object))
    return Asked(options, table)


def rate_of(asked, columns, kind):
    """The worst ratio of two groups in any stratum."""
    grouping = list(columns)
    assert grouping in asked.groupings
    ratios = [1.0]
    for table in tables_by_stratum(asked, asked.before, grouping, asked["outcome"]):
        if kind == "representation_rate":
            sizes = dict(zip(table.groups, table.sizes, strict=True))
            ratios += ratios_of(asked, grouping, sizes)
            continue
        for level in asked.levels_of(asked["outcome"]):
            shares = table.having(level) / table.sizes
            rates = dict(zip(table.groups, shares, strict=True))
            ratios += ratios_of(asked, grouping, rates)
    return min(ratios)


def ratios_of(asked, grouping, rates):
    """Of every two groups, or of each and the reference."""
    pairs = combinations(rates, 2)
    if "reference" in asked:
        reference = tuple(REFERENCE[name] for name in grouping)
        pairs = [(reference, group) for group in rates]
    for first, second in pairs:
        low, high = sorted([rates[first], rates[second]])
        if high > 0:
            yield low / high


def small_labels(asked, columns):
    """The groups that are too small in some stratum."""
    is_small = asked.is_small(list(columns)).any(axis=0)
    groups = asked.groups(list(columns))
    return {groups[at] for at in np.flatnonzero(is_small)}


def jackknife_error(asked, worst):
    """The standard error of the log of a rate, by leaving out one branch at a time."""
    table = asked.before.table.fillna("missing")
    for name, level in worst.stratum:
        table = table[table[name] == level]
    rates = []
    for group in (worst.lowest, worst.highest):
        own = (table[list(worst.columns)] == list(group)).all(axis=1)
        size = 1.0
        if worst.outcome is not None:
            size = without_each_branch(table, own)
            own &= table[asked["outcome"]] == worst.outcome
        rates.append(without_each_branch(table, own) / size)
    logs = np.log(rates[0] / rates[1])
    return np.sqrt((len(logs) - 1) * np.var(logs))


def without_each_branch(table, chosen):
    """How much these people count without those of each branch."""
    masses = table[MASS].where(chosen, 0.0)
    return masses.sum() - masses.groupby(table["branch"]).sum()
