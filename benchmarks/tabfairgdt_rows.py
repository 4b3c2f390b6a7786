"""Rows by TABFAIRGDT (Panagiotou and others, ICDM 2025), drawn in an environment of its
own.

It is run by `treatments`, with the interpreter that the environment variable
TABFAIRGDT_PYTHON names; pip install tabfairgdt makes such an environment. Nothing of
fairmaxent is imported here.
"""

import json
import sys


def main() -> None:
    """Read a table, learn it with the strongest fairness, and write as many rows
    again.
    """
    import pandas as pd
    from tabfairgdt import TABFAIRGDT

    source, target, kinds_as_json, protected, outcome, seed = sys.argv[1:]
    kinds = json.loads(kinds_as_json)
    frame = pd.read_csv(source, dtype=kinds, keep_default_na=False, na_values=[""])
    # it ends in a KeyError on missing numbers
    frame = frame.fillna(frame.median(numeric_only=True))
    generator = TABFAIRGDT(
        protected_attribute=protected,
        target=outcome,
        criterion="dp",
        dtype_map=kinds,
        seed=int(seed),
        parallel=False,
    )
    generator.fit(frame, lamda=1.0)
    rows = generator.generate(k=len(frame))
    rows[list(frame.columns)].to_csv(target, index=False)


if __name__ == "__main__":
    main()
