"""What people use today instead, each as a job: from the same table in memory to
weights or rows.

A method is prepared outside the clock (its own data set, its own coding), then runs as
a call without arguments.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.floor import tilted_means

Job = Callable[[], Any]

OUTCOME, PROTECTED, FAVOURABLE = "income", "sex", ">50K"


def numpy_pass(frame: Any) -> Job:
    """The floor: ⟨λ, φ⟩, softmax and means over the coded rows."""
    import fairmaxent

    domain = fairmaxent.Domain.infer(frame)
    codes = np.asfortranarray(domain.encode(frame))
    rng = np.random.default_rng(0)
    potentials = [rng.normal(size=size) for size in domain.sizes]
    log_weights = np.full(len(codes), -np.log(len(codes)))
    return lambda: tilted_means(codes, domain.sizes, log_weights, potentials)


def fair_rows(frame: Any) -> Job:
    """Ours: a fit, and as many new rows."""
    import fairmaxent

    return lambda: fairmaxent.debias(frame, OUTCOME, PROTECTED, random_state=0).sample(
        len(frame)
    )


def fair_weights(frame: Any) -> Job:
    """Ours: a fit, and weights for the rows there are."""
    import fairmaxent

    return lambda: fairmaxent.debias(
        frame, OUTCOME, PROTECTED, random_state=0
    ).weights()


def own_reweighing(frame: Any) -> Job:
    """Our reweighing after Kamiran and Calders."""
    from fairmaxent import baselines

    return lambda: baselines.kamiran_calders(frame, OUTCOME, PROTECTED).weights()


def own_weighting(frame: Any) -> Job:
    """Our weighting after King and Zeng."""
    from fairmaxent import baselines

    return lambda: baselines.king_zeng(frame, OUTCOME, PROTECTED).weights()


def own_prior(frame: Any) -> Job:
    """Our prior after the paper, and as many rows."""
    from reproduction.new_rows import prior

    return lambda: prior(frame, OUTCOME, PROTECTED).sample(len(frame))


def own_mapping(frame: Any) -> Job:
    """Our optimised mapping after Calmon and others, and as many rows."""
    from reproduction.calmon import calmon

    return lambda: calmon(frame, OUTCOME, PROTECTED, epsilon=0.05).sample(len(frame))


def aif360_reweighing(frame: Any) -> Job:
    """AIF360's Reweighing of one of its data sets."""
    from aif360.algorithms.preprocessing import Reweighing

    data = _aif360_dataset(frame)
    return lambda: Reweighing([{PROTECTED: 0.0}], [{PROTECTED: 1.0}]).fit_transform(
        data
    )


def aif360_mapping(frame: Any) -> Job:
    """AIF360's OptimPreproc: its fit alone, as its transform calls what pandas 3 no
    longer has.
    """
    from aif360.algorithms.preprocessing.optim_preproc import OptimPreproc
    from aif360.algorithms.preprocessing.optim_preproc_helpers.opt_tools import OptTools

    data = _aif360_dataset(frame)
    options = {
        "distortion_fun": _changes,
        "epsilon": 0.05,
        "clist": [0.99, 1.99, 2.99],
        "dlist": [0.5, 0.25, 0.1],
    }
    return lambda: OptimPreproc(OptTools, options, seed=0).fit(data)


def random_over_sampling(frame: Any) -> Job:
    """imbalanced-learn's RandomOverSampler on the classes outcome × group."""
    from imblearn.over_sampling import RandomOverSampler

    columns, classes = _imblearn_classes(frame)
    return lambda: RandomOverSampler(random_state=0).fit_resample(columns, classes)


def smote(frame: Any) -> Job:
    """imbalanced-learn's SMOTENC, which needs a numeric column, on the classes outcome
    × group.
    """
    from imblearn.over_sampling import SMOTENC

    columns, classes = _imblearn_classes(frame)
    categorical = [column for column in columns if columns[column].dtype == "category"]
    return lambda: SMOTENC(
        categorical_features=categorical, random_state=0
    ).fit_resample(columns, classes)


METHODS: Mapping[str, tuple[Callable[[Any], Job], str]] = {
    "NumPy pass": (numpy_pass, "the floor: means of tilted rows"),
    "fairmaxent, rows": (fair_rows, "exact rates, new rows"),
    "fairmaxent, weights": (fair_weights, "exact rates, weights"),
    "baselines.kamiran_calders": (own_reweighing, "statistical rate, weights"),
    "baselines.king_zeng": (own_weighting, "representation rate, weights"),
    "reproduction.prior": (own_prior, "both rates about, new rows"),
    "reproduction.calmon": (own_mapping, "statistical rate, mapped rows"),
    "AIF360 Reweighing": (aif360_reweighing, "statistical rate, weights"),
    "AIF360 OptimPreproc, fit": (aif360_mapping, "statistical rate, a mapping"),
    "imbalanced-learn RandomOverSampler": (
        random_over_sampling,
        "both rates, repeated rows",
    ),
    "imbalanced-learn SMOTENC": (smote, "both rates, rows between rows"),
}


def _aif360_dataset(frame: Any) -> Any:
    """One of AIF360's data sets: outcome and group as numbers, text one-hot, numbers as
    they are.
    """
    import pandas
    from aif360.datasets import BinaryLabelDataset

    others = frame.drop(columns=[OUTCOME, PROTECTED])
    table = pandas.get_dummies(
        others, columns=_text_columns(others), prefix_sep="=", dtype=float
    )
    table[PROTECTED] = (frame[PROTECTED] == "Male").astype(float)
    table[OUTCOME] = (frame[OUTCOME] == FAVOURABLE).astype(float)
    return BinaryLabelDataset(
        df=table,
        label_names=[OUTCOME],
        protected_attribute_names=[PROTECTED],
        metadata={
            "label_maps": [{1.0: FAVOURABLE, 0.0: "<=50K"}],
            "protected_attribute_maps": [{1.0: "Male", 0.0: "Female"}],
        },
    )


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """Count the columns that change."""
    return float(sum(old[name] != new[name] for name in old))


def _imblearn_classes(frame: Any) -> tuple[Any, Any]:
    """Columns as imbalanced-learn takes them, text as categories, and a class per
    outcome and group.
    """
    columns = frame.drop(columns=[OUTCOME, PROTECTED])
    text = {
        name: columns[name].fillna("missing").astype("category")
        for name in _text_columns(columns)
    }
    columns = columns.assign(**text)
    return (
        columns,
        (frame[OUTCOME].astype(str) + " " + frame[PROTECTED].astype(str)).to_numpy(),
    )


def _text_columns(columns: Any) -> list[str]:
    return [name for name in columns if columns[name].dtype.kind not in "iuf"]
