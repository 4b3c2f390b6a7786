"""A trial: scores of models on people they have not seen, each with its range.

Each fold of the people is decided about by a model that learned from the others, and
scores are taken from all decisions together. The range is a 95 % prediction interval
for a model that is measured on as many other people as one fold holds: the table's
people are a sample (each counts Poisson(1) times in a replicate), so are those it is
measured on (Poisson(share) times), and what folds differ by beyond that is the model's,
which is added as normal noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairmaxent.data.table import Codes, Indices, Mask, Reals
from fairmaxent.errors import InputError, Option
from fairmaxent.fairness.rates import smallest_over_largest

REPLICATES = 400
CONFIDENCE = 0.95
_AT_ONCE = 2_000_000  # multiplicities in memory at a time
# draws of our own: data that were simulated with a plain seed do not share them
_STREAM = 1_955_042
_MOST_TIMES = 40  # that anybody is drawn in a replicate; more is as good as impossible
# quantiles by which a distribution is drawn from: much faster than numpy's own draws
_FINE = 1 << 16
OVERALL = ""  # the name under which a score of all people together is kept
Scores = dict[str, dict[str, Reals]]  # by quantity, and by grouping or OVERALL


@dataclass(frozen=True)
class Score:
    """A score, and its range on other people; NaN if nothing can be compared."""

    value: float
    low: float
    high: float


ExpectedScores = dict[str, dict[str, Score]]


@dataclass(frozen=True, eq=False)
class Run:
    """One round of decisions about everybody.

    The fold of each person, and the probabilities predicted for them.
    """

    fold: Indices  # (people,)
    chances: Reals  # (people, outcomes)


@dataclass(frozen=True, eq=False)
class Trial:
    """People, their outcomes, and what models that had not seen them predicted."""

    truth: Indices  # Y of each person
    group: Indices  # of each person
    weights: Reals  # of each person
    runs: Sequence[Run]
    favourable: Sequence[int]
    # by name: which group of the grouping each group belongs to, -1 if it is left out
    groupings: Mapping[str, Codes]
    threshold: float = 0.5
    # groups are compared within strata: group g of stratum s is numbered g·strata + s
    strata: int = 1

    def expected(self, *, replicates: int = REPLICATES) -> ExpectedScores:
        """Every score with its range."""
        values = self.scores(self.sums())
        drawn = self.scores(self.replicates(replicates))
        spread = self._between_models(drawn)
        models = len(self.runs) * self.folds
        # A new model varies, and so does the mean over the models that were tried.
        noise = np.random.default_rng([_STREAM, 1]).normal(
            scale=np.sqrt(1 + 1 / models), size=replicates
        )

        found: ExpectedScores = {}
        for quantity, by_name in values.items():
            found[quantity] = {}
            for name, value in by_name.items():
                elsewhere = drawn[quantity][name] + spread[quantity][name] * noise
                score = with_range(float(value[0]), elsewhere)
                low = max(score.low, 0.0)
                high = min(score.high, 1.0)
                found[quantity][name] = Score(score.value, low, high)
        return found

    def sums(self) -> Reals:
        """Sums over the people as they are (1, kinds, outcomes, groups)."""
        return self._total(self._mean_features, np.ones((1, len(self.truth))))

    def replicates(self, count: int, *, elsewhere: bool = True) -> Reals:
        """Sums in replicates of the table.

        ``elsewhere``: over as many other people as a fold holds.
        """
        rng = np.random.default_rng([_STREAM, 0])
        people = len(self.truth)
        times = _multiplicities(1.0 / self.folds if elsewhere else None)
        step = max(1, _AT_ONCE // max(people, 1))
        parts = []
        for start in range(0, count, step):
            shape = (min(step, count - start), people)
            drawn = times[
                rng.integers(
                    0,
                    len(times),
                    shape,
                    dtype=np.uint16,
                )
            ]
            parts.append(self._total(self._mean_features, drawn))
        return np.concatenate(parts)

    @property
    def folds(self) -> int:
        """Number of folds of each round."""
        return int(self.runs[0].fold.max()) + 1

    def scores(self, sums: Reals) -> Scores:
        """All scores as functions of sums over people, for each sample (first axis)."""
        mass, correct, decided, chance, actual, hits, above, below = np.moveaxis(
            sums, 1, 0
        )
        everybody = mass[:, 0].sum(axis=-1)
        won = _over(above.sum(axis=-1), actual.sum(axis=-1))
        lost = _over(below.sum(axis=-1), (mass - actual).sum(axis=-1))
        _, _, _, _, positives, _, placed, _ = self.sums()[0].sum(axis=-1)
        area_of_all = _over(placed, positives)
        areas = won + lost - area_of_all
        area = _over(np.nansum(areas, axis=-1), (~np.isnan(areas)).sum(axis=-1))
        result = {
            "accuracy": {OVERALL: _over(correct[:, 0].sum(axis=-1), everybody)},
            "auc": {OVERALL: area},
            "decided": {OVERALL: _over(decided.sum(axis=-1).min(axis=-1), everybody)},
        }
        for name, group_of in self.groupings.items():
            merge = np.eye(int(group_of.max()) + 2)[group_of][:, :-1]
            m, d, p, a, h = (
                self._by_stratum(part @ merge)
                for part in (mass, decided, chance, actual, hits)
            )
            opportunity = _worst(_over(h, a))
            scores = {
                "by_predictions": _worst(_over(d, m)),
                "by_probabilities": _worst(_over(p, m)),
                "equal_opportunity": opportunity,
                "equalised_odds": np.minimum(opportunity, _worst(_over(d - h, m - a))),
                "calibration_gap": _worst(_over(a - p, m), by_ratio=False),
            }
            for quantity, score in scores.items():
                result.setdefault(quantity, {})[name] = score
        return result

    def _by_stratum(self, sums: Reals) -> Reals:
        """Lay sums out so that the last axis has the groups of one stratum.

        They come as (samples, outcomes, groups).
        """
        samples, outcomes, groups = sums.shape
        full = np.pad(sums, ((0, 0), (0, 0), (0, -groups % self.strata)))
        parts = full.reshape(samples, outcomes, -1, self.strata).swapaxes(2, 3)
        return parts.reshape(samples, -1, parts.shape[-1])

    def _between_models(self, drawn: Scores) -> dict[str, dict[str, float]]:
        """Standard deviation of each score over models.

        Of the folds of a round, beyond what their people explain.
        """
        sums = []
        for run, features in zip(self.runs, self._features, strict=True):
            members = run.fold == np.arange(self.folds)[:, None]
            sums.append(self._total(features, members.astype(float)))
        by_fold = self.scores(np.concatenate(sums))
        # Replicates vary with the table's people too, by 1/n; folds by one fold's
        # people only, by folds/n.
        people = self.folds / (self.folds + 1)

        def beyond(values: Reals, replicates: Reals) -> float:
            per_round = values.reshape(len(self.runs), -1)
            complete = per_round[~np.isnan(per_round).any(axis=1)]
            if not len(complete) or np.isnan(replicates).all():
                return 0.0
            if complete.shape[1] < 2:
                return 0.0
            variance = complete.var(axis=1, ddof=1).mean()
            return float(np.sqrt(max(0.0, variance - people * np.nanvar(replicates))))

        return {
            quantity: {
                name: beyond(values, drawn[quantity][name])
                for name, values in by_name.items()
            }
            for quantity, by_name in by_fold.items()
        }

    def _total(self, features: Reals, times: Reals) -> Reals:
        """Sum the features of people, each met so many times, by group.

        (samples, kinds, outcomes, groups)
        """
        count = len(next(iter(self.groupings.values())))
        order = np.argsort(self.group, kind="stable")
        starts = np.searchsorted(self.group[order], np.arange(count + 1))
        result = np.empty((len(times), features.shape[1], count))
        for group in range(count):
            members = order[starts[group] : starts[group + 1]]
            result[:, :, group] = times[:, members] @ features[members]
        return result.reshape(len(times), -1, len(self.favourable), count)

    @cached_property
    def _mean_features(self) -> Reals:
        return np.mean(self._features, axis=0)

    @cached_property
    def _features(self) -> list[Reals]:
        """What each person adds to the sums in each round, times their weight.

        (people, kinds × outcomes)
        """
        features = []
        for run in self.runs:
            predicted = predict_outcomes(run.chances, self.favourable, self.threshold)
            kinds = []
            for y in self.favourable:
                actual = self.truth == y
                decided = predicted == y
                chance = run.chances[:, y]
                above, below = _placements(actual, chance, self.weights)
                kind = [
                    np.ones(len(actual)),
                    predicted == self.truth,
                    decided,
                    chance,
                    actual,
                    decided & actual,
                    above,
                    below,
                ]
                kinds.append(kind)
            columns = np.array(kinds, dtype=float)  # (outcomes, kinds, people)
            by_person = columns.transpose(2, 1, 0).reshape(len(self.truth), -1)
            features.append(by_person * self.weights[:, None])
        return features


def predict_outcomes(
    chances: Reals, favourable: Sequence[int], threshold: float
) -> Codes:
    """Predict the likeliest outcome.

    Of two, a single favourable one if its probability is above `threshold`.
    """
    if chances.shape[1] == 2 and len(favourable) == 1:
        (wanted,) = favourable
        return np.where(chances[:, wanted] > threshold, wanted, 1 - wanted)
    if threshold != 0.5:
        raise InputError(
            Option("threshold"),
            " decides between two outcomes, one of them favourable, but there are"
            f" {chances.shape[1]} outcomes here, {len(favourable)} of them favourable;"
            " leave it at 0.5",
        )
    return chances.argmax(axis=1)


def _multiplicities(share: float | None) -> Reals:
    """Quantiles of Poisson(1), or with a share, of Poisson(share·k), k ~ Poisson(1)."""

    def poisson(mean: float) -> Reals:
        steps = np.concatenate([[1.0], mean / np.arange(1, _MOST_TIMES)])
        return np.exp(-mean) * np.cumprod(steps)

    chances = poisson(1.0)
    if share is not None:
        chances = np.array([poisson(share * k) for k in range(_MOST_TIMES)]).T @ chances
    middle = (np.arange(_FINE) + 0.5) / _FINE
    times = np.searchsorted(np.cumsum(chances), middle)
    return np.minimum(times, _MOST_TIMES - 1).astype(float)


def _placements(positive: Mask, score: Reals, weights: Reals) -> tuple[Reals, Reals]:
    """Of each person, the share of the other class that is on the right side.

    Of a positive, of negatives it scores above; of a negative, of positives it is
    below.
    """
    # The means of either are the AUC. In a sample of the people, the sum of the two
    # means minus the AUC of all is its AUC to first order (DeLong et al. 1988), so that
    # the AUC of any sample is a function of sums over people.
    _, rank = np.unique(score, return_inverse=True)
    positives = np.bincount(rank, weights * positive)
    negatives = np.bincount(rank, weights * ~positive)
    below = np.cumsum(negatives) - negatives / 2
    above = positives.sum() - np.cumsum(positives) + positives / 2
    won = below[rank] / max(negatives.sum(), 1e-300)
    lost = above[rank] / max(positives.sum(), 1e-300)
    return np.where(positive, won, 0.0), np.where(positive, 0.0, lost)


def _over(sums: Reals, mass: Reals) -> Reals:
    missing = np.full(np.broadcast_shapes(sums.shape, mass.shape), np.nan)
    return np.divide(
        sums,
        mass,
        out=missing,
        where=mass > 1e-12,
    )


def _worst(rates: Reals, *, by_ratio: bool = True) -> Reals:
    """The worst ratio of two groups, or the worst difference, over the outcomes."""
    # NaN unless at least two groups, or the only one, have a rate.
    is_comparable = (~np.isnan(rates)).sum(axis=-1) >= min(2, rates.shape[-1])
    if by_ratio:
        ratios = np.where(is_comparable, smallest_over_largest(rates), np.nan)
        return np.fmin.reduce(ratios, axis=-1)
    span = np.fmax.reduce(rates, axis=-1) - np.fmin.reduce(rates, axis=-1)
    return np.fmax.reduce(np.where(is_comparable, span, np.nan), axis=-1)


def with_range(
    value: float, replicates: Reals, confidence: float = CONFIDENCE
) -> Score:
    """A score with the middle of what other people may give.

    Without a range if there is none.
    """
    drawn = replicates[~np.isnan(replicates)]
    if np.isnan(value) or not len(drawn):
        return Score(value, np.nan, np.nan)
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Score(value, min(float(low), value), max(float(high), value))
