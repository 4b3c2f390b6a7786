"""fairmaxent for users of AIF360: one of its data sets in, one out, as its Reweighing.

AIF360 itself is not imported: a data set brings everything that is needed.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np

from fairmaxent.data.table import Mask, Reals
from fairmaxent.debiasing import Fit, debias
from fairmaxent.errors import ColumnError, InputError, check_choice, did_you_mean
from fairmaxent.fit.request import Request
from fairmaxent.options import storing_options_of

Groups = Sequence[Mapping[str, float]]
Output = Literal["weights", "rows"]

# Columns that the fit has in addition to those of the data set.
GROUP = "group"
WEIGHT = "instance_weights"

# Options that the data set answers; and privacy, release and a model: AIF360 has
# weights and arrays, no domain and no columns, and all of its features come back.
_NOT_TAKEN = (
    "also",
    "favourable",
    "groups",
    "weight",
    "forbid",
    "keep_columns",
    "domain",
    "progress",
    "privacy",
    "release",
    "model",
)


class FairMaxEntPreprocessing:
    """Make a BinaryLabelDataset fair: new instance weights (the default), or new rows.

    The first two arguments are those of AIF360's Reweighing: lists of ``{attribute:
    value}``, each naming a part of the group. The fit compares the two groups as the
    column ``"group"`` with the levels ``"privileged"`` and ``"unprivileged"``; rows in
    neither stay as they are. One-hot columns of an attribute (``education=HS``) are one
    column (``education``) in the fit.

    Parameters
    ----------
    **options
        Options of :func:`fairmaxent.debias` that do not follow from the data set, by
        the same names. By default, which keeps the shares of groups and labels, the
        weights are those of Reweighing.
    output
        ``"weights"``: the rows as they are, with new instance weights; ``"rows"``: the
        same number of new rows in their place. Either way, the total weight stays the
        same.
    """

    fit_: Fit
    # of each attribute that is one-hot coded, its columns
    _one_hot: Mapping[str, Sequence[str]]
    _members: Mask  # rows in one of the groups
    _seen: tuple[Reals, ...]  # the data set of the fit

    @storing_options_of(Request, without=_NOT_TAKEN)
    def __init__(
        self,
        unprivileged_groups: Groups,
        privileged_groups: Groups,
        *,
        output: Output = "weights",
    ) -> None:
        check_choice("output", output, Output)
        self.unprivileged_groups = unprivileged_groups
        self.privileged_groups = privileged_groups
        self.output = output

    def fit(self, dataset: Any) -> "FairMaxEntPreprocessing":
        """Learn the fair distribution of a data set.

        `fit_` is the :class:`fairmaxent.debiasing.Fit`.
        """
        if not hasattr(dataset, "favorable_label"):
            raise InputError(
                f"{type(dataset).__name__} has no favorable_label; pass a"
                " BinaryLabelDataset of AIF360"
            )

        inside = self._inside(dataset)
        members = inside["privileged"] | inside["unprivileged"]
        frame, _ = dataset.convert_to_dataframe()
        self._one_hot = _one_hot_columns(dataset, frame)
        # one column of levels for each attribute
        for attribute, names in self._one_hot.items():
            levels = np.array([name.partition("=")[2] for name in names], dtype=object)
            column = levels[frame[names].to_numpy().argmax(axis=1)]
            frame = frame.drop(columns=names).assign(**{attribute: column})
        for name in (GROUP, WEIGHT):
            if name in frame:
                raise ColumnError(
                    f"the data set has a column {name!r}, which the fit has itself;"
                    " rename the column"
                )

        group = np.where(inside["privileged"], "privileged", "unprivileged")
        frame = frame.assign(**{GROUP: group, WEIGHT: dataset.instance_weights})
        frame = frame.loc[members]
        forbid = None
        if self.output == "rows":
            forbid = _contradictions(frame, self._groups())
        names = FairMaxEntPreprocessing.__init__.options  # type: ignore[attr-defined]
        self.fit_ = debias(
            frame,
            dataset.label_names[0],
            GROUP,
            favourable=dataset.favorable_label,
            weight=WEIGHT,
            # the same features afterwards
            keep_columns=[name for name in frame.columns if name != WEIGHT],
            forbid=forbid,
            **{name: getattr(self, name) for name in names},
        )
        self._members = members
        self._seen = _contents(dataset)
        return self

    def _groups(self) -> dict[str, Groups]:
        return {
            "privileged": self.privileged_groups,
            "unprivileged": self.unprivileged_groups,
        }

    def _inside(self, dataset: Any) -> dict[str, Mask]:
        """The rows of each group, of which none may be in both."""
        inside = {
            level: _members(dataset, groups) for level, groups in self._groups().items()
        }
        both = int((inside["privileged"] & inside["unprivileged"]).sum())
        if both:
            raise InputError(
                f"{both} rows are both privileged and unprivileged; define groups that"
                " do not overlap"
            )

        for level, rows in inside.items():
            if not rows.any():
                raise InputError(
                    f"no row belongs to {level}_groups; name values that the data"
                    " set has"
                )
        return inside

    def transform(self, dataset: Any) -> Any:
        """Return a fair version of the fitted data set, as a new data set."""
        if not hasattr(self, "fit_"):
            raise InputError(
                "nothing has been fitted yet; call fit or fit_transform with the"
                " data set"
            )
        if not all(map(np.array_equal, self._seen, _contents(dataset))):
            raise InputError(
                "this is not the data set that was fitted; call fit_transform with it"
            )

        result = dataset.copy(deepcopy=True)
        members = self._members
        average = self.fit_.weight_scale
        if self.output == "weights":
            result.instance_weights[members] = average * self.fit_.weights()
            return result

        drawn = self.fit_.sample(int(members.sum()))
        for attribute, names in self._one_hot.items():
            for name in names:
                has_level = drawn[attribute] == name.partition("=")[2]
                drawn = drawn.assign(**{name: has_level.astype(float)})
        result.features[members] = drawn[dataset.feature_names].to_numpy()
        result.labels[members] = drawn[dataset.label_names].to_numpy()
        result.protected_attributes[members] = drawn[
            dataset.protected_attribute_names
        ].to_numpy()
        result.scores[members] = result.labels[members] == dataset.favorable_label
        result.instance_weights[members] = average
        for number, row in enumerate(np.flatnonzero(members)):
            result.instance_names[row] = f"drawn {number}"
        return result

    def fit_transform(self, dataset: Any) -> Any:
        """Fit, then transform the same data set."""
        return self.fit(dataset).transform(dataset)


def _one_hot_columns(dataset: Any, frame: Any) -> dict[str, list[str]]:
    """By attribute, the columns ``attribute=level`` of which every row has one."""
    columns: dict[str, list[str]] = {}
    for name in dataset.feature_names:
        attribute, mark, _ = name.partition("=")
        if (
            mark
            and attribute not in frame
            and name not in dataset.protected_attribute_names
        ):
            columns.setdefault(attribute, []).append(name)

    whole = {}
    for attribute, names in columns.items():
        cells = frame[names].to_numpy()
        if np.isin(cells, (0, 1)).all() and (cells.sum(axis=1) == 1).all():
            whole[attribute] = names
    return whole


def _members(dataset: Any, groups: Groups) -> Mask:
    """Mark the rows that meet every value of one of the parts."""
    names = list(dataset.protected_attribute_names)
    inside = np.zeros(len(dataset.labels), dtype=bool)
    for part in groups:
        for name in part:
            if name not in names:
                raise ColumnError(
                    f"{name!r} is not a protected attribute of the data set;"
                    f" {did_you_mean(name, names)}"
                )
        wanted = [
            dataset.protected_attributes[:, names.index(name)] == value
            for name, value in part.items()
        ]
        inside |= np.logical_and.reduce(wanted)
    return inside


def _contradictions(
    frame: Any, conditions: Mapping[str, Groups]
) -> list[dict[str, object]]:
    """Every combination of attributes with a group that it does not belong to."""
    used = sorted(
        {name for groups in conditions.values() for part in groups for name in part}
    )
    values = [sorted(set(frame[name].tolist())) for name in used]
    wrong: list[dict[str, object]] = []
    for combination in product(*values):
        cell = dict(zip(used, combination, strict=True))
        for level, groups in conditions.items():
            if not any(part.items() <= cell.items() for part in groups):
                wrong.append({**cell, GROUP: level})
    return wrong


def _contents(dataset: Any) -> tuple[Reals, ...]:
    names = ("features", "labels", "protected_attributes", "instance_weights")
    return tuple(getattr(dataset, name).copy() for name in names)
