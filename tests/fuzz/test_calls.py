"""Generated calls of debias: each ends in the library's own error, or in numbers that an independent group-by confirms.

``FUZZ_CALLS=100000 pytest tests/fuzz/test_calls.py`` tries more of them.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import narwhals as nw
import numpy as np
from by_hand import are_numbers, check_means, check_rates, is_plain
from call_ends import SEED, ends_well, generated
from frame_calls import calls, framed
from hypothesis import given, seed

from fairmaxent import FairMaxEntError, debias, load


@seed(SEED)
@generated(0.7)
@given(call=calls())
def test_debias(call):
    table, library, roles, asked = call
    frame = framed(table, library)
    if frame is None:
        return
    with ends_well():
        fit = debias(frame, *roles, estimate=None, **asked)
        check_distribution(fit, asked)
        check_rows(fit, frame)
        check_weights(fit, table, asked)
        check_file(fit)


def check_distribution(fit, asked):
    """The distribution has the rates that the certificate names, and those that were asked for."""
    names = [*outcomes_of(fit), "z", *fit.request.within_names]
    if not compares_all_levels(fit) or any(fit.domain.attribute(name).missing is not None for name in names):
        return
    cells = nw.from_native(fit.distribution.marginal(names), eager_only=True).to_dict(as_series=False)
    check_rates(fit, cells, cells.pop("probability"))
    if "largest_weight" in asked:
        return
    certificate = fit.certificate
    for kind, by_name in certificate.wanted.items():
        for name, wanted in by_name.items():
            assert wanted is None or certificate.achieved[kind][name] >= wanted - 1e-6, (kind, name)


def check_weights(fit, table, asked):
    """The rows have, with their weights, the rates that the certificate names."""
    weights = fit.weights()
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    if weights.ndim > 1 or {"weight", "forbid"} & set(asked) or not compares_all_levels(fit):
        return
    strata = fit.request.within_names
    groups = all(is_plain(table[name]) for name in ("z", *strata))
    if groups and all(is_plain(table[name]) for name in outcomes_of(fit)):
        check_rates(fit, table, weights)
    if groups and fit.request.means is not None and "largest_weight" not in asked and are_numbers(table["y"]):
        check_means(table, weights, strata)


def outcomes_of(fit):
    return [fit.request.outcome, *fit.request.also_names]


def compares_all_levels(fit):
    """Whether groups are those of z alone, and no stratum is left out."""
    within = fit.request.within
    return fit.request.protected_names == ["z"] and not (isinstance(within, dict) and any(within.values()))


def check_rows(fit, frame):
    """Rows can be drawn and encoded again, the certificate can be read, and probabilities are probabilities."""
    drawn = fit.sample(15, random_state=1)
    assert isinstance(drawn, type(frame))
    assert len(drawn) == 15
    chances = fit.distribution.probability(drawn)
    assert ((chances >= 0) & (chances <= 1 + 1e-9)).all()
    assert str(fit.certificate)


def check_file(fit):
    """A fit comes back from a file; what cannot be stored is refused while it is saved, not when it is needed."""
    with TemporaryDirectory() as folder:
        fit.save(Path(folder) / "fit")
        try:
            restored = load(Path(folder) / "fit")
        except FairMaxEntError as problem:
            raise AssertionError("an honest file is refused") from problem
    assert str(restored.certificate) == str(fit.certificate)
