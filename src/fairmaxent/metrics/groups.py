"""What every metric compares: the options that say which groups of which rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.columns import factorize
from fairmaxent.data.likely import by_name
from fairmaxent.data.roles import listed, read_within
from fairmaxent.data.table import Codes, Mask, Reals
from fairmaxent.errors import (
    ColumnError,
    InputError,
    LevelError,
    Option,
    did_you_mean_level,
)
from fairmaxent.fairness.compare import Compare
from fairmaxent.fairness.small_groups import SmallGroups
from fairmaxent.metrics.effective_counts import WeightSums
from fairmaxent.metrics.group_rates import GroupedTable
from fairmaxent.metrics.rows import (
    MISSING,
    Columns,
    GroupedRows,
    Label,
    Levels,
    LikelyRows,
    MeasuredRows,
    Stratum,
    code_of,
    favourable_codes,
    groups_of,
    levels_of,
    outcome_column,
)

_FEWEST_CLUSTERS = 10  # of fewer, variances between them are hardly known


@dataclass(frozen=True, eq=False)
class Comparison:
    """What every metric compares: groups of rows, by an outcome or by their shares."""

    # The weight may also be one number per row, or sums, if each row of the frame
    # stands for several.
    compare: Compare
    outcome: Any = None  # a column, or one value per row; None: shares are compared
    only: Columns | None = None  # of the groupings; None: all of them

    def __post_init__(self) -> None:
        """Refuse columns with two roles."""
        compare = self.compare
        names = [*compare.names, *read_within(compare.within)]
        roles = (self.outcome, compare.weight, compare.cluster)
        names += [name for name in roles if isinstance(name, str)]
        for name in names:
            if names.count(name) > 1:
                raise ColumnError(
                    f"column {name!r} is named twice; it can be the outcome, or the"
                    " weight, or protected, or named by ",
                    Option("within"),
                    " or ",
                    Option("cluster"),
                    ", but only one of these",
                )

    @property
    def groupings(self) -> list[Columns]:
        """Columns whose levels, or their intersections, are compared."""
        if self.only is None:
            return self.compare.groupings
        return [self.only]

    def grouped(self, data: Any, *, by_levels: bool = True) -> Iterator[GroupedRows]:
        """The rows of a frame, or the cells of a fit's exact marginals, by grouping."""
        distribution = _distribution_of(data)
        is_column = isinstance(self.outcome, str) and by_levels
        is_exact = distribution is not None and self.compare.likely is None
        if not is_exact or not (self.outcome is None or is_column):
            rows = self.open(data, outcome_is="predictions" if by_levels else None)
            for columns in self.groupings:
                yield self.group(rows, columns)
            return
        exact = replace(self, compare=replace(self.compare, domain=None))
        for columns in self.groupings:
            yield exact.group(exact._open_marginal(distribution, columns), columns)

    def share_tables(self, data: Any) -> list[GroupedTable]:
        """How large the groups are, by grouping and stratum."""
        grouped = self.grouped(data)
        return [
            GroupedTable.of_shares(part) for rows in grouped for part in rows.parts()
        ]

    def rate_tables(self, data: Any) -> list[GroupedTable]:
        """How often groups have each favourable outcome, by grouping and stratum."""
        favourable = self.compare.favourable
        tables: list[GroupedTable] = []
        for rows in self.grouped(data):
            rows.refuse_absent(favourable)
            parts = rows.parts()
            tables += [GroupedTable.of_outcomes(part, favourable) for part in parts]
        return tables

    def mean_tables(self, data: Any) -> list[GroupedTable]:
        """The mean of an outcome that is a probability, likewise."""
        tables: list[GroupedTable] = []
        for rows in self.grouped(data, by_levels=False):
            chance = rows.probabilities(self.outcome)
            tables += [
                GroupedTable.of_means(part, chance[part.rows], self.compare.favourable)
                for part in rows.parts()
            ]
        return tables

    def parts(self, rows: MeasuredRows) -> Iterator[GroupedRows]:
        """Rows by grouping and stratum."""
        for columns in self.groupings:
            yield from self.group(rows, columns).parts()

    def open(self, data: Any, *, outcome_is: str | None = "outcomes") -> MeasuredRows:
        """Open a frame with its weights and the levels of its outcome.

        ``outcome_is`` is what messages call it; None: it has no levels.
        """
        if _distribution_of(data) is not None:
            raise InputError(
                "a fitted distribution has no rows to predict; name its outcome column,"
                " or pass a frame"
            )
        frame = frames.open_frame(data)
        weight = self.compare.weight
        if isinstance(weight, WeightSums):
            rows = self._with_levels(frame, weight.weight, outcome_is)
            return replace(rows, counted=weight)
        if isinstance(weight, str | None):
            weights = frames.read_weights(frame, weight)
        else:
            weights = frames.check_weights(weight, len(frame))
        if weights is None:
            weights = np.ones(len(frame))
        else:
            weights = frames.in_range(weights)
        return self._with_levels(frame, weights, outcome_is)

    def _open_marginal(self, distribution: Any, columns: Columns) -> MeasuredRows:
        if self.compare.weight is not None:
            raise InputError(
                "a fitted distribution has no rows to weight; leave out ",
                Option("weight"),
            )
        if SmallGroups.of(self.compare.smallest_group).rows:
            raise InputError(
                "a fitted distribution has no rows to count; give ",
                Option("smallest_group"),
                ' as a share, e.g. "2%"',
            )
        if self.compare.cluster is not None:
            raise InputError(
                "the rates of a fitted distribution are exact, and have no intervals"
                " that clusters could change; leave out ",
                Option("cluster"),
            )
        names = (*columns, *read_within(self.compare.within))
        if self.outcome is not None:
            names = (self.outcome, *names)
        marginal = frames.open_frame(distribution.marginal(names))
        domain = getattr(distribution, "domain", None)
        for attribute in getattr(domain, "attributes", ()):
            if attribute.is_value_coded or attribute.name not in marginal.columns:
                continue
            # The marginal shows a label, "missing", where its values are missing.
            if attribute.missing is not None:
                values = nw.col(attribute.name)
                label = attribute.labels[attribute.missing]
                known = nw.when(values != label).then(values)
                marginal = marginal.with_columns(known.alias(attribute.name))
        weights = frames.to_numbers(frames.column(marginal, "probability"))
        return self._with_levels(
            marginal,
            weights,
            "predictions",
            exact=True,
        )

    def _with_levels(
        self,
        frame: frames.Frame,
        weights: Reals,
        outcome_is: str | None,
        *,
        exact: bool = False,
    ) -> MeasuredRows:
        """Rows with the levels of their outcome.

        Those with a missing outcome count only if that is compared.
        """
        cluster = self._clusters_of(frame)
        if self.outcome is None or outcome_is is None:
            none: Levels = (np.zeros(len(frame), dtype=int), [None])
            return MeasuredRows(frame, weights, none, exact, cluster=cluster)
        column = outcome_column(frame, self.outcome, what=outcome_is)
        codes, outcomes = levels_of(column, self.compare.domain)
        last = len(outcomes) - 1
        # Whoever calls missing favourable wants to compare it.
        wanted = self.compare.favourable is not None and last in favourable_codes(
            outcomes, self.compare.favourable
        )
        if (
            not self.compare.compare_missing
            and outcomes[last] is MISSING
            and not wanted
        ):
            weights = np.where(codes == last, 0.0, weights)
        levels = (codes, outcomes)
        return MeasuredRows(frame, weights, levels, exact, cluster=cluster)

    def _clusters_of(self, frame: frames.Frame) -> Codes | None:
        """The cluster of each row; refuse rows without one, and too few clusters."""
        cluster = self.compare.cluster
        if cluster is None:
            return None
        option = Option("cluster")
        if not isinstance(cluster, str):
            raise ColumnError(option, f" is a {type(cluster).__name__}; name a column")
        codes, values = factorize(frames.column(frame, cluster))
        if (codes < 0).any():
            raise InputError(
                option,
                f" is {cluster!r}, which has missing values; give everybody who"
                " belongs to no cluster one of their own",
            )
        if len(values) < _FEWEST_CLUSTERS:
            raise InputError(
                option,
                f" is {cluster!r}, which has {len(values)} different values; of"
                f" fewer than {_FEWEST_CLUSTERS} clusters nobody can say how alike"
                " their people are: name a column with more, or leave it out",
            )
        return codes

    def group(self, rows: MeasuredRows, columns: Columns) -> GroupedRows:
        """Rows by the groups of some columns.

        Those of a missing group count only if that is compared.
        """
        group, labels, likely = self._groups_of(rows.frame, columns)
        weights = rows.weights
        if not self.compare.compare_missing:
            named = [all(level is not MISSING for level in label) for label in labels]
            weights = np.where(np.array(named, dtype=bool)[group], weights, 0.0)
        return GroupedRows(
            frame=rows.frame,
            weights=weights,
            levels=rows.levels,
            exact=rows.exact,
            columns=columns,
            labels=labels,
            group=group,
            strata=self._strata_of(rows),
            counted=rows.counted,
            cluster=rows.cluster,
            small=SmallGroups.of(self.compare.smallest_group),
            reference=self._reference_among(columns, labels),
            likely=likely,
        )

    def _groups_of(
        self, frame: frames.Frame, columns: Columns
    ) -> tuple[Codes, list[Label], LikelyRows | None]:
        """The group of each row, and all groups; of probabilities, the likeliest.

        None: the groups are known. Those that may not be are the last column.
        """
        *others, last = columns
        likely = by_name(self.compare.likely).get(last)
        if likely is None:
            return *groups_of(frame, columns, self.compare.domain), None
        believed = likely.read(frame).believed
        if likely.are_known(believed):
            known = frame.with_columns(likely.known)
            return *groups_of(known, columns, self.compare.domain), None
        group, labels = groups_of(frame, others, self.compare.domain)
        rows = LikelyRows(likely, believed, group, len(labels))
        own = [*likely.columns, MISSING][: believed.shape[1]]
        return rows.places, [(*label, one) for label in labels for one in own], rows

    def _reference_among(self, columns: Columns, labels: list[Label]) -> Label | None:
        """The group that the others are compared with, or None."""
        levels = self.compare.levels_of_reference
        if levels.keys().isdisjoint(columns):
            return None
        reference: Label = ()
        for number, column in enumerate(columns):
            if column not in levels:
                raise InputError(
                    Option("reference"),
                    f" names no level of {column!r}, but groups are intersections;"
                    " name a level of each column",
                )
            known = list(dict.fromkeys(label[number] for label in labels))
            code = code_of(known, levels[column])
            if code is None:
                raise LevelError(
                    Option("reference"),
                    f": no row has {column} = {levels[column]!r};"
                    f" {did_you_mean_level(levels[column], known)}",
                )
            reference = (*reference, known[code])
        return reference

    def predicted(
        self,
        rows: MeasuredRows,
        predictions: Any,
        threshold: float | None,
    ) -> dict[int, Mask]:
        """The rows that are predicted to have each favourable outcome, by its code.

        None: not by probabilities.
        """
        outcomes = rows.levels[1]
        if threshold is not None:
            code = rows.one_favourable(self.compare.favourable)
            return {code: rows.probabilities(predictions) > threshold}
        # under the outcome's name, so that a domain reads both by the same levels
        name = outcome_column(rows.frame, self.outcome).name
        column = outcome_column(rows.frame, predictions).alias(name)
        predicted, levels = levels_of(column, self.compare.domain)
        if all(code_of(outcomes, value) is None for value in levels):
            raise LevelError(
                "no prediction is an outcome of the rows: predictions are e.g."
                f" {levels[:3]}, outcomes {outcomes[:3]}. Spell predictions like the"
                " outcomes, or pass as_probability=True."
            )
        found = {}
        for code in favourable_codes(outcomes, self.compare.favourable):
            among = code_of(levels, outcomes[code])
            # nobody may be predicted to have it
            found[code] = predicted == (-1 if among is None else among)
        return found

    def _strata_of(self, rows: MeasuredRows) -> list[Stratum]:
        """The strata that are compared.

        Those of missing values are only if that is asked for.
        """
        named = read_within(self.compare.within)
        if not named:
            return [((), ...)]
        stratum, labels = groups_of(rows.frame, list(named), self.compare.domain)

        def is_meant(level: object, values: object) -> bool:
            if values is None:
                return level is not MISSING or self.compare.compare_missing
            return any(code_of([level], value) == 0 for value in listed(values))

        chosen = [
            code
            for code, label in enumerate(labels)
            if all(map(is_meant, label, named.values()))
        ]
        if not chosen:
            raise LevelError(
                Option("within"),
                f" is {self.compare.within!r}, but no row is in such a stratum; name"
                " another level",
            )
        order = np.argsort(stratum, kind="stable")
        starts = np.searchsorted(stratum[order], np.arange(len(labels) + 1))
        strata = []
        for code in chosen:
            part = order[starts[code] : starts[code + 1]]
            if rows.exact:  # cells of a marginal that have no probability are nobody's
                part = part[rows.weights[part] > 0]
            if len(part):
                strata.append((tuple(zip(named, labels[code], strict=True)), part))
        return strata


def _distribution_of(data: Any) -> Any:
    """The distribution of a fit, or the data if they are one.

    Their type has a `marginal`; a frame may have a column of that name.
    """
    for found in (getattr(data, "distribution", None), data):
        if callable(getattr(type(found), "marginal", None)):
            return found
    return None
