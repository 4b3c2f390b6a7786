"""What `check` and `inspect` compare, by pandas: ratios, small groups, clusters."""

from itertools import combinations

import numpy as np
import pandas as pd
from asked import MASS, Asked, Delivered, tables_by_stratum

from people import EDGES, GOOD

USUAL = {"outcome": "hired", "protected": ["sex"]}
NAMED = ["[-4, -0.5)", "[-0.5, 0.5)", "[0.5, 4]"]  # bins between `EDGES`
REFERENCE = {"sex": "f", "race": "b", "drive": "bike", "skill": NAMED[1]}
REFERENCE["origin"] = "near"


def with_reference(options):
    """The options of a call; a reference has a level of each protected column."""
    options = USUAL | options
    if "reference" in options:
        options["reference"] = {name: REFERENCE[name] for name in options["protected"]}
    return options


def as_compared(options, table):
    """The options and a table as pandas compares them: decisions are the outcome."""
    options = USUAL | options
    options["truth"] = options["outcome"]
    if options.get("threshold") is not None:
        good = GOOD[options["outcome"]]
        above = table[options["predictions"]] > options["threshold"]
        labels = above.map({True: str(good), False: f"not {good}"})
        table = table.assign(decided=labels)
        options["outcome"] = "decided"
    elif "predictions" in options:
        options["outcome"] = options["predictions"]
    if options.get("domain") is not None:
        bins = pd.cut(table["skill"], EDGES, right=False, labels=NAMED)
        table = table.assign(skill=bins.astype(object))
    return Asked(options, table)


def shared(options, table):
    """The same with groups that are likely: rows are shared between theirs."""
    likely = options.get("likely")
    if likely is None:
        return options, table
    weights = 1.0
    if options.get("weight") is not None:
        weights = table[options["weight"]]
    parts = [
        table.assign(share=table[column] * weights, **{likely.name: group})
        for group, column in likely.columns.items()
    ]
    protected = [*(USUAL | options)["protected"], likely.name]
    changes = {"protected": protected, "weight": "share"}
    return options | changes, pd.concat(parts, ignore_index=True)


LARGEST = ("statistical_difference", "calibration")  # of which less is better


def rate_of(asked, columns, kind):
    """The worst ratio, or difference, of two groups in any stratum."""
    grouping = list(columns)
    assert grouping in asked.groupings
    apart = difference if kind in LARGEST else ratio
    found = [
        apart(first, second)
        for values in values_by_stratum(asked, grouping, kind)
        for first, second in pairs_of(asked, grouping, values)
    ]
    if kind in LARGEST:
        return max(found, default=0.0)
    return min(found, default=1.0)


def values_by_stratum(asked, grouping, kind):
    """What is compared, by group."""
    if kind == "calibration":
        yield from surpluses_by_stratum(asked, grouping)
        return
    for table in tables_by_stratum(asked, asked.before, grouping, asked["outcome"]):
        if kind == "representation_rate":
            yield dict(zip(table.groups, table.sizes, strict=True))
            continue
        for level in asked.levels_of(asked["outcome"]):
            shares = table.having(level) / table.sizes
            yield dict(zip(table.groups, shares, strict=True))


def surpluses_by_stratum(asked, grouping):
    """The share of the good outcome minus the mean probability, by group."""
    table = asked.before.table
    happened = table[asked["truth"]] == GOOD[asked["truth"]]
    surplus = (happened - table[asked["predictions"]]) * table[MASS]
    moved = Delivered("rows", table.assign(**{MASS: surplus}), asked)
    columns = [*asked.strata, *grouping]
    sums = asked.by_stratum(moved.counts(columns), grouping)
    sizes = asked.by_stratum(asked.before.counts(columns), grouping)
    is_compared = asked.is_known(grouping) & ~asked.is_small(grouping) & (sizes > 0)
    groups = asked.groups(grouping)
    for sum_of, size, chosen in zip(sums, sizes, is_compared, strict=True):
        yield {groups[at]: sum_of[at] / size[at] for at in np.flatnonzero(chosen)}


def ratio(first, second):
    low, high = sorted([first, second])
    return low / high if high > 0 else 1.0


def difference(first, second):
    return abs(first - second)


def pairs_of(asked, grouping, values):
    """Of every two groups, or of each and the reference."""
    pairs = combinations(values, 2)
    if "reference" in asked:
        reference = tuple(REFERENCE[name] for name in grouping)
        pairs = [(reference, group) for group in values]
    for first, second in pairs:
        yield values[first], values[second]


def small_labels(asked, columns):
    """The groups that are too small in some stratum."""
    is_small = asked.is_small(list(columns)).any(axis=0)
    groups = asked.groups(list(columns))
    return {groups[at] for at in np.flatnonzero(is_small)}


def jackknife_error(asked, worst):
    """The standard error of the log of a rate, by leaving out one branch at a time."""
    table = asked.before.table.fillna("missing")
    for name, level in worst.stratum:
        column = name.removeprefix("true ")
        good = level.removeprefix("not ")
        table = table[(table[column] == good) == (level == good)]
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
