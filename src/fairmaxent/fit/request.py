"""Request: what was asked for, made once, checked at the door, and read by everything after it.

A new option of :func:`fairmaxent.debias` is one field here, with its check; the front doors (debias, the estimator, the
AIF360 adapter) take their keywords from the fields.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Any, Literal

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import check_seed
from fairmaxent.data.roles import (
    DetailOption,
    GroupsOption,
    Roles,
    WithinOption,
    check_roles,
    read_columns,
    read_within,
)
from fairmaxent.errors import (
    ColumnError,
    ForbiddenError,
    InputError,
    Option,
    check_choice,
    did_you_mean,
    shown,
)
from fairmaxent.fairness.measure import MissingOption
from fairmaxent.fairness.rates import check_rate
from fairmaxent.fit.target import TargetOption
from fairmaxent.maxent.forbidden import Rule
from fairmaxent.maxent.priors.bases import BaseKind
from fairmaxent.privacy.budget import Privacy
from fairmaxent.privacy.refusals import for_release
from fairmaxent.progress import Progress
from fairmaxent.relabelling.labellers import check_model

RateOption = float | Mapping[str, float | None] | None
ForbidOption = Sequence[Mapping[str, object]]
ParityOption = Literal["probabilities", "predictions"]
OutputOption = Literal["rows", "weights"]
MeansOption = Literal["equal"]


@dataclass(frozen=True, kw_only=True)
class Relabel:
    """How rows are split between outcomes, so that a model trained on the result is fair to the people in the table.

    Parameters
    ----------
    parity
        What should be equal for all groups, up to the statistical rate: the mean of the model's ``"probabilities"``,
        or also its ``"predictions"``, that is, the share of each group that it decides for.
    threshold
        The probability of the favourable outcome from which the model decides for it. With more than two outcomes the
        likeliest is predicted.
    labeller
        Classifier with ``fit`` and ``predict_proba`` whose cross-fitted probabilities relabelling starts from, or the
        name of one: ``"boosting"`` (scikit-learn's histogram gradient boosting), ``"logistic"`` (its logistic
        regression) or ``"tree"`` (the rooted tree). By default boosting if scikit-learn is installed, otherwise the
        tree.
    student
        For ``"predictions"``: the model whose decisions should be equal, given in the same way as the labeller. It is
        tried out on people whom it has not learned from, and labels are corrected by what it decides. Name the model
        that you will train; others come close, but are not certified. An estimate tries it out too.
    blind
        Hide the protected columns from the labeller and the student.
    """

    parity: ParityOption = "probabilities"
    threshold: float = 0.5
    labeller: Any = None
    student: Any = None
    blind: bool = False

    def __post_init__(self) -> None:
        check_choice("parity", self.parity, ParityOption)
        if not _is_number(self.threshold) or not 0 < self.threshold < 1:
            raise InputError(
                Option("threshold"), f" is {self.threshold!r}; it must be a probability between 0 and 1, such as 0.5"
            )
        object.__setattr__(self, "threshold", float(self.threshold))
        check_model("labeller", self.labeller)
        check_model("student", self.student)
        _check_flag("blind", self.blind)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Which model is tried out, by cross-fitting, to estimate how it will treat the people in the table.

    Parameters
    ----------
    output
        What the model learns from: the fit's ``"rows"`` or ``"weights"``.
    student
        The model, given in the same way as the labeller of :class:`Relabel`.
    blind
        Hide the protected columns from the model.
    """

    output: OutputOption = "rows"
    student: Any = None
    blind: bool = False

    def __post_init__(self) -> None:
        check_choice("output", self.output, OutputOption)
        check_model("student", self.student)
        _check_flag("blind", self.blind)


RelabelOption = ParityOption | Relabel
EstimateOption = Literal["auto"] | OutputOption | Estimate


@dataclass(frozen=True)
class Request:
    """What :func:`fairmaxent.debias` was asked for, option by option.

    Whatever is wrong without looking at the data is refused when a request is made; `Problem.of` refuses the rest, such
    as columns and levels that the data do not have.
    """

    outcome: str  # of several, the first; the others are in `also`
    protected: str | Sequence[str]
    _: KW_ONLY
    also: str | Sequence[str] | None = None
    representation_rate: RateOption = None
    statistical_rate: RateOption = 1.0
    favourable: object = None
    groups: GroupsOption = "each"
    within: WithinOption = None
    means: MeansOption | None = None
    target: TargetOption | None = None
    missing: MissingOption = "ignore"
    largest_weight: float | None = None
    base: BaseKind = "tree"
    base_share: float = 0.2
    relabel: RelabelOption | None = None
    estimate: EstimateOption | None = "auto"
    detail: DetailOption | None = None
    weight: str | None = None
    forbid: ForbidOption | None = None
    keep_columns: str | Sequence[str] | None = None
    privacy: Privacy | None = None
    release: bool = False
    random_state: int | None = None
    # The last two are for the call alone: a fit does not keep them.
    domain: Domain | Declaration | None = field(default=None, compare=False, repr=False)
    progress: Progress | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.outcome, list | tuple):
            if not self.outcome:
                raise ColumnError("no outcome column was named; pass at least one as ", Option("outcome"))
            first, *rest = read_columns("outcome", self.outcome)
            object.__setattr__(self, "outcome", first)
            object.__setattr__(self, "also", [*rest, *self.also_names] or None)
        check_roles(self.outcome, [*self.also_names, *self.protected_names, *self.within_names], self.weight)
        check_choice("groups", self.groups, GroupsOption)
        check_choice("missing", self.missing, MissingOption)
        check_choice("base", self.base, BaseKind)
        object.__setattr__(self, "largest_weight", _checked_largest(self.largest_weight, self.target, self._roles))
        object.__setattr__(self, "base_share", check_share("base_share", self.base_share))
        for name in ("representation_rate", "statistical_rate"):
            object.__setattr__(self, name, _checked_rates(name, getattr(self, name)))
        if self.means is not None:
            check_choice("means", self.means, MeansOption)
            if self.statistical_rate == 1:  # equal rates of all levels would leave nothing to move
                object.__setattr__(self, "statistical_rate", None)
        check_seed(self.random_state)
        self.kept_names  # noqa: B018 (which refuses what names no columns)
        if self.detail is not None:
            check_choice("detail", self.detail, DetailOption)
        _check_plan("relabel", self.relabel, Relabel, ParityOption)
        _check_plan("estimate", self.estimate, Estimate, Literal["auto", "rows", "weights"])
        for name, plan in (("relabel", self.relabel), ("estimate", self.estimating)):
            if plan is not None and self.also_names:
                raise InputError(
                    Option(name), " is for a single outcome, but several are named; name one, or leave it out"
                )
        for name, value in for_release(**vars(self)).items():
            object.__setattr__(self, name, value)
        if not isinstance(self.forbid, list | tuple | None):
            raise ForbiddenError(
                Option("forbid"), f" is {shown(self.forbid)}; pass a list of combinations, e.g. [{{'sex': 'Male'}}]"
            )

    @property
    def protected_names(self) -> list[str]:
        """The protected columns, one or several, as a list."""
        return read_columns("protected", self.protected)

    @property
    def also_names(self) -> list[str]:
        """The outcomes after the first."""
        return read_columns("also", self.also or [])

    @property
    def within_names(self) -> list[str]:
        """The columns within whose strata groups are compared."""
        return list(read_within(self.within))

    @property
    def kept_names(self) -> list[str]:
        """The columns to keep although they look like identifiers."""
        return read_columns("keep_columns", self.keep_columns or [])

    @property
    def named_columns(self) -> list[str]:
        """The columns that are used on purpose, even if they look like identifiers."""
        options = [self.target, *(self.forbid or ())]
        mentioned = [str(name) for option in options if isinstance(option, Mapping) for name in option]
        return [*self._roles, *mentioned, *self.kept_names]

    @property
    def _roles(self) -> list[str]:
        return [self.outcome, *self.also_names, *self.protected_names, *self.within_names]

    @property
    def relabelling(self) -> Relabel | None:
        """How outcomes are relabelled; None: rows keep theirs and are reweighed."""
        return Relabel(parity=self.relabel) if isinstance(self.relabel, str) else self.relabel

    @property
    def estimating(self) -> Estimate | None:
        """What is estimated of a model trained on the result when it is made; None: nothing, or only when needed."""
        if self.estimate == "auto":
            return None
        return self.trial_of(self.estimate) if isinstance(self.estimate, str) else self.estimate

    def trial_of(self, output: OutputOption) -> Estimate:
        """What is estimated unless a model is named: the one that labels were made for, or else our choice."""
        made_for = self.relabelling or Relabel()
        return Estimate(output=output, student=made_for.student, blind=made_for.blind)

    @property
    def threshold(self) -> float:
        """The probability of the favourable outcome from which a model decides for it."""
        return Relabel().threshold if self.relabelling is None else float(self.relabelling.threshold)

    def kept(self) -> Request:
        """Return what a fit keeps of its request: a copy, so that the caller's lists and mappings can change."""
        mutable = ("protected", "also", "favourable", "within", "target", "forbid", "keep_columns")
        copies = {name: copy.deepcopy(getattr(self, name)) for name in mutable}
        return replace(self, **copies, domain=None, progress=None)


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

    # What every part of the library asks of a request; the paper knows none of it.
    target: None = field(default=None, init=False, repr=False)
    weight: None = field(default=None, init=False, repr=False)
    within: None = field(default=None, init=False, repr=False)
    privacy: None = field(default=None, init=False, repr=False)
    release: bool = field(default=False, init=False, repr=False)
    forbid: None = field(default=None, init=False, repr=False)


def _checked_rates(name: str, option: RateOption) -> RateOption:
    """Refuse rates outside (0, 1], alone or by column; None asks for nothing."""
    if isinstance(option, Mapping):
        left_out = "; leave the column out to keep its rate as it is in the data"
        return {
            column: None if rate is None else check_rate(Option(name, column=str(column)), rate, hint=left_out)
            for column, rate in option.items()
        }
    unchanged = ("; use ", Option(name, None), " to leave it as it is in the data")
    return None if option is None else check_rate(Option(name), option, hint=unchanged)


def _checked_largest(largest: float | None, target: TargetOption | None, roles: list[str]) -> float | None:
    """Refuse a largest weight below the average, and targets of other columns, which weigh rows beyond any limit."""
    if largest is None:
        return None
    if not _is_number(largest) or not 1 < largest < float("inf"):
        raise InputError(
            Option("largest_weight"),
            f" is {largest!r}; it must be above 1, e.g. 5: no row may then count more than 5 times as much as before",
        )
    others = [name for name in target or {} if name not in roles] if isinstance(target, Mapping) else []
    if others:
        raise InputError(
            Option("largest_weight"),
            f" cannot be kept together with a target of {others[0]!r}, which is neither the outcome nor protected; "
            "leave one of the two out",
        )
    return float(largest)


def read_rates(option: RateOption, name: str, roles: Roles, groups: GroupsOption) -> tuple[float | None, ...]:
    """One wanted rate per outcome and grouping; None leaves it as it is."""
    outcomes = roles.outcome_names
    if isinstance(option, Mapping) and name == "statistical_rate" and len(outcomes) > 1 and {*option} & {*outcomes}:
        for key in option:
            if key not in outcomes:
                raise ColumnError(
                    Option(name), f" names {key!r} beside outcomes; give a rate by outcome, or by protected column"
                )
        return tuple(option.get(outcome) for outcome in outcomes for _ in roles.groupings(groups))
    return _rates_of_groups(option, name, roles, groups) * len(outcomes)


def _rates_of_groups(option: RateOption, name: str, roles: Roles, groups: GroupsOption) -> tuple[float | None, ...]:
    """One wanted rate per grouping."""
    groupings = roles.groupings(groups)
    if not isinstance(option, Mapping):
        return (option,) * len(groupings)
    if groups == "joint":
        raise InputError(
            Option(name),
            ": with ",
            Option("groups", "joint"),
            " there is one rate for all intersections; pass a number or None",
        )
    known = roles.protected_names
    for key in option:
        if key not in known:
            raise ColumnError(Option(name), f" names {key!r}, which is not protected; {did_you_mean(key, known)}")
    return tuple(option.get(column) for column in known)


def read_rules(roles: Roles, forbid: ForbidOption | None) -> tuple[Rule, ...]:
    """Turn forbidden combinations of values into rules on the blocks."""
    domain = roles.domain
    rules = []
    for combination in forbid or ():
        if not isinstance(combination, Mapping):
            raise ForbiddenError(
                Option("forbid"), f" holds {shown(combination)}; name values by column, e.g. {{'sex': 'Male'}}"
            )
        if not combination:
            raise ForbiddenError("an empty combination in ", Option("forbid"), " would forbid every row; remove it")
        assignment = {
            domain.index(name): domain.attribute(name).exact_level(value) for name, value in combination.items()
        }
        text = ", ".join(f"{name} = {value}" for name, value in combination.items())
        rules.append(Rule.of(roles.blocks, assignment, text))
    return tuple(rules)


def check_share(name: str, share: float) -> float:
    """Refuse a share of the base (C) outside [0, 1]."""
    if not _is_number(share) or not 0 <= share <= 1:
        raise InputError(Option(name), f" is {share!r}; it must lie between 0 (rows only) and 1 (base only)")
    return float(share)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputError(Option(name), f" is {shown(value)}; it must be True or False")


def _check_plan(name: str, value: object, kind: type, choices: object) -> None:
    """Refuse what is neither None, nor one of the choices, nor a record of this kind."""
    if value is None or isinstance(value, kind):
        return
    if not isinstance(value, str):
        raise InputError(Option(name), f" is {shown(value)}; pass one of the choices, {kind.__name__}(…), or None")
    check_choice(name, value, choices)
