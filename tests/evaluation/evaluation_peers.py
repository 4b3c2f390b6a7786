"""What anonymeter says of tables in Parquet files, as JSON; run by an interpreter that
has it.

python evaluation_peers.py REAL NEW CONTROL QUESTION
"""

import json
import logging
import sys
import warnings


def main() -> None:
    import numpy as np
    import pandas as pd

    warnings.simplefilter("ignore")
    logging.disable()
    np.random.seed(0)  # noqa: NPY002 (anonymeter draws people with it)
    real, new, control, question = sys.argv[1:]
    real, new, control = (
        pd.read_parquet(path)[pd.read_parquet(new).columns]
        for path in (real, new, control)
    )
    print(json.dumps(answered(real, new, control, json.loads(question))))


def answered(real, new, control, question):
    kind = question["kind"]
    attacks = question["attacks"]
    if kind == "singling_out":
        from anonymeter.evaluators import SinglingOutEvaluator

        # It divides by the guesses asked for, not by those found, so ask for fewer than
        # there are; few vary a lot.
        how = {
            "ori": real,
            "syn": new,
            "control": control,
            "n_attacks": attacks // 2,
            "n_cols": 3,
        }
        evaluators = (
            SinglingOutEvaluator(**how, seed=seed, max_attempts=200_000)
            for seed in range(4)
        )
        found = [
            risk(evaluator.evaluate(mode="multivariate")) for evaluator in evaluators
        ]
        return {name: sum(one[name] for one in found) / len(found) for name in found[0]}
    if kind == "linkability":
        from anonymeter.evaluators import LinkabilityEvaluator

        return risk(
            LinkabilityEvaluator(
                ori=real,
                syn=new,
                control=control,
                n_attacks=attacks,
                aux_cols=tuple(question["parts"]),
            ).evaluate(n_jobs=1)
        )
    from anonymeter.evaluators import InferenceEvaluator

    secret = question["secret"]
    return risk(
        InferenceEvaluator(
            ori=real,
            syn=new,
            control=control,
            aux_cols=[name for name in real.columns if name != secret],
            secret=secret,
            regression=bool(pd_is_number(real[secret])),
            n_attacks=attacks,
        ).evaluate(n_jobs=1)
    )


def risk(evaluator):
    value, (low, high) = evaluator.risk()
    return {"value": value, "low": low, "high": high}


def pd_is_number(column):
    import pandas as pd

    return pd.api.types.is_numeric_dtype(column)


if __name__ == "__main__":
    main()
