"""Plans: how outcomes are relabelled, and which model is tried out; and a request in the paper's own names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from fairmaxent.errors import InputError, Option, check_choice
from fairmaxent.fit.option_values import check_flag, is_number
from fairmaxent.options import documented, option
from fairmaxent.relabelling.labellers import check_model

ParityOption = Literal["probabilities", "predictions"]
OutputOption = Literal["rows", "weights"]


@documented
@dataclass(frozen=True, kw_only=True)
class Relabel:
    """How rows are split between outcomes, so that a model trained on the result is fair to the people in the table."""

    parity: ParityOption = option(
        "probabilities",
        doc="What should be equal for all groups, up to the statistical rate: the mean of the model's "
        '``"probabilities"``, or also its ``"predictions"``, that is, the share of each group that it decides for.',
    )
    threshold: float = option(
        0.5,
        text="number",
        label="Decision threshold",
        only_if={"relabel": (...,)},
        slider=(0.05, 0.95, 0.01),
        help="With --relabel: the probability of the favourable outcome from which a model decides for it; 0.5 by "
        "default.",
        doc="The probability of the favourable outcome from which the model decides for it. With more than two "
        "outcomes the likeliest is predicted.",
    )
    labeller: Any = option(
        None,
        doc="Classifier with ``fit`` and ``predict_proba`` whose cross-fitted probabilities relabelling starts from, "
        'or the name of one: ``"boosting"`` (scikit-learn\'s histogram gradient boosting), ``"logistic"`` (its '
        'logistic regression) or ``"tree"`` (the rooted tree). By default boosting if scikit-learn is installed, '
        "otherwise the tree.",
    )
    student: Any = option(
        None,
        choices=("boosting", "logistic", "tree"),
        label="The model that you will train",
        help="The model that you will train: gradient boosting (the default), logistic regression or the rooted tree. "
        "--relabel predictions makes its decisions equal, and its behaviour is what is estimated.",
        page_help="The model whose behaviour is estimated, and whose decisions are made equal if you relabel for "
        "equal decisions: gradient boosting, logistic regression or the rooted tree.",
        doc='For ``"predictions"``: the model whose decisions should be equal, given in the same way as the labeller. '
        "It is tried out on people whom it has not learned from, and labels are corrected by what it decides. Name "
        "the model that you will train; others come close, but are not certified. An estimate tries it out too.",
    )
    blind: bool = option(
        False,
        text="flag",
        label="It does not see the groups",
        help="The model that you will train does not see the protected columns: hide them from all models here too.",
        doc="Hide the protected columns from the labeller and the student.",
    )

    def __post_init__(self) -> None:
        check_choice("parity", self.parity, ParityOption)
        if not is_number(self.threshold) or not 0 < self.threshold < 1:
            raise InputError(
                Option("threshold"), f" is {self.threshold!r}; it must be a probability between 0 and 1, such as 0.5"
            )
        object.__setattr__(self, "threshold", float(self.threshold))
        check_model("labeller", self.labeller)
        check_model("student", self.student)
        check_flag("blind", self.blind)


@documented
@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Which model is tried out, by cross-fitting, to estimate how it will treat the people in the table."""

    output: OutputOption = option("rows", doc='What the model learns from: the fit\'s ``"rows"`` or ``"weights"``.')
    student: Any = option(None, doc="The model, given in the same way as the labeller of :class:`Relabel`.")
    blind: bool = option(False, doc="Hide the protected columns from the model.")

    def __post_init__(self) -> None:
        check_choice("output", self.output, OutputOption)
        check_model("student", self.student)
        check_flag("blind", self.blind)


RelabelOption = ParityOption | Relabel
EstimateOption = Literal["auto"] | OutputOption | Estimate


@dataclass(frozen=True)
class PaperRequest:
    """What :func:`fairmaxent.paper.fit` was asked for, by the paper's own names.

    An option of `Request` that an output reads after the fit needs a field here too, with the value that means nothing.
    """

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
            f"The paper's own configuration: prior q^{self.prior} with C = {self.C:.3g}, expectation θ^{self.theta}, "
            f"τ = {self.tau:.3g}."
        )

    # What every part of the library asks of a request; the paper knows none of it.
    target: None = field(default=None, init=False, repr=False)
    weight: None = field(default=None, init=False, repr=False)
    within: None = field(default=None, init=False, repr=False)
    privacy: None = field(default=None, init=False, repr=False)
    release: bool = field(default=False, init=False, repr=False)
    forbid: None = field(default=None, init=False, repr=False)
