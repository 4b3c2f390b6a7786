"""The budget: (ε, δ) and ρ, against an independent accountant, and the checks at the
door.
"""

import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fairmaxent import InputError, Privacy
from fairmaxent.privacy.budget import Ledger, Spent, epsilon_of, rho_of
from pages import DOCS
from tables import times


def settings(seed):
    rng = np.random.default_rng(seed)
    for _ in range(times(200)):
        yield float(10 ** rng.uniform(-1.5, 1.2)), float(10 ** rng.uniform(-12, -3))


def promises(rho, delta):
    """Many orders, and the ε that each of them promises."""
    orders = 1 + np.exp(np.linspace(-3, np.log(1 / delta), 200_001))
    return orders, rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (
        orders - 1
    )


def test_the_conversion_is_the_minimum_over_all_orders_and_its_own_inverse():
    for epsilon, delta in settings(1):
        rho = rho_of(epsilon, delta)
        assert epsilon - epsilon_of(rho, delta) + 1e-12 > 0
        assert epsilon_of(rho, delta) == pytest.approx(epsilon, rel=1e-9)
        _, every = promises(rho, delta)
        assert every.min() == pytest.approx(epsilon, rel=1e-5)
        assert every.min() >= epsilon * (1 - 1e-9)  # no order promises more
        simple = (
            math.sqrt(epsilon + math.log(1 / delta)) - math.sqrt(math.log(1 / delta))
        ) ** 2
        assert rho > simple  # the well-known formula


def accountant_at(rho, delta):
    """The accountant of dp-accounting, with orders around the best one."""
    rdp = pytest.importorskip(
        "dp_accounting.rdp", reason="dp-accounting is not installed"
    )
    orders, every = promises(rho, delta)
    return rdp.RdpAccountant(
        orders[np.argmin(every)] * (1 + np.linspace(-1e-4, 1e-4, 41))
    )


def test_the_ledger_is_what_an_independent_accountant_says():
    accounting = pytest.importorskip(
        "dp_accounting", reason="dp-accounting is not installed"
    )
    rng = np.random.default_rng(3)
    for epsilon, delta in settings(4):
        privacy = Privacy(epsilon=epsilon, delta=delta)
        parts = rng.dirichlet(np.ones(rng.integers(2, 12))) * privacy.rho * (1 - 1e-12)
        kinds = rng.random(len(parts)) < 0.7
        spent = tuple(
            Spent(
                "discrete Gaussian" if gauss else "noisy maximum",
                "x",
                4,
                1.0,
                math.sqrt(1 / (2 * part)),
            )
            for part, gauss in zip(parts, kinds, strict=True)
        )
        ledger = Ledger(privacy, spent, ())
        accountant = accountant_at(ledger.rho, delta)
        for look in spent:
            event = (
                accounting.GaussianDpEvent(look.scale)
                if look.mechanism == "discrete Gaussian"
                else accounting.dp_event.ZCDpEvent((2 / look.scale) ** 2 / 8, 0.0)
            )
            accountant.compose(event)
        assert ledger.rho <= privacy.rho
        assert ledger.epsilon == pytest.approx(accountant.get_epsilon(delta), abs=1e-9)
        assert ledger.epsilon <= epsilon


@pytest.mark.parametrize(
    ("option", "values", "words"),
    [
        (
            "epsilon",
            (0, -1, float("nan"), float("inf"), "1", True, None),
            "must be a positive number",
        ),
        (
            "delta",
            (0, -1e-9, 0.5, 1, float("nan"), "1e-9"),
            "must be a small positive number",
        ),
        (
            "rows_per_person",
            (0, -1, 1.5, 10**7, float("nan"), "2"),
            "must be a whole number of rows",
        ),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused_and_noise_has_no_seed(
    option, values, words
):
    for value in values:
        with pytest.raises(InputError, match=f"{option} is .*{words}"):
            Privacy(**{option: value})
    with pytest.raises(InputError, match=r"budget needs ledger: .* all fits together"):
        Privacy(epsilon=1.0, budget=1.0)
    with pytest.raises(TypeError, match="seed"):
        Privacy(epsilon=1.0, seed=0)


def gaussian_delta(mu, epsilon):
    """The δ of Gaussian noise with sensitivity/σ = μ in all (Balle and Wang 2018)."""
    near = norm.cdf(mu / 2 - epsilon / mu)
    far = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    return near - far


def saved(epsilon, delta):
    """By how much noise could be smaller if every look were Gaussian."""
    exact = brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-3, 50, xtol=1e-13)
    return 1 - math.sqrt(2 * rho_of(epsilon, delta)) / exact


def test_tighter_accounting_would_hardly_need_less_noise():
    """Decision 031, in numbers."""
    assert gaussian_delta(1.0, 0.0) == pytest.approx(2 * norm.cdf(0.5) - 1)
    found = [round(100 * saved(epsilon, 1e-9), 1) for epsilon in (0.5, 1, 4)]
    assert found == [5.1, 4.9, 4.4]
    # A choice within a range of r by bounded range costs r²/8. The μ that dominates it
    # must have its total variation, tanh(r/4), at least.
    r = 0.05
    mu = brentq(lambda mu: 2 * norm.cdf(mu / 2) - 1 - math.tanh(r / 4), 1e-9, 1)
    assert (mu**2 / 2) / (r**2 / 8) == pytest.approx(math.pi / 2, rel=1e-3)


def test_less_noise_would_hardly_make_better_models():
    """By the slope of the measured curves, at ε = 1."""
    text = (DOCS.parent / "benchmarks" / "privacy.json").read_text(encoding="utf-8")
    gains = {}
    for record in json.loads(text).values():
        aucs = {point["epsilon"]: point["private"]["auc"] for point in record["curve"]}
        slope = max(
            (aucs[4.0] - aucs[1.0]) / math.log(4),
            (aucs[1.0] - aucs[0.5]) / math.log(2),
        )
        less = epsilon_of(rho_of(1, 1e-9) / (1 - saved(1, 1e-9)) ** 2, 1e-9)
        gains[record["rows"]] = slope * math.log(less)
    assert max(gains.values()) < 0.006
    assert max(gain for rows, gain in gains.items() if rows > 1_000) < 0.002
