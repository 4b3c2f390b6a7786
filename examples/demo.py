"""A biased table made fair, end to end: run by ``make demo``."""

from __future__ import annotations

import numpy as np
import pandas as pd

import fairmaxent


def biased_table(rows: int = 5000) -> pd.DataFrame:
    """Applications for a loan in which women are few and are accepted less often."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["woman", "man"], rows, p=[0.3, 0.7])
    skill = rng.normal(size=rows)
    return pd.DataFrame(
        {
            "sex": pd.Categorical(sex),
            "age": rng.integers(18, 80, rows),
            "savings": np.where(rng.random(rows) < 0.2, np.nan, np.exp(8 + skill).round()),
            "owner": rng.random(rows) < 0.4,
            "loan": np.where(skill + (sex == "man") + rng.normal(size=rows) > 0.5, "granted", "refused"),
        }
    )


def main() -> None:
    """Fit, show the certificate, and draw rows."""
    table = biased_table()
    fit = fairmaxent.debias(table, "loan", "sex", favourable="granted", random_state=0)
    print(fit.certificate)
    drawn = fit.sample(1000)
    print("\nThe rates of 1000 drawn rows:")
    print(fairmaxent.representation_rate(drawn, "sex"))
    print(fairmaxent.statistical_rate(drawn, "loan", "sex", favourable="granted"))
    print("\nSome of them:")
    print(drawn.head())


if __name__ == "__main__":
    main()
