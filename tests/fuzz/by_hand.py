"""Rates and means of weighted rows by plain group-bys, which share no code with the library."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


def is_plain(cells):
    """Whether values are groups as they stand: a few texts, none of them missing."""
    return bool(cells) and all(isinstance(cell, str) and len(cell) < 60 for cell in cells)


def are_numbers(cells):
    """Whether values have a mean that can be taken as it stands."""
    return bool(cells) and all(type(cell) is int and abs(cell) < 10 for cell in cells)


def strata_by_hand(table, weights, within):
    """The rows of each stratum, of which those without weight are left out."""
    rows = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in table.items()}).assign(weight=weights)
    rows = rows[rows["weight"] > 0]
    if not within:
        return [rows]
    return [stratum for _, stratum in rows.groupby([rows[name] for name in within])]


def rates_by_hand(stratum, outcome, levels):
    """Smallest over largest share of a group z, and of each level of the outcome, the least, in a group z."""
    sums = stratum.groupby(["z", outcome])["weight"].sum().unstack(fill_value=0.0)
    sizes = sums.sum(axis=1)
    shares = sums.div(sizes, axis=0).reindex(columns=list(levels), fill_value=0.0)
    most = shares.max()
    ratios = (shares.min() / most)[most > 0]
    return sizes.min() / sizes.max(), ratios.min() if len(ratios) else 1.0


def means_by_hand(stratum):
    """The mean of y in each group z."""
    sums = (stratum["y"].astype(float) * stratum["weight"]).groupby(stratum["z"]).sum()
    return (sums / stratum.groupby("z")["weight"].sum()).to_numpy()


def check_rates(fit, table, weights):
    """Compare what a certificate says with the rates of weighted rows, or cells, in the worst stratum."""
    request, achieved = fit.request, fit.certificate.achieved
    outcomes, within = [request.outcome, *request.also_names], request.within_names
    ending = f" within {' × '.join(within)}" if within else ""
    for outcome in outcomes:
        name = f"{outcome} by z{ending}" if len(outcomes) > 1 else f"z{ending}"
        levels = favourable_levels(request.favourable, outcome, table[outcome])
        rates = [rates_by_hand(stratum, outcome, levels) for stratum in strata_by_hand(table, weights, within)]
        shares, outcome_rates = np.min(rates, axis=0)
        assert achieved["representation_rate"][name] == pytest.approx(shares, abs=1e-6), name
        assert achieved["statistical_rate"][name] == pytest.approx(outcome_rates, abs=1e-6), name


def favourable_levels(favourable, outcome, cells):
    """The levels of an outcome that are compared: those named, or else all."""
    named = favourable.get(outcome) if isinstance(favourable, dict) else favourable
    if named is None:
        return list(dict.fromkeys(cells))
    return named if isinstance(named, list) else [named]


def check_means(table, weights, within):
    """Groups have equal means of y in every stratum."""
    for stratum in strata_by_hand(table, weights, within):
        assert np.ptp(means_by_hand(stratum)) < 1e-6
