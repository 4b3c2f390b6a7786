"""The rates that are asked for, and how far weights may go for them."""

from collections.abc import Mapping, Sequence

from fairmaxent import errors
from fairmaxent.data.roles import GroupsOption, Roles
from fairmaxent.errors import ColumnError, Option, did_you_mean
from fairmaxent.fairness.rates import check_rate
from fairmaxent.options import Settings

RateOption = float | Mapping[str, float | None] | None
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
