"""The values of options: what they may be, what they mean for columns, and in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np

from fairmaxent import errors
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.likely import TOLD_BY, Likely
from fairmaxent.data.roles import GroupsOption, Roles, read_within
from fairmaxent.data.table import Reals
from fairmaxent.errors import (
    ColumnError,
    InputError,
    Option,
    TargetError,
    did_you_mean,
    shown,
    unfit,
)
from fairmaxent.fairness.rates import check_rate
from fairmaxent.fit import refused
from fairmaxent.maxent.forbidden import Rule
from fairmaxent.maxent.priors.bases import BASES, is_own
from fairmaxent.options import Settings, documented, option
from fairmaxent.options.refusals import refuse
from fairmaxent.relabelling.labellers import STUDENTS, StudentName, check_model

RateOption = float | Mapping[str, float | None] | None
ForbidOption = Sequence[Mapping[str, object]]
ParityOption = Literal["decisions", "opportunity", "probabilities"]
DecidedOption = Literal["keep", "best"]
OutputOption = Literal["rows", "weights"]
MODELS = STUDENTS
Free = Literal["free"]
TargetOption = Mapping[str, Mapping[object, float] | Free | None]

FREE: Free = "free"  # the target of an outcome whose share may move
LEAST_SHARE = 1e-8  # below, a wanted share is lost in rounding, relative to the others
_SLACK = 1e-6  # how far a user's probabilities may be from summing to 1

RATE: Settings = {  # what the two rates have in common
    "main": True,
    "text": "rate",
    "slider": (0.05, 1, 0.01),
    "doc": (
        "The smallest ratio allowed between group shares, and between the groups'"
        " rates of an outcome: a number in (0, 1], one per protected column as"
        ' ``{"sex": 0.9, "race": None}``, or None to ask for nothing. By default groups'
        " keep their sizes, and each outcome becomes equally common in all of them."
    ),
}
# What Python's documentation says of options that belong together.
ROLES_DOC = (
    "The outcome column, and the column or columns whose groups are compared. Several"
    ' outcomes, ``["hired", "promoted"]``, each get the rates, all at once.'
)
TARGET_DOC = (
    'Wanted shares, e.g. ``{"sex": {"Female": 0.6, "Male": 0.4}}``; a'
    " protected column has them in place of a representation rate (with"
    ' ``groups="joint"`` that rate then holds within each of its levels).'
    ' ``{"age": None}`` keeps a column\'s shares as they are in the data.'
    " Binned numbers are named by the labels of their bins, see"
    ' :attr:`Fit.domain`. The outcome keeps its shares by default; ``{"income":'
    ' "free"}`` lets them move, which changes the rows less, but can make the'
    " outcome rarer for everyone. If only sizes of groups are asked for (no"
    " statistical rate), each group keeps its own outcomes instead."
)
PRIVACY_DOC = (
    ":class:`Privacy` with ε and δ: the result reveals at most that much about"
    " any one person. Everything is then learned from noisy counts; the wanted"
    " rates still hold exactly. It needs a ``domain`` that was declared"
    " (:meth:`Domain.declare`), and the library opendp. Weights, rows to add"
    " and exact values are not available. Another private fit of the same"
    " people comes on top, so save this one, and draw from it."
)
MODEL_DOC = (
    'The model that you will train: ``"logistic"``, ``"boosting"``, ``"decision'
    ' tree"``, a classifier of yours, or a Pipeline that takes the columns of'
    " your table; :class:`Model` says more about it. The table is made for it,"
    " so that it decides equally often for all groups, and :meth:`Fit.model` is"
    ' the trained model. With ``Model("boosting", parity="probabilities")``'
    " its mean probabilities are equal instead."
)
SMALLEST_DOC = (
    "Groups below this size are set apart: they are not compared, and keep their sizes"
    ' and outcomes. It is a share of the people compared, ``"2%"``, or a number of'
    " rows, ``30``. By default all groups get what is asked for, but one about whom too"
    " little is known decides no rate in the certificate: fewer than five of its people"
    " would have the outcome, or would not, if it had it as often as all people. With"
    " 0, every group counts."
)
BASES_DOC = (
    "What is mixed into the rows so that every combination is possible (the paper's u),"
    " and its share of the prior (the paper's C), which its share of the result is near"
    " to: "
    + "; ".join(f'``"{kind}"``, {base.sentence}' for kind, base in BASES.items())
    + "."
)
SHARED = (
    "The rows can be shared: none is a copy, and values that fewer than 10 rows have"
    " were replaced, unless they were declared."
)


# ---------------------------------------------------------------- records of options


@documented
@dataclass(frozen=True)
class Model:
    """The model that you will train, and what shall be equal; the table is for it."""

    REFUSED = refused.MODEL

    estimator: Any = option(
        None,
        doc=(
            "A classifier with ``predict_proba`` whose ``fit`` takes ``sample_weight``,"
            " or a Pipeline that ends with one, which takes the columns of your table;"
            ' or a name: ``"logistic"`` (the default), ``"boosting"`` or ``"decision'
            " tree\"``, scikit-learn's, with the columns prepared."
        ),
    )
    _: KW_ONLY
    parity: ParityOption = option(
        "decisions",
        choices=get_args(ParityOption),
        label="Equal for all groups",
        choice_labels={
            "decisions": "its good decisions",
            "opportunity": "those about people with the good outcome",
            "probabilities": "its mean probabilities",
        },
        help=(
            "Of the model of --model: equal shares of good decisions, or (opportunity)"
            " equal shares among those whose outcome is good: the true positive rates;"
            " or (probabilities) equal mean probabilities, by rows that are split"
            " between the outcomes."
        ),
    )
    hide_protected: bool = option(
        False,
        text="flag",
        label="It does not see the groups",
        help=(
            "The model of --model does not see the protected columns. One that does"
            " needs them when it decides."
        ),
        doc=(
            "Hide the protected columns from the model. One that sees them needs them"
            " when it decides."
        ),
    )
    threshold: float = option(
        0.5,
        text="number",
        label="Decision threshold",
        slider=(0.05, 0.95, 0.01),
        help=(
            "The probability of the good outcome from which the model of --model"
            " decides for it; 0.5 by default."
        ),
    )
    decided: DecidedOption = option(
        "keep",
        choices=get_args(DecidedOption),
        label="How many it decides for",
        choice_labels={
            "keep": "as many as now",
            "best": "as many as makes it most accurate",
        },
        help=(
            "How many people the model of --model decides for: as many as when it"
            " learns from the data as they are (keep), or as many as makes it most"
            " accurate (best)."
        ),
    )

    def __post_init__(self) -> None:
        check_model("model", self.estimator, STUDENTS)
        if "odds" in str(self.parity):
            raise InputError(
                f"parity is {shown(self.parity)}; equalised odds cannot be reached:"
                " they ask for two rates, and a model has one threshold in each group;"
                " ask for 'opportunity', the first of them"
            )

        errors.check_choice("parity", self.parity, ParityOption)
        errors.check_flag("hide_protected", self.hide_protected)
        wanted = "be a probability between 0 and 1, such as 0.5"
        threshold = errors.checked_number(
            "threshold", self.threshold, wanted, lambda share: 0 < share < 1
        )
        object.__setattr__(self, "threshold", threshold)
        errors.check_choice("decided", self.decided, DecidedOption)
        refuse(self)


@documented
@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Which model is tried out to estimate how it will treat the people in the table.

    It is tried out by cross-fitting.
    """

    output: OutputOption = option(
        "rows",
        doc='What the model learns from: the fit\'s ``"rows"`` or ``"weights"``.',
    )
    model: Any = option(
        None,
        doc=(
            "The model: a classifier with ``fit`` and ``predict_proba``, or a name:"
            ' ``"boosting"`` (scikit-learn\'s histogram gradient boosting),'
            ' ``"logistic"`` (its logistic regression) or ``"tree"`` (the rooted tree).'
            " By default boosting if scikit-learn is installed, otherwise the tree."
        ),
    )
    hide_protected: bool = option(
        False, doc="Hide the protected columns from the model."
    )

    def __post_init__(self) -> None:
        errors.check_choice("output", self.output, OutputOption)
        check_model("model", self.model)
        errors.check_flag("hide_protected", self.hide_protected)


ModelOption = StudentName | Model
EstimateOption = OutputOption | Estimate


@dataclass(frozen=True)
class PaperRequest:
    """What :func:`fairmaxent.paper.fit` was asked for, by the paper's own names."""

    # What outputs ask of every request after the fit; the paper knows none of it.
    target = weight = within = privacy = forbid = likely = None
    release = False
    REFUSED = ()

    outcome: str
    protected: str
    _: KW_ONLY
    C: float
    prior: str
    theta: str
    tau: float
    solver: str
    favourable: object = None
    random_state: int | None = None  # the paper's fits have no seed of their own

    def words(self) -> Iterator[str]:
        """What was asked for, in one sentence."""
        yield (
            f"The paper's own configuration: prior q^{self.prior} with C ="
            f" {self.C:.3g}, expectation θ^{self.theta}, τ = {self.tau:.3g}."
        )


# ---------------------------------------------------------------- checks at the door


def check_base(
    option: str,
    value: object,
    *,
    others: Sequence[str] = (),
    forbid: object = None,
) -> None:
    """Refuse the name of a base that is neither ours nor registered."""
    known = (*others, *BASES)
    if not isinstance(value, str) or value not in known:
        raise unfit(option, value, did_you_mean(value, known))
    if forbid and is_own(value):
        raise InputError(
            Option(option),
            f" is {value!r}, your own, which cannot know what is impossible; leave out"
            " ",
            Option("forbid"),
        )


def checked_rates(name: str, option: RateOption) -> RateOption:
    """Refuse rates outside (0, 1], alone or by column; None asks for nothing."""
    if option is None:
        return None
    if not isinstance(option, Mapping):
        unchanged = ("; use ", Option(name, None), " to leave it as it is in the data")
        return check_rate(Option(name), option, hint=unchanged)

    left_out = "; leave the column out to keep its rate as it is in the data"
    rates: dict[str, float | None] = {}
    for column, rate in option.items():
        rates[column] = None
        if rate is not None:
            asked = Option(name, column=str(column))
            rates[column] = check_rate(asked, rate, hint=left_out)
    return rates


def checked_largest(largest: float | None) -> float | None:
    """Refuse a largest weight below the average."""
    if largest is None:
        return None
    return errors.checked_number(
        "largest_weight",
        largest,
        "be above 1, e.g. 5: no row may then count more than 5 times as much as before",
        lambda weight: 1 < weight < float("inf"),
    )


def rates_in(option: RateOption) -> list[float]:
    """The rates that are asked for: one for all, or by column or outcome."""
    rates = option.values() if isinstance(option, Mapping) else [option]
    return [rate for rate in rates if rate is not None]


def check_target(target: object) -> None:
    """Refuse what are no shares by column."""
    if not isinstance(target, Mapping | None):
        raise TargetError(
            Option("target"),
            f" is {shown(target)}; pass the wanted shares by column: {{column: {{level:"
            " share}}",
        )


def check_rules(forbid: object) -> None:
    """Refuse what is no list of combinations."""
    if forbid is None:
        return
    if not isinstance(forbid, list | tuple) or not all(
        isinstance(rule, Mapping) and rule for rule in forbid
    ):
        raise errors.ForbiddenError(
            Option("forbid"),
            f" is {shown(forbid)}; pass a list of combinations, none of them empty,"
            " e.g. [{'sex': 'Male'}]",
        )


def check_likely(likely: Likely, others: Sequence[str | None]) -> None:
    """Refuse columns that have another role."""
    names = [*others, *likely.used]
    for name in names:
        if name is not None and names.count(name) > 1:
            raise ColumnError(
                Option("likely"),
                f": column {name!r} has two roles; it can have one of them",
            )


def check_estimate(plan: object) -> None:
    """Refuse what is no plan of an estimate."""
    if not isinstance(plan, str | Estimate | None):
        raise errors.InputError(
            Option("estimate"),
            f" is {shown(plan)}; pass one of the choices, Estimate(…), or None",
        )
    if isinstance(plan, str):
        errors.check_choice("estimate", plan, OutputOption)


def check_share(name: str, share: float) -> float:
    """Refuse a share of the base (C) outside [0, 1]."""
    wanted = "lie between 0 (rows only) and 1 (base only)"
    return errors.checked_number(name, share, wanted, lambda part: 0 <= part <= 1)


def checked_model(given: Any) -> Model | str | None:
    """The model of a request, by name or as a record."""
    if given is None or isinstance(given, Model):
        return given
    plan = Model(given)  # which refuses a name that it does not know
    return given if isinstance(given, str) else plan


# ---------------------------------------------------------------- on the columns


def read_rates(
    option: RateOption,
    name: str,
    roles: Roles,
    groups: GroupsOption,
) -> tuple[float | None, ...]:
    """One wanted rate per outcome and grouping; None leaves it as it is."""
    outcomes = roles.outcome_names
    columns = roles.protected_names
    groupings = roles.groupings(groups)
    if not isinstance(option, Mapping):
        return (option,) * len(groupings) * len(outcomes)

    several = name == "statistical_rate" and len(outcomes) > 1
    if several and not {*option}.isdisjoint(outcomes):
        _refuse_other_names(name, option, outcomes, "an outcome")
        return tuple(option.get(outcome) for outcome in outcomes for _ in groupings)
    _refuse_other_names(name, option, columns, "protected")
    return tuple(option.get(column) for column in columns) * len(outcomes)


def _refuse_other_names(
    name: str,
    option: Mapping[str, object],
    known: Sequence[str],
    kind: str,
) -> None:
    for key in option:
        if key not in known:
            raise ColumnError(
                Option(name),
                f" names {key!r}, which is not {kind}; {did_you_mean(key, known)}",
            )


def read_rules(roles: Roles, forbid: ForbidOption | None) -> tuple[Rule, ...]:
    """Turn forbidden combinations of values into rules on the blocks."""
    rules = []
    domain = roles.domain
    for combination in forbid or ():
        levels = {
            domain.index(name): domain.attribute(name).exact_level(value)
            for name, value in combination.items()
        }
        rules.append(Rule.of(roles.blocks, levels, rule_text(combination)))
    return tuple(rules)


def read_target(roles: Roles, target: TargetOption | None) -> dict[int, Reals | None]:
    """Wanted shares by attribute; None: those that it has in the data.

    An outcome that is free to move is left out.
    """
    domain = roles.domain
    result: dict[int, Reals | None] = {}
    for name, wanted in (target or {}).items():
        index = domain.index(name)
        is_outcome = index in (roles.outcome, *roles.others)
        if wanted is None:
            result[index] = None
        elif not (is_outcome and isinstance(wanted, str) and wanted == FREE):
            result[index] = _read_shares(domain.attribute(name), wanted)
    return result


def _read_shares(attribute: Attribute, wanted: Mapping[object, float] | Free) -> Reals:
    option = Option("target", column=attribute.name)
    if not isinstance(wanted, Mapping):
        raise TargetError(
            option,
            f" is {shown(wanted)}; give each level its share: {{level: share}}; only an"
            f" outcome can be {FREE!r}",
        )

    result = np.zeros(attribute.size)
    for value, probability in wanted.items():
        if not isinstance(probability, Real) or not (
            probability == 0 or LEAST_SHARE <= probability <= 1
        ):
            raise TargetError(
                option,
                f" gives {shown(value)} the share {probability!r}; a share lies between"
                f" 0 and 1, and the smallest is {LEAST_SHARE:g}; use 0 for none",
            )
        result[attribute.exact_level(value)] += float(probability)

    if abs(result.sum() - 1) > _SLACK:
        unnamed = [
            repr(label)
            for label, share in zip(attribute.labels, result, strict=True)
            if share == 0
        ]
        hint = ""
        if unnamed:
            hint = f"; not named or zero: {', '.join(unnamed[:8])}"
        raise TargetError(
            option,
            f" adds up to {result.sum():.6g}, not 1{hint}. Give every level its share.",
        )

    return result / result.sum()


# ---------------------------------------------------------------- in words


def share_words(target: TargetOption) -> Iterator[str]:
    """What becomes of the shares of columns."""
    for name, shares in target.items():
        if isinstance(shares, str):
            yield f"The shares of {name} may change."
        elif shares is None:
            yield f"{name} keeps the shares that it has in the data."
        else:
            listed = [f"{level} {share:.4g}" for level, share in shares.items()]
            yield f"Shares of {name}: {', '.join(listed)}."


def likely_words(likely: Likely) -> str:
    """What is known of groups, and what that is taken for."""
    columns = ", ".join(f"{group} by {name}" for group, name in likely.columns.items())
    return (
        f"The groups of {likely.name} are told by probabilities, which are columns"
        f" ({columns}). Assumed where they are not certain: {TOLD_BY[likely.told_by]}."
    )


def smallest_words(request: Any) -> str:
    """Who is set apart, in a sentence."""
    size = request.smallest_group
    if size == 0:
        return "Every group counts in the rates that are stated, however small it is."
    of_what = "rows" if isinstance(size, int) else "of the people compared"
    return f"Groups below {size} {of_what} are not compared, and stay as they are."


def within_words(request: Any) -> Iterator[str]:
    """Which strata are compared, and what they keep."""
    asked = read_within(request.within)
    target = request.target or {}
    columns = " × ".join(asked)
    yield (
        "Groups are compared with the others of their stratum only; the strata are"
        f" those of {columns}."
    )
    for name, level in asked.items():
        if level is None:
            continue
        levels = [level]
        if isinstance(level, list | tuple | set | frozenset):
            levels = list(level)
        yield (
            f"Only strata with {name} = {', '.join(map(str, levels))} are compared;"
            " all others stay as they are."
        )

    if target.keys().isdisjoint(asked):
        kept = ""
        if request.outcome_name not in (*target, *request.free_outcomes):
            kept = f", and its shares of {request.outcome_name}"
        yield f"Each stratum of {columns} keeps its size{kept}."


def model_words(plan: Model) -> Iterator[str]:
    """What is asked of a model."""
    if plan.parity == "probabilities":
        yield (
            "Outcomes change, not how much rows count: each row keeps its weight, which"
            " is split between the outcomes according to a model of the table and the"
            " wanted rates."
        )
        return

    whom = "each group"
    if plan.parity == "opportunity":
        whom = "those whose outcome is good in each group"
    sees = "does not see" if plan.hide_protected else "sees"
    many = "is as accurate as it can be"
    if plan.decided == "keep":
        many = "gives it to as many people as when it learns from the data"
    yield (
        f"The table is made for a model that {sees} the protected columns. Asked of its"
        " decisions, not of the table: that it gives the good outcome (at a probability"
        f" of {plan.threshold:g} or more) to equal shares of {whom}, up to the"
        f" statistical rate, and {many}. The outcomes in the table itself give way to"
        " that, and what the model decides is measured, not promised."
    )


def rule_text(rule: Mapping[str, object]) -> str:
    """Write a forbidden combination."""
    return ", ".join(f"{name} = {value}" for name, value in rule.items())
