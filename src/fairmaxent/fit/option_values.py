"""The values of options: what they may be, what they mean for the columns of a table, and what was asked in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from fairmaxent.data.roles import GroupsOption, Roles, read_within
from fairmaxent.errors import ColumnError, ForbiddenError, InputError, Option, check_choice, did_you_mean, shown
from fairmaxent.fairness.rates import check_rate
from fairmaxent.fit.target import TargetOption
from fairmaxent.maxent.forbidden import Rule
from fairmaxent.maxent.priors.bases import BASES

RateOption = float | Mapping[str, float | None] | None
ForbidOption = Sequence[Mapping[str, object]]

# What Python's documentation says of options that belong together.
RATES_DOC = (
    "The smallest ratio allowed between group shares, and between the groups' rates of an outcome: a number in (0, "
    '1], one per protected column as ``{"sex": 0.9, "race": None}``, or None to ask for nothing. By default groups '
    "keep their sizes, and each outcome becomes equally common in all of them."
)
ROLES_DOC = (
    'The outcome column, and the column or columns whose groups are compared. Several outcomes, ``["hired", '
    '"promoted"]``, each get the rates, all at once.'
)
BASES_DOC = (
    "What is mixed into the rows so that every combination is possible (the paper's u), and how much of it (the "
    'paper\'s C): ``"tree"`` keeps the strongest dependences between columns, ``"product"`` keeps only each column\'s '
    'own distribution, ``"uniform"`` keeps nothing (as in the paper).'
)


def checked_rates(name: str, option: RateOption) -> RateOption:
    """Refuse rates outside (0, 1], alone or by column; None asks for nothing."""
    if isinstance(option, Mapping):
        left_out = "; leave the column out to keep its rate as it is in the data"
        return {
            column: None if rate is None else check_rate(Option(name, column=str(column)), rate, hint=left_out)
            for column, rate in option.items()
        }
    unchanged = ("; use ", Option(name, None), " to leave it as it is in the data")
    return None if option is None else check_rate(Option(name), option, hint=unchanged)


def checked_largest(largest: float | None, target: TargetOption | None, roles: list[str]) -> float | None:
    """Refuse a largest weight below the average, and targets of other columns, which weigh rows beyond any limit."""
    if largest is None:
        return None
    if not is_number(largest) or not 1 < largest < float("inf"):
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
    columns = roles.protected_names
    for key in option:
        if key not in columns:
            raise ColumnError(Option(name), f" names {key!r}, which is not protected; {did_you_mean(key, columns)}")
    return tuple(option.get(column) for column in columns)


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
    if not is_number(share) or not 0 <= share <= 1:
        raise InputError(Option(name), f" is {share!r}; it must lie between 0 (rows only) and 1 (base only)")
    return float(share)


def is_number(value: object) -> bool:
    """Whether it is a real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise InputError(Option(name), f" is {shown(value)}; it must be True or False")


def check_forbid(forbid: object) -> None:
    """Refuse what is no list of combinations."""
    if not isinstance(forbid, list | tuple | None):
        raise ForbiddenError(
            Option("forbid"), f" is {shown(forbid)}; pass a list of combinations, e.g. [{{'sex': 'Male'}}]"
        )


def check_single_outcome(others: Sequence[str], **plans: object) -> None:
    """Refuse plans that are about one outcome if there are others."""
    for name, plan in plans.items():
        if plan is not None and others:
            raise InputError(Option(name), " is for a single outcome, but several are named; name one, or leave it out")


def check_plan(name: str, value: object, kind: type, choices: object) -> None:
    """Refuse what is neither None, nor one of the choices, nor a record of this kind."""
    if value is None or isinstance(value, kind):
        return
    if not isinstance(value, str):
        raise InputError(Option(name), f" is {shown(value)}; pass one of the choices, {kind.__name__}(…), or None")
    check_choice(name, value, choices)


# ---------------------------------------------------------------- what was asked, in words; of a `Request`


def target_words(request: Any) -> Iterator[str]:
    """Which shares are wanted."""
    for name, shares in (request.target or {}).items():
        if isinstance(shares, str):
            yield f"The shares of {name} may change."
        elif shares is None:
            yield f"{name} keeps the shares that it has in the data."
        else:
            yield f"Shares of {name}: {', '.join(f'{level} {share:.4g}' for level, share in shares.items())}."


def within_words(request: Any) -> Iterator[str]:
    """Which strata are compared, and what they keep."""
    asked = read_within(request.within)
    columns = " × ".join(asked)
    yield f"Groups are compared with the others of their stratum only; the strata are those of {columns}."
    for name, level in asked.items():
        if level is not None:
            levels = level if isinstance(level, list | tuple | set | frozenset) else [level]
            named = ", ".join(map(str, levels))
            yield f"Only strata with {name} = {named} are compared; all others stay as they are."
    if not set(asked) & {*(request.target or {})}:
        kept = "" if request.outcome in (request.target or {}) else f", and its shares of {request.outcome}"
        yield f"Each stratum of {columns} keeps its size{kept}."


def relabel_words(plan: Any) -> Iterator[str]:
    """What relabelling changes."""
    yield (
        "Outcomes change, not how much rows count: each row keeps its weight, which is split between the outcomes "
        "according to a model of the table and the wanted rates."
    )
    if plan.parity == "predictions":
        yield (
            f"The share of each group that a model trained on the result decides for (at a probability of "
            f"{plan.threshold:g} or more) is equal, up to the statistical rate. This comes first: if the model cannot "
            "decide equally and learn from groups with equal outcomes, the outcomes give way."
        )


def forbid_words(request: Any) -> Iterator[str]:
    """Which combinations never occur."""
    for combination in request.forbid or ():
        yield f"Never: {', '.join(f'{name} = {value}' for name, value in combination.items())}."


def base_words(request: Any) -> Iterator[str]:
    """What holds whatever else was asked for, and what is mixed into the rows."""
    yield "Otherwise the result is as close to the data as possible."
    if request.privacy is None:
        yield (
            f"A share of {request.base_share:.3g} comes from the base {request.base!r}, "
            f"{BASES[request.base].sentence}; it makes combinations possible that no row has."
        )
