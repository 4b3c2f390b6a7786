"""What is compared and asked for, as it was typed: with a table, it is a `Request`."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Self

from fairmaxent.cli.options import taking
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.likely import Likely
from fairmaxent.data.table import Names
from fairmaxent.errors import ColumnError, InputError, Option, did_you_mean
from fairmaxent.files.reading import TableFile
from fairmaxent.fit.models import Model
from fairmaxent.fit.refused import EVALUATION
from fairmaxent.fit.request import Request
from fairmaxent.options import NOTHING, TypedOption, typed_options
from fairmaxent.options.refusals import MISSING, NEEDED, Refused, refuse
from fairmaxent.options.values import comma_hint
from fairmaxent.plain_text import Values
from fairmaxent.privacy.budget import Privacy
from fairmaxent.progress import Progress


@dataclass(frozen=True)
class RoleOptions:
    """Which columns the rates are about; `inspect` proposes those not given."""

    outcome: str  # or several, of which the first stays here
    protected: Names
    favourable: tuple[object, ...]
    groups: Any = "each"
    weight: str | None = None
    # The good levels of further outcomes by name; None: every level is compared.
    further: Values = field(default_factory=dict)
    REFUSED = EVALUATION[:1]

    def __post_init__(self) -> None:
        self._part_outcomes()
        refuse(self)
        for name in ("protected", "favourable"):
            object.__setattr__(self, name, tuple(getattr(self, name) or ()))

    def _part_outcomes(self) -> None:
        """Keep the first of several outcomes apart from the others."""
        given: Any = self.outcome or ""
        if isinstance(given, str):
            object.__setattr__(self, "outcome", given)
            return
        (first, good), *rest = given.items()
        if good and self.favourable:
            raise InputError(
                f"the good level of {first!r} is given twice: with ",
                Option("outcome"),
                " and with ",
                Option("favourable"),
                "; leave one of them out",
            )
        object.__setattr__(self, "outcome", first)
        object.__setattr__(self, "further", dict(rest))
        if good:
            object.__setattr__(self, "favourable", good)

    def refuse_further(self) -> None:
        """Refuse several outcomes, where one is looked at."""
        if self.further:
            raise InputError(
                "one outcome is looked at here; name a single one with ",
                Option("outcome"),
            )

    @property
    def favoured(self) -> object:
        """The favourable levels as `debias` takes them."""
        if len(self.favourable) > 1:
            return list(self.favourable)
        return next(iter(self.favourable), None)

    @property
    def named(self) -> Values:
        """The roles as `inspect` and `evaluate` take them: None if not given."""
        self.refuse_further()
        return {
            "outcome": self.outcome or None,
            "protected": self.protected or None,
            "favourable": self.favoured,
        }

    def checked(
        self, table: TableFile, path: str, declared: Declaration | None = None
    ) -> Self:
        """Check that the columns exist, and read the favourable levels.

        They become what the outcome holds: true, a number, or a text. If levels are
        declared, the type of the column says nothing about them.
        """
        schema = table.frame.collect_schema()
        names = schema.names()
        for name in (self.outcome, *self.further, *self.protected, self.weight):
            if not name or name in names:
                continue
            if name in table.dropped:
                raise ColumnError(
                    f"--drop names the column {name!r}, which has a role; take it out"
                    " of --drop"
                )
            hint = f"{did_you_mean(name, names)}{comma_hint(names)}"
            if any(map(_is_number, names)):
                hint += (
                    f". If the first line of {path} is not a header, name the columns"
                    " with --columns"
                )
            raise ColumnError(f"{path} has no column {name!r}; {hint}")
        if declared is not None:
            return self
        return replace(
            self,
            favourable=tuple(
                typed_level(level, schema[self.outcome]) for level in self.favourable
            ),
        )


def typed_level(text: object, dtype: Any) -> object:
    """Read the text of a level as the boolean or number that such a column holds."""
    if not isinstance(text, str):
        return text
    if str(dtype) == "Boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    if dtype.is_numeric() and _is_number(text):
        return float(text)
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class AskedOptions:
    """Options of a request by name, as they were typed."""

    values: Values

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The options that were typed; a command that compares lacks two."""
        return cls({"model": None, "likely": None, **values})

    def has(self, name: str) -> bool:
        """Whether something is asked for."""
        value = self.values[name]
        return value is not None and value is not False and value != NOTHING

    def declared(self, declaration: Declaration | None) -> Declaration | None:
        """The declaration, with what becomes of values that are not in it."""
        return declaration and replace(
            declaration, undeclared=self.values["undeclared"]
        )

    def request(
        self,
        roles: RoleOptions,
        domain: Any,
        progress: Progress | None = None,
    ) -> Request:
        """Make the request, which refuses what makes no sense."""
        values: Values = {}
        for source in ASKED:
            if source.owner is not None:
                continue
            values[source.name] = self.values[source.name]
        values["favourable"] = roles.favoured
        if roles.further:
            values["favourable"] = {roles.outcome: roles.favoured, **roles.further}
        values["groups"] = roles.groups
        values["weight"] = roles.weight
        values["estimate"] = None  # it belongs to what is written: see `cli.debias`
        model = partial(Model, self.values["model"])
        values["model"] = self._part("model", "model", model)
        values["privacy"] = self._part("privacy", "epsilon", Privacy)
        values["likely"] = Likely.among(dict(self.values))
        return Request(
            [roles.outcome, *roles.further],
            list(roles.protected),
            **values,
            domain=domain,
            progress=progress,
        )

    def _part(self, owner: str, first: str, record: Callable[..., Any]) -> Any:
        """A record in the request, if its first option asks for it.

        The others are nothing without it.
        """
        given = {}
        for source in ASKED:
            value = self.values.get(source.name)
            if source.owner != owner or value is None or value is False:  # 0 is given
                continue
            given[source.name] = value
        if self.has(first):
            return record(**given)
        for name in given:
            raise Refused(name, owner, NEEDED, beside=MISSING).error(given)
        return None


def if_known(source: TypedOption) -> TypedOption:
    """A role, if it has a column: with groups that are likely, there may be none."""
    required = source.info.required and source.name != "protected"
    return replace(source, info=replace(source.info, required=required))


_ROLE_NAMES = [field.name for field in fields(RoleOptions)]
ROLES = [source for source in typed_options(Request) if source.name in _ROLE_NAMES]
ASKED = [source for source in typed_options(Request) if source not in ROLES]
REQUEST_NAMES = [source.name for source in ASKED]

role_options = taking(RoleOptions, "roles", ROLES)
request_options = taking(AskedOptions.of, "asked", ASKED)
_COMPARED = [
    source for source in ASKED if not {"model", "likely"} & {source.name, source.owner}
]


def _with_usual_seed(source: TypedOption) -> TypedOption:
    """A comparison is the same each time, unless another seed is asked for."""
    if source.name != "random_state":
        return source
    info = replace(source.info, help="The seed of folds and draws; 0 by default.")
    return replace(source, info=info)


comparison_options = taking(
    AskedOptions.of, "asked", list(map(_with_usual_seed, _COMPARED))
)
proposed_role_options = taking(
    RoleOptions,
    "roles",
    ROLES,
    required=False,
)
