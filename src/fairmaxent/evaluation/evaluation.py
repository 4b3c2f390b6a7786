"""The evaluation of new rows before they are shared."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from fairmaxent.data.draws import is_whole
from fairmaxent.data.frames import checked_progress
from fairmaxent.data.roles import ColumnNames
from fairmaxent.errors import unfit
from fairmaxent.evaluation import attacks as risk
from fairmaxent.evaluation.pooled import Nearest, Pooled, nearest, pool
from fairmaxent.evaluation.quality import fidelity, utility
from fairmaxent.evaluation.result import Evaluation, Risks
from fairmaxent.evaluation.singling_out import singling_out
from fairmaxent.fit.refused import EVALUATION
from fairmaxent.metrics.intervals import check_confidence
from fairmaxent.options.refusals import refuse_pairs
from fairmaxent.plain_text import Values
from fairmaxent.progress import Progress

ATTACKS = 2000
_CLOSEST = 500  # rows whose closest record is looked for
_SHARES = {
    "fidelity": 0.0,
    "utility": 0.1,
    "singling out": 0.4,
    "distances": 0.6,
    "attacks": 0.65,
    "near copies": 0.38,  # last, so that the others keep their generators
}


def evaluate(
    real: Any,
    new: Any,
    *,
    control: Any = None,
    outcome: str | None = None,
    protected: ColumnNames | None = None,
    favourable: object = None,
    secrets: ColumnNames | None = None,
    attacks: int = ATTACKS,
    confidence: float = 0.95,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Judge new rows before they are shared: fidelity, utility and risk.

    Printing the result shows the verdict first.

    Parameters
    ----------
    real, new
        The table that the new rows were made from, and the new rows: pandas, polars or
        pyarrow tables. Columns that only the real table has are not compared.
    control
        Rows of other people like those in the real table, which were not used to make
        the new rows. Without them, risks can only be bounded: what succeeds against
        everybody looks like a risk.
    outcome, protected, favourable
        As in :func:`fairmaxent.debias`. With an outcome, a model is trained on the new
        rows and judged on real people, by groups of the protected columns.
    secrets
        Columns that an attacker wants to know, who knows all others; by default every
        column.
    attacks
        How many people, or guesses, each attack is tried on; more make the intervals
        narrower.
    confidence
        Of all intervals. A risk is flagged if all of its interval is above 9 % (copies:
        1 %).
    random_state
        Seed of everything that is drawn; the same seed gives the same result.
    progress
        Called as ``progress(stage, share)``, share in [0, 1].

    Examples
    --------
    >>> import numpy, polars
    >>> rng = numpy.random.default_rng(0)
    >>> names = ("age", "income", "height")
    >>> people = polars.DataFrame({name: rng.integers(0, 50, 900) for name in names})
    >>> real, control = people[:600], people[600:]
    >>> new = real.sample(600, with_replacement=True, seed=0)
    >>> result = evaluate(real, new, control=control)
    >>> result.flagged
    ('copies', 'singling out', 'inference', 'membership')
    """
    check_confidence(confidence)
    _check_whole("attacks", attacks, least=1)
    _check_whole("random_state", random_state, least=0)
    roles = {"outcome": outcome, "protected": protected, "favourable": favourable}
    refuse_pairs(EVALUATION, roles)
    pooled, left_out = pool({"real": real, "new": new, "control": control})
    guessed = risk.read_secrets(pooled, secrets)
    every = range(len(pooled.columns))
    halves = (every[::2], every[1::2]) if len(every) > 1 else ()
    report = checked_progress(progress)
    stream = _streams(random_state, report)
    compared = fidelity(pooled, rng=stream("fidelity"))
    learned = None
    if outcome is not None:
        learned = utility(
            pooled,
            outcome,
            protected,
            favourable=favourable,
            confidence=confidence,
            rng=stream("utility"),
        )
    copies = risk.copied_rows(pooled, confidence=confidence)
    nearly = risk.near_copies(pooled, confidence=confidence, rng=stream("near copies"))
    singled = singling_out(
        pooled, attacks, confidence=confidence, rng=stream("singling out")
    )
    closest = risk.closest_record(
        pooled, min(_CLOSEST, attacks), rng=stream("distances")
    )
    attack = partial(nearest, pooled, parts=halves, others=guessed)
    attacked = _attacked(pooled, attack, attacks, stream("attacks"), report)
    return Evaluation(
        real_rows=pooled.rows("real"),
        new_rows=pooled.rows("new"),
        control_rows=pooled.rows("control"),
        columns=pooled.names,
        left_out=left_out,
        confidence=confidence,
        fidelity=compared,
        utility=learned,
        risks=Risks(
            copies=copies,
            near_copies=nearly,
            singling_out=singled,
            **_risks_of_nearest(pooled, halves, guessed, attacked, confidence),
            closest_record=closest,
        ),
    )


def _streams(seed: int, report: Progress) -> Callable[[str], Generator]:
    """What tells that a stage begins, and gives it a generator of its own.

    So the result of a measure does not depend on the others.
    """
    generators = np.random.default_rng(seed).spawn(len(_SHARES))
    streams = dict(zip(_SHARES, generators, strict=True))

    def stream(stage: str) -> Generator:
        report(stage, _SHARES[stage])
        return streams[stage]

    return stream


def _attacked(
    pooled: Pooled,
    attack: Callable[..., Nearest],
    people: int,
    rng: Generator,
    report: Progress,
) -> list[Nearest]:
    """The new rows that are nearest to people of the real table, and of the control."""
    candidates = pooled.shuffled("new", rng)
    begin = _SHARES["attacks"]
    targets = [name for name in pooled.parts if name != "new"]
    attacked = []
    for number, table in enumerate(targets):

        def done(share: float, before: int = number) -> None:
            report("attacks", begin + (1 - begin) * (before + share) / len(targets))

        asked = pooled.shuffled(table, rng, people)
        attacked.append(attack(asked, candidates, done=done))
    report("attacks", 1.0)
    return attacked


def _risks_of_nearest(
    pooled: Pooled,
    halves: Any,
    guessed: Any,
    attacked: Sequence[Nearest],
    confidence: float,
) -> Values:
    """What the nearest new rows give away; None: it was not tried."""
    linkability = None
    if halves:
        # who is linked: the same new row is nearest to both parts
        linked = [near.linked for near in attacked]
        linkability = risk.Risk.of_hits(linked, confidence)
    inference = None
    if guessed:
        inference = risk.inference(pooled, guessed, attacked, confidence=confidence)
    membership = None
    if "control" in pooled.parts:
        distances = [near.distance for near in attacked]
        membership = risk.membership(*distances, confidence=confidence)
    return {
        "linkability": linkability,
        "inference": inference,
        "membership": membership,
    }


def _check_whole(name: str, value: object, *, least: int) -> None:
    if not is_whole(value, least):
        raise unfit(name, value, f"give a whole number, at least {least}")
