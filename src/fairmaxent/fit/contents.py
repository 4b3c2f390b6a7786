"""Contents: what a model file holds of the people in the table, in words."""

from __future__ import annotations

from fairmaxent.fit.learned import Learned


def contents(fit: Learned) -> str:
    """Say which rows are in a saved model, as the end of a sentence that begins with "it holds".

    Every model holds rows: its certificate and its weights are made from them. Those of a private model are nobody's.
    """
    if fit.certificate.privacy is not None:
        return (
            f"no row of the data, but {fit.table.size:,} drawn from noisy counts; it is private with "
            f"{fit.certificate.privacy.privacy}"
        )
    details = fit.distribution.details
    exact = [] if details is None else [fit.domain.names[index] for index in sorted(details.positions)]
    if not fit.table.keeps_rows:
        rows = f"the distinct rows among {fit.table.size:,}, as levels"
    elif exact:
        rows = f"all {fit.table.size:,} rows, with the exact values of {_listed(exact)}"
    else:
        rows = f"all {fit.table.size:,} rows, as levels"
    return f"{rows}; protect it like the table itself"


def _listed(names: list[str]) -> str:
    few = ", ".join(map(repr, names[:3]))
    return few if len(names) <= 3 else f"{few} and {len(names) - 3} more columns"
