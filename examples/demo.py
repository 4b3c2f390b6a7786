"""A biased table made fair, end to end: run by ``make demo``."""

from __future__ import annotations

import fairmaxent


def main() -> None:
    """Debias the census table Adult, show the certificate, and draw rows."""
    adult = fairmaxent.datasets.load("adult")
    print(adult.description, "\n")
    fit = fairmaxent.debias(adult.frame, adult.outcome, adult.protected, favourable=adult.favourable, random_state=0)
    print(fit.certificate)
    drawn = fit.sample(10_000)
    print("\nThe rates of 10,000 drawn rows:")
    for column in adult.protected:
        print(fairmaxent.representation_rate(drawn, column))
        print(fairmaxent.statistical_rate(drawn, adult.outcome, column, favourable=adult.favourable))
    print("\nSome of them:")
    print(drawn.head())


if __name__ == "__main__":
    main()
