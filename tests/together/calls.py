"""Pairs of options of `rake`, `check` and `evaluate`: smaller, but judged alike."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

import pytest

from fairmaxent.errors import FairMaxEntError
from judging import HONOURED, REFUSED, why


@dataclass(frozen=True)
class Wish:
    """An option with a value, what that needs, and how to see that it was honoured.

    ``verify(options, result)`` looks at the result of the call with these options.
    """

    option: str
    asks: dict[str, Any]
    verify: Callable[[dict[str, Any], Any], None]
    needs: dict[str, Any] = field(default_factory=dict)
    together: str = ""  # wishes with one such word are asked for together


def judged(
    call: Callable[..., Any],
    wishes: Sequence[Wish],
    promises: Sequence[Callable[[dict[str, Any], Any], None]] = (),
) -> str:
    """What becomes of these wishes in one call."""
    options: dict[str, Any] = {}
    for part in (*(wish.needs for wish in wishes), *(wish.asks for wish in wishes)):
        options.update(part)
    try:
        result = call(**options)
    except FairMaxEntError as problem:
        message = str(problem)
        if sum(wish.option in message for wish in wishes) >= 2:
            return REFUSED
        return f"refused without both names: {message}"
    try:
        for wish in wishes:
            wish.verify(options, result)
        for promise in promises:
            promise(options, result)
    except AssertionError as problem:
        return f"not honoured: {why(problem)}"
    return HONOURED


def verdicts(
    call: Callable[..., Any],
    wishes: Sequence[Wish],
    promises: Sequence[Callable[[dict[str, Any], Any], None]] = (),
) -> dict[str, str]:
    """What becomes of every two wishes.

    If all that are asked for together are honoured, so is each pair. Otherwise each has
    a call of its own.
    """
    joined: dict[str, list[Wish]] = {}
    for wish in wishes:
        joined.setdefault(wish.together or wish.option, []).append(wish)
    found = {}
    apart = [pair for side in joined.values() for pair in combinations(side, 2)]
    for first, second in combinations(joined.values(), 2):
        pairs = list(product(first, second))
        verdict = judged(call, (*first, *second), promises)
        if verdict == HONOURED or len(pairs) == 1:
            found |= {label(pair): verdict for pair in pairs}
        else:
            apart += pairs
    return found | {label(pair): judged(call, pair, promises) for pair in apart}


def together_and_alone(wishes: Sequence[Wish]) -> pytest.MarkDecorator:
    """A test's ``wishes`` as they are, and slowly: every two in a call of their own."""
    alone = [replace(wish, together="") for wish in wishes]
    slow = pytest.param(alone, marks=pytest.mark.slow, id="alone")
    return pytest.mark.parametrize(
        "wishes", [pytest.param(wishes, id="together"), slow]
    )


def label(pair: tuple[Wish, Wish]) -> str:
    return f"{pair[0].option} + {pair[1].option}"


def wrong(found: dict[str, str]) -> list[str]:
    """The pairs that are neither refused nor honoured."""
    return [
        f"{pair}: {verdict}"
        for pair, verdict in found.items()
        if verdict not in (HONOURED, REFUSED)
    ]


def counted(found: dict[str, str]) -> Counter:
    """How many pairs are which."""
    return Counter(found.values())
