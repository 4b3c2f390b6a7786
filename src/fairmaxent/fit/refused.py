"""What cannot be asked of one fit, or made of it; `options.refusals` says how."""

from functools import partial

from fairmaxent.errors import Option
from fairmaxent.fit import contradictions as if_
from fairmaxent.options.refusals import MISSING, Refused
from fairmaxent.relabelling.labellers import STUDENTS

_NEW_ROWS = ("draw new rows with ", Option("mode", "rows"))
_ON_ROWS = ("use ", Option("estimate", "rows"))
OLD_ROWS = ("weights", "top-up")  # files that are not of new rows alone
_OWN_ROWS = (*OLD_ROWS, "uncertainty")  # what is made of the rows of the data
# What is asked beside a model, and why not.
_BESIDE_MODEL = {
    "equal_means": "a model decides between two outcomes, which have no mean",
    "largest_weight": "how much a row counts follows from what the model learns",
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
            "equal_means",
            sharing,
            f"{_EXACT}, so nobody knows the mean of a bin",
            "declare the numbers that the outcome can be as levels instead of edges",
            when=if_.outcome_in_bins,
        ),
        Refused(
            "estimate",
            sharing,
            "there are no weights",
            _ON_ROWS,
            value=if_.weights,
        ),
        Refused(
            "base_share",
            sharing,
            "all of its rows come from its model",
            value=if_.below_one,
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
        for name in ("hide_protected", "threshold", "decided")
    ),
    Refused(
        "estimator",
        "parity",
        f"that is for a model by name: {', '.join(map(repr, STUDENTS))}",
        value=if_.classifier,
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
        when=if_.has_training,
    ),
    Refused(
        "mode",
        "likely",
        "nobody knows to which group a row would be added",
        _NEW_ROWS,
        value=("top-up",),
    ),
    Refused(
        "mode",
        "likely",
        "replicates would be of people whose groups are known",
        "the certificate has intervals of what is expected by the true groups",
        value=("uncertainty",),
    ),
    Refused(
        "evaluate", "likely", "a part of the rows would be fitted again, and judged"
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
        when=partial(if_.by_column, name),
    )
    for name in ("representation_rate", "statistical_rate")
)
# What cannot be asked beside groups that are only likely, and why not.
_BESIDE_LIKELY = {
    "base": "nobody knows the group of a row that it makes",
    "equal_means": "the mean of a group is not known if its people are not",
    "forbid": "take such rows out of the table instead; no other rows are made",
    "model": "which groups a model decides for cannot be measured closely enough",
    "estimate": "what a model does to a group is measured where groups are known",
    "privacy": "the noise would be on counts of people whose groups are known",
    "release": "all of its rows would be new, and nobody knows their groups",
}
# What cannot be asked of several outcomes, and why not.
_BESIDE_OUTCOMES = {
    "model": "a model decides about one outcome",
    "likely": "what a name tells would be learned of one outcome at a time",
    "estimate": "what a model does is estimated for a single outcome",
}
# Why groups that are set apart could not keep what they have.
_BESIDE_SMALLEST = {
    "model": "a model decides about everybody, however small their group is",
    "privacy": "how many people a group has is known with noise only",
    "largest_weight": "a limit moves the outcomes of all groups",
}
REQUEST = (
    EVALUATION[0],
    *(Refused(name, "likely", why) for name, why in _BESIDE_LIKELY.items()),
    Refused(
        "base_share",
        "likely",
        "nobody knows the group of a row that the base makes",
        value=if_.above_zero,
    ),
    Refused(
        "target",
        "likely",
        "the shares of a column without a role would move people between groups",
        when=if_.without_role,
    ),
    *(
        Refused("smallest_group", name, why, value=if_.sets_apart)
        for name, why in _BESIDE_SMALLEST.items()
    ),
    Refused(
        "target",
        "smallest_group",
        "groups that are set apart keep their sizes",
        beside=if_.sets_apart,
        when=if_.of_groups,
    ),
    *(Refused(name, "model", why) for name, why in _BESIDE_MODEL.items()),
    Refused(
        "model",
        "statistical_rate",
        "its decisions are made equal by that rate",
        beside=MISSING,
        when=if_.without_rate,
    ),
    Refused("model", "privacy", "a model learns from the exact rows"),
    Refused(
        "estimate",
        "model",
        "what it decides is estimated anyway",
        when=if_.has_training,
    ),
    *(
        Refused(
            "outcome",
            name,
            why,
            ("name a single outcome, or leave ", Option(name), " out"),
            when=if_.several_outcomes,
        )
        for name, why in _BESIDE_OUTCOMES.items()
    ),
    Refused(
        "representation_rate",
        "target",
        "both set the sizes of its groups",
        when=if_.same_groups,
    ),
    Refused(
        "target",
        "largest_weight",
        "the shares of a column without a role weigh rows beyond any limit",
        when=if_.without_role,
    ),
    *JOINT,
    Refused(
        "weight",
        "privacy",
        "a person with a large weight would need more noise than the others",
    ),
    Refused("base", "privacy", "a private fit measures what its tree needs"),
    Refused("keep_columns", "release", "rows to share have no identifiers"),
    Refused(
        "target",
        "mode",
        "rows are added for the shares of outcomes, groups and strata",
        beside=("top-up",),
        when=if_.without_role,
    ),
    *_SHARED,
    *OUTPUTS,
)
