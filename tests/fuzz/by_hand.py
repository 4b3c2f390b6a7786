"""Rates counted by hand: group-bys that share no code with the library."""

import numpy as np
import pandas as pd
import pytest


def is_plain(cells):
    """Whether values are groups as they stand: a few texts, none of them missing."""
    return bool(cells) and all(
        isinstance(cell, str) and len(cell) < 60 for cell in cells
    )


def strata_by_hand(table, weights, within):
    """The rows of each stratum, of which those without weight are left out."""
    rows = pd.DataFrame(
        {name: pd.Series(cells, dtype=object) for name, cells in table.items()}
    ).assign(weight=weights)
    rows = rows[rows["weight"] > 0]
    return (
        [stratum for _, stratum in rows.groupby([rows[name] for name in within])]
        if within
        else [rows]
    )


def rates_by_hand(stratum, outcome, levels, apart):
    """Smallest over largest share of a group z, and of each level of the outcome, the
    least, in a group z; `apart` are groups and levels that are not compared.
    """
    sums = stratum.groupby(["z", outcome])["weight"].sum().unstack(fill_value=0.0)
    sizes = sums.sum(axis=1)
    shares = sums.div(sizes, axis=0).reindex(columns=list(levels), fill_value=0.0)
    is_apart = [[(z, level) in apart for level in shares.columns] for z in shares.index]
    shares = shares.mask(np.array(is_apart))
    most = shares.max()
    ratios = (shares.min() / most)[most > 0]
    return sizes.min() / sizes.max(), ratios.min() if len(ratios) else 1.0


def set_apart(fit, outcome, levels, stratum):
    """The groups z and levels of the outcome that the certificate does not compare."""
    within = fit.request.within_names
    place = " × ".join(str(stratum[name].iloc[0]) for name in within)
    return {
        (change.group.removesuffix(f" × {place}"), level)
        for change in fit.certificate.set_apart
        for level in levels
        if change.about == f"{outcome} = {level}" and change.stratum == place
    }


def check_rates(fit, achieved, table, weights):
    """Compare rates that were said with those of weighted rows, or cells, in the
    worst stratum.
    """
    request = fit.request
    outcomes = request.outcome_names
    within = request.within_names
    ending = f" within {' × '.join(within)}" if within else ""
    for outcome in outcomes:
        name = f"{outcome} by z{ending}" if len(outcomes) > 1 else f"z{ending}"
        named = request.favourable
        if isinstance(named, dict):
            named = named.get(outcome)
        levels = named if isinstance(named, list) else [named]
        if named is None:
            levels = list(dict.fromkeys(table[outcome]))
        rates = [
            rates_by_hand(
                stratum, outcome, levels, set_apart(fit, outcome, levels, stratum)
            )
            for stratum in strata_by_hand(table, weights, within)
        ]
        shares, outcome_rates = np.min(rates, axis=0)
        said = [achieved[kind][name] for kind in KINDS]
        assert said == pytest.approx([shares, outcome_rates], abs=1e-6), name


KINDS = ("representation_rate", "statistical_rate")


def compares_all_levels(fit):
    """Whether groups are those of z alone, and no stratum or group is left out."""
    within = fit.request.within
    return (
        fit.request.protected_names == ["z"]
        and fit.request.smallest_group is None
        and not (isinstance(within, dict) and any(within.values()))
    )
