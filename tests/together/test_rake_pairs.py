"""Every pair of options of `rake` is refused, or both are honoured in each output.

To add an option, add a wish to `WISHES`.
"""

from inspect import signature

import numpy as np
import pandas as pd
from calls import Wish, verdicts, wrong

from fairmaxent import Domain, rake
from people import EDGES, everybody

DRAWN = 400
BY_SEX = {"sex": {"f": 0.5, "m": 0.5}}
BY_TOWN = {"town": {"in": 0.45, "out": 0.55}}
BINS = Domain.infer(everybody()[["sex", "town", "skill"]], bins={"skill": EDGES})
SHARES = (0.3, 0.4, 0.3)
BY_SKILL = {"skill": dict(zip(BINS.attribute("skill").labels, SHARES, strict=True))}
# half of the people cannot be women if 60 % are
CONTRADICTION = BY_SEX | {
    ("sex", "town"): {
        ("f", "in"): 0.3,
        ("f", "out"): 0.3,
        ("m", "in"): 0.2,
        ("m", "out"): 0.2,
    }
}


def called(**options):
    """Rake the table by sex, unless something else is asked for."""
    options = {"margins": BY_SEX} | options
    if "domain" in options:
        options["margins"] = options["margins"] | BY_SKILL
    return rake(everybody(), **options)


def margins_of(options):
    """The wanted shares, by one column each."""
    margins = dict(options.get("margins", BY_SEX))
    if "domain" in options:
        margins |= BY_SKILL
    return margins


def contradicts(options):
    return ("sex", "town") in margins_of(options)


def shares(options, table, masses):
    """By margin, the share of each level."""
    found = {}
    for name in margins_of(options):
        levels = table[name]
        if name == "skill":
            levels = pd.cut(levels, EDGES, right=False, labels=[*BY_SKILL["skill"]])
        found[name] = masses.groupby(levels, observed=True).sum() / masses.sum()
    return found


def margins_are_met(options, result):
    """By the weights, the weighed table, the drawn rows and each replicate."""
    if contradicts(options):
        return
    table = everybody()
    weighed = result.weigh(table)
    np.testing.assert_allclose(weighed["raked_weight"], result.weights())
    columns = {"weights": pd.Series(result.weights())}
    if options.get("replicates"):
        assert result.replicate_weights().shape[1] == options["replicates"]
        for number, column in enumerate(result.replicate_weights().T):
            columns[f"replicate {number}"] = pd.Series(column)
    for kind, masses in columns.items():
        assert_shares(options, shares(options, table, masses), 1e-6, kind)
    drawn = result.sample(DRAWN, random_state=1)
    ones = pd.Series(np.ones(DRAWN))
    assert_shares(options, shares(options, drawn, ones), 4 / DRAWN, "rows")


def assert_shares(options, found, slack, kind):
    for name, wanted in margins_of(options).items():
        for level, share in wanted.items():
            reached = found[name][level]
            assert abs(reached - share) <= slack, f"{kind}: {name} {level} {reached}"


def factors(options, result):
    """By what each row's share of the total changed."""
    before = np.ones(len(everybody()))
    if "weight" in options:
        before = everybody()[options["weight"]].to_numpy()
    return (result.weights() / result.weights().sum()) / (before / before.sum())


def every_margin_is_stated(options, result):
    stated = {margin.name for margin in result.certificate.margins}
    assert stated == {str(name) for name in margins_of(options)}


def design_is_kept(options, result):
    """Rows of one cell change by the same factor, whatever their design weights."""
    if contradicts(options):
        return
    cells = everybody().assign(factor=factors(options, result))
    if "domain" in options:
        cells["skill"] = pd.cut(cells["skill"], EDGES, right=False).astype(str)
    names = [*margins_of(options)]
    assert cells.groupby(names)["factor"].agg(np.ptp).max() <= 1e-6


def bounds_are_kept(options, result):
    low, high = options["bounds"]
    changed = factors(options, result)
    assert low - 1e-9 <= changed.min() <= changed.max() <= high + 1e-9


def contradiction_is_stated(options, result):
    """Margins are missed only if they contradict each other, and that is said."""
    certificate = result.certificate
    assert bool(certificate.missed) == contradicts(options)
    assert (certificate.largest_error > 0.01) == contradicts(options)


def replicates_differ(options, result):
    assert np.ptp(result.replicate_weights(), axis=1).max() > 0


def bins_are_margins(options, result):
    assert result.survey.domain.attribute("skill").size == len(EDGES) - 1


def seed_is_honoured(options, result):
    again = called(**options)
    pd.testing.assert_frame_equal(result.sample(30), again.sample(30))
    if options.get("replicates"):
        again = again.replicate_weights()
        np.testing.assert_array_equal(result.replicate_weights(), again)


WISHES = (
    Wish("margins", {"margins": BY_SEX | BY_TOWN}, every_margin_is_stated),
    Wish("weight", {"weight": "design"}, design_is_kept),
    Wish("bounds", {"bounds": (0.6, 1.9)}, bounds_are_kept),
    Wish(
        "relax",
        {"relax": "all"},
        contradiction_is_stated,
        needs={"margins": CONTRADICTION},
    ),
    Wish("replicates", {"replicates": 4}, replicates_differ),
    Wish("domain", {"domain": BINS}, bins_are_margins),
    Wish("random_state", {"random_state": 5}, seed_is_honoured),
)
PROMISES = (margins_are_met,)


def test_every_option_has_a_wish():
    options = [*signature(rake).parameters][1:]
    assert {wish.option for wish in WISHES} == set(options)


def test_every_pair_is_refused_or_honoured():
    assert wrong(verdicts(called, WISHES, PROMISES)) == []
