"""A policy: the rates that a table, or a model's decisions, must have.

The same record serves every front door.
"""

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import GroupsOption, WithinOption, read_columns
from fairmaxent.errors import (
    ColumnError,
    InputError,
    Option,
    StorageError,
    check_choice,
    check_flag,
    did_you_mean,
)
from fairmaxent.fairness.rates import MissingOption
from fairmaxent.files.reading import Name
from fairmaxent.fit.option_values import RateOption, checked_rates
from fairmaxent.fit.refused import JOINT
from fairmaxent.fit.request import Request
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.options import documented, info_of, option, refuse_unknown
from fairmaxent.options.refusals import refuse

PROJECT = "pyproject.toml"
SECTION = "tool.fairmaxent.check"
_LIMIT = "Smallest ratio allowed between the groups'"
_KINDS = ("statistical_rate", "representation_rate")
_ASKED = {field.name: field for field in dataclasses.fields(Request)}


def _as_asked(name: str, default: Any = ..., **changes: Any) -> Any:
    """An option that means what it means in a request."""
    info = {
        **vars(info_of(_ASKED[name])),
        "required": False,
        "doc": "",
        "heading": "",
        **changes,
    }
    return option(_ASKED[name].default if default is ... else default, **info)


@documented
@dataclasses.dataclass(frozen=True)
class Policy:
    """What :func:`fairmaxent.check` asks of a table.

    Limits of its rates, or that they got no worse, and how surely.
    """

    HEADING = "What is checked"
    REFUSED = JOINT

    outcome: str | None = _as_asked("outcome", None)
    protected: str | Sequence[str] = _as_asked("protected", ())
    _: dataclasses.KW_ONLY
    statistical_rate: RateOption = _as_asked(  # noqa: RUF009 (it makes a field)
        "statistical_rate",
        None,
        has_none=True,
        help=f"{_LIMIT} rates of an outcome: 0.8, or sex=0.8,race=0.7.",
    )
    representation_rate: RateOption = _as_asked(  # noqa: RUF009
        "representation_rate", help=f"{_LIMIT} shares; written likewise."
    )
    favourable: object = _as_asked("favourable")
    predictions: Any = option(
        None,
        main=True,
        metavar="COLUMN",
        help=(
            "A model's decisions (in Python also one for each row): their rates are"
            " compared, not the outcome's."
        ),
    )
    against: Any = option(
        None,
        main=True,
        text="file",
        help=(
            "File of an earlier table: fail if a rate got worse since then by more than"
            " chance explains."
        ),
    )
    confident: bool = option(
        False,
        main=True,
        text="flag",
        help="Pass or fail only if the whole interval lies above or below the limit.",
    )
    confidence: float = option(
        0.95, text="number", help="Confidence of the intervals, which hold together."
    )
    groups: GroupsOption = _as_asked(  # noqa: RUF009
        "groups", help="Compare each column on its own, or their intersections."
    )
    within: WithinOption = _as_asked(  # noqa: RUF009
        "within", help="Compare within the strata of these columns, e.g. label=yes."
    )
    missing: MissingOption = _as_asked("missing")  # noqa: RUF009
    weight: str | None = _as_asked(
        "weight", help="Column of design weights, on any scale."
    )
    domain: Domain | None = option(
        None, repr=False, doc="How columns are read; by default as they are."
    )

    def __post_init__(self) -> None:
        names = read_columns("protected", self.protected or ())
        object.__setattr__(self, "protected", names)
        if not names or (self.outcome is None and self.predictions is None):
            raise ColumnError(
                "name ",
                Option("protected"),
                " columns, and the ",
                Option("outcome"),
                " or predictions",
            )
        for name in _KINDS:
            rates = checked_rates(name, getattr(self, name))
            object.__setattr__(self, name, rates)
            if not isinstance(rates, Mapping):
                continue
            for column in rates:
                if column not in names:
                    raise ColumnError(
                        Option(name),
                        f" names {column!r}, which is not protected;"
                        f" {did_you_mean(column, names)}",
                    )
        for name, choice in (("groups", GroupsOption), ("missing", MissingOption)):
            check_choice(name, getattr(self, name), choice)
        refuse(self)
        check_flag("confident", self.confident)
        check_confidence(self.confidence)
        if self.against is None and all(limit is None for _, _, limit in self.limits()):
            raise InputError(
                "there is nothing to check; set a limit, e.g. ",
                Option("statistical_rate", 0.8),
            )

    def limits(self) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
        """Each rate that is checked: kind, columns, limit.

        Without any limit, the statistical rate may only be no worse than before.
        """
        if self.groups == "joint":
            groupings = [tuple(self.protected)]
        else:
            groupings = [(name,) for name in self.protected]
        has_limits = False
        for kind in _KINDS:
            rates = getattr(self, kind)
            if rates is None:
                continue
            has_limits = True
            for columns in groupings:
                if isinstance(rates, Mapping):
                    limit = rates.get(columns[0])
                else:
                    limit = rates
                if limit is not None:
                    yield kind, columns, limit
        if not has_limits:
            for columns in groupings:
                yield "statistical_rate", columns, None


def read_policies(path: Name) -> dict[str, tuple[str | None, Policy]]:
    """Read the policies of a TOML file, each with the file of its table.

    Those of a pyproject.toml have a section. One that names ``protected`` columns is a
    policy; otherwise each of its sections is, by its name. Options are named as in
    Python. ``data`` and ``against`` are files, seen from the folder of this one.
    """
    place = Path(path)
    try:
        section: Any = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as problem:
        raise StorageError(
            f"cannot read {path}: {problem.strerror}; name a table, its protected"
            " columns and a limit, or a file of policies"
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise InputError(
            f"{path} is not valid TOML: {problem}; check that line"
        ) from problem
    if place.name == PROJECT:
        for key in SECTION.split("."):
            section = section.get(key, {})
    if "protected" in section:
        sections = {"check": section}
    else:
        sections = section
    if not sections or not all(
        isinstance(values, dict) for values in sections.values()
    ):
        raise InputError(
            f"{path} holds no policy; name protected columns and a limit, in"
            f" [{SECTION}] or a file alone"
        )
    policies = {}
    for name, values in sections.items():
        files = {
            key: str(place.parent / str(values.pop(key)))
            for key in ("data", "against")
            if key in values
        }
        known = [field.name for field in dataclasses.fields(Policy)]
        try:
            refuse_unknown(name, values, known)
            policy = Policy(**values, against=files.get("against"))
        except (InputError, TypeError) as problem:
            raise InputError(f"{path}, {name}: ", problem) from problem
        policies[name] = (files.get("data"), policy)
    return policies
