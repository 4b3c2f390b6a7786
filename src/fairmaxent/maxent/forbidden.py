"""Impossible combinations, in the form the bases can honour exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairmaxent.data.table import Blocks, Codes, Mask, Reals
from fairmaxent.errors import ForbiddenError, Option

Rules = Sequence["Rule"]


@dataclass(frozen=True, eq=False)
class Rule:
    """A partial assignment that must have probability zero."""

    text: str  # for people
    roots: Mask  # levels of the root it applies to
    # (block, level) of the other blocks it names, by block
    others: tuple[tuple[int, int], ...]

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        assignment: Mapping[int, int],
        text: str,
    ) -> "Rule":
        """Build from levels of attributes.

        Refuses what no base can do exactly: besides the root a tree has only pairs of
        blocks to say no to.
        """
        # for each attribute, 1 on every level that the rule is not about
        spared = {
            attribute: (np.arange(blocks.sizes[attribute]) != level).astype(np.float64)
            for attribute, level in assignment.items()
        }
        roots = blocks.spread(spared)[blocks.slices[0]] == 0
        others = sorted(
            (blocks.block_of(attribute), level)
            for attribute, level in assignment.items()
            if attribute not in blocks.members[0]
        )
        if len(others) > 2:
            raise ForbiddenError(
                Option("forbid"),
                f" {text}: it names {len(others)} columns besides the outcome and the"
                " protected ones, and at most 2 can be honoured exactly. Join columns"
                " into one, or state it in pairs.",
            )
        return cls(text, roots, tuple(others))

    def breaks(self, pooled: Codes) -> Mask:
        """Say which rows of block codes break the rule."""
        broken: Mask = self.roots[pooled[:, 0]]
        for block, level in self.others:
            broken = broken & (pooled[:, block] == level)
        return broken


def break_any(rules: Rules, pooled: Codes) -> Mask:
    """Say which rows of block codes break some rule."""
    broken = np.zeros(len(pooled), dtype=bool)
    for rule in rules:
        broken |= rule.breaks(pooled)
    return broken


def allowed_roots(rules: Rules, root_levels: int) -> Mask:
    """Levels of the root that no rule forbids outright."""
    allowed = np.ones(root_levels, dtype=bool)
    for rule in rules:
        if not rule.others:
            allowed &= ~rule.roots
    return allowed


def needed_edges(rules: Rules) -> list[tuple[int, int]]:
    """Pairs of blocks that a tree must join, each once, in order."""
    pairs = {
        (rule.others[0][0], rule.others[1][0])
        for rule in rules
        if len(rule.others) == 2
    }
    return sorted(pairs)


def strike_out(rules: Rules, parents: Sequence[int], tables: Sequence[Reals]) -> None:
    """Strike the forbidden cells out of freshly built tables.

    Of tables with a hub, they are struck out for all of its levels or for one.
    """
    for rule in rules:
        if len(rule.others) == 1:
            block, level = rule.others[0]
            table = tables[block - 1]
            table[_trunks(rule, table), :, level] = 0.0
        elif len(rule.others) == 2:
            _strike_out_pair(rule, parents, tables)


def _strike_out_pair(
    rule: Rule, parents: Sequence[int], tables: Sequence[Reals]
) -> None:
    for above, below in (rule.others, rule.others[::-1]):
        first, first_level = above
        second, second_level = below
        table = tables[second - 1]
        if parents[first - 1] == first:  # the hub
            is_level = np.arange(tables[first - 1].shape[2]) == first_level
            table[np.outer(rule.roots, is_level).ravel(), :, second_level] = 0.0
            return
        if parents[second - 1] == first:
            table[_trunks(rule, table), first_level, second_level] = 0.0
            return
    raise ForbiddenError(
        Option("forbid"),
        f" {rule.text}: the forbidden pairs of columns form a cycle, which"
        " no tree can honour exactly. Drop this rule, or join two of the"
        " columns into one.",
    )


def _trunks(rule: Rule, table: Reals) -> Mask:
    """Levels of a table's trunk that the rule applies to."""
    return np.repeat(rule.roots, len(table) // len(rule.roots))
