"""Noise that tests put in place of OpenDP's, and small tables with their domains."""

import numpy as np
import polars

from fairmaxent import Domain


class Silence:
    """No noise at all: what comes out are the exact counts, and the best score."""

    def counts(self, table, scale):
        return table.copy()

    def choice(self, scores, scale):
        return int(np.argmax(scores))


class Seeded:
    """Gaussian noise with a seed, for tests that must give the same result each
    time.
    """

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def counts(self, table, scale):
        return table + np.round(self.rng.normal(0, scale, table.shape))

    def choice(self, scores, scale):
        return int(
            np.argmax(np.asarray(scores) / scale + self.rng.gumbel(size=len(scores)))
        )


class Deaf:
    """Answers that do not depend on the rows: whatever then still does has not come
    through the noise.
    """

    def __init__(self):
        self.rng = np.random.default_rng(5)

    def counts(self, table, scale):
        return np.round(self.rng.gamma(2.0, 20.0, table.shape))

    def choice(self, scores, scale):
        return len(scores) // 2


class Recording(Deaf):
    tables: list = []  # noqa: RUF012 (what it was asked)

    def counts(self, table, scale):
        Recording.tables.append(table.copy())
        return super().counts(table, scale)


LEVELS = {
    "hired": ["no", "yes"],
    "sex": ["f", "m"],
    "job": ["a", "b", "c"],
    "town": ["x", "y"],
}
EDGES = {"age": [0, 18, 40, 65, 120]}
DOMAIN = Domain.declare(levels=LEVELS, edges=EDGES, missing=["town"])


def people(rows=800, seed=0):
    """A table in which women are hired less often; the job depends on the outcome, the
    age on the job.
    """
    rng = np.random.default_rng(seed)
    sex = rng.random(rows) < 0.4
    hired = rng.random(rows) < np.where(sex, 0.2, 0.5)
    job = np.where(rng.random(rows) < 0.6, hired.astype(int), rng.integers(0, 3, rows))
    age = 20 + 15 * job + rng.normal(0, 5, rows)
    town = [None if u < 0.1 else "x" if u < 0.6 else "y" for u in rng.random(rows)]
    columns = {"hired": np.where(hired, "yes", "no"), "sex": np.where(sex, "f", "m")}
    return polars.DataFrame(
        columns
        | {
            "job": np.array(["a", "b", "c"])[job],
            "town": town,
            "age": np.round(age, 6),
        }
    )
