"""The evaluation of new rows: everything that was measured, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairmaxent.data import frames
from fairmaxent.errors import ColumnError, InputError, Option
from fairmaxent.evaluation.attacks import (
    Attacked,
    copied_rows,
    inference,
    linkability,
    membership,
    read_parts,
    read_secrets,
)
from fairmaxent.evaluation.fidelity import fidelity
from fairmaxent.evaluation.nearest import Done, closest_record, nearest, shuffled
from fairmaxent.evaluation.pooled import Pooled, TableName, pool
from fairmaxent.evaluation.singling_out import singling_out
from fairmaxent.evaluation.text import Measurements, Risks, evaluation_text, verdict
from fairmaxent.evaluation.utility import utility
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.plain_text import plain_json
from fairmaxent.progress import Progress, silent


@dataclass(frozen=True, repr=False)
class Evaluation(Measurements):
    """How faithful new rows are to the real table, what a model learns from them, and what they give away."""

    @property
    def verdict(self) -> str:
        """Whether the rows may be shared, in a few sentences."""
        return " ".join(verdict(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON; a number that is not finite is None."""
        judged = {"verdict": self.verdict, "flagged": list(self.flagged), "judgements": self.risks.judgements()}
        return judged | {name: value for name, value in plain_json(self).items() if name != "library"}

    def to_frame(self) -> Any:
        """One row for each number, with its interval if it has one, as a frame of the real table's library."""
        names = ("about", "measure", "value", "low", "high")
        rows = list(_measures(self))
        return frames.new_frame({name: [row[at] for row in rows] for at, name in enumerate(names)}, self.library)

    def __repr__(self) -> str:
        return evaluation_text(self)


Measure = tuple[str, str, float, float | None, float | None]


def _measures(evaluation: Measurements) -> Iterator[Measure]:
    fidelity, risks, utility = evaluation.fidelity, evaluation.risks, evaluation.utility
    for distance in fidelity.total_variation:
        yield "fidelity", f"{distance.columns}-way total variation", distance.value, None, None
    if fidelity.quality.score is not None:
        yield "fidelity", "quality", fidelity.quality.score, None, None
    for name, model in () if utility is None else utility.models.items():
        for measure, score in (("AUC", model.auc), ("accuracy", model.accuracy)):
            if score is not None:
                yield "utility", f"{measure}, trained on {name}", score.value, score.low, score.high
    tried = risks.tried()
    if risks.inference is not None:
        tried["inference, average"] = tried.pop("inference")
        tried |= {f"inference of {name}": risk for name, risk in risks.inference.by_column.items()}
    for name, risk in tried.items():
        yield "risk", name, risk.value, risk.low, risk.high
    if risks.membership is not None:
        yield "risk", "membership", *risks.membership.advantage


ATTACKS = 2000
_CLOSEST = 500  # rows whose closest record is looked for
_SHARES = {"fidelity": 0.0, "utility": 0.1, "singling out": 0.4, "distances": 0.6, "attacks": 0.65}


def evaluate(
    real: Any,
    new: Any,
    *,
    control: Any = None,
    outcome: str | None = None,
    protected: str | Sequence[str] | None = None,
    favourable: object = None,
    secrets: str | Sequence[str] | None = None,
    parts: Sequence[Sequence[str]] | None = None,
    attacks: int = ATTACKS,
    confidence: float = 0.95,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Judge new rows before they are shared: fidelity, utility and risk. Printing the result shows the verdict first.

    Parameters
    ----------
    real, new
        The table that the new rows were made from, and the new rows: pandas, polars or pyarrow tables. Columns that
        only the real table has are not compared.
    control
        Rows of other people like those in the real table, which were not used to make the new rows. Without them,
        risks can only be bounded: what succeeds against everybody looks like a risk.
    outcome, protected, favourable
        As in :func:`fairmaxent.debias`. With an outcome, a model is trained on the new rows and judged on real people,
        by groups of the protected columns.
    secrets
        Columns that an attacker wants to know, who knows all others; by default every column.
    parts
        Two lists of columns, as if two tables about the same people held them; by default every other column.
    attacks
        How many people, or guesses, each attack is tried on; more make the intervals narrower.
    confidence
        Of all intervals. A risk is flagged if all of its interval is above 9 % (copies: 1 %).
    random_state
        Seed of everything that is drawn; the same seed gives the same result.
    progress
        Called as ``progress(stage, share)``, share in [0, 1].

    Examples
    --------
    >>> import numpy, polars
    >>> rng = numpy.random.default_rng(0)
    >>> people = polars.DataFrame({name: rng.integers(0, 50, 900) for name in ("age", "income", "height")})
    >>> real, control = people[:600], people[600:]
    >>> result = evaluate(real, real.sample(600, with_replacement=True, seed=0), control=control)
    >>> result.flagged
    ('copies', 'singling out', 'inference', 'membership')
    """
    _check(outcome, protected, favourable, attacks, confidence, random_state)
    tables: dict[TableName, Any] = {"real": real, "new": new}
    pooled, left_out = pool(tables if control is None else tables | {"control": control})
    report = progress or silent
    # Each measure draws from its own stream, so that its result does not depend on the others.
    streams = dict(zip(_SHARES, np.random.default_rng(random_state).spawn(len(_SHARES)), strict=True))

    def told(stage: str, until: float) -> Done:
        report(stage, _SHARES[stage])
        return lambda share: report(stage, _SHARES[stage] + (until - _SHARES[stage]) * min(share, 1.0))

    compared = fidelity(pooled, rng=streams["fidelity"], done=told("fidelity", 0.1))
    learned = None
    if outcome is not None:
        learned = utility(
            pooled,
            outcome,
            protected,
            favourable=favourable,
            confidence=confidence,
            rng=streams["utility"],
            done=told("utility", 0.4),
        )
    risks = _risks(pooled, streams, told, secrets=secrets, parts=parts, attacks=attacks, confidence=confidence)
    report("attacks", 1.0)
    return Evaluation(
        real_rows=pooled.rows("real"),
        new_rows=pooled.rows("new"),
        control_rows=pooled.rows("control"),
        columns=pooled.names,
        left_out=left_out,
        confidence=confidence,
        fidelity=compared,
        utility=learned,
        risks=risks,
        library=pooled.library,
    )


def _check(
    outcome: object, protected: object, favourable: object, attacks: object, confidence: float, random_state: object
) -> None:
    check_confidence(confidence)
    for name, value, least in (("attacks", attacks, 1), ("random_state", random_state, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(Option(name), f" is {value!r}; give a whole number, at least {least}")
    for name, value in (("protected", protected), ("favourable", favourable)):
        if outcome is None and value is not None:
            raise ColumnError(Option(name), " was given without an outcome; name that with ", Option("outcome"))


def _risks(
    pooled: Pooled,
    streams: Mapping[str, np.random.Generator],
    told: Callable[[str, float], Done],
    *,
    secrets: str | Sequence[str] | None,
    parts: Sequence[Sequence[str]] | None,
    attacks: int,
    confidence: float,
) -> Risks:
    """Try every attack; one search for neighbours serves three of them."""
    guessed, halves = read_secrets(pooled, secrets), read_parts(pooled, parts)
    singled = singling_out(
        pooled, attacks, confidence=confidence, rng=streams["singling out"], done=told("singling out", 0.6)
    )
    closest = closest_record(pooled, min(_CLOSEST, attacks), rng=streams["distances"], done=told("distances", 0.65))
    rng, done = streams["attacks"], told("attacks", 1.0)
    candidates = shuffled(pooled, "new", rng)
    attacked = []
    targets: list[TableName] = ["real", "control"] if "control" in pooled.parts else ["real"]
    for number, name in enumerate(targets):
        people = shuffled(pooled, name, rng, attacks)

        def part_done(share: float, before: int = number) -> None:
            done((before + share) / len(targets))

        near = nearest(pooled, people, candidates, parts=halves or (), others=guessed, done=part_done)
        attacked.append(Attacked(people, candidates, near))
    distances = [one.near.distance for one in attacked]
    return Risks(
        copies=copied_rows(pooled, confidence=confidence),
        singling_out=singled,
        linkability=linkability(attacked, confidence=confidence) if halves else None,
        inference=inference(pooled, guessed, attacked, confidence=confidence) if guessed else None,
        membership=membership(*distances, confidence=confidence) if len(distances) > 1 else None,
        closest_record=closest,
    )
