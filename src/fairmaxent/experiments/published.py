"""Published numbers, and those that the authors' code computes, under the names of this package.

``printed`` and ``printed_sd`` are Table 2 of Celis, Keswani, Vishnoi, "Data preprocessing to mitigate bias: a maximum
entropy based approach", ICML 2020: means over folds and repetitions, and the standard deviation over folds.
``authors_code`` comes from the authors' published code, run unmodified: raw rates are those of all rows, numbers for
maximum entropy are means over the same five folds, and seconds are the CPU time of one fit on all rows and of drawing
10,000 rows. A missing value means that there is no such number. The table's classifier SR is listed as
``tree_sr_probabilities`` and its covariance norm as ``correlation_distance``, because that is what the authors' code
computes.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

KEYS = ["dataset", "protected", "method", "metric"]


def load_published() -> Any:
    """Return dataset, protected, method, metric, printed, printed_sd, authors_code; the metric may be ``seconds``."""
    import pandas as pd

    with resources.files("fairmaxent.experiments").joinpath("published.csv").open() as file:
        return pd.read_csv(file)
