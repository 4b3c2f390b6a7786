"""What the metrics and the scorer refuse, each with words that help."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier

import fairmaxent
from fairmaxent import metrics
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    RateError,
    WeightError,
)

COLUMNS = {
    "sex": ["F", "F", "F", "M", "M", "M"],
    "team": ["a", "b", "a", "a", "a", "a"],
}
COLUMNS["hired"] = ["yes", "no", "no", "yes", "yes", "no"]
FRAME = pd.DataFrame(COLUMNS | {"said": ["yes", "no", "yes", "yes", "no", "no"]})
CHANCE = [0.8, 0.4, 0.6, 0.9, 0.7, 0.3]
YES, SURE = {"favourable": "yes"}, {"favourable": "yes", "as_probability": True}


@pytest.mark.parametrize(
    ("columns", "options", "error", "message"),
    [
        (["sexx"], {}, ColumnError, "did you mean 'sex'"),
        ([["sex", "sex"]], {}, ColumnError, "'sex' is named twice"),
        ([[]], {}, ColumnError, "at least one"),
        (["sex"], {"groups": "both"}, InputError, "groups"),
        (["sex"], {"compare_missing": "drop"}, InputError, "compare_missing"),
        *(
            (["sex"], {"confidence": bad}, InputError, "confidence")
            for bad in (0.0, 1.0, 95, "x")
        ),
        *(
            (["sex"], {"weight": [bad, 1, 1, 1, 1, 1]}, WeightError, "weight")
            for bad in (-1.0, np.nan, np.inf)
        ),
        (["hire", "sex"], {}, ColumnError, "did you mean 'hired'"),
        (["hired", None], {}, ColumnError, "protected is None"),
        (["hired", ["sex", "hired"]], {}, ColumnError, "'hired' is named twice"),
        (["hired", "sex"], {"favourable": "yess"}, LevelError, "did you mean 'yes'"),
        (["hired", "sex"], {"favourable": []}, LevelError, "favourable is empty"),
        (["hired", "sex"], {"within": "sex"}, InputError, "'sex' is named twice"),
        (["hired", "sex"], {"within": "hired"}, InputError, "'hired' is named twice"),
        (
            ["hired", "sex"],
            {"within": {"team": "z"}},
            InputError,
            "no row is in such a stratum",
        ),
        (
            ["hired", "sex"],
            {"within": {"team": "b"}},
            InputError,
            "no stratum has rows of more than one group",
        ),
        (["hired", "sex"], {"within": 3}, InputError, "within is 3"),
        (["hired", "sex"], {"within": ["team", "team"]}, InputError, "twice"),
        ([[1, 0, 1], "sex"], {}, InputError, "3 predictions for 6 rows"),
        ([np.zeros((6, 2)), "sex"], {}, InputError, "one per row"),
        (
            [[0.1, 0.2, 1.5, 0, 0, 0], "sex"],
            {"as_probability": True},
            InputError,
            "row 2 has probability 1.5",
        ),
        (["hired", "said", "sexx"], YES, ColumnError, "did you mean 'sex'"),
        (["hired", "sayd", "sex"], YES, ColumnError, "did you mean 'said'"),
        ([["yes"] * 4, "said", "sex"], YES, InputError, "4 outcomes for 6 rows"),
        (
            ["hired", CHANCE, "sex"],
            YES,
            LevelError,
            r"no prediction is an outcome .* \[0\.3, 0\.4, 0\.6\]",
        ),
        (
            ["hired", "said", "sex"],
            YES | {"threshold": 0.3},
            InputError,
            "threshold only applies to probabilities",
        ),
        (
            ["hired", "said", "sex"],
            SURE,
            InputError,
            "row 0 has probability nan; every probability must lie between",
        ),
        (
            ["hired", CHANCE, "sex"],
            SURE | {"favourable": None},
            InputError,
            "name the one outcome",
        ),
        *(
            (
                ["hired", CHANCE, "sex"],
                SURE | {"threshold": t},
                InputError,
                "threshold is",
            )
            for t in (-0.1, 1, "half")
        ),
    ],
)
def test_rates_refuse(columns, options, error, message):
    names = {1: "representation_rate", 2: "statistical_rate", 3: "equalised_odds"}
    with pytest.raises(error, match=message):
        getattr(metrics, names[len(columns)])(FRAME, *columns, **options)


@pytest.mark.parametrize(
    ("probabilities", "options", "message"),
    [
        (
            CHANCE,
            {"favourable": ["yes", "no"]},
            "name the one outcome that the probabilities refer to",
        ),
        ([0.1, 1.2, 0, 0, 0, 0], {}, r"row 1 has probability 1\.2"),
        ([0.1, 0.2], {}, "2 probabilities for 6 rows"),
        *((CHANCE, {"bins": bins}, "bins is") for bins in (0, 2.5, "ten")),
        (CHANCE, {"confidence": 95}, "confidence"),
    ],
)
def test_calibration_refuses(probabilities, options, message):
    with pytest.raises(InputError, match=message):
        metrics.calibration(FRAME, "hired", probabilities, "sex", **YES | options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"protected": "sx"}, ColumnError, "no column 'sx'; did you mean 'sex'"),
        ({"protected": None}, InputError, "no protected column; name columns of X"),
        (
            {"protected": 3.5},
            ColumnError,
            "protected is a float; pass names or positions",
        ),
        ({"protected": FRAME["sex"].iloc[:3]}, InputError, "every index of X once"),
        ({"favourable": 7}, LevelError, "no row has the outcome 7"),
        ({"favourable": []}, LevelError, "favourable is empty"),
        ({"rate": 80}, RateError, r"rate is 80; .*write 0.8 for 80 %"),
        (
            {"metric": "statistical"},
            InputError,
            "metric is 'statistical'; did you mean 'statistical_rate'",
        ),
        ({"penalty": -1}, InputError, "penalty is -1; it must be a number, 0 or more"),
        ({"groups": "all"}, InputError, "groups is 'all'"),
    ],
)
def test_the_scorer_refuses(options, error, message):
    model = DummyClassifier().fit(FRAME, FRAME["hired"])
    with pytest.raises(error, match=message):
        metrics.fair_scorer(**({"protected": "sex", "favourable": "yes"} | options))(
            model, FRAME, FRAME["hired"]
        )
    for position in (7, "sex"):
        with pytest.raises(ColumnError, match="no column"):
            metrics.fair_scorer(position, favourable="yes")(
                model, FRAME.to_numpy(), FRAME["hired"]
            )


def test_a_fit_has_no_rows():
    fit = fairmaxent.debias(
        pl.from_pandas(FRAME), "hired", "sex", base_share=0.5, estimate=None
    )
    for data in (fit, fit.distribution):
        with pytest.raises(InputError, match="no rows to predict"):
            metrics.equal_opportunity(data, "hired", "said", "sex", **YES)
        with pytest.raises(InputError, match="no rows to predict"):
            metrics.statistical_rate(data, [1, 0], "sex")
        with pytest.raises(InputError, match="no rows to weight"):
            metrics.representation_rate(data, "sex", weight="weight")
