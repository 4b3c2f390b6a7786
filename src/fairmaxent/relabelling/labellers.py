"""Labellers: models that predict the probability of each outcome for profiles they have not learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairmaxent.data.arrays import Codes, Reals
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.blocks import Blocks
from fairmaxent.data.frames import has_library
from fairmaxent.data.roles import Roles
from fairmaxent.data.table import Table, tally
from fairmaxent.errors import InputError, Option
from fairmaxent.maxent.logspace import log_sum_exp
from fairmaxent.maxent.priors.bases import build_base
from fairmaxent.relabelling.profiles import Profiles, root_shape

FOLDS = 5
TREE = "tree"  # the rooted tree, by name

# scikit-learn's boosting accepts at most this many categories in a column; columns with more are treated as ordered.
_CATEGORIES = 255

Predict = Callable[[Codes], Reals]  # profiles -> probability of each outcome


class Labeller(Protocol):
    """Learns from profiles that have a weight for each outcome."""

    def learn(self, codes: Codes, weights: Reals) -> Predict:
        """Learn from profiles (block codes, with z instead of the root) and their weights (profiles × outcomes).

        The weights are about 1 per row, so that a penalty is as strong as it would be on the rows themselves.
        """
        ...


def choose_labeller(roles: Roles, model: Any = None) -> Labeller:
    """Return the user's classifier, or gradient boosting if scikit-learn is installed, or else the rooted tree."""
    if model == TREE or (model is None and not has_library("sklearn")):
        return TreeLabeller(roles.blocks)
    return ScikitLabeller(roles, model)


def check_model(option: str, model: Any) -> None:
    """Refuse anything but a scikit-learn classifier, the rooted tree, or None for our choice."""
    if model is None or model == TREE:
        return
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict_proba")):
        shown = repr(model) if isinstance(model, str) else getattr(model, "__name__", type(model).__name__)
        raise InputError(
            f"{option} is {shown}, which cannot be fitted to predict probabilities; pass a classifier with fit and "
            f"predict_proba, e.g. sklearn.linear_model.LogisticRegression(), or {TREE!r}"
        )


def name_of(labeller: Labeller) -> str:
    """Name the model for reports and messages."""
    if not isinstance(labeller, ScikitLabeller):
        return "rooted tree"
    return "gradient boosting" if labeller.model is None else type(labeller.model).__name__


def cross_fit(labeller: Labeller, profiles: Profiles, *, folds: int = FOLDS) -> Reals:
    """π(y | x, z): the outcomes of each profile, predicted by a model that has not seen the profile."""
    fold = deal(profiles, folds)
    result = np.empty_like(profiles.counts)
    for number in range(folds):
        held_out = fold == number
        predict = labeller.learn(profiles.codes[~held_out], profiles.counts[~held_out])
        result[held_out] = predict(profiles.codes[held_out])
    if not (np.isfinite(result).all() and result.min() >= 0):
        raise InputError(
            f"{name_of(labeller)} predicted probabilities that are negative or not finite; pass another labeller"
        )
    return result


def deal(profiles: Profiles, folds: int) -> NDArray[np.intp]:
    """Deal profiles to folds like cards, by group and most frequent outcome, so that all folds are similar."""
    if len(profiles.codes) < 2 * folds:
        raise InputError(
            f"{len(profiles.codes)} distinct profiles are too few to learn from in {folds} folds; use ",
            Option("relabel", None),
            " and ",
            Option("estimate", None),
        )
    shuffled = np.random.default_rng(0).permutation(len(profiles.codes))
    order = np.lexsort((shuffled, np.argmax(profiles.counts, axis=1), profiles.groups))
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = np.arange(len(order)) % folds
    return fold


@dataclass(frozen=True)
class TreeLabeller:
    """The rooted tree as a classifier: P(y | x, z) by Bayes' rule. It needs no other library."""

    blocks: Blocks

    def learn(self, codes: Codes, weights: Reals) -> Predict:
        """Fit the tree to the weighted profiles."""
        outcomes, groups = root_shape(self.blocks)
        rows = [_with_outcome(codes, outcome, groups) for outcome in range(outcomes)]
        counts = weights.T.ravel()
        seen = counts > 0
        stacked, counts = np.concatenate(rows)[seen], counts[seen]
        table = Table(stacked, counts, counts, counts)
        root = tally(stacked[:, 0], counts, self.blocks.levels[0]) + 0.5
        tree = build_base("tree", self.blocks, table, table, root=root / root.sum())

        def predict(codes: Codes) -> Reals:
            logs = np.column_stack(
                [tree.log_probability(_with_outcome(codes, outcome, groups)) for outcome in range(outcomes)]
            )
            # For a profile with a level that was never seen, only the group is informative.
            unseen = np.isneginf(logs).all(axis=1)
            logs[unseen] = np.log(root.reshape(outcomes, groups).T[codes[unseen, 0]])
            return np.asarray(np.exp(logs - log_sum_exp(logs)[:, None]))

        return predict


def _with_outcome(codes: Codes, outcome: int, groups: int) -> Codes:
    rows = codes.copy(order="F")
    rows[:, 0] += codes.dtype.type(outcome * groups)
    return rows


@dataclass(frozen=True, eq=False)
class ScikitLabeller:
    """A classifier with scikit-learn's interface; gradient boosting on histograms if none is given."""

    roles: Roles
    model: Any

    def learn(self, codes: Codes, weights: Reals) -> Predict:
        """Fit a fresh copy to the profiles, each repeated for every outcome in which it has weight."""
        from sklearn.base import clone

        model, matrix = self._boosting() if self.model is None else (clone(self.model, safe=False), dummies)
        inputs = matrix(self.roles, codes)
        profile, outcome = np.nonzero(weights)
        outcomes = weights.shape[1]
        if len(np.unique(outcome)) < 2:
            return lambda codes: np.tile(np.bincount(outcome[:1], minlength=outcomes) * 1.0, (len(codes), 1))
        _fit(model, inputs[profile], outcome, weights[profile, outcome])

        def predict(codes: Codes) -> Reals:
            result = np.zeros((len(codes), outcomes))
            known = np.asarray(getattr(model, "classes_", np.unique(outcome)), dtype=np.intp)
            chances = np.asarray(model.predict_proba(matrix(self.roles, codes)), dtype=np.float64)
            if chances.shape != (len(codes), len(known)):
                raise InputError(
                    f"{name_of(self)} predicted probabilities of shape {chances.shape} for {len(codes)} rows and "
                    f"{len(known)} outcomes; pass a classifier that predicts one column per outcome"
                )
            result[:, known] = chances
            return result

        return predict

    def _boosting(self) -> tuple[Any, Callable[[Roles, Codes], Reals]]:
        from sklearn.ensemble import HistGradientBoostingClassifier

        attributes = inputs_of(self.roles)
        categorical = [not _is_ordered(attribute) and attribute.size <= _CATEGORIES for attribute in attributes]
        return HistGradientBoostingClassifier(categorical_features=categorical, random_state=0), ordinals


def _fit(model: Any, inputs: Reals, outcome: NDArray[np.intp], weights: Reals) -> None:
    from threadpoolctl import threadpool_limits

    steps = getattr(model, "steps", None)
    name = f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"
    try:
        with threadpool_limits(1):  # on a busy machine threads wait for each other far longer than they save
            model.fit(inputs, outcome, **{name: weights})
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"{type(model).__name__} could not be fitted with sample weights ({problem}); pass a classifier whose fit "
            "takes sample_weight"
        ) from problem


def inputs_of(roles: Roles) -> list[Attribute]:
    """The attributes that a model learns from: all except the outcome, in the order of the columns."""
    return [attribute for index, attribute in enumerate(roles.domain.attributes) if index != roles.outcome]


def _input_codes(roles: Roles, codes: Codes) -> Codes:
    return np.asarray(np.delete(roles.blocks.unpool(codes), roles.outcome, axis=1))


def _is_ordered(attribute: Attribute) -> bool:
    return attribute.kind in ("numeric", "date")


def ordinals(roles: Roles, codes: Codes) -> Reals:
    """Levels as numbers, NaN if a number is missing: for tree models that can handle categories."""
    result = _input_codes(roles, codes).astype(np.float64)
    for column, attribute in zip(result.T, inputs_of(roles), strict=True):
        if _is_ordered(attribute) and attribute.missing is not None:
            column[column == attribute.missing] = np.nan
    return result


def dummies(roles: Roles, codes: Codes) -> Reals:
    """Standardised numbers, and one indicator per level of the other columns: for any classifier."""
    columns: list[Reals] = []
    for level, attribute in zip(_input_codes(roles, codes).T, inputs_of(roles), strict=True):
        if _is_ordered(attribute):
            scores = attribute.scores()
            present = scores[~np.isnan(scores)]
            known = np.nan_to_num(scores, nan=float(present.mean()) if len(present) else 0.0)
            spread = float(known.std()) or 1.0
            columns.append(((known - known.mean()) / spread)[level][:, None])
            if attribute.missing is not None:
                columns.append((level == attribute.missing)[:, None].astype(np.float64))
        else:
            columns.append(np.eye(attribute.size)[level])
    return np.concatenate(columns, axis=1)
