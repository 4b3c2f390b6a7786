"""What there is to say about a fit, at every door: shown, or where the rest is said.

For every entry of the telling there is a fit to which it applies (`EXAMPLES`), so a new
entry cannot be forgotten, and every door that has room for its weight shows all its
numbers.
"""

from collections.abc import Iterator

import pytest
from doors import DOORS
from numbers_of import numbers_in

from fairmaxent.document import Block, Note, Table
from fairmaxent.telling.case import Weight, texts_of
from fairmaxent.telling.entries import ENTRIES, KEYS

# by the key of an entry: a fit to which it applies
EXAMPLES = {
    "made_for": "model",
    "promise": "private",
    "likely": "refuted",
    "few_people": "small",
    "contradicted": "refuted",
    "missed": "limited",
    "absent": "two rows",
    "decided_badly": "model",
    "unfair_models": "estimated",
    "weak_promise": "weak",
    "emptied": "emptied",
    "copies": "plain",
    "copies_counted": "plain",
    "changed_outcomes": "relabelled",
    "outcomes": "emptied",
    "effective_rows": "plain",
    "filled": "filled",
    "group_costs": "plain",
    "asked": "limited",
    "verdict": "limited",
    "rates": "plain",
    "chance": "plain",
    "set_apart": "small",
    "means": "means",
    "groups": "plain",
    "decisions": "model",
    "estimate": "estimated",
    "less_exact": "model",
    "not_estimated": "plain",
    "meaning": "private",
    "not_for": "plain",
    "rates_in_detail": "plain",
    "method": "plain",
    "spending": "private",
    "small_groups": "paper",
    "filled_cells": "filled",
    "removed_levels": "removed",
    "left_out": "odd",
    "reading": "bins",
    "redrawn": "lazy",
    "binned": "bins",
    "missing_values": "odd",
    "single_groups": "strata",
    "forbidden": "odd",
}


def has_numbers(line: str, wanted: list[tuple[float, float]]) -> bool:
    """Whether a line has all these numbers, with more digits or less."""
    there = numbers_in(line)
    return all(
        any(abs(value - other) <= 1.001 * max(half, near) for other, near in there)
        for value, half in wanted
    )


def words_in(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def statements(blocks: list[Block]) -> Iterator[str]:
    """Each sentence, and each row of a table."""
    for block in blocks:
        match block:
            case Table():
                yield from (" ".join(row) for row in block.rows)
            case Note(lead, items):
                yield from (lead, *items)
            case _:
                yield from texts_of([block])


def is_shown(statement: str, shown: str, weight: Weight) -> bool:
    """Whether a line has all its numbers; a statement without any is there in words.

    How the optimum was found is a table of its own in a report.
    """
    wanted = numbers_in(statement)
    if not wanted:
        return words_in(statement) in words_in(shown)
    if weight == Weight.METHOD:
        return has_numbers(shown, wanted)
    return any(has_numbers(line, wanted) for line in shown.splitlines())


def test_every_entry_has_an_example():
    assert set(EXAMPLES) == set(KEYS)
    assert len(KEYS) == len(ENTRIES)


@pytest.mark.parametrize("key", EXAMPLES)
def test_the_example_of_an_entry_has_it(key, made):
    example = made(EXAMPLES[key])
    cases = (example.fit.case(), example.report.case)
    assert any([*KEYS[key].of(case)] for case in cases)


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("key", EXAMPLES)
def test_a_door_shows_what_applies_or_where_the_rest_is(key, name, made):
    if name == "verify" and EXAMPLES[key] == "paper":
        pytest.skip("fits of the paper's own configurations are not saved")
    entry = KEYS[key]
    door = DOORS[name]
    example = made(EXAMPLES[key])
    if name in example.closed:
        pytest.skip("a fit of the paper's own configurations cannot be saved")
    said = [*entry.of(door.case(example))]
    shown = door.read(example)
    told = [*statements(said)]
    missing = [one for one in told if not is_shown(one, shown, entry.weight)]
    if entry.weight <= door.least and entry.topic in door.topics:
        # a sheet has room for the first lines of each answer
        is_cut = name == "first page" and missing != told and door.rest in shown
        assert not missing or is_cut
    elif missing and door.rest:
        assert door.rest in shown
