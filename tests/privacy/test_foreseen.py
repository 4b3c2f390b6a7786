"""What a private fit will be worth is said before anything is spent, and is true."""

import json

import numpy as np
import polars
import pytest

from clifiles import run
from fairmaxent import Domain, InputError, Privacy
from fairmaxent.data.domain import bound
from fairmaxent.data.frames import open_frame
from fairmaxent.data.roles import Roles
from fairmaxent.inspection import inspect
from fairmaxent.privacy.model import Worth, learn_private_model
from quiet import DOMAIN, Seeded, people
from tables import times

LEVELS = {"y": [0, 1], "sex": ["f", "m"], "race": ["a", "b", "c"]}
OTHERS = {f"x{number}": list(range(2 + number)) for number in range(5)}


def equal_groups(rows, rate):
    """Groups that are equally large, of which a share has the outcome."""
    rng = np.random.default_rng(0)
    number = np.arange(rows)
    columns = {
        "sex": np.array(["f", "m"])[number % 2],
        "race": np.array(["a", "b", "c"])[number // 2 % 3],
        "y": (number // 6 < rate * rows // 6).astype(int),
    }
    for name, levels in OTHERS.items():
        columns[name] = rng.integers(0, len(levels), rows)
    return polars.DataFrame(columns)


def roles_of(frame, protected):
    domain = Domain.declare(levels=LEVELS | OTHERS)
    return Roles.of(bound(domain, open_frame(frame)), "y", protected)


def simulated(frame, roles, privacy, runs):
    """Noisy counts of outcome × groups, of so many fits."""
    table = roles.compress(roles.domain.encode(frame), None)
    shape = roles.blocks.shape(0)
    for seed in range(runs):
        model = learn_private_model(table, roles, privacy, noise=Seeded(seed))
        root = model.rows * np.exp(model.tree.log_root)
        yield root.reshape(shape)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("rows", "protected", "privacy"),
    [
        (600, ["sex"], Privacy(epsilon=1.0)),
        (1_200, ["sex"], Privacy(epsilon=2.0, rows_per_person=3)),
        (3_000, ["sex", "race"], Privacy(epsilon=1.0)),
        *[
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (12_000, ["race"], Privacy(epsilon=0.5, delta=1e-6)),
                (12_000, ["sex", "race"], Privacy(epsilon=4.0)),
            )
        ],
    ],
)
def test_what_is_foreseen_is_what_fits_turn_out_to_be(rows, protected, privacy):
    frame = equal_groups(rows, 0.5)
    roles = roles_of(frame, protected)
    worth = Worth.of(roles, privacy, rows)
    runs = times(300)
    counts = np.array([*simulated(frame, roles, privacy, runs)])
    spread = 1.96 * (counts - counts.mean(axis=0)).std()
    slack = 0.1 if runs > 200 else 0.3
    assert spread == pytest.approx(worth.count_range, rel=slack)
    for axis, name in enumerate(protected, start=2):
        others = tuple(
            other for other in range(2, counts.ndim) if other != axis
        )  # first: runs; second: outcome
        both = counts.sum(axis=others)  # runs × outcome × group
        rates = both[:, 1] / both.sum(axis=1)
        ratios = rates[:, 0] / rates[:, 1]
        rate_range, ratio_range = worth.rate_ranges[name]
        assert 1.96 * rates.std() == pytest.approx(rate_range, rel=slack)
        assert 1.96 * ratios.std() == pytest.approx(ratio_range, rel=1.5 * slack)


def test_it_follows_from_the_declaration_and_the_number_of_rows_alone():
    asked = {"domain": DOMAIN, "privacy": Privacy(epsilon=1.0)}
    frame = people()
    other = frame.with_columns(sex=polars.lit("f"), age=polars.lit(3.0))
    seen = inspect(frame, "hired", "sex", **asked).private
    assert seen == inspect(other, "hired", "sex", **asked).private
    more = inspect(polars.concat([frame] * 9), "hired", "sex", **asked).private
    assert more.rate_ranges["sex"][0] < seen.rate_ranges["sex"][0] / 5


@pytest.mark.more
def test_the_columns_that_are_counted_are_those_of_the_fit():
    for epsilon in (0.3, 1.0, 8.0):
        privacy = Privacy(epsilon=epsilon)
        for rows in (300, 2_400, 24_000):
            frame = equal_groups(rows, 0.5)
            roles = roles_of(frame, ["sex", "race"])
            worth = Worth.of(roles, privacy, rows)
            table = roles.compress(roles.domain.encode(frame), None)
            model = learn_private_model(table, roles, privacy, noise=Seeded(1))
            names = [look.measured for look in model.ledger.spent]
            assert worth.with_groups == sum(
                f"y × sex × race × {name}" in names for name in OTHERS
            )
            # The number of columns depends a little on the noisy number of rows.
            with_outcome = sum(f"y × {name}" in names for name in OTHERS)
            assert abs(worth.with_outcome - with_outcome) <= (rows == 300)


def test_the_command_says_it_and_spends_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().write_csv("people.csv")
    (tmp_path / "domain.toml").write_text(
        'missing = ["town"]\n[levels]\nhired = ["no", "yes"]\nsex = ["f", "m"]\n'
        'job = ["a", "b", "c"]\ntown = ["x", "y"]\n[edges]\nage = [0, 18, 40, 65, 120]\n'
    )
    typed = ["inspect", "people.csv", "--outcome", "hired", "--protected", "sex"]
    typed += ["--favourable", "yes", "--domain", "domain.toml"]
    said = run(*typed, "--epsilon", 1).output
    assert "With ε = 1, δ = 1e-09, a fit knows" in said
    assert "all else that is said here is exact" in " ".join(said.split())
    assert "--epsilon 1.0 --domain domain.toml" in said.split("Next: ")[1]
    found = json.loads(run(*typed, "--epsilon", 2, "--json").output)["private"]
    assert found["promise"] == "ε = 2, δ = 1e-09"
    assert list(tmp_path.glob("*.json")) == []
    for refused, words in (
        (typed[:-2], "privacy needs a declared domain"),
        ([*typed[:2], *typed[-2:]], "--epsilon needs --outcome"),
    ):
        assert words in run(*refused, "--epsilon", 1, code=None).stderr


def test_values_are_counted_in_the_table_and_not_in_what_is_declared():
    frame = people().filter(polars.col("job") != "c")
    for column in inspect(frame, domain=DOMAIN).columns:
        assert column.values == frame[column.name].drop_nulls().n_unique()
        assert column.missing == frame[column.name].null_count()


def test_what_is_no_promise_is_refused():
    with pytest.raises(InputError, match=r"pass fairmaxent\.Privacy"):
        inspect(people(), domain=DOMAIN, privacy=1)
