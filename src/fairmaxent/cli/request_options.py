"""What is asked for, as options of the command line, each with the name of a field of `Request`."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fairmaxent.cli import option_types
from fairmaxent.cli.help import Decorator, options_of, section
from fairmaxent.cli.options import once
from fairmaxent.cli.role_options import RoleOptions

if TYPE_CHECKING:
    from fairmaxent.data.declaration import Declaration
    from fairmaxent.data.domain import Domain
    from fairmaxent.files.reading import TableFile
    from fairmaxent.fit.request import Estimate, OutputOption, Relabel, Request
    from fairmaxent.progress import Progress

_OF_RELABELLING = ("threshold", "student", "blind")


@dataclass(frozen=True)
class AskedOptions:
    """Options of a request by name, as they were typed."""

    values: Mapping[str, Any]

    @property
    def random_state(self) -> int | None:
        """The seed."""
        seed: int | None = self.values["random_state"]
        return seed

    @property
    def relabels(self) -> bool:
        """Whether outcomes are relabelled."""
        return bool(self.values["relabel"] != option_types.NOTHING)

    @property
    def shares(self) -> bool:
        """Whether rows are to be shared."""
        return bool(self.values["release"])

    @property
    def private(self) -> bool:
        """Whether a private fit is asked for."""
        return self.values["epsilon"] is not None

    def relabelling(self) -> Relabel | None:
        """How outcomes are relabelled, beyond the kind of parity; None: by default."""
        from fairmaxent.fit.request import Relabel

        said = {name: self.values[name] for name in _OF_RELABELLING if self.values[name] not in (None, False)}
        return Relabel(**said, **({"parity": self.values["relabel"]} if self.relabels else {})) if said else None

    def trial_of(self, output: OutputOption) -> Estimate:
        """What is estimated of a model trained on this output."""
        from fairmaxent.fit.request import Estimate

        return Estimate(output=output, student=self.values["student"], blind=self.values["blind"])

    def with_seed(self) -> AskedOptions:
        """Choose a seed if none was given, so that a report can say how to repeat the draws."""
        if self.random_state is not None:
            return self
        return replace(self, values={**self.values, "random_state": secrets.randbelow(2**32)})

    def check(self, ctx: click.Context, roles: RoleOptions, *, always_relabels: bool = False) -> None:
        """Refuse, before any work, options that contradict each other, or the command, if it relabels anyway."""
        if always_relabels and self.relabels:
            raise click.UsageError("this command tries every kind of relabelling; leave --relabel out")
        if self.values["threshold"] is not None and not (self.relabels or always_relabels):
            raise click.UsageError("--threshold is for --relabel; leave it out, or add --relabel predictions")
        if self.values["delta"] is not None and not self.private:
            raise click.UsageError("--delta is for a private fit; add --epsilon, e.g. --epsilon 1")
        said = ctx.get_parameter_source("representation_rate") is not ParameterSource.DEFAULT
        rates = self.values["representation_rate"]
        protected = [name for text in roles.protected for name in option_types.columns_in(text, ())]
        for column, _ in self.values["target"] if said and roles.groups == "each" else ():
            rate = rates.get(column) if isinstance(rates, Mapping) else rates
            if column in protected and rate is not None:
                others = ", ".join(f"{name}=…" for name in protected if name != column)
                raise click.UsageError(
                    f"--representation-rate and --target both set the size of the groups of {column!r}; leave one out"
                    f"{f', or give the rate by column: {others}' if others else ''}"
                )

    def known(self, table: TableFile) -> AskedOptions:
        """The same, with lists of columns as the table has them: a name that contains a comma is one name."""
        if self.values["keep_columns"] is None:
            return self
        kept = option_types.joined(self.values["keep_columns"], table.frame.collect_schema().names())
        return replace(self, values={**self.values, "keep_columns": kept})

    def request(
        self, roles: RoleOptions, domain: Domain | Declaration | None, progress: Progress | None = None
    ) -> Request:
        """Make the request, which refuses what makes no sense."""
        from fairmaxent.fit.request import Request
        from fairmaxent.privacy.budget import Privacy

        values = dict(self.values)
        for name in ("relabel", *_OF_RELABELLING):
            values.pop(name)
        epsilon, delta = values.pop("epsilon"), values.pop("delta")
        budget = {name: value for name, value in (("epsilon", epsilon), ("delta", delta)) if value is not None}
        also = _strata(values.pop("also"))
        return Request(
            roles.outcome,
            list(roles.protected),
            also=list(also or ()) or None,
            favourable=_favourable(roles, also),
            groups=roles.groups,
            weight=roles.weight,
            domain=domain,
            progress=progress,
            estimate=None,  # it belongs to what is written: see `cli.debias_result`
            relabel=(self.relabelling() or self.values["relabel"]) if self.relabels else None,
            target=once("target", values.pop("target")) or None,
            forbid=list(values.pop("forbid")) or None,
            within=_strata(values.pop("within")),
            privacy=None if epsilon is None else Privacy(**budget),
            means="equal" if values.pop("equal_means") else None,
            missing="compare" if values.pop("compare_missing") else "ignore",
            **values,
        )


_ASKED = section(
    "What is asked for",
    click.option(
        "--representation-rate",
        type=option_types.RATE,
        default=option_types.NOTHING,
        show_default=True,
        help="Smallest ratio allowed between group shares: 0.9, none (groups keep their sizes), or by column: "
        "sex=0.9,race=none.",
    ),
    click.option(
        "--statistical-rate",
        type=option_types.RATE,
        default=1.0,
        show_default=True,
        help="Smallest ratio allowed between the groups' rates of an outcome. Same syntax as --representation-rate.",
    ),
    click.option(
        "--also",
        multiple=True,
        type=option_types.WITHIN,
        help="Further outcome columns, which get the same rates at the same time; promoted=yes names its good level.",
    ),
    click.option(
        "--within",
        multiple=True,
        type=option_types.WITHIN,
        help="Compare groups within the strata of these columns, e.g. department,year: both rates then hold in every "
        "stratum, which keeps its size. label=yes compares within that level only.",
    ),
    click.option(
        "--equal-means",
        is_flag=True,
        help="The outcome is a number: make its mean equal in all groups, instead of the shares of its bins.",
    ),
    click.option(
        "--relabel",
        type=click.Choice([option_types.NOTHING, "probabilities", "predictions"]),
        default=option_types.NOTHING,
        show_default=True,
        help="none: change how much each row counts. Otherwise split each row between outcomes, so that a model "
        "trained on the result has equal mean probabilities, or makes equal predictions, for all groups.",
    ),
    click.option(
        "--threshold",
        type=float,
        help="With --relabel: the probability of the favourable outcome from which a model decides for it; 0.5 by "
        "default.",
    ),
    click.option(
        "--student",
        type=click.Choice(["boosting", "logistic", "tree"]),
        help="The model that you will train: gradient boosting (the default), logistic regression or the rooted tree. "
        "--relabel predictions makes its decisions equal, and its behaviour is what is estimated.",
    ),
    click.option(
        "--blind",
        is_flag=True,
        help="The model that you will train does not see the protected columns: hide them from all models here too.",
    ),
    click.option(
        "--target",
        multiple=True,
        type=option_types.TARGET,
        help="Wanted shares of a column; for a protected column they replace its representation rate: "
        "'sex: Female=0.6, Male=0.4'. 'age: keep' keeps the shares that the data have, as the outcome does by default; "
        "'income: free' lets the outcome's shares change.",
    ),
    click.option(
        "--compare-missing",
        is_flag=True,
        help="Compare missing values of the outcome and protected columns like any other level. By default they keep "
        "their share and are not compared.",
    ),
    click.option(
        "--largest-weight",
        type=float,
        help="How many times as much as before a row may count at most, e.g. 10; rates are reached as far as this "
        "allows.",
    ),
    click.option(
        "--forbid",
        multiple=True,
        type=option_types.PAIRS,
        help="Impossible combination: 'sex=Male,pregnant=yes'; repeatable.",
    ),
    click.option(
        "--keep-columns",
        cls=option_types.ColumnsOption,
        type=option_types.NAMES,
        help="Columns to keep although they look like identifiers; repeatable. By default such columns are left out of "
        "rows, model and report.",
    ),
    click.option(
        "--base",
        type=click.Choice(["tree", "product", "uniform"]),
        default="tree",
        show_default=True,
        help="Model that is mixed into the rows, so that combinations without a row are possible too.",
    ),
    click.option("--base-share", type=float, default=0.2, show_default=True, help="Share of the base, from 0 to 1."),
    click.option(
        "--detail",
        type=click.Choice(["rows", "bins"]),
        help="For drawn rows that copy a real row: keep its exact values (rows, the default for a table in memory), or "
        "redraw them within their bin (bins).",
    ),
    click.option(
        "--release",
        is_flag=True,
        help="Draw rows to share: no copies of real rows, no exact numbers, no values that fewer than 10 rows have, no "
        "identifiers. --epsilon gives a guarantee.",
    ),
    click.option(
        "--epsilon",
        type=float,
        help="Make the fit private: the result reveals at most ε about any one person (differential privacy). 1 is a "
        "strong promise. Needs --domain.",
    ),
    click.option(
        "--delta",
        type=float,
        help="With --epsilon: the chance that its promise does not hold; 1e-9 by default.",
    ),
    click.option(
        "--seed",
        "--random-state",
        "random_state",
        type=int,
        help="The same seed gives the same rows; by default a new one is chosen.",
    ),
)


def _favourable(roles: RoleOptions, also: list[str] | dict[str, Any] | None) -> object:
    """The favourable levels, by outcome if there are several."""
    others = also if isinstance(also, dict) else {}
    return {roles.outcome: roles.favoured, **others} if also else roles.favoured


def _strata(given: Sequence[Mapping[str, Any]]) -> list[str] | dict[str, Any] | None:
    """Strata of several options together; columns without levels as a list."""
    strata: dict[str, Any] = {}
    for part in given:
        for column, levels in part.items():
            listed = levels if isinstance(levels, list | None) else [levels]
            strata[column] = None if listed is None else [*(strata.get(column) or ()), *listed]
    if any(levels is not None for levels in strata.values()):
        return strata
    return list(strata) or None


def _names(options: tuple[Decorator, ...]) -> list[str]:
    """The names under which the values of options arrive."""

    def nothing() -> None: ...

    for option in reversed(options):
        option(nothing)
    return [parameter.name or "" for parameter in reversed(options_of(nothing))]


REQUEST_NAMES = _names(_ASKED)


def request_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a request to a command, which gets their values as ``asked``."""

    @functools.wraps(function)
    def collected(*args: Any, **params: Any) -> None:
        asked = AskedOptions({name: params.pop(name) for name in REQUEST_NAMES})
        function(*args, **{**params, "asked": asked})

    decorated: Callable[..., None] = collected
    for option in reversed(_ASKED):
        decorated = option(decorated)
    return decorated
