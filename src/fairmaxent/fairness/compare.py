"""Compare: which groups are compared, in which rows, and who is too small for that.

Every front door asks this. Each option is declared here, once: the records of `debias`
and `check` take it over (`options.like`), metrics and `inspect` as keywords.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypedDict, get_args

from fairmaxent.data.likely import Likely, by_name
from fairmaxent.data.roles import (
    GroupsOption,
    Protected,
    WithinOption,
    listed,
    read_protected,
)
from fairmaxent.data.table import Names
from fairmaxent.errors import (
    ColumnError,
    InputError,
    Option,
    check_choice,
    check_flag,
    did_you_mean,
)
from fairmaxent.fairness.small_groups import SmallestGroupOption, SmallGroups
from fairmaxent.options import option, shared
from fairmaxent.options.refusals import Refused, refuse

ReferenceOption = Any  # a level, levels by column, or None


class Compared(TypedDict, total=False):
    """Keywords of `Compare` with their types, for those who check types."""

    likely: Likely | None
    groups: GroupsOption
    within: WithinOption
    compare_missing: bool
    smallest_group: SmallestGroupOption
    reference: ReferenceOption
    weight: Any
    cluster: str | None
    domain: Any


@dataclass(frozen=True, eq=False)
class Compare:
    """Which groups are compared, in which rows, and who is too small for that."""

    REFUSED = (
        Refused(
            "cluster", "likely", "its intervals assume that people are independent"
        ),
    )

    protected: Protected = option(
        main=True,
        text="columns",
        label="Groups to compare",
        help="Columns whose groups are compared, e.g. sex,race; repeatable.",
    )
    _: KW_ONLY
    likely: Likely | None = option(
        None,
        main=True,
        text="names",
        metavar="GROUPS",
        record=Likely,
        label="Groups known as probabilities",
        help=(
            "Groups that nobody wrote down, and the columns of their probabilities:"
            " 'race: white=p_white, black=p_black'."
        ),
        doc=(
            "A protected column that nobody has: the probability of each group, for"
            " each person (:class:`Likely`). It may also stand among the protected"
            ' columns: ``protected=Likely("race", {"white": "p_white", "black":'
            ' "p_black"}, told_by="names")``.'
        ),
    )
    favourable: object = option(
        None,
        main=True,
        flags=("--favourable", "--favorable"),
        text="level",
        label="Good outcome",
        help=(
            "The good outcome, which the statistical rate compares (by default: every"
            " outcome); repeatable."
        ),
        doc=(
            "The outcome level, or list of levels, that the statistical rate compares,"
            " each level on its own; None means every level."
        ),
    )
    groups: GroupsOption = option(
        "each",
        choices=get_args(GroupsOption),
        label="Compare",
        choice_labels={
            "each": "each column on its own",
            "joint": "their intersections",
        },
        choice_help={"each": "Their intersections may then stay unequal."},
        help="Compare each column on its own, or their intersections.",
    )
    within: WithinOption = option(
        None,
        text="strata",
        label="Compare only within",
        help="Compare within the strata of these columns, e.g. label=yes.",
        doc=(
            "Compare groups with those of their own stratum, by a column, or by"
            ' several: ``"department"``. ``{"label": "yes"}`` compares in these strata'
            " only: with a recorded decision as the outcome and the true label as the"
            " column, that is equal opportunity."
        ),
    )
    compare_missing: bool = option(
        False,
        text="flag",
        label="Compare missing values as a group",
        help=(
            "Compare missing values of the outcome and protected columns like any other"
            " level. By default they are not compared."
        ),
    )
    smallest_group: SmallestGroupOption = option(
        None,
        text="size",
        label="Smallest group",
        help=(
            "Groups below this size are listed, and decide nothing: 2% of the people"
            " compared, or 30 rows; 0: all decide. By default, those about whom too"
            " little is known are."
        ),
        doc=(
            "Groups below this size are set apart: they are listed, and decide nothing."
            ' It is a share of the people compared, ``"2%"``, or a number of rows,'
            " ``30``. By default a group is set apart if fewer than five of its people"
            " would have the outcome, or would not, if it had it as often as all"
            " people; its size alone is compared all the same. With 0, every group"
            " counts."
        ),
    )
    reference: ReferenceOption = option(
        None,
        text="reference",
        help=(
            "The group that all others are compared with: Male, or by column:"
            " sex=Male,race=White."
        ),
        doc=(
            "The group that all others are compared with, and not with each other:"
            ' ``"Male"``, or by column ``{"sex": "Male", "race": "White"}``.'
        ),
    )
    weight: Any = option(
        None,
        metavar="COLUMN",
        label="Design weights",
        help="Column of design weights, on any scale.",
    )
    cluster: str | None = option(
        None,
        metavar="COLUMN",
        help=(
            "Column that says which people belong together, e.g. a household or a"
            " branch: intervals then allow for them being alike."
        ),
        doc=(
            "Column that says which people belong together, such as a household, a"
            " class or a branch, at least ten of them, and better 30: intervals then"
            " allow for people of one being alike. Without it, they assume that all are"
            " independent."
        ),
    )
    domain: Any = option(
        None,
        repr=False,
        doc=(
            "How columns are read, such as ``fit.domain``: its levels (e.g. bins) are"
            " compared instead of values. By default columns are read as they are."
        ),
    )

    def __post_init__(self) -> None:
        """Refuse what makes no sense, whatever the table."""
        recorded, likely = read_protected(self.protected, self.likely)
        object.__setattr__(self, "protected", recorded)
        object.__setattr__(self, "likely", likely)
        check_choice("groups", self.groups, GroupsOption)
        check_flag("compare_missing", self.compare_missing)
        SmallGroups.of(self.smallest_group)
        if self.names:  # those of `inspect` may not be known yet
            self.levels_of_reference  # noqa: B018 (which is checked)
        refuse(self)

    @classmethod
    def of(cls, asked: Any) -> "Compare":
        """What a record asks to compare."""
        return cls(**shared(asked, cls))

    @property
    def names(self) -> Names:
        """The protected columns, and groups that are likely, by name."""
        return (*map(str, listed(self.protected)), *by_name(self.likely))

    @property
    def groupings(self) -> list[Names]:
        """Columns whose levels, or their intersections, are compared."""
        if not self.names:
            raise ColumnError(
                Option("protected"), " names no column; name at least one"
            )
        if self.groups == "joint":
            return [self.names]
        return [(name,) for name in self.names]

    @property
    def levels_of_reference(self) -> Mapping[str, object]:
        """The levels of the group that others are compared with, by column."""
        asked = self.reference
        names = self.names
        if asked is None:
            return {}
        if not isinstance(asked, Mapping):
            if len(names) == 1:
                return {names[0]: asked}
            raise InputError(
                Option("reference"),
                f" is {asked!r}, but several columns are compared; name its column,"
                f" too, e.g. {dict.fromkeys(names[:1], asked)}",
            )
        for name in asked:
            if name not in names:
                hint = did_you_mean(name, names)
                raise ColumnError(
                    Option("reference"),
                    f" names {name!r}, which is not compared; {hint}",
                )
        return asked
