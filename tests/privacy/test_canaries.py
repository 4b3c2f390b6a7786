"""An audit: can anybody tell from a private model whether one odd person was in the
table?

A thousand pairs of neighbouring tables, one with a canary and one without, are fitted.
Three attacks score each fit; a threshold is chosen on some pairs, and on the others the
share of canaries found and of false alarms, with exact intervals, gives a lower bound
on the ε that the fit really has. It must stay below the ε stated, and it must not when
the noise is off, or the audit would prove nothing.
"""

import numpy as np
import polars
import pytest
from click.testing import CliRunner
from scipy.stats import beta

from fairmaxent.cli.group import group
from fairmaxent.data import frames
from fairmaxent.data.domain import bound
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Table
from fairmaxent.fit import pipeline
from fairmaxent.privacy.budget import Privacy
from fairmaxent.privacy.measurements import OpenDP
from fairmaxent.privacy.model import learn_private_model
from quiet import DOMAIN, EDGES, LEVELS, Silence, people

PAIRS, LEARNED = 1000, 300  # thresholds are chosen on the latter
CONFIDENCE = 0.95


class Overheard:
    """Keeps the noisy tables, which nobody outside sees: the strongest attack may use
    them.
    """

    def __init__(self, noise):
        self.noise, self.tables = noise, []

    def counts(self, table, scale):
        self.tables.append((self.noise.counts(table, scale), scale))
        return self.tables[-1][0]

    def choice(self, scores, scale):
        return self.noise.choice(scores, scale)


def attacks(roles, rows, canary, privacy, noise):
    """Three scores, each higher if the canary seems to be there."""
    overheard = Overheard(noise)
    table = Table.compress(np.asfortranarray(rows), roles.blocks.levels)
    model = learn_private_model(table, roles, privacy, noise=overheard)
    at = {"root": canary[0], "hired": canary[0] // 2}
    at |= {
        look.measured: level
        for look, level in zip(model.ledger.spent[1:], canary[1:], strict=False)
    }
    names = [
        look.measured
        for look in model.ledger.spent
        if look.mechanism == "discrete Gaussian"
    ]
    cells = [
        tuple(at[part] for part in name.replace("hired × sex", "root").split(" × "))
        for name in names
    ]
    seen = zip(overheard.tables, cells, strict=True)
    likelihood = sum(counts[cell] / scale**2 for (counts, scale), cell in seen)
    return (
        float(model.tree.log_probability(canary[None, :])[0]),
        float(model.rows * np.exp(model.tree.log_root[canary[0]])),
        float(likelihood),
    )


def lower_bound(with_canary, without, delta):
    """The largest ε that the attack proves, with confidence: of both errors, each way
    round.
    """
    best = -np.inf
    for threshold in np.unique(
        np.concatenate([with_canary[:LEARNED], without[:LEARNED]])
    ):
        found, alarms = (
            np.mean(with_canary[:LEARNED] >= threshold),
            np.mean(without[:LEARNED] >= threshold),
        )
        for hit, miss, above in ((found, alarms, True), (1 - alarms, 1 - found, False)):
            gain = np.log((hit + 1e-3) / (miss + 1e-3))
            if gain > best:
                best, chosen, high = gain, threshold, above
    tested = with_canary[LEARNED:] >= chosen, without[LEARNED:] >= chosen
    hits, misses = (
        (tested[0].sum(), tested[1].sum())
        if high
        else ((~tested[1]).sum(), (~tested[0]).sum())
    )
    total, tail = PAIRS - LEARNED, (1 - CONFIDENCE) / 2
    low = 0.0 if not hits else beta.ppf(tail, hits, total - hits + 1)
    up = 1.0 if misses == total else beta.ppf(1 - tail, misses + 1, total - misses)
    return np.log(max(low - delta, 1e-300) / up)


def audited(privacy, make_noise, *, fits=PAIRS):
    """The best of the attacks on so many fits of each table, repeated up to the number
    of pairs.
    """
    frame = people(60).with_columns(job=people(60)["job"].replace("c", "b"))
    roles = Roles.of(bound(DOMAIN, frames.open_frame(frame)), "hired", ["sex"])
    rows = roles.blocks.pool(roles.domain.encode(frame)).astype(np.int64)
    # The canary has a job that nobody else has, and no town; everything else about it
    # is usual.
    canary = np.array([3, *(size - 1 for size in roles.blocks.levels[1:])])
    noise = make_noise()
    both = (np.vstack([rows, canary]), rows)
    scores = [
        [attacks(roles, table, canary, privacy, noise) for table in both]
        for _ in range(fits)
    ]
    scores = np.array(scores).repeat(PAIRS // fits, axis=0)
    return max(
        lower_bound(scores[:, 0, attack], scores[:, 1, attack], privacy.delta)
        for attack in range(3)
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_a_canary_is_found_no_more_often_than_the_promise_allows(epsilon):
    pytest.importorskip("opendp", reason="opendp is not installed")
    assert audited(Privacy(epsilon=epsilon), OpenDP) < epsilon


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_audit_finds_the_canary_if_there_is_no_noise(epsilon):
    # each fit is the same
    assert audited(Privacy(epsilon=epsilon), Silence, fits=1) > epsilon


def measured(frame, folder, monkeypatch):
    """The exact tables that the command measures of a CSV file, with the scale of the
    noise for each.
    """
    heard = Overheard(Silence())
    monkeypatch.setattr(pipeline, "OpenDP", lambda: heard)
    monkeypatch.chdir(folder)
    frame.write_csv("people.csv")
    # the ledger of the neighbouring table, which would know that this one is another
    (folder / "people.csv.ledger.json").unlink(missing_ok=True)
    declared = [f"levels.{name} = {LEVELS[name]}" for name in LEVELS] + [
        f"edges.{name} = {EDGES[name]}" for name in EDGES
    ]
    (folder / "domain.toml").write_text("\n".join(["missing = ['town']", *declared]))
    typed = (
        "debias people.csv --outcome hired --protected sex --domain domain.toml"
        " --epsilon 1 -o new.csv --force"
    )
    assert CliRunner().invoke(group, typed.split()).exit_code == 0
    return heard.tables


@pytest.mark.parametrize(
    "make", [pytest.param(OpenDP, marks=pytest.mark.slow), Silence]
)
def test_a_canary_in_a_file_is_found_no_more_often_than_the_promise_allows(
    make, tmp_path, monkeypatch
):
    """From the file through the command; the attack knows all but the canary, and
    weighs each table by its noise.
    """
    pytest.importorskip("opendp", reason="opendp is not installed")
    frame = people(60).with_columns(job=people(60)["job"].replace("c", "b"))
    canary = polars.DataFrame(
        {"hired": "yes", "sex": "f", "job": "c", "town": None, "age": 119.5},
        schema=frame.schema,
    )
    looks = zip(
        *(
            measured(each, tmp_path, monkeypatch)
            for each in (polars.concat([frame, canary]), frame)
        ),
        strict=False,
    )
    # The number of rows, without noise here, decides a little how the budget is split.
    alike = [
        (there, gone, scale)
        for (there, scale), (gone, other) in looks
        if abs(scale / other - 1) < 0.05
    ]
    assert len(alike) > 6
    scores, noise = np.zeros((2, PAIRS)), make()
    for there, gone, scale in alike:
        for each, table in enumerate((there, gone)):
            scores[each] += [
                ((there - gone) * noise.counts(table, scale)).sum() / scale**2
                for _ in range(PAIRS)
            ]
    assert (lower_bound(*scores, 1e-9) < 1) == (make is OpenDP)
