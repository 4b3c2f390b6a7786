"""What may be shown of rows, whose noise numbers have, and what a seed repeats."""

import math

from fairmaxent import Privacy
from fairmaxent.privacy.budget import Ledger, Spent
from fairmaxent.privacy.provenance import Provenance

PRIVACY = Privacy(epsilon=0.5, delta=1e-6)
LEDGER = Ledger(
    PRIVACY, (Spent("discrete Gaussian", "sex × hired", 4, 1.0, 10.0),), ("levels",)
)


def test_exact_rows_are_shown_and_have_no_noise():
    for known in (Provenance.asked(None), Provenance.measured(None)):
        assert known == Provenance()
        assert known.shows_rows
        assert known.has_real_rows
        assert known.repeats_with_seed
        assert not known.is_noisy
        assert not known.spends
        assert known.noise_of_count == known.noise_of_rows == 0


def test_private_rows_are_hidden_and_no_seed_repeats_their_noise():
    for private in (Provenance.asked(PRIVACY), Provenance.measured(LEDGER)):
        assert not private.shows_rows
        assert not private.has_real_rows
        assert not private.repeats_with_seed
        assert private.is_noisy
        assert private.spends
        assert (private.epsilon, private.delta) == (0.5, 1e-6)


def test_noise_has_no_bound_until_it_was_measured():
    assert Provenance.asked(PRIVACY).noise_of_count == math.inf
    assert Provenance.asked(PRIVACY).noise_of_rows == math.inf
    measured = Provenance.measured(LEDGER)
    assert math.isclose(measured.noise_of_count, 1.96 * 10)
    assert math.isclose(measured.noise_of_rows, 1.96 * 20)
