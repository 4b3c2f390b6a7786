"""Proposals: the outcome, the protected columns, the good outcome, with reasons.

Names, kinds, numbers of levels and positions suggest it; the words that names are made
of are in vocabulary.toml. Nothing here is certain, so each proposal says how sure it
is.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.domain import Domain
from fairmaxent.data.identifiers import (
    spellings,
    vocabulary,
    without_accents,
    words_for,
    words_in,
)
from fairmaxent.data.levels import DEFAULT_BINS

Role = Literal["outcome", "favourable", "protected"]
Confidence = Literal["likely", "guess", "candidate"]
Meaning = Literal["good", "bad", "yes", "no", "high", "low"]
GoodLevels = tuple[Meaning, Confidence, str]  # what they say, how sure, and why

# Points of a candidate for the outcome: from how many on it is proposed, and by how
# many it must lead.
_LIKELY = 4.0
_GUESS = 3.5
_LEAD = 1.0
_CANDIDATE = 2.0
_CANDIDATES = 4
_FEW_LEVELS = 5
_MOST_GROUPS = 10
_MOST_PROTECTED = 3
_ROWS_IN_CELL = 20
OPPOSITES: dict[Meaning, Meaning] = {
    "good": "bad",
    "bad": "good",
    "yes": "no",
    "no": "yes",
    "high": "low",
    "low": "high",
}
# letters of a word that may be part of a longer one: "ausfall" in "kreditausfall",
# "default" in "defaulted"
_LONG = 7
_OUTCOMES = ("good_outcomes", "bad_outcomes", "neutral_outcomes")


@dataclass(frozen=True)
class Proposal:
    """A column for a role, or a good outcome.

    Likely, a guess to be checked, or a candidate that was not chosen.
    """

    role: Role
    value: object
    reason: str
    confidence: Confidence
    # for a column of numbers: where to cut it into groups
    edges: tuple[float, ...] | None = None


def propose_outcome(domain: Domain, others: Collection[str]) -> tuple[Proposal, ...]:
    """Propose one column, or if none stands out, several candidates.

    ``others`` have another role already.
    """
    last = domain.names[-1]
    columns = [
        column
        for column in domain.attributes
        if column.name not in (*others, *domain.identifiers)
    ]
    scored = [_scored(column, is_last=column.name == last) for column in columns]
    ranked = sorted(filter(None, scored), key=lambda candidate: -candidate[0])
    if ranked:
        most, best = ranked[0]
        needed = max([_GUESS, *(points + _LEAD for points, _ in ranked[1:2])])
        if most >= needed and best.edges is None:
            return (replace(best, confidence="likely" if most >= _LIKELY else "guess"),)
    return tuple(
        candidate for points, candidate in ranked[:_CANDIDATES] if points >= _CANDIDATE
    )


def _scored(attribute: Attribute, *, is_last: bool) -> tuple[float, Proposal] | None:
    """A column as the outcome, with its points; None if it cannot be one."""
    levels = known_levels(attribute)
    named = next(
        (word for key in _OUTCOMES if (word := named_in(attribute.name, key))), None
    )
    # A column that people are grouped by is no outcome: not even "marital_status", for
    # its "status".
    by_name = any(
        named_in(attribute.name, key) for key in ("protected", "maybe_protected")
    )
    by_value = attribute.kind == "categorical" and are_groups(levels)
    if len(levels) < 2 or by_name or by_value:
        return None
    is_date = attribute.kind == "date"
    if not attribute.is_value_coded or is_date or len(levels) > DEFAULT_BINS:
        edges = halves(attribute)
        if edges is None or not (named or is_last):
            return None
        reason = f"its name ({named!r})" if named else "the last column"
        reason += ", but numbers have to be cut in two"
        number = Proposal("outcome", attribute.name, reason, "candidate", edges)
        return _CANDIDATE, number
    says_good = any(meaning_of(level) in ("good", "bad") for level in levels)
    signs = [
        (named, 3.0, f"its name ({named!r})"),
        (len(levels) == 2, 2.0, "two values"),
        (2 < len(levels) <= _FEW_LEVELS, 0.5, f"only {len(levels)} values"),
        (says_good, 1.0, "values such as good or bad"),
        (is_last, 1.5, "the last column"),
    ]
    found = [(points, reason) for is_there, points, reason in signs if is_there]
    reasons = ", ".join(reason for _, reason in found)
    points = sum(points for points, _ in found)
    return points, Proposal("outcome", attribute.name, reasons, "candidate")


def known_levels(attribute: Attribute) -> list[str]:
    """The levels of a column as text, without the missing one."""
    return list(attribute.labels[: attribute.size - (attribute.missing is not None)])


def halves(attribute: Attribute) -> tuple[float, ...] | None:
    """Cut numbers in two at their median, a value that both sides have something of.

    None if that is impossible.
    """
    edges = _quantile_edges(attribute, (0.5,))
    if edges is None or len(edges) != 3:
        return None
    return edges


def _quantile_edges(
    attribute: Attribute, shares: Sequence[float]
) -> tuple[float, ...] | None:
    """The smallest number, some quantiles, and the largest.

    None for what is not a number.
    """
    if attribute.kind != "numeric" or not attribute.values.dtype.is_numeric():
        return None
    count = attribute.present
    numbers = frames.to_numbers(attribute.values)[:count]
    counts = attribute.counts[:count]
    if len(numbers) < 2:
        return None
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(counts[order]) / counts.sum()
    at = np.minimum(np.searchsorted(reached, shares), len(order) - 1)
    inner = numbers[order][at].tolist()
    return tuple(sorted({float(numbers.min()), *inner, float(numbers.max())}))


def propose_protected(
    domain: Domain, outcome: str | None, rows: int, others: Collection[str] = ()
) -> tuple[Proposal, ...]:
    """Propose columns by their names or values.

    Those that would need a decision first are candidates; ``others`` have another role.

    Not more are proposed than the rows can bear: each combination of outcome and groups
    should have a few of them.
    """
    columns = [
        column
        for column in domain.attributes
        if column.name not in (outcome, *others, *domain.identifiers)
    ]
    columns.sort(key=lambda column: not named_in(column.name, "protected"))
    cells = 2
    if outcome is not None:
        cells = len(known_levels(domain.attribute(outcome)))
    chosen = 0
    proposals: list[Proposal] = []
    for attribute in columns:
        proposal = _protected(attribute)
        if proposal is None:
            continue
        if proposal.confidence == "guess" and chosen:
            proposal = replace(proposal, confidence="candidate")
        if proposal.confidence != "candidate":
            grown = cells * len(known_levels(attribute))
            is_full = chosen == _MOST_PROTECTED or grown * _ROWS_IN_CELL > rows
            if chosen and is_full:
                reason = f"{proposal.reason}, but few rows for all"
                proposal = replace(proposal, confidence="candidate", reason=reason)
            else:
                chosen += 1
                cells = grown
        proposals.append(proposal)
    return tuple(proposals)


def _protected(attribute: Attribute) -> Proposal | None:
    levels = known_levels(attribute)
    named = named_in(attribute.name, "protected")
    maybe = named_in(attribute.name, "maybe_protected")
    by_value = attribute.kind == "categorical" and are_groups(levels)
    if len(levels) < 2 or not (named or maybe or by_value):
        return None
    reason = f"its values ({', '.join(levels[:3])})"
    if named or maybe:
        reason = f"its name ({named or maybe!r})"
    edges = None
    confidence: Confidence = "candidate"
    if not attribute.is_value_coded:
        edges = _quantile_edges(attribute, (1 / 3, 2 / 3))
    if edges is not None:
        reason += ", but numbers have to be cut into a few groups"
    elif len(levels) > _MOST_GROUPS or not attribute.is_value_coded:
        reason += ", but many groups: merge some first"
    elif named:
        confidence = "likely"
    elif by_value:
        confidence = "guess"
    return Proposal("protected", attribute.name, reason, confidence, edges)


def propose_favourable(attribute: Attribute) -> tuple[Proposal, ...]:
    """Propose the good levels of an outcome; none if nothing says which they are."""
    levels = known_levels(attribute)
    # Numbers such as 1 and 2 say nothing by themselves; 0 and 1 do.
    are_digits = all(level.lstrip("-").isdigit() for level in levels)
    are_codes = are_digits and set(levels) not in ({"0", "1"}, {"-1", "1"})
    if not attribute.is_value_coded or len(levels) < 2 or are_codes:
        return ()
    meanings = _meanings(levels)
    values = attribute.values.to_list()
    for wanted, confidence, reason in _readings(attribute.name):
        good = [number for number, meaning in enumerate(meanings) if meaning == wanted]
        if not good and len(levels) == 2 and meanings.count(OPPOSITES[wanted]) == 1:
            other = meanings.index(OPPOSITES[wanted])
            good = [1 - other]
            reason = f"{levels[other]!r} is the opposite"
        if 0 < len(good) < len(levels):
            return tuple(
                Proposal("favourable", values[number], reason, confidence)
                for number in good
            )
    return ()


def _meanings(levels: Sequence[str]) -> list[Meaning | None]:
    """What each level says.

    One letter says something only beside its opposite: y beside n, but not beside x.
    """
    known = {level: meaning_of(level) for level in levels}
    meanings: list[Meaning | None] = []
    for level, meaning in known.items():
        text = level.strip()
        is_letter = len(text) == 1 and text.isalpha()
        if is_letter and meaning and OPPOSITES[meaning] not in known.values():
            meaning = None
        meanings.append(meaning)
    return meanings


def _readings(name: str) -> list[GoodLevels]:
    """Which levels are good, by what the name of the outcome says.

    Of yes and no, and of high and low.
    """
    bad = named_in(name, "bad_outcomes")
    good = named_in(name, "good_outcomes")
    money = named_in(name, "money")
    clear: GoodLevels = ("good", "likely", "its name")
    if bad is not None and good is None:
        return [
            clear,
            ("no", "likely", f"{bad!r} is bad to have"),
            ("low", "guess", f"{bad!r} is bad to have"),
        ]
    yes: GoodLevels = ("yes", "guess", "yes is usually the good outcome")
    if good is not None:
        yes = ("yes", "likely", f"{good!r} is good to have")
    high: GoodLevels = ("high", "guess", "more is usually better")
    if money is not None:
        high = ("high", "likely", f"more {money} is better")
    return [clear, yes, high]


@cache
def groups_of_words(key: str) -> tuple[frozenset[str], ...]:
    """The words of a part of the vocabulary that lists them in groups."""
    return tuple(map(spellings, vocabulary()[key]))


def plain(text: str) -> str:
    """Return a text without accents, in small letters, with single spaces.

    >>> plain("  Männlich "), plain("CREDIT  risk")
    ('mannlich', 'credit risk')
    """
    return " ".join(without_accents(text).casefold().split())


def named_in(name: str, key: str) -> str | None:
    """Return the first word of a part of the vocabulary that a name holds.

    Long words may be part of longer ones.

    >>> named_in("loan_default", "bad_outcomes")
    'default'
    >>> named_in("Kreditausfall", "bad_outcomes")
    'ausfall'
    >>> named_in("bracelet", "protected")
    """
    words = words_in(name)
    vocabulary = words_for(key)
    exact = next((word for word in words if word in vocabulary), None)
    if exact is not None:
        return exact
    return next(
        (
            part
            for word in words
            for part in sorted(vocabulary)
            if len(part) >= _LONG and part in word
        ),
        None,
    )


def meaning_of(level: str) -> Meaning | None:
    """Return what a level says about having an outcome; None if it says nothing known.

    >>> [meaning_of(level) for level in ("Approved", "not approved", ">50K", "b")]
    ['good', 'bad', 'high', None]
    """
    text = plain(level)
    amounts: tuple[Meaning, Meaning] = ("low", "high")
    for amount in amounts:
        beginnings = map(without_accents, vocabulary()["beginnings"][amount])
        if text.startswith(tuple(beginnings)):
            return amount
    words = re.findall(r"-?\w+", text.replace("_", " "))
    if len(words) <= 2:
        whole = _meaning_of_word("".join(words))
        if whole is not None:
            return whole
    negated = bool(words) and words[0] in words_for("negations")
    meanings = {*map(_meaning_of_word, words[negated:])} - {None}
    if len(words) < 2 or len(meanings) != 1:
        return None
    meaning = meanings.pop()
    if negated and meaning is not None:
        return OPPOSITES[meaning]
    return meaning


def _meaning_of_word(word: str) -> Meaning | None:
    return next((meaning for meaning in OPPOSITES if word in words_for(meaning)), None)


def are_groups(levels: Collection[str]) -> bool:
    """Whether people are often grouped by such levels, e.g. female and male.

    >>> are_groups(["Female", "Male"]), are_groups(["M", "F"])
    (True, True)
    >>> are_groups(["a", "b"]), are_groups(["f"])
    (False, False)
    """
    words = {plain(level) for level in levels}
    return len(words) > 1 and any(
        len(words & group) > 1 and words <= group for group in groups_of_words("groups")
    )


def people_words(levels: Collection[str]) -> dict[str, str]:
    """What people are called who are grouped by such levels, by the level.

    >>> people_words(["männlich", "weiblich", "divers"]), people_words(["m", "s"])
    ({'männlich': 'men', 'weiblich': 'women'}, {})
    """
    if not are_groups(levels):
        return {}
    words = zip(("men", "women"), groups_of_words("men_and_women"), strict=True)
    return {
        level: word
        for word, known in words
        for level in levels
        if plain(level) in known
    }
