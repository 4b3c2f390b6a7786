"""What cannot be asked of one fit, or made of it; `options.refusals` says how."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.roles import read_columns
from fairmaxent.errors import Option
from fairmaxent.options.refusals import MISSING, Refused
from fairmaxent.plain_text import Values
from fairmaxent.relabelling.labellers import STUDENTS

_NEW_ROWS = ("draw new rows with ", Option("mode", "rows"))
_ON_ROWS = ("use ", Option("estimate", "rows"))
OLD_ROWS = ("weights", "top-up")  # files that are not of new rows alone
_OWN_ROWS = (*OLD_ROWS, "uncertainty")  # what is made of the rows of the data


# ---------------------------------------------------------------- which values


def _below_one(share: float) -> bool:
    """Any but 1."""
    return share != 1


def _weights(estimate: Any) -> bool:
    """An estimate of a model that learns from weights."""
    return bool(getattr(estimate, "output", estimate) == "weights")


def _classifier(estimator: object) -> bool:
    """A classifier of yours."""
    return not isinstance(estimator, str)


# ---------------------------------------------------------------- when they are refused


def _has_training(values: Values) -> bool:
    """Unless its probabilities are made equal, not its decisions."""
    return values.get("parity") != "probabilities"


def _names(values: Values, *options: str) -> list[str]:
    """The columns that options name."""
    names: list[str] = []
    for option in options:
        given = values.get(option) or ()
        if isinstance(given, Mapping):  # each with its levels
            given = list(given)
        names += read_columns(option, given)
    return names


def _same_groups(values: Values) -> str | bool:
    """For the same column, or all columns whose intersections are compared.

    Otherwise the rate holds within each level of a column that has shares.
    """
    protected = _names(values, "protected")
    targets = _names(values, "target")
    if values["groups"] is not None:
        return {*protected} <= {*targets}
    rates = values["representation_rate"]
    for column in protected:
        rate = rates.get(column) if isinstance(rates, Mapping) else rates
        if column in targets and rate is not None:
            return column
    return False


def _without_role(values: Values) -> str | None:
    """For a column that is no outcome and compares nothing."""
    roles = _names(values, "outcome", "also", "protected", "within")
    targets = _names(values, "target")
    return next((name for name in targets if name not in roles), None)


def _by_column(name: str, values: Values) -> bool:
    """By column."""
    rates = values[name]
    outcomes = _names(values, "outcome", "also")
    return isinstance(rates, Mapping) and rates.keys().isdisjoint(outcomes)


def _outcome_in_bins(values: Values) -> bool:
    """If the outcome is declared by the edges of bins."""
    domain = values.get("domain")
    return isinstance(domain, Declaration) and values["outcome"] in domain.edges


# ---------------------------------------------------------------- the rows


# What is asked beside a model, and why not.
_BESIDE_MODEL = {
    "means": "a model decides between two outcomes, which have no mean",
    "largest_weight": "how much a row counts follows from what the model learns",
    "also": "a model decides about one outcome",
    "target": "shares follow from what the model learns",
    "forbid": "combinations follow from what the model learns",
}
_EXACT = "no row's exact values are kept"
_SHARED = [
    row
    for sharing in ("privacy", "release")
    for row in (
        Refused("detail", sharing, _EXACT, value=("rows",)),
        Refused(
            "means",
            sharing,
            f"{_EXACT}, so nobody knows the mean of a bin",
            "declare the numbers that the outcome can be as levels instead of edges",
            when=_outcome_in_bins,
        ),
        Refused("estimate", sharing, "there are no weights", _ON_ROWS, value=_weights),
        Refused(
            "base_share",
            sharing,
            "all of its rows come from its model",
            value=_below_one,
        ),
    )
]
MODEL = (
    *(
        Refused(
            name,
            "parity",
            "probabilities are made equal, and nothing is decided",
            beside=("probabilities",),
        )
        for name in ("sees_protected", "threshold", "decided")
    ),
    Refused(
        "estimator",
        "parity",
        f"that is for a model by name: {', '.join(map(repr, STUDENTS))}",
        value=_classifier,
        beside=("probabilities",),
    ),
)
OUTPUTS = (
    Refused(
        "mode",
        "privacy",
        "it is about your own rows, which a private fit does not keep",
        _NEW_ROWS,
        value=_OWN_ROWS,
    ),
    Refused(
        "mode",
        "release",
        "it would be about real people's rows",
        _NEW_ROWS,
        value=_OWN_ROWS,
    ),
    Refused(
        "mode",
        "model",
        "every replicate would have to train it again",
        "the certificate has intervals of what it decides",
        value=("uncertainty",),
        when=_has_training,
    ),
    Refused("iid", "mode", "only new rows are drawn", beside=OLD_ROWS),
    Refused("evaluate", "mode", "it judges new rows", beside=OLD_ROWS),
    Refused(
        "evaluate",
        "privacy",
        "it compares with your rows without noise, which a private report cannot hold",
        "judge the drawn rows with 'fairmaxent evaluate', and keep the answer to"
        " yourself",
    ),
    Refused(
        "evaluate",
        "data",
        "rows are compared with the table that the fit was made from",
        beside=MISSING,
    ),
    Refused(
        "data",
        "privacy",
        "a private fit does not keep the rows of the data, so nothing is compared",
    ),
)
EVALUATION = (
    Refused("favourable", "outcome", "it is a level of the outcome", beside=MISSING),
    Refused("protected", "outcome", "its rates are compared", beside=MISSING),
)
JOINT = tuple(
    Refused(
        name,
        "groups",
        "there is one rate for all intersections",
        "give a number instead of columns",
        beside=("joint",),
        when=partial(_by_column, name),
    )
    for name in ("representation_rate", "statistical_rate")
)
REQUEST = (
    EVALUATION[0],
    *(Refused(name, "model", why) for name, why in _BESIDE_MODEL.items()),
    Refused("model", "privacy", "a model learns from the exact rows"),
    Refused(
        "estimate",
        "model",
        "what it decides is estimated anyway",
        when=_has_training,
    ),
    Refused("estimate", "also", "it is about a single outcome"),
    Refused(
        "representation_rate",
        "target",
        "both set the sizes of its groups",
        when=_same_groups,
    ),
    Refused(
        "target",
        "largest_weight",
        "the shares of a column without a role weigh rows beyond any limit",
        when=_without_role,
    ),
    *JOINT,
    Refused(
        "weight",
        "privacy",
        "a person with a large weight would need more noise than the others",
    ),
    Refused("base", "privacy", "a private fit measures what its tree needs"),
    *_SHARED,
    *MODEL,
    *OUTPUTS,
)
