"""A policy: the rates that a table, or a model's decisions, must have.

The same record serves every front door.
"""

import dataclasses
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairmaxent.data.domain import Domain
from fairmaxent.data.roles import (
    GroupsOption,
    WithinOption,
    listed,
    read_columns,
)
from fairmaxent.errors import (
    ColumnError,
    FairMaxEntError,
    InputError,
    Option,
    StorageError,
    check_choice,
    check_flag,
    did_you_mean,
)
from fairmaxent.fairness.rates import MissingOption
from fairmaxent.fairness.small_groups import SmallestGroupOption, SmallGroups
from fairmaxent.files.content import reason_of
from fairmaxent.files.reading import Name
from fairmaxent.fit.option_values import RateOption, checked_rates
from fairmaxent.fit.refused import JOINT
from fairmaxent.fit.request import Request
from fairmaxent.metrics.groups import ReferenceOption, levels_of_reference
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.options import OptionInfo, documented, info_of, option
from fairmaxent.options.refusals import refuse
from fairmaxent.options.values import value_of

PROJECT = "pyproject.toml"
SECTION = "tool.fairmaxent.check"
_LIMIT = "Smallest ratio allowed between the groups'"
_KINDS = ("statistical_rate", "representation_rate")
_FILES = ("data", "against")  # what a policy in a file names
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
    smallest_group: SmallestGroupOption = _as_asked(  # noqa: RUF009
        "smallest_group",
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
            "The group that others are compared with, instead of each with each: Male,"
            " or by column: sex=Male,race=White."
        ),
        doc=(
            "The group that others are compared with, instead of each with each:"
            ' ``"Male"``, or by column ``{"sex": "Male", "race": "White"}``.'
        ),
    )
    weight: str | None = _as_asked(
        "weight", help="Column of design weights, on any scale."
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
            " class or a branch, at least ten of them: intervals then allow for people"
            " of one being alike. Without it, they assume that all are independent."
        ),
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
        SmallGroups.of(self.smallest_group)
        levels_of_reference(self.reference, names)
        refuse(self)
        check_flag("confident", self.confident)
        check_confidence(self.confidence)
        if self.against is None and all(limit is None for _, _, limit in self.limits()):
            raise InputError(
                "there is nothing to check; set a limit, e.g. ",
                Option("statistical_rate", 0.8),
            )

    @property
    def groupings(self) -> list[tuple[str, ...]]:
        """The columns whose groups, or their intersections, are compared."""
        if self.groups == "joint":
            return [tuple(self.protected)]
        return [(name,) for name in self.protected]

    def limits(self) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
        """Each rate that is checked: kind, columns, limit.

        Without any limit, the statistical rate may only be no worse than before.
        """
        groupings = self.groupings
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


@dataclasses.dataclass(frozen=True)
class FilePolicy:
    """A policy as it stands in a file."""

    policy: Policy
    section: "_Section"

    @property
    def table(self) -> str | None:
        """The file of its table, if it names one."""
        return self.section.values.get("data")


def read_policies(path: Name) -> dict[str, FilePolicy]:
    """Read the policies of a TOML file.

    Those of a pyproject.toml have a section. One that names ``protected`` columns is a
    policy; otherwise each of its sections is, by its name. Options are named as in
    Python. ``data`` and ``against`` are files, seen from the folder of this one.
    """
    lines = _Lines.of(path)
    section = lines.values()
    above: tuple[str, ...] = ()
    if Path(path).name == PROJECT:
        for key in SECTION.split("."):
            above = (*above, key)
            section = section.get(key, {})
            lines.check_section(section, above)
    if "protected" in section:
        return {"check": _read_policy(section, lines, above)}
    if not section:
        raise InputError(
            f"{path} holds no policy; name protected columns and a limit, in"
            f" [{SECTION}] or a file alone"
        )
    policies = {}
    for name, values in section.items():
        lines.check_section(values, (*above, name))
        policies[name] = _read_policy(values, lines, (*above, name))
    return policies


def files_of(policies: Mapping[str, FilePolicy]) -> list[str]:
    """Every file that policies name."""
    named = [(read.table, read.policy.against) for read in policies.values()]
    return [path for pair in named for path in pair if path is not None]


def _read_policy(
    given: Mapping[str, Any], lines: "_Lines", keys: tuple[str, ...]
) -> FilePolicy:
    """Read one policy; what is wrong in it is said with its line."""
    infos = {"data": OptionInfo(text="file")}
    for field in dataclasses.fields(Policy):
        info = info_of(field)
        if info is not None and info.help:
            infos[field.name] = info
    values = dict(given)
    for name, value in values.items():
        place = lines.place(*keys, name)
        if name not in infos:
            raise InputError(
                f"{place}: there is no option {name!r}; {did_you_mean(name, infos)}"
            )
        kind = value_of(infos[name])
        is_lone = isinstance(value, str) and kind.join is not None
        has_words = infos[name].on is not True  # which the policy checks
        if is_lone or has_words:
            continue
        try:
            kind.taken(value)
        except ValueError as problem:
            raise InputError(f"{place}: {name} {problem}") from problem
    for name in _FILES:
        if name in values:
            values[name] = str(Path(lines.path).parent / values[name])
    section = _Section(lines, keys, values)
    asked = {name: value for name, value in values.items() if name != "data"}
    try:
        policy = Policy(**asked)
    except InputError as problem:
        raise section.with_place(problem) from problem
    return FilePolicy(policy, section)


@dataclasses.dataclass(frozen=True)
class _Lines:
    """A file of policies, and where in it something stands."""

    path: str
    text: str

    @classmethod
    def of(cls, path: Name) -> "_Lines":
        """Read a file, which may begin with a mark (BOM)."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as problem:
            raise InputError(
                f"{path} is not UTF-8; open it in an editor, and save it as UTF-8"
            ) from problem
        except (OSError, ValueError) as problem:
            raise StorageError(
                f"cannot read {path}: {reason_of(problem)}; name a table, its protected"
                " columns and a limit, or a file of policies"
            ) from problem
        return cls(os.fspath(path), text)

    def values(self) -> Any:
        """What the file holds."""
        try:
            return tomllib.loads(self.text)
        except (ValueError, RecursionError) as problem:
            last = f"at line {len(self.text.splitlines())}, the last"
            reason = str(problem).replace("at end of document", last)
            raise InputError(
                f"{self.path} is not valid TOML: {reason}; check that line"
            ) from problem

    def place(self, *keys: str) -> str:
        """Where a key stands, or else the section that it stands in."""
        start = -1
        for key in keys:
            # a line that begins with it, or with the names of sections above it
            named = rf"(?m)^[^=#\n]*(?<!\w){re.escape(key)}[\"']?\s*[].=]"
            found = re.compile(named).search(self.text, max(start, 0))
            if found:
                start = found.start()
        if start < 0:
            return self.path
        line = self.text.count("\n", 0, start) + 1
        return f"{self.path}, line {line}"

    def check_section(self, value: object, keys: tuple[str, ...]) -> None:
        """Refuse what is no section where policies are looked for."""
        if isinstance(value, Mapping):
            return
        wanted = "[NAME]"
        if Path(self.path).name == PROJECT:
            wanted = f"[{SECTION}.NAME]"
        raise InputError(
            f"{self.place(*keys)}: {keys[-1]!r} is not a section; write a policy as"
            f" {wanted}, with protected columns and a limit"
        )


@dataclasses.dataclass(frozen=True)
class _Section:
    """The section of a policy, and what stands in it."""

    lines: _Lines
    keys: tuple[str, ...]
    values: dict[str, Any]

    def with_place(self, problem: FairMaxEntError) -> FairMaxEntError:
        """The same problem with the line to look at, and options as the file has them.

        That is the line of an option, a column or a file that the message names.
        """
        message = str(problem)
        options = [part.name for part in problem.parts if isinstance(part, Option)]
        quoted = [
            name
            for name, value in self.values.items()
            if any(repr(text) in message for text in listed(value))
        ]
        files = [name for name in _FILES if self.values.get(name, "\0") in message]
        blamed = [*options, *quoted, *files, "protected"]
        name = next((name for name in blamed if name in self.values), "")
        return type(problem)(f"{self.lines.place(*self.keys, name)}: {message}")
