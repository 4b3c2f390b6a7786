"""The model that a table is made for, and the one that is tried out on it."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

from fairmaxent import errors
from fairmaxent.errors import InputError, Option, shown
from fairmaxent.fit import refused
from fairmaxent.options import documented, option
from fairmaxent.options.refusals import refuse
from fairmaxent.relabelling.labellers import STUDENTS, StudentName, check_model

ParityOption = Literal["decisions", "opportunity", "probabilities"]
DecidedOption = Literal["keep", "best"]
OutputOption = Literal["rows", "weights"]
MODELS = STUDENTS
MODEL_DOC = (
    'The model that you will train: ``"logistic"``, ``"boosting"``, ``"decision'
    ' tree"``, a classifier of yours, or a Pipeline that takes the columns of'
    " your table; :class:`Model` says more about it. The table is made for it,"
    " so that it decides equally often for all groups, and :meth:`Fit.model` is"
    ' the trained model. With ``Model("boosting", parity="probabilities")``'
    " its mean probabilities are equal instead."
)


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


def checked_model(given: Any) -> Model | str | None:
    """The model of a request, by name or as a record."""
    if given is None or isinstance(given, Model):
        return given
    plan = Model(given)  # which refuses a name that it does not know
    return given if isinstance(given, str) else plan


def check_estimate(plan: object) -> None:
    """Refuse what is no plan of an estimate."""
    if not isinstance(plan, str | Estimate | None):
        raise errors.InputError(
            Option("estimate"),
            f" is {shown(plan)}; pass one of the choices, Estimate(…), or None",
        )
    if isinstance(plan, str):
        errors.check_choice("estimate", plan, OutputOption)


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
