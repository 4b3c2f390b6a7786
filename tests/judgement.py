"""The scorecard of a model in one piece: the twin of `fairmaxent.metrics.trial`, group by group.

Each outcome y is judged on its own, against all others, and Ŷ is the predicted outcome. A rate without any rows behind
it, such as the true positive rate of a group without positives, is NaN and is not compared; if that leaves fewer than
two of several groups, nothing can be compared, and the comparison is NaN too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Codes, Mask, Reals, tally
from fairmaxent.fairness.rates import smallest_over_largest
from fairmaxent.metrics.group_rates import quantile_bins
from fairmaxent.metrics.trial import predict_outcomes


@dataclass(frozen=True, eq=False)
class Judgement:
    """Quality of a model, and its rates by favourable outcome y (rows) and group g (columns)."""

    accuracy: float  # P(Ŷ = Y)
    aucs: Reals  # of each outcome against all others
    observed: Reals  # P(Y = y | g)
    predicted: Reals  # P(Ŷ = y | g)
    expected: Reals  # the mean probability of y in g
    true_positive: Reals  # P(Ŷ = y | Y = y, g)
    false_positive: Reals  # P(Ŷ = y | Y ≠ y, g)
    miscalibration: Reals  # expected calibration error, see below

    @property
    def auc(self) -> float:
        """The mean over the favourable outcomes; with two outcomes it is the same for either."""
        known = self.aucs[~np.isnan(self.aucs)]
        return float(known.mean()) if len(known) else np.nan

    @property
    def rate_by_predictions(self) -> float:
        """Statistical rate (Definition 2.2) of the predicted outcomes."""
        return worst_ratio(self.predicted)

    @property
    def rate_by_probabilities(self) -> float:
        """Statistical rate (Definition 2.2) of the mean probabilities."""
        return worst_ratio(self.expected)

    @property
    def equal_opportunity(self) -> float:
        """Worst ratio of true positive rates."""
        return worst_ratio(self.true_positive)

    @property
    def equalised_odds(self) -> float:
        """Worst ratio of true positive rates or of false positive rates; NaN if either cannot be compared."""
        return float(np.minimum(worst_ratio(self.true_positive), worst_ratio(self.false_positive)))

    @property
    def equal_opportunity_difference(self) -> float:
        """Largest difference of true positive rates."""
        return worst_difference(self.true_positive)

    @property
    def equalised_odds_difference(self) -> float:
        """Largest difference of true positive rates or of false positive rates; NaN if either cannot be compared."""
        return float(np.maximum(worst_difference(self.true_positive), worst_difference(self.false_positive)))

    @property
    def calibration_error(self) -> float:
        """Expected calibration error of the worst group."""
        return float(np.nanmax(self.miscalibration))

    @property
    def calibration_gap(self) -> float:
        """Largest difference between two groups of observed share minus mean probability."""
        return worst_difference(self.observed - self.expected)


def area_under_curve(positive: Mask, score: Reals, weights: Reals) -> float:
    """Chance that a positive row scores above a negative one, a tie counting half; NaN if either kind is missing."""
    _, rank = np.unique(score, return_inverse=True)
    positives, negatives = (tally(rank, weights * rows, 0) for rows in (positive, ~positive))
    pairs = positives.sum() * negatives.sum()
    return float(positives @ (np.cumsum(negatives) - negatives / 2) / pairs) if pairs > 0 else np.nan


def judge(
    truth: Codes,
    probability: Reals,
    group: Codes,
    weights: Reals | None = None,
    *,
    favourable: Sequence[int] = (1,),
    group_count: int | None = None,
    threshold: float = 0.5,
    bins: int = 10,
) -> Judgement:
    """Judge the probabilities of a model on rows whose outcome is known.

    `probability` has a column for each outcome, or is the probability of the second of two. With two outcomes, one of
    them favourable, this one is predicted if its probability is above `threshold`; otherwise the likeliest outcome is.
    `group_count` is the number of groups, in case the last ones have no rows here. The calibration error uses `bins`.
    """
    chances = np.column_stack([1 - probability, probability]) if probability.ndim == 1 else probability
    weights = np.ones(len(truth)) if weights is None else weights
    count = int(group.max()) + 1 if group_count is None else group_count
    predicted = predict_outcomes(chances, favourable, threshold)
    outcomes = [(truth == y, predicted == y, chances[:, y]) for y in favourable]

    def mean(values: Reals | Mask, among: Reals) -> Reals:
        return group_means(values, group, among, count)

    def error(actual: Mask, chance: Reals) -> Reals:
        return calibration_errors(actual, chance, group, weights, quantile_bins(chance, weights, bins), count)

    return Judgement(
        accuracy=float(weights @ (predicted == truth) / weights.sum()),
        aucs=np.array([area_under_curve(actual, chance, weights) for actual, _, chance in outcomes]),
        observed=np.stack([mean(actual, weights) for actual, _, _ in outcomes]),
        predicted=np.stack([mean(positive, weights) for _, positive, _ in outcomes]),
        expected=np.stack([mean(chance, weights) for _, _, chance in outcomes]),
        true_positive=np.stack([mean(positive, weights * actual) for actual, positive, _ in outcomes]),
        false_positive=np.stack([mean(positive, weights * ~actual) for actual, positive, _ in outcomes]),
        miscalibration=np.stack([error(actual, chance) for actual, _, chance in outcomes]),
    )


def calibration_errors(
    positive: Mask, probability: Reals, group: Codes, weights: Reals, bin_of: Codes, count: int
) -> Reals:
    """Expected calibration error of each group: |share of positives − mean probability|, averaged over its bins."""
    bins = int(bin_of.max()) + 1
    cells = group * bins + bin_of
    surplus = np.abs(tally(cells, weights * (positive - probability), count * bins)).reshape(count, bins).sum(axis=1)
    mass = tally(group, weights, count)
    return np.asarray(np.divide(surplus, mass, out=np.full(count, np.nan), where=mass > 0))


def group_means(values: Reals | Mask, group: Codes, weights: Reals, count: int) -> Reals:
    """Weighted mean in each group; NaN in a group without weight."""
    sums, mass = tally(group, weights * values, count), tally(group, weights, count)
    return np.asarray(np.divide(sums, mass, out=np.full(len(mass), np.nan), where=mass > 0))


def worst_ratio(rates: Reals) -> float:
    """Smallest over the outcomes (rows) of the lowest group's rate over the highest's.

    >>> worst_ratio(np.array([[0.4, 0.5, np.nan], [0.2, np.nan, np.nan]]))
    0.8
    """
    return float(min(smallest_over_largest(_comparable(rates)), default=np.nan))


def worst_difference(rates: Reals) -> float:
    """Largest over the outcomes (rows) of the highest group's rate minus the lowest's."""
    return float(max((np.nanmax(row) - np.nanmin(row) for row in _comparable(rates)), default=np.nan))


def _comparable(rates: Reals) -> Reals:
    """The outcomes (rows) for which at least two groups, or the only one, have a rate."""
    return np.asarray(rates[(~np.isnan(rates)).sum(axis=1) >= min(2, rates.shape[1])])
