"""Canaries: how well the strongest attacker tells from a private fit whether one odd
person was in the table, beside how well the promise allows.

The attacker knows all other rows, sees every noisy table, which nobody outside does,
and adds up the log likelihood ratio of both tables. Over many fits with the canary and
without it, the separation is the difference of its means in standard deviations. By the
ledger it is √(2ρ) of the tables that were counted; choices add a little, which this
attacker does not use. ``python benchmarks/canaries.py`` writes canaries.json.
"""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import numpy as np
import polars
from numpy.typing import NDArray

from fairmaxent import Domain, Privacy
from fairmaxent.data.domain import bound
from fairmaxent.data.frames import open_frame
from fairmaxent.data.roles import Roles
from fairmaxent.privacy.measurements import OpenDP
from fairmaxent.privacy.model import learn_private_model

Reals = NDArray[np.float64]
EPSILONS = (1.0, 4.0)
FITS = 2_000  # of each ε, half of them with the canary
PEOPLE = 60
LEVELS = {
    "hired": ["no", "yes"],
    "sex": ["f", "m"],
    "job": ["a", "b", "c"],
    "town": ["x", "y"],
    "age": ["young", "middle", "old"],
}
CANARY = {"hired": "yes", "sex": "f", "job": "c", "town": "y", "age": "old"}
DOMAIN = Domain.declare(levels=LEVELS)


class Overheard:
    """Noise of OpenDP; keeps the tables before and after it, with its scale."""

    def __init__(self) -> None:
        """Begin with nothing heard."""
        self.noise = OpenDP()
        self.heard: list[tuple[Reals, Reals, float]] = []

    def counts(self, table: Reals, scale: float) -> Reals:
        """Noisy counts."""
        noisy = self.noise.counts(table, scale)
        self.heard.append((table.copy(), noisy, scale))
        return noisy

    def choice(self, scores: Reals, scale: float) -> int:
        """About the best score."""
        return self.noise.choice(scores, scale)


def people() -> polars.DataFrame:
    """People of whom nobody has the job of the canary."""
    rng = np.random.default_rng(0)
    usual = LEVELS | {"job": ["a", "b"]}
    return polars.DataFrame(
        {name: rng.choice(levels, PEOPLE) for name, levels in usual.items()}
    )


def attacked(
    roles: Roles, frame: polars.DataFrame, privacy: Privacy, *, is_there: bool
) -> tuple[float, float]:
    """The log likelihood ratio of one fit, and the separation that its ledger allows.

    Of a table with noise σ, in whose cell the canary counts 1 beside n others, the
    log likelihood ratio of a noisy count c is (c − n − 1/2)/σ².
    """
    rows = roles.compress(roles.domain.encode(open_frame(frame)), None)
    overheard = Overheard()
    model = learn_private_model(rows, roles, privacy, noise=overheard)
    place = {name: LEVELS[name].index(level) for name, level in CANARY.items()}
    root = " × ".join(roles.names)
    place[root] = place["hired"] * len(LEVELS["sex"]) + place["sex"]
    looks = [
        look for look in model.ledger.spent if look.mechanism == "discrete Gaussian"
    ]
    ratio = 0.0
    for look, (exact, noisy, scale) in zip(looks, overheard.heard, strict=True):
        parts = look.measured.replace(root, "root").split(" × ")
        cell = tuple(place[root if part == "root" else part] for part in parts)
        others = exact[cell] - is_there
        ratio += (noisy[cell] - others - 0.5) / scale**2
    return ratio, math.sqrt(2 * sum(look.rho for look in looks))


def separation(epsilon: float) -> dict[str, Any]:
    """How far apart fits with the canary and without it are."""
    began = time.process_time()
    privacy = Privacy(epsilon=epsilon)
    without = people()
    both = (without, polars.concat([without, polars.DataFrame(CANARY)]))
    roles = Roles.of(bound(DOMAIN, open_frame(without)), "hired", ["sex"])
    ratios = np.zeros((2, FITS // 2))
    allowed = np.zeros((2, FITS // 2))
    for is_there, frame in enumerate(both):
        for fit in range(FITS // 2):
            ratios[is_there, fit], allowed[is_there, fit] = attacked(
                roles, frame, privacy, is_there=bool(is_there)
            )
    deviation = math.sqrt(ratios.var(axis=1, ddof=1).mean())
    found = float((ratios[1].mean() - ratios[0].mean()) / deviation)
    return {
        "epsilon": epsilon,
        "fits": FITS,
        "separation": round(found, 3),
        "standard_error": round(math.sqrt((4 + found**2 / 2) / FITS), 3),
        "by_the_ledger": round(float(allowed.mean()), 3),
        "by_the_promise": round(math.sqrt(2 * privacy.rho), 3),
        "cpu": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Attack fits of each ε, and keep what came out."""
    found = [separation(epsilon) for epsilon in EPSILONS]
    for record in found:
        print(json.dumps(record))
    (HERE / "canaries.json").write_text(
        json.dumps(found, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
