"""A scenario: what the page asks for, checked, and as the same Request that the command line makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from fairmaxent.cli.role_options import typed_level
from fairmaxent.errors import ColumnError, InputError, did_you_mean, shown
from fairmaxent.fit.request import Relabel, Request
from fairmaxent.fit.wanted_shares import FREE, TargetOption
from fairmaxent.report.delivered import Mode

Rate = float | Mapping[str, float | None] | None
HowRowsChange = Literal["none", "probabilities", "predictions"]


@dataclass(frozen=True)
class Scenario:
    """Roles, wishes and the form of the result, with the names of the command line's options."""

    outcome: str
    protected: tuple[str, ...]
    favourable: tuple[str, ...] = ()  # as labels; none: every outcome is compared
    groups: Literal["each", "joint"] = "each"
    weight: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()  # although they look like identifiers
    representation_rate: Rate = None
    statistical_rate: Rate = 1.0
    within: tuple[str, ...] = ()
    target: TargetOption | None = None
    relabel: HowRowsChange = "none"
    threshold: float = 0.5
    base: Literal["tree", "product", "uniform"] = "tree"
    base_share: float = 0.2
    largest_weight: float | None = None
    compare_missing: bool = False
    share: bool = False
    seed: int = 0
    mode: Mode = "rows"
    rows: int | None = None
    iid: bool = False
    title: str | None = None  # of the report
    author: str | None = None
    purpose: str | None = None

    @classmethod
    def from_json(cls, values: object) -> Scenario:
        """Read what the page sent; what is not given has its default."""
        if not isinstance(values, Mapping):
            raise InputError("the page sent something that is not a scenario; reload it")
        known = {field.name for field in fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise InputError(f"the page sent an unknown option, {shown(name)}; reload it")
            if not _CHECKS[name](value):
                raise InputError(f"the page sent {shown(value)} as {name}, which makes no sense; reload it")
        if not values.get("outcome") or not values.get("protected"):
            raise InputError("Choose the outcome and at least one column of groups first.")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """The scenario as plain values, for the page."""
        return asdict(self)

    @property
    def relabels(self) -> bool:
        """Whether outcomes are relabelled."""
        return self.relabel != "none"

    @property
    def needs_rows_in_memory(self) -> bool:
        """Whether the rows of a Parquet file have to be read: relabelling writes each several times."""
        return (self.relabels and self.mode == "weights") or self.share

    def request(self, schema: Mapping[str, Any]) -> Request:
        """Make the request for a table with these columns, which refuses what makes no sense."""
        for name in (self.outcome, *self.protected, *self.within, *self.keep, *([self.weight] if self.weight else [])):
            if name not in schema:
                raise ColumnError(f"the table has no column {name!r}; {did_you_mean(name, list(schema))}")
        if self.mode != "rows" and (self.share or self.iid or self.rows is not None):
            raise InputError("Rows to share, and a number of rows, are about new rows; choose “New rows” under Take.")
        levels = [typed_level(level, schema[self.outcome]) for level in self.favourable]
        return Request(
            self.outcome,
            list(self.protected),
            favourable=None if not levels else levels[0] if len(levels) == 1 else levels,
            groups=self.groups,
            weight=self.weight,
            representation_rate=self.representation_rate,
            statistical_rate=self.statistical_rate,
            within=list(self.within) or None,
            target=self.target or None,
            keep=list(self.keep) or None,
            relabel=self._plan,
            base=self.base,
            base_share=self.base_share,
            largest_weight=self.largest_weight,
            missing="compare" if self.compare_missing else "keep",
            share=self.share,
            random_state=self.seed,
            estimate=None,  # it is asked for afterwards
        )

    @property
    def _plan(self) -> Relabel | Literal["probabilities", "predictions"] | None:
        if self.relabel == "none":
            return None
        return (
            self.relabel
            if self.threshold == Relabel().threshold
            else Relabel(parity=self.relabel, threshold=self.threshold)
        )


# ---------------------------------------------------------------- what the page may send


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _or_nothing(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_rate(value: object) -> bool:
    rates = value.values() if isinstance(value, Mapping) else [value]
    return all(rate is None or _is_number(rate) for rate in rates)


def _is_target(value: object) -> bool:
    if not isinstance(value, Mapping):
        return value is None
    return all(
        shares == FREE or (isinstance(shares, Mapping) and all(map(_is_number, shares.values())))
        for shares in value.values()
    )


def _is_one_of(*choices: str) -> Callable[[object], bool]:
    return lambda value: value in choices


_CHECKS: dict[str, Callable[[object], bool]] = {
    "outcome": _is_text,
    "protected": _is_list,
    "favourable": _is_list,
    "groups": _is_one_of("each", "joint"),
    "weight": _or_nothing(_is_text),
    "drop": _is_list,
    "keep": _is_list,
    "representation_rate": _is_rate,
    "statistical_rate": _is_rate,
    "within": _is_list,
    "target": _is_target,
    "relabel": _is_one_of("none", "probabilities", "predictions"),
    "threshold": _is_number,
    "base": _is_one_of("tree", "product", "uniform"),
    "base_share": _is_number,
    "largest_weight": _or_nothing(_is_number),
    "compare_missing": _is_flag,
    "share": _is_flag,
    "seed": lambda value: _is_whole(value) and 0 <= int(str(value)) < 2**32,
    "mode": _is_one_of("rows", "weights", "top-up"),
    "rows": _or_nothing(lambda value: _is_whole(value) and int(str(value)) > 0),
    "iid": _is_flag,
    "title": _or_nothing(_is_text),
    "author": _or_nothing(_is_text),
    "purpose": _or_nothing(_is_text),
}
