"""Fair models: ours beside what people use instead, with the same classifier, judged on
people nobody learned from.

A wish is what is asked of a classifier: equal decisions if it sees the group, equal
decisions if it does not, or equal opportunity. Every method gives the chances and the
decisions of the people to judge on, and how often it trained.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.judging import THRESHOLD, group_means, worst_ratio
from benchmarks.learners import LEARNERS, Encoder, Learner
from benchmarks.massaging import massage
from benchmarks.people import Fold, few_learn

Reals = NDArray[np.float64]
Decided = tuple[Reals, NDArray[np.bool_], float]  # chances, decisions, trainings

OURS, GRADIENT = "model", "ExponentiatedGradient"
ITERATIONS = 25  # of ExponentiatedGradient
_SHUFFLES = 100
# Of OxonFair: people whom its thresholds are found on, and the difference of shares
# that it may leave, which is also fairlearn's default.
_HELD = 1 / 3
_GRID = 4  # groups at most: its search grows as 30 to their number
_DIFFERENCE = 0.01
_DIGITS = 5


@dataclass(frozen=True)
class Wish:
    """What is asked of a classifier."""

    sees_group: bool
    parity: str  # as `fairmaxent.Model` has it

    @property
    def constraint(self) -> Any:
        """The same for fairlearn."""
        from fairlearn.reductions import DemographicParity, TruePositiveRateParity

        return (
            DemographicParity()
            if self.parity == "decisions"
            else TruePositiveRateParity()
        )


WISHES: Mapping[str, Wish] = {
    "sees the group": Wish(sees_group=True, parity="decisions"),
    "does not see it": Wish(sees_group=False, parity="decisions"),
    "equal opportunity": Wish(sees_group=True, parity="opportunity"),
}


@dataclass(frozen=True, eq=False)
class Pupil:
    """A classifier, the people it learns from, and how it sees them."""

    fold: Fold
    learner: Learner
    wish: Wish

    @property
    def encoder(self) -> Encoder:
        """Learned from the people to learn from."""
        return Encoder.of(self.fold.features(self.fold.train))

    def parts(self) -> tuple[Any, Any, NDArray[np.intp]]:
        """What it sees of the people to learn from and to judge on, and the outcomes of
        the first.
        """
        fold = self.fold
        return (
            fold.features(fold.train),
            fold.features(fold.test),
            fold.labels(fold.train).astype(np.intp),
        )

    def pipeline(self) -> Any:
        """The classifier, untrained, which takes the columns of the table: all methods
        get the same one.
        """
        return self.learner.pipeline(self.encoder)


def _ours(pupil: Pupil) -> Decided:
    import fairmaxent

    fold, wish = pupil.fold, pupil.wish
    plan = fairmaxent.Model(
        pupil.pipeline(),
        parity=wish.parity,
        hide_protected=not wish.sees_group,
        threshold=THRESHOLD,
    )
    roles = fold.train, fold.outcome, fold.protected
    asked = {
        "favourable": fold.favourable,
        "groups": "joint",
        "model": plan,
        "random_state": fold.seed,
    }
    fit = fairmaxent.debias(*roles, **asked)
    model = fit.model()
    column = list(model.classes_).index(fold.favourable)
    chances = model.predict_proba(fold.features(fold.test))[:, column]
    return chances, chances > THRESHOLD, fit.certificate.decisions.trainings


def _raw(pupil: Pupil) -> Decided:
    train, test, labels = pupil.parts()
    return _trained(pupil, train, test, labels, 1)


def _massaging(pupil: Pupil) -> Decided:
    train, test, _ = pupil.parts()
    return _trained(
        pupil, train, test, pupil.fold.labels(massage(pupil.fold)).astype(np.intp), 2
    )


def _reweighing(pupil: Pupil) -> Decided:
    """Kamiran and Calders 2012: weights that make the group and the outcome
    independent.
    """
    from fairmaxent import baselines

    fold, (train, test, labels) = pupil.fold, pupil.parts()
    weights = baselines.kamiran_calders(
        fold.train, fold.outcome, fold.protected
    ).weights()
    return _trained(pupil, train, test, labels, 1, weights)


def _remover(pupil: Pupil) -> Decided:
    """fairlearn's CorrelationRemover, of columns as numbers; it must know the group,
    which the model never sees.
    """
    from fairlearn.preprocessing import CorrelationRemover

    fold, (*parts, labels) = pupil.fold, pupil.parts()
    encoder = Encoder.of(replace(fold, sees_group=False).features(fold.train))
    groups = [
        np.eye(len(np.unique(fold.groups(fold.train))))[fold.groups(own)]
        for own in (fold.train, fold.test)
    ]
    seen = [encoder.indicators(own) for own in parts]
    remover = CorrelationRemover(sensitive_feature_ids=list(range(groups[0].shape[1])))
    train = remover.fit_transform(np.hstack([groups[0], seen[0]]))
    model = pupil.learner.build(encoder).fit(train, labels)
    chances = model.predict_proba(remover.transform(np.hstack([groups[1], seen[1]])))[
        :, 1
    ]
    return chances, chances > THRESHOLD, 1


def _trained(
    pupil: Pupil,
    train: Any,
    test: Any,
    labels: NDArray[np.intp],
    trainings: int,
    weights: Reals | None = None,
) -> Decided:
    pipeline = pupil.pipeline()
    model = pipeline.fit(
        train, labels, **{f"{pipeline.steps[-1][0]}__sample_weight": weights}
    )
    chances = model.predict_proba(test)[:, 1]
    return chances, chances > THRESHOLD, trainings


def _gradient(pupil: Pupil) -> Decided:
    """A random choice among models; its chances are the shares of their votes."""
    from fairlearn.reductions import ExponentiatedGradient

    train, test, labels = pupil.parts()
    pipeline = pupil.pipeline()
    model = ExponentiatedGradient(
        pipeline,
        pupil.wish.constraint,
        max_iter=ITERATIONS,
        sample_weight_name=f"{pipeline.steps[-1][0]}__sample_weight",
    )
    model.fit(train, labels, sensitive_features=pupil.fold.groups(pupil.fold.train))
    # the only way that fairlearn offers to its probabilities
    chances = model._pmf_predict(test)[:, 1]
    return (
        chances,
        np.asarray(model.predict(test, random_state=pupil.fold.seed)) == 1,
        int(model.n_oracle_calls_),
    )


def _thresholds(pupil: Pupil) -> Decided:
    """A random choice between two thresholds in each group, which must be known; its
    chances are those of it.
    """
    from fairlearn.postprocessing import ThresholdOptimizer

    train, test, labels = pupil.parts()
    wanted = (
        "demographic_parity"
        if pupil.wish.parity == "decisions"
        else "true_positive_rate_parity"
    )
    own, others = (
        pupil.fold.groups(part) for part in (pupil.fold.train, pupil.fold.test)
    )
    model = ThresholdOptimizer(
        estimator=pupil.pipeline(), constraints=wanted, predict_method="predict_proba"
    ).fit(train, labels, sensitive_features=own)
    chances = model._pmf_predict(test, sensitive_features=others)[:, 1]
    decided = model.predict(
        test, sensitive_features=others, random_state=pupil.fold.seed
    )
    return chances, np.asarray(decided) == 1, 1


def _oxonfair(pupil: Pupil) -> Decided:
    """Thresholds of groups (Delaney et al. 2024), found on people held out.

    If the group is hidden, a second model guesses it, and the library's slower way uses
    how sure that is. Its chances are scores.
    """
    import oxonfair
    from sklearn.base import clone

    fold = pupil.fold
    train, test, labels = pupil.parts()
    groups = fold.groups(fold.train)
    if groups.max() >= _GRID:
        raise ValueError(f"it takes very long for more than {_GRID} groups")
    order = np.random.default_rng(fold.seed).permutation(len(labels))
    held, learned = np.split(order, [round(_HELD * len(order))])
    model = pupil.pipeline().fit(train.iloc[learned], labels[learned])
    guess: Any = False
    if not pupil.wish.sees_group:
        guess = clone(model).fit(train.iloc[learned], groups[learned])

    def people(seen: Any, good: Any, own: Any) -> Any:
        return {"data": seen, "target": good, "groups": own}

    fair = oxonfair.FairPredictor(
        model,
        people(train.iloc[held], labels[held], groups[held]),
        inferred_groups=guess,
        use_fast=pupil.wish.sees_group,
    )
    metrics = oxonfair.group_metrics
    compared = metrics.demographic_parity
    if pupil.wish.parity == "opportunity":
        compared = metrics.equal_opportunity
    fair.fit(metrics.accuracy, compared, _DIFFERENCE)
    others = fold.groups(fold.test)
    found = fair.predict_proba(people(test, fold.labels(fold.test), others))
    scores = found[:, 1] - found[:, 0]
    models = 2 if guess else 1
    return scores, scores > 0, models * (1 - _HELD)


METHODS: Mapping[str, Callable[[Pupil], Decided]] = {
    "raw": _raw,
    OURS: _ours,
    GRADIENT: _gradient,
    "massaging": _massaging,
    "ThresholdOptimizer": _thresholds,
    "CorrelationRemover": _remover,
    "kamiran-calders": _reweighing,
    "OxonFair": _oxonfair,
}
# of the people whom they decide about
NEED_GROUPS = "ThresholdOptimizer", "CorrelationRemover"


def answers(method: str, wish: Wish) -> bool:
    """Whether a method can be asked for this at all."""
    if (
        method in ("massaging", "CorrelationRemover", "kamiran-calders")
        and wish.parity != "decisions"
    ):
        return False
    return wish.sees_group or method not in NEED_GROUPS


def judge_methods(
    table: str, learner: str, learn: int, jobs: list[tuple[str, int, str]]
) -> list[Any]:
    """Measure methods on splits of one table, each as a wish, split and method: the job
    of a process of its own.
    """
    found: list[Any] = []
    for wish, split, method in jobs:
        asked, mark = WISHES[wish], {"wish": wish, "split": split, "method": method}
        fold = few_learn(table, split, learn, sees_group=asked.sees_group)
        pupil = Pupil(fold, LEARNERS[learner], asked)
        if not found:
            _load(pupil)
        began = time.process_time()
        try:
            chances, decided, trainings = METHODS[method](pupil)
        # one method that cannot learn from this table must not hide what the others do
        except Exception as problem:
            found.append(
                mark
                | {
                    "failed": (
                        f"{type(problem).__name__}: {str(problem).splitlines()[0]}"
                    )
                }
            )
            continue
        cost = {
            "seconds": round(time.process_time() - began, 3),
            "trainings": trainings,
        }
        found.append(mark | cost | judge(fold, asked, chances, decided))
    return found


def _load(pupil: Pupil) -> None:
    """Load what is loaded at first use: it is no method's cost."""
    import fairlearn.postprocessing
    import fairlearn.reductions  # noqa: F401

    import fairmaxent

    _raw(pupil)
    fold = pupil.fold
    fairmaxent.debias(fold.train, fold.outcome, fold.protected).weights()


def judge(
    fold: Fold, wish: Wish, chances: Reals, decided: NDArray[np.bool_]
) -> dict[str, float | None]:
    """Accuracy, AUC and share decided for; the rate, and what an exactly fair model
    would measure, ± its deviation.
    """
    from sklearn.metrics import roc_auc_score

    labels, groups = fold.labels(fold.test), fold.groups(fold.test)
    compared = (
        labels if wish.parity == "opportunity" else np.ones(len(labels), dtype=bool)
    )
    whose, rng = groups[compared], np.random.default_rng(0)
    dealt = [
        worst_ratio(group_means(decided[compared], rng.permutation(whose)))
        for _ in range(_SHUFFLES)
    ]
    ratios = [ratio for ratio in dealt if ratio is not None]
    record = {
        "accuracy": float((decided == labels).mean()),
        "auc": float(roc_auc_score(labels, chances)),
        "decided": float(decided.mean()),
        "rate": worst_ratio(group_means(decided[compared], whose)),
        "fair": float(np.mean(ratios)) if ratios else None,
        "error": float(np.std(ratios)) if ratios else None,
    }
    return {
        name: None if value is None else round(value, _DIGITS)
        for name, value in record.items()
    }
