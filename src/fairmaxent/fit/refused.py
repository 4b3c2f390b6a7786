"""What cannot be asked of one fit, or made of it; `options.refusals` says how."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.roles import read_columns, read_within
from fairmaxent.errors import Option
from fairmaxent.options.refusals import GIVEN, MISSING, Refused
from fairmaxent.relabelling.labellers import STUDENTS

Values = Mapping[str, Any]

_NEW_ROWS = ("draw new rows with ", Option("mode", "rows"))
# outputs that are about the rows of the data
_OWN_ROWS = ("weights", "top-up", "uncertainty")


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


# ---------------------------------------------------------------- which columns


def _has_training(values: Values) -> bool:
    """Whether decisions of a model are made equal, which has to be trained."""
    return values.get("parity") != "probabilities"


def _outcomes(values: Values) -> list[str]:
    also = values.get("also") or ()
    if isinstance(also, Mapping):  # as typed: each with its good level
        also = list(also)
    return [values["outcome"], *read_columns("also", also)]


def _target_names(values: Values) -> Iterator[str]:
    """The columns with wanted shares; what is no such option is refused elsewhere."""
    if isinstance(values["target"], Mapping):
        yield from values["target"]


def _same_groups(values: Values) -> str | None:
    """The column whose groups get their sizes twice.

    Of intersections, the rate holds within each level of a column that has shares.
    """
    if values["groups"] == "joint":
        return None
    rates = values["representation_rate"]
    protected = read_columns("protected", values["protected"])
    for column in _target_names(values):
        rate = rates.get(column) if isinstance(rates, Mapping) else rates
        if column in protected and rate is not None:
            return column
    return None


def _without_role(values: Values) -> str | None:
    """The first column with wanted shares that is no outcome and compares nothing."""
    protected = read_columns("protected", values["protected"])
    roles = [*_outcomes(values), *protected, *read_within(values["within"])]
    return next((name for name in _target_names(values) if name not in roles), None)


def _by_column(name: str, values: Values) -> bool:
    """Whether a rate is given for columns, not for outcomes."""
    rates = values[name]
    if not isinstance(rates, Mapping):
        return False
    outcomes = _outcomes(values)
    is_by_outcome = len(outcomes) > 1 and not rates.keys().isdisjoint(outcomes)
    return name == "representation_rate" or not is_by_outcome


def _outcome_in_bins(values: Values) -> bool:
    """Whether the outcome was declared by the edges of bins."""
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
_NO_EXACT_VALUES = "no row's exact values are kept"
_BESIDE_SHARING = [
    row
    for sharing in ("privacy", "release")
    for row in (
        Refused("detail", ("rows",), sharing, GIVEN, _NO_EXACT_VALUES),
        Refused(
            "means",
            GIVEN,
            sharing,
            GIVEN,
            f"{_NO_EXACT_VALUES}, so nobody knows the mean of a bin",
            "declare the numbers that the outcome can be as levels instead of edges, or"
            " leave one of them out",
            when=_outcome_in_bins,
        ),
        Refused(
            "estimate",
            _weights,
            sharing,
            GIVEN,
            "there are no weights",
            ("use ", Option("estimate", "rows")),
        ),
        Refused(
            "base_share",
            _below_one,
            sharing,
            GIVEN,
            "all of its rows come from its model",
        ),
    )
]
MODEL = (
    *(
        Refused(
            name,
            GIVEN,
            "parity",
            ("probabilities",),
            "probabilities are made equal, and nothing is decided",
        )
        for name in ("sees_protected", "threshold", "decided")
    ),
    Refused(
        "estimator",
        _classifier,
        "parity",
        ("probabilities",),
        f"that is for a model by name: {', '.join(map(repr, STUDENTS))}",
    ),
)
OUTPUTS = (
    Refused(
        "mode",
        _OWN_ROWS,
        "privacy",
        GIVEN,
        "it is about your own rows, which a private fit does not keep",
        _NEW_ROWS,
    ),
    Refused(
        "mode",
        _OWN_ROWS,
        "release",
        GIVEN,
        "it would be about real people's rows",
        _NEW_ROWS,
    ),
    Refused(
        "mode",
        ("uncertainty",),
        "model",
        GIVEN,
        "every replicate would have to train it again",
        "the certificate has intervals of what it decides",
        when=_has_training,
    ),
    Refused("iid", GIVEN, "mode", _OWN_ROWS, "only new rows are drawn"),
    Refused("evaluate", GIVEN, "mode", _OWN_ROWS, "it judges new rows"),
    Refused(
        "evaluate",
        GIVEN,
        "privacy",
        GIVEN,
        "it compares with your rows without noise, which a private report cannot hold",
        "judge the drawn rows with 'fairmaxent evaluate', and keep the answer to"
        " yourself",
    ),
    Refused(
        "evaluate",
        GIVEN,
        "data",
        MISSING,
        "the rows are compared with the table that the fit was made from",
    ),
    Refused(
        "data",
        GIVEN,
        "privacy",
        GIVEN,
        "a private fit does not keep the rows of the data, so nothing is compared",
    ),
)
ROLES = (
    Refused("favourable", GIVEN, "outcome", MISSING, "it is a level of the outcome"),
)
EVALUATION = (
    *ROLES,
    Refused("protected", GIVEN, "outcome", MISSING, "its rates are compared"),
)
REQUEST = (
    *ROLES,
    *(Refused(name, GIVEN, "model", GIVEN, why) for name, why in _BESIDE_MODEL.items()),
    Refused("model", GIVEN, "privacy", GIVEN, "a model learns from the exact rows"),
    Refused(
        "estimate",
        GIVEN,
        "model",
        GIVEN,
        "what it decides is estimated anyway",
        when=_has_training,
    ),
    Refused("estimate", GIVEN, "also", GIVEN, "it is about a single outcome"),
    Refused(
        "representation_rate",
        GIVEN,
        "target",
        GIVEN,
        "both set the sizes of its groups",
        when=_same_groups,
    ),
    Refused(
        "target",
        GIVEN,
        "largest_weight",
        GIVEN,
        "the shares of a column that is neither outcome nor protected weigh rows beyond"
        " any limit",
        when=_without_role,
    ),
    *(
        Refused(
            name,
            GIVEN,
            "groups",
            ("joint",),
            "there is one rate for all intersections",
            "give a number instead of columns",
            when=partial(_by_column, name),
        )
        for name in ("representation_rate", "statistical_rate")
    ),
    Refused(
        "weight",
        GIVEN,
        "privacy",
        GIVEN,
        "a person with a large weight would need more noise than the others",
    ),
    Refused(
        "base",
        GIVEN,
        "privacy",
        GIVEN,
        "a private fit measures what its tree needs",
    ),
    *_BESIDE_SHARING,
    *MODEL,
    *OUTPUTS,
)
