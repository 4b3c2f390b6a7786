"""A policy: the rates that a table, or a model's decisions, must have.

The same record serves every front door.
"""

import dataclasses
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fairmaxent.data.domain import Domain
from fairmaxent.data.likely import Likely
from fairmaxent.data.roles import (
    GroupsOption,
    Protected,
    WithinOption,
    listed,
)
from fairmaxent.errors import (
    ColumnError,
    FairMaxEntError,
    InputError,
    Option,
    StorageError,
    check_flag,
    checked_number,
    did_you_mean,
    unfit,
)
from fairmaxent.fairness.compare import Compare, ReferenceOption
from fairmaxent.fairness.small_groups import SmallestGroupOption
from fairmaxent.files.reading import Name
from fairmaxent.fit.contradictions import by_column
from fairmaxent.fit.refused import JOINT
from fairmaxent.fit.wanted_rates import RateOption, checked_rates
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.options import (
    Settings,
    documented,
    like,
    option,
    option_hint,
    typed_options,
)
from fairmaxent.options.refusals import MISSING, Refused, refuse
from fairmaxent.options.values import value_of
from fairmaxent.plain_text import Values

PROJECT = "pyproject.toml"
SECTION = "tool.fairmaxent.check"
# What is limited; the last two by the largest value allowed.
LARGEST = ("statistical_difference", "calibration")
KINDS = (
    "statistical_rate",
    "representation_rate",
    "equal_opportunity",
    "equalised_odds",
    *LARGEST,
)
# which compare decisions with what happened
_OF_DECISIONS = ("equal_opportunity", "equalised_odds", "calibration")
_LEAST = "Smallest ratio allowed between the groups'"
_LIMIT: Settings = {"text": "rate", "has_none": True}


@documented
@dataclasses.dataclass(frozen=True)
class Policy:
    """What :func:`fairmaxent.check` asks of a table.

    Limits of its rates, or that they got no worse, and how surely.
    """

    HEADING = "What is checked"
    REFUSED = (
        *(
            dataclasses.replace(JOINT[0], option=name, when=partial(by_column, name))
            for name in KINDS
        ),
        *(
            Refused(name, other, "it compares decisions with outcomes", beside=MISSING)
            for name in _OF_DECISIONS
            for other in ("outcome", "predictions")
        ),
        *(
            Refused(name, "favourable", "it is about one outcome", beside=MISSING)
            for name in (*_OF_DECISIONS, "threshold")
        ),
        Refused("threshold", "predictions", "it decides by them", beside=MISSING),
        Refused(
            "calibration",
            "threshold",
            "predictions are probabilities then",
            beside=MISSING,
        ),
        Refused(
            "calibration", "cluster", "its interval assumes that people are independent"
        ),
        Refused("calibration", "likely", "it takes groups that are known"),
        *Compare.REFUSED,
    )

    outcome: str | None = option(
        None, main=True, metavar="COLUMN", help="The outcome column, e.g. income."
    )
    protected: Protected = like(Compare, "protected", ())
    _: dataclasses.KW_ONLY
    likely: Likely | None = like(Compare, "likely")
    statistical_rate: RateOption = option(
        None,
        main=True,
        help=f"{_LEAST} rates of an outcome: 0.8, or sex=0.8,race=0.7.",
        **_LIMIT,
    )
    representation_rate: RateOption = option(
        None,
        main=True,
        help=f"{_LEAST} shares; written likewise.",
        **_LIMIT,
    )
    equal_opportunity: RateOption = option(
        None,
        help=f"{_LEAST} shares of good predictions, of people with the good outcome.",
        **_LIMIT,
    )
    equalised_odds: RateOption = option(
        None,
        help="The same, and of people without it, too: the worse of both ratios.",
        **_LIMIT,
    )
    statistical_difference: RateOption = option(
        None,
        help="Largest difference allowed between the groups' rates of an outcome.",
        **_LIMIT,
    )
    calibration: RateOption = option(
        None,
        help=(
            "Largest difference allowed between groups in how far the share of the good"
            " outcome is above their mean probability, which is predicted."
        ),
        **_LIMIT,
    )
    favourable: object = like(Compare, "favourable")
    predictions: Any = option(
        None,
        main=True,
        metavar="COLUMN",
        help=(
            "A model's decisions (in Python also one for each row): their rates are"
            " compared, not the outcome's. With a threshold, its scores."
        ),
    )
    threshold: float | None = option(
        None,
        text="number",
        help="The score above which the decision is for the good outcome, e.g. 0.5.",
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
    groups: GroupsOption = like(Compare, "groups")
    within: WithinOption = like(Compare, "within")
    compare_missing: bool = like(Compare, "compare_missing")
    smallest_group: SmallestGroupOption = like(Compare, "smallest_group")
    reference: ReferenceOption = like(Compare, "reference")
    weight: str | None = like(Compare, "weight")
    cluster: str | None = like(Compare, "cluster")
    domain: Domain | None = like(Compare, "domain")

    def __post_init__(self) -> None:
        compare = self.compare
        names = compare.names
        object.__setattr__(self, "likely", compare.likely)
        object.__setattr__(self, "protected", compare.protected)
        if not names or (self.outcome is None and self.predictions is None):
            raise ColumnError(
                "name ",
                Option("protected"),
                " columns, and the ",
                Option("outcome"),
                " or predictions",
            )
        for name in KINDS:
            rates = checked_rates(name, getattr(self, name))
            object.__setattr__(self, name, rates)
            columns = rates if isinstance(rates, Mapping) else ()
            for column in columns:
                if column not in names:
                    raise ColumnError(
                        Option(name),
                        f" names {column!r}, which is not protected;"
                        f" {did_you_mean(column, names)}",
                    )
        refuse(self)
        if self.threshold is not None:
            checked_number("threshold", self.threshold, "be a number", math.isfinite)
        is_about_one = self.threshold is not None or self.compares_outcomes
        if is_about_one and len(listed(self.favourable)) != 1:
            raise unfit("favourable", self.favourable, "name the one good outcome")
        check_flag("confident", self.confident)
        check_confidence(self.confidence)
        if self.against is None and all(limit is None for _, _, limit in self.limits()):
            raise InputError(
                "there is nothing to check; set a limit, e.g. ",
                Option("statistical_rate", 0.8),
            )

    @classmethod
    def typed(cls, asked: Values) -> "Policy":
        """From options as they are typed: those of likely groups stand beside them."""
        values = dict(asked)
        values["likely"] = Likely.among(values)
        return cls(**values)

    @property
    def compares_outcomes(self) -> bool:
        """Whether decisions are compared with what happened."""
        return any(getattr(self, name) is not None for name in _OF_DECISIONS)

    @property
    def compare(self) -> Compare:
        """Which groups are compared, in which rows."""
        return Compare.of(self)

    def limits(self) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
        """Each rate that is checked: kind, columns, limit.

        Without any limit, the statistical rate may only be no worse than before.
        """
        asked = [kind for kind in KINDS if getattr(self, kind) is not None]
        for kind in asked or ["statistical_rate"]:
            limits = getattr(self, kind)
            for columns in self.compare.groupings:
                limit = limits
                if isinstance(limits, Mapping):
                    limit = limits.get(columns[0])
                if limit is not None or not asked:
                    yield kind, columns, limit


class FilePolicy(NamedTuple):
    """A policy as it stands in a file, or what is wrong there."""

    table: str | None = None  # the file of its table, if it names one
    policy: Policy | None = None
    section: "_Section | None" = None
    problem: FairMaxEntError | None = None


def read_policies(path: Name) -> dict[str, FilePolicy]:
    """Read the policies of a TOML file.

    Those of a pyproject.toml have a section. One that names ``protected`` columns is a
    policy; otherwise each of its sections is, by its name. Options are named as in
    Python. ``data`` and ``against`` are files, seen from the folder of this one. What
    is wrong is told in place of a policy, so that the others are checked.
    """
    try:
        return _policies_in(path)
    except FairMaxEntError as problem:
        return {"check": FilePolicy(problem=problem)}


def _policies_in(path: Name) -> dict[str, FilePolicy]:
    """The policies of a file that can be read."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # it may begin with a mark
        # so that tomllib names the last line, too
        values = tomllib.loads(f"{text}\n")
    except OSError as problem:
        raise StorageError(
            f"cannot read {path}: {problem.strerror}; name a table, its protected"
            " columns and a limit, or a file of policies"
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise InputError(
            f"{path} is not valid TOML in UTF-8: {problem}; check that line"
        ) from problem
    section = _Section(Path(path), text, values)
    if section.path.name == PROJECT:
        for key in SECTION.split("."):
            section = section.inner(key)
    if {"protected", "likely"} & section.values.keys():
        return {"check": section.policy()}
    if not section.values:
        raise InputError(
            f"{path} holds no policy; name protected columns and a limit, in"
            f" [{SECTION}] or a file alone"
        )
    return {name: section.inner(name).policy() for name in section.values}


def files_of(policies: Mapping[str, FilePolicy]) -> list[str]:
    """Every file that policies name."""
    return [
        path
        for read in policies.values()
        if read.section is not None
        for path in read.section.files.values()
    ]


@dataclasses.dataclass(frozen=True)
class _Section:
    """A section of a file of policies; what is wrong in it is said with its line."""

    path: Path
    text: str  # of the whole file
    values: dict[str, Any]
    keys: tuple[str, ...] = ()  # its own name, after those of the sections around it

    def inner(self, key: str) -> "_Section":
        """A section in it."""
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise InputError(
                f"{self.place(key)}: {key!r} is not a section; begin each policy with"
                " [NAME], and name protected columns and a limit"
            )
        return dataclasses.replace(self, values=values, keys=(*self.keys, key))

    @property
    def files(self) -> dict[str, str]:
        """The files that it names, seen from the folder of this one."""
        return {
            name: str(self.path.parent / self.values[name])
            for name in ("data", "against")
            if isinstance(self.values.get(name), str)
        }

    def policy(self) -> FilePolicy:
        """The policy that it holds, or what is wrong with it."""
        try:
            return self._policy()
        except InputError as problem:
            return FilePolicy(section=self, problem=problem)

    def _policy(self) -> FilePolicy:
        infos = {source.field.name: source.info for source in typed_options(Policy)}
        infos["data"] = infos["against"]
        asked = {**self.values, **self.files}
        for name, value in self.values.items():
            if name not in infos:
                raise InputError(
                    f"{self.place(name)}: there is no option {name!r};"
                    f" {option_hint(name, infos)}"
                )
            kind = value_of(infos[name])
            is_lone = isinstance(value, str) and kind.join is not None
            if is_lone:
                continue
            try:
                taken = kind.taken(value)
            except ValueError as problem:
                raise InputError(f"{self.place(name)}: {name} {problem}") from problem
            if name in KINDS:  # "none" means None
                asked[name] = taken
        table = asked.pop("data", None)
        try:
            return FilePolicy(table, Policy.typed(asked), self)
        except InputError as problem:
            # of None, which TOML does not have
            raise self.with_place(problem, "; use ") from problem

    def place(self, name: str) -> str:
        """Where an option stands, or else the section."""
        start = -1
        for key in (*self.keys, name):
            # a line that begins with it, or with the names of sections above it
            named = rf"(?m)^[^=#\n]*(?<!\w){re.escape(key)}[\"']?\s*[].=]"
            found = re.compile(named).search(self.text, max(start, 0))
            if found:
                start = found.start()
        if start < 0:
            return str(self.path)
        line = self.text.count("\n", 0, start) + 1
        return f"{self.path}, line {line}"

    def with_place(self, problem: FairMaxEntError, end: str = "\0") -> FairMaxEntError:
        """The same problem with the line to look at, and options as the file has them.

        That is the line of an option, a column or a file that the message names.
        ``end``: where the message is cut.
        """
        message = str(problem).partition(end)[0]
        blamed = [part.name for part in problem.parts if isinstance(part, Option)]
        for name, value in self.values.items():
            if any(repr(text) in message for text in listed(value)):
                blamed.append(name)
        blamed += [name for name, file in self.files.items() if file in message]
        known = [name for name in (*blamed, "protected") if name in self.values]
        return type(problem)(f"{self.place([*known, ''][0])}: {message}")
