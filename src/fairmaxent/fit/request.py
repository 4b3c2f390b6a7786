"""Request: what was asked for, checked at the door, and read by everything after it.

A new option is one field here, with its check, and the code that acts on it: front
doors and reports read the fields.
"""

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import get_args

from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain
from fairmaxent.data.draws import check_seed
from fairmaxent.data.frames import plain_option
from fairmaxent.data.likely import Likely, by_name
from fairmaxent.data.roles import (
    DetailOption,
    GroupsOption,
    WithinOption,
    check_roles,
    read_columns,
    read_protected,
    read_within,
)
from fairmaxent.errors import ColumnError, Option, check_choice, check_flag, unfit
from fairmaxent.fairness.compare import Compare
from fairmaxent.fairness.small_groups import SmallestGroupOption
from fairmaxent.fit import compared, models, refused, rules, wanted_rates, wanted_shares
from fairmaxent.fit.base import BASES_DOC, check_base, check_share
from fairmaxent.maxent.priors.bases import BASES, BaseKind
from fairmaxent.options import documented, like, option, words
from fairmaxent.options.refusals import refuse
from fairmaxent.plain_text import Values
from fairmaxent.privacy.budget import Privacy
from fairmaxent.privacy.provenance import Provenance
from fairmaxent.privacy.refusals import check_private
from fairmaxent.progress import Progress

_SHARED = (
    "The rows can be shared: none is a copy, and values that fewer than 10 rows have"
    " were replaced, unless they were declared."
)


@documented
@dataclass(frozen=True)
class Request:
    """What :func:`fairmaxent.debias` was asked for, option by option.

    What is wrong without looking at the data is refused here; `Problem.of` refuses the
    rest, such as unknown levels.
    """

    HEADING = "What is asked for"
    REFUSED = refused.REQUEST

    outcome: str | Sequence[str] = option(
        main=True,
        text="outcomes",
        required=True,
        label="Outcome",
        help=(
            "The outcome column, e.g. income. Repeat it for further outcomes, which get"
            " the same rates at the same time; promoted=yes names the good level of"
            " one."
        ),
        doc=compared.ROLES_DOC,
    )
    protected: str | Likely | Sequence[str | Likely] = like(
        Compare, "protected", required=True, doc=compared.ROLES_DOC
    )
    _: KW_ONLY
    likely: Likely | None = like(
        Compare,
        "likely",
        words=lambda request: compared.likely_words(request.likely),
    )
    representation_rate: wanted_rates.RateOption = option(
        None,
        has_none=True,
        label="Equal group sizes",
        page_help="1: all are equally large. Not ticked: as in the data.",
        help=(
            "Smallest ratio allowed between group shares: 0.9, none (groups keep their"
            " sizes), or by column: sex=0.9,race=none."
        ),
        **wanted_rates.RATE,
    )
    statistical_rate: wanted_rates.RateOption = option(
        1.0,
        label="Equal outcomes",
        page_help=(
            "1: equally often good in all groups. 0.8: the lowest rate is at least 80 %"
            " of the highest."
        ),
        help=(
            "Smallest ratio allowed between the groups' rates of an outcome. Same"
            " syntax as --representation-rate."
        ),
        **wanted_rates.RATE,
    )
    favourable: object = like(
        Compare,
        "favourable",
        doc=(
            "The outcome level, or list of levels, that the statistical rate compares,"
            " each level on its own; None means every level. With several outcomes, by"
            ' outcome: ``{"hired": "yes", "promoted": "yes"}``.'
        ),
    )
    groups: GroupsOption = like(
        Compare,
        "groups",
        heading="What is compared",
        help=(
            "Compare each protected column on its own, or their intersections: drawn"
            " rows then have the size of each intersection up to one row, but a"
            " column's own groups, which are sums of them, may be off by a few rows."
        ),
        words=lambda request: "Groups are the intersections of the protected columns.",
    )
    within: WithinOption = like(
        Compare,
        "within",
        help=(
            "Compare groups within the strata of these columns, e.g. department,year:"
            " both rates then hold in every stratum, which keeps its size. label=yes"
            " compares within that level only."
        ),
        doc=(
            "Compare groups within the strata of a column, or of several:"
            ' ``"department"`` makes both rates hold in every department, which keeps'
            ' its size and its shares of the outcome. ``{"label": "yes"}`` compares in'
            " these strata only: with a decision as the outcome and the true label as"
            ' the column, that is equal opportunity, and ``"label"`` is equalised odds.'
        ),
        words=compared.within_words,
    )
    equal_means: bool = option(
        False,
        text="flag",
        label="Equal means",
        help=(
            "The outcome is a number: make its mean equal in all groups, instead of the"
            " shares of its bins."
        ),
        doc=(
            "The outcome is a number: its mean becomes equal in all"
            " groups, and stays what it is over all of them. This takes the place of a"
            " statistical rate of 1; a lower rate holds for the levels (bins) as well."
            " If the outcome is in bins, this needs rows in the mixture (``base_share``"
            " below 1), and no ``target`` of another column."
        ),
        words=lambda request: (
            f"The mean of {request.outcome_name} is equal in all groups, and overall"
            " what it is in the"
            f" {'rows that are not forbidden' if request.forbid else 'data'}."
        ),
    )
    target: wanted_shares.TargetOption | None = option(
        None,
        text="shares",
        label="Wanted shares",
        help=(
            "Wanted shares of a column; of a protected column, in place of its"
            " representation rate: 'sex: Female=0.6, Male=0.4'. 'age: keep' keeps the"
            " shares that the data have, as the outcome does by default unless only"
            " sizes of groups are asked for; 'income: free' lets the outcome's shares"
            " change."
        ),
        doc=wanted_shares.TARGET_DOC,
    )
    compare_missing: bool = like(
        Compare,
        "compare_missing",
        help=(
            "Compare missing values of the outcome and protected columns like any other"
            " level. By default they keep their share and are not compared."
        ),
        words=lambda request: (
            "Missing values are compared like any other group or outcome."
        ),
    )
    smallest_group: SmallestGroupOption = like(
        Compare,
        "smallest_group",
        help="Groups below it (2%, or 30 rows) are not compared, and stay as they are.",
        doc=compared.SMALLEST_DOC,
        words=compared.smallest_words,
    )
    largest_weight: float | None = option(
        None,
        text="number",
        label="Largest weight",
        slider=(1.5, 30, 0.5, 10),
        help=(
            "How many times as much as before a row may count at most, e.g. 10; rates"
            " are reached as far as this allows."
        ),
        words=lambda request: (
            f"No row counts more than {request.largest_weight:g} times as much as"
            " before."
        ),
    )
    base: str = option(  # or the name of one that was registered
        "tree",
        choices=get_args(BaseKind),
        label="New combinations come from",
        help=(
            "Model that is mixed into the rows, so that combinations without a row are"
            " possible too."
        ),
        doc=BASES_DOC,
    )
    base_share: float = option(
        0.2,
        text="number",
        label="New combinations",
        slider=(0, 1, 0.01),
        help=(
            "Share of the base in the prior, from 0 to 1; its share of the result is"
            " near, but not the same."
        ),
        page_help="About this share of rows may match nobody in the data.",
        doc=BASES_DOC,
    )
    model: models.ModelOption | None = option(
        None,
        choices=models.MODELS,
        record=models.Model,
        label="Make the table for a model",
        help=(
            "The model that you will train: the table is made for it, so that it"
            " decides equally for all groups."
        ),
        doc=models.MODEL_DOC,
        words=lambda request: models.model_words(request.model_plan),
    )
    estimate: models.EstimateOption | None = option(
        None,
        doc=(
            'Estimate, by cross-fitting, how a model trained on the fit\'s ``"rows"``'
            ' or ``"weights"`` will treat the people in the table; the answer, with'
            " ranges, is in the certificate. :class:`Estimate` names the model. This"
            " takes seconds to minutes; of more than 50,000 people, that many are"
            " taken."
        ),
    )
    detail: DetailOption | None = option(
        None,
        choices=get_args(DetailOption),
        label="Numbers in new rows",
        help=(
            "For drawn rows that copy a real row: keep its exact values (rows, the"
            " default for a table in memory), or redraw them within their bin (bins)."
        ),
    )
    weight: str | None = like(
        Compare,
        "weight",
        heading="What is compared",
        help="Column of design weights, on any scale; the fair weights include them.",
        words=lambda request: (
            f"Rows are weighted by the design weights in {request.weight}."
        ),
    )
    forbid: rules.ForbidOption | None = option(
        None,
        text="pairs",
        label="Impossible combinations",
        help="Impossible combination: 'sex=Male,pregnant=yes'; repeatable.",
        page_help=(
            "New rows never have them, e.g. sex = Male, pregnant = yes; more follow"
            " after a semicolon."
        ),
        doc=(
            'Impossible combinations, e.g. ``[{"sex": "Male", "pregnant": "yes"}]``:'
            " they get probability zero. Each may name any outcome and protected"
            " columns, and at most two others."
        ),
        words=lambda request: [
            f"Never: {rules.rule_text(rule)}." for rule in request.forbid
        ],
    )
    keep_columns: str | Sequence[str] | None = option(
        None,
        text="columns",
        label="Keep",
        help=(
            "Columns to keep although they look like identifiers (or notes about"
            " people). By default such columns are left out of rows, model and report,"
            " unless another option names them."
        ),
        words=lambda request: (
            "Kept, even if they look like identifiers: "
            + f"{', '.join(request.kept_names)}."
        ),
    )
    privacy: Privacy | None = option(
        None,
        record=Privacy,
        doc=(
            ":class:`Privacy` with ε and δ: the result reveals at most that much about"
            " any one person. Everything is then learned from noisy counts; the wanted"
            " rates still hold exactly. It needs a ``domain`` that was declared"
            " (:meth:`Domain.declare`), and the library opendp. Weights, rows to add"
            " and exact values are not available. Another private fit of the same"
            " people comes on top, so save this one, and draw from it."
        ),
        words=lambda request: (
            f"The result is private with {request.privacy}: everything is learned from"
            " noisy counts."
        ),
    )
    release: bool = option(
        False,
        text="flag",
        label="Rows to share",
        help=(
            "Draw rows to share: no copies of real rows, no exact numbers, no"
            " identifiers, and unless declared, no values that fewer than 10 rows have."
            " This is no guarantee; a privacy budget is one."
        ),
        words=lambda request: _SHARED if request.provenance.has_real_rows else (),
    )
    random_state: int | None = option(
        None,
        main=True,
        flags=("--seed", "--random-state"),
        text="whole",
        label="Seed",
        help=(
            "The same seed gives the same rows for a table in the same order; by"
            " default a new one is chosen."
        ),
    )
    # The last two are for the call alone: a fit does not keep them.
    domain: Domain | Declaration | None = option(
        None,
        compare=False,
        repr=False,
        doc=(
            "How columns are read (kinds, bins, order); by default :meth:`Domain.infer`"
            " decides, and :meth:`Domain.declare` says it without looking at the rows."
        ),
    )
    progress: Progress | None = option(
        None,
        compare=False,
        repr=False,
        doc=(
            'Called as ``progress(stage, share)`` with the stage (such as "read",'
            ' "solve" or "estimate") and how much of it is done, from 0 to 1; while'
            " solving, before each iteration. An exception that it raises stops the"
            " fit."
        ),
    )

    def __post_init__(self) -> None:
        plain = {name: plain_option(name, value) for name, value in vars(self).items()}
        self._set(**plain)
        self._name_outcomes()
        self._name_likely()
        check_roles(self.outcome_name, self.role_names[1:], self.weight)
        Compare.of(self)
        if self.detail is not None:
            check_choice("detail", self.detail, DetailOption)
        check_base("base", self.base, forbid=self.forbid)
        self._set(
            base_share=check_share("base_share", self.base_share),
            largest_weight=wanted_rates.checked_largest(self.largest_weight),
            model=models.checked_model(self.model),
        )
        for name in ("representation_rate", "statistical_rate"):
            self._set(**{name: wanted_rates.checked_rates(name, getattr(self, name))})
        check_flag("equal_means", self.equal_means)
        check_seed(self.random_state)
        read_columns("keep_columns", self.keep_columns or [])
        models.check_estimate(self.estimate)
        rules.check_rules(self.forbid)
        wanted_shares.check_target(self.target)
        check_private(self.privacy, self.release)
        refuse(self)
        self._set_what_follows()

    def _name_outcomes(self) -> None:
        """An outcome that is listed alone is one, as if it were not listed."""
        if not isinstance(self.outcome, list | tuple):
            return
        if not self.outcome:
            raise ColumnError(
                "no outcome column was named; pass at least one as ", Option("outcome")
            )
        names = read_columns("outcome", self.outcome)
        self._set(outcome=names if len(names) > 1 else names[0])

    def _name_likely(self) -> None:
        """Of the protected columns, one that nobody has goes by itself."""
        if not isinstance(self.likely, Likely | None):
            hint = "pass Likely(name, {group: column, …}, told_by=…)"
            raise unfit("likely", self.likely, hint)
        recorded, likely = read_protected(self.protected, self.likely)
        if likely is not None:
            self._set(likely=likely, protected=recorded)
            compared.check_likely(likely, [*self.role_names, self.weight])

    def _set_what_follows(self) -> None:
        """Set the options that others leave no choice."""
        if self.equal_means and self.statistical_rate == 1:
            # Equal rates would leave its means nothing to move; others keep theirs.
            further = dict.fromkeys(self.further_outcomes, 1.0)
            self._set(statistical_rate=further or None)
        if self.release or not self.provenance.has_real_rows:
            self._set(base_share=1.0, detail="bins")
        if self.likely is not None:
            self._set(base_share=0.0)

    def _set(self, **checked: object) -> None:
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def protected_names(self) -> list[str]:
        """The protected columns, one or several, as a list."""
        return [*self.recorded_names, *by_name(self.likely)]

    @property
    def recorded_names(self) -> list[str]:
        """The protected columns that the table has."""
        return read_columns("protected", self.protected)  # type: ignore[arg-type]

    @property
    def outcome_names(self) -> list[str]:
        """The outcomes, one or several, as a list."""
        return read_columns("outcome", self.outcome)

    @property
    def outcome_name(self) -> str:
        """The outcome; of several, the first."""
        return self.outcome_names[0]

    @property
    def further_outcomes(self) -> list[str]:
        """The outcomes after the first."""
        return self.outcome_names[1:]

    @property
    def C(self) -> float:  # noqa: N802
        """The paper's C: the share of the base in the prior."""
        return float(self.base_share)

    @property
    def within_names(self) -> list[str]:
        """The columns within whose strata groups are compared."""
        return list(read_within(self.within))

    @property
    def kept_names(self) -> list[str]:
        """The columns to keep although they look like identifiers."""
        return read_columns("keep_columns", self.keep_columns or [])

    @property
    def asks_sizes_only(self) -> bool:
        """Whether groups get other sizes, and nothing is asked about their outcomes.

        Their outcomes are then left alone: P(y | z) stays, and P(y) follows from it.
        """
        if self.equal_means or wanted_rates.rates_in(self.statistical_rate):
            return False
        shares = self.target or {}
        has_target = any(shares.get(name) is not None for name in self.protected_names)
        return has_target or bool(wanted_rates.rates_in(self.representation_rate))

    @property
    def free_outcomes(self) -> list[str]:
        """The outcomes whose shares may move."""
        unless_named = wanted_shares.FREE if self.asks_sizes_only else None
        shares = self.target or {}
        return [
            name
            for name in self.outcome_names
            if shares.get(name, unless_named) == wanted_shares.FREE
        ]

    @property
    def role_names(self) -> list[str]:
        """The outcomes, the protected columns, and those of strata."""
        return [
            *self.outcome_names,
            *self.protected_names,
            *self.within_names,
        ]

    @property
    def named_columns(self) -> list[str]:
        """The columns that are used on purpose, even if they look like identifiers."""
        mentioned = [
            name
            for wish in (self.target, *(self.forbid or ()))
            if isinstance(wish, Mapping)
            for name in wish
        ]
        return [*self.role_names, *map(str, mentioned), *self.kept_names]

    @property
    def model_plan(self) -> models.Model | None:
        """The model that the table is made for."""
        if isinstance(self.model, str):
            return models.Model(self.model)
        return self.model

    @property
    def relabelling(self) -> models.Model | None:
        """The model whose probabilities shall be equal: outcomes are split for it."""
        plan = self.model_plan
        if plan is not None and plan.parity == "probabilities":
            return plan
        return None

    @property
    def training(self) -> models.Model | None:
        """The model whose decisions shall be equal, which has to be trained."""
        if self.relabelling is None:
            return self.model_plan
        return None

    @property
    def estimating(self) -> models.Estimate | None:
        """What is estimated of a model trained on the result; None: nothing."""
        if isinstance(self.estimate, str):
            return models.Estimate(output=self.estimate)
        return self.estimate

    def words(self) -> Iterator[str]:
        """What was asked for besides rates, one sentence each."""
        shares = dict(self.target or {})
        if self.asks_sizes_only:
            yield (
                "Only the sizes of groups change: each keeps its own outcomes, and how"
                " common an outcome is overall follows from that."
            )
        elif not self.equal_means and self.training is None:
            for name in self.outcome_names:
                shares.setdefault(name, None)  # outcomes keep their shares
        yield from wanted_shares.share_words(shares)
        yield from words(self)
        yield "Otherwise the result is as close to the data as possible."
        if self.provenance.has_real_rows and self.likely is None:
            base = (
                f"The prior has a share of {self.C:.3g} from the base {self.base!r},"
                f" {BASES[self.base].sentence}"
            )
            yield f"{base}; it makes combinations possible that no row has."

    @property
    def provenance(self) -> Provenance:
        """What may be shown of the rows of such a fit, and what another spends."""
        return Provenance.asked(self.privacy)

    def has_labels_of(self, other: "Request") -> bool:
        """Whether labels are the same: only what comes after is asked differently."""
        after = {
            name: getattr(other, name)
            for name in ("base", "base_share", "estimate", "detail", "random_state")
        }
        return replace(self, **after) == other

    def kept(self) -> "Request":
        """What a fit keeps of its request: a copy, as the caller's lists may change."""
        asked: Values = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, Collection)
        }
        privacy = self.privacy
        if privacy is not None:
            privacy = replace(privacy, ledger=None, budget=None)
        return replace(
            self,
            **copy.deepcopy(asked),
            privacy=privacy,
            domain=None,
            progress=None,
        )
