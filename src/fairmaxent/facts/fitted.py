"""All that is known of a fit; `telling` words it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairmaxent.data.levels import Notes
from fairmaxent.data.reading import RedrawnValues
from fairmaxent.data.table import Names, Reals
from fairmaxent.facts.costs import Costs
from fairmaxent.facts.groups import Gap, GroupChange, LikelyFacts
from fairmaxent.facts.models import Decisions, ModelEstimate
from fairmaxent.fairness.rates import ByGrouping, Measure, Rates
from fairmaxent.privacy.budget import Ledger
from fairmaxent.privacy.provenance import Provenance

SMALL_GROUP = 30  # rows
_SLACK = 1e-6  # solvers stop a little short of an exact share


@dataclass(frozen=True)
class MissingValues:
    """Missing values of an outcome or protected column that are not compared."""

    column: str
    share: float  # of the rows
    after: float  # the share in the fitted distribution


@dataclass(frozen=True)
class OutcomeShare:
    """How common an outcome is in the data, and in the fitted distribution."""

    outcome: str
    before: float
    after: float


@dataclass(frozen=True)
class GroupMean:
    """The mean of a numeric outcome in a group, in the data and by the fair weights."""

    grouping: str
    group: str
    before: float
    after: float


@dataclass(frozen=True)
class TargetShare:
    """The share of a group that the user named, and the one that it has."""

    grouping: str
    name: str  # of the group, with its column
    wanted: float
    after: float

    @property
    def is_missed(self) -> bool:
        """Whether the group has another share than was asked for."""
        return abs(self.after - self.wanted) > _SLACK


@dataclass(frozen=True, eq=False, kw_only=True)
class UnderivedFacts:
    """Facts that do not follow from the rows and the fitted distribution."""

    # combinations with rows that cannot count if the wishes are to be met
    emptied_cells: Names = ()
    # the largest weight that would have allowed what was asked for; None: it was
    # reached, or there is no limit
    needed_limit: float | None = None
    # that look like identifiers, and that nobody asked to keep
    left_out_columns: Names = ()
    # None: drawn rows that copy a real row keep its exact values
    redrawn: RedrawnValues | None = None
    # what a model trained on the result will do; None: nobody asked
    estimate: ModelEstimate | None = None
    # of the model that the table was made for; None: for none
    decisions: Decisions | None = None
    # what the fit revealed at most; counts are noisy estimates then. None: no promise
    privacy: Ledger | None = None
    # of groups that are probabilities; None: groups are known
    likely: LikelyFacts | None = None

    @property
    def provenance(self) -> Provenance:
        """What may be shown of the rows, and whose noise numbers have."""
        return Provenance.measured(self.privacy)


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts(UnderivedFacts):
    """All that remarks on a fit are made from."""

    measure: Measure
    wanted: Rates
    achieved: Rates  # exact: taken from the fitted distribution, not from drawn rows
    rows: int  # of the data
    # how many equally weighted rows carry as much information as the fair weights
    effective_rows: float
    # of fewer than `SMALL_GROUP` rows, whatever they weigh
    small_groups: dict[str, int]
    # those that are too small to decide a rate that is stated
    set_apart: tuple[GroupChange, ...]
    gaps: tuple[Gap, ...]  # before; none: nobody can say whether they are chance
    # combinations that nobody in the data has, and that the base fills
    filled_cells: Names
    filled_shares: tuple[float, ...]  # of each of them
    removed_levels: Names
    # the bins of outcome and protected columns that have some
    binned_columns: dict[str, Names]
    # missing values that are not compared; most keep their share
    kept_missing: tuple[MissingValues, ...]
    # by grouping, strata in which there is nothing to compare
    single_groups: dict[str, Names]
    # of the data, by forbidden combination; they count zero
    forbidden_rows: dict[str, int]
    outcome_shares: tuple[OutcomeShare, ...]
    means: tuple[GroupMean, ...]  # none: nobody asked for equal means
    targets: tuple[TargetShare, ...]  # shares of groups that the user named
    weight_limit: float | None  # the limit that was asked for
    notes: Notes  # what reading the columns showed
    costs: Costs | None  # None: one of the paper's own configurations
    copied_share: float  # of drawn rows that copy a real one on purpose
    before: Rates
    # Theorem 4.5: the statistical rate is at least this, whatever the solver did to
    # single cells
    bound: float
    delta: float  # δ of Theorem 4.5
    dual: float  # h(λ*) = −KL(p*‖q)
    iterations: int
    residual: float  # max |E[φ] − θ|
    method: str
    multiplier_norm: float  # ‖λ*‖₂
    multiplier_bound: float | None  # Lemma 4.2; None if its assumptions do not hold
    distance: dict[str, float]  # "to_prior": KL(p*‖q); "from_data": KL(data‖p*)
    table: Reals  # p*(y, z)

    @property
    def rates_shown(self) -> Iterator[tuple[str, str]]:
        """Kind and grouping of every rate, group shares once for all outcomes."""
        groupings = {name for name, _ in self.measure.of_first_outcome}
        for kind, names in self.wanted.items():
            for name in names:
                if kind == "statistical_rate" or name in groupings:
                    yield kind, name

    @property
    def outcomes_compared(self) -> tuple[OutcomeShare, ...]:
        """How common those outcomes are that the statistical rate compares."""
        return self.compared(self.outcome_shares)

    def compared(self, shares: Sequence[OutcomeShare]) -> tuple[OutcomeShare, ...]:
        """Of the shares of all outcomes, those that the statistical rate compares."""
        # The levels of the other outcomes come after those of the first.
        result: list[OutcomeShare] = []
        start = 0
        for axis, levels in ((0, self.measure.favourable), *self.measure.others):
            result += [shares[start + level] for level in levels]
            start += self.table.shape[axis]
        return tuple(result)

    @property
    def wanted_of_decisions(self) -> ByGrouping:
        """The statistical rates that a model's decisions should have.

        Those of the table may give way to them.
        """
        if self.decisions is None:
            return self.wanted["statistical_rate"]
        return {rate.grouping: rate.wanted for rate in self.decisions.rates}
