"""Choices on the command line, and the words of the report, know every choice that the library knows."""

from __future__ import annotations

from typing import get_args

import click
import pytest

from fairmaxent.cli.group import group
from fairmaxent.data.roles import DetailOption, GroupsOption
from fairmaxent.files.formats import FORMATS, SUFFIXES
from fairmaxent.fit.option_values import OutputOption, ParityOption
from fairmaxent.maxent.priors.bases import BASES, BaseKind
from fairmaxent.report.delivered import Mode

KNOWN = {
    "base": get_args(BaseKind),
    "groups": get_args(GroupsOption),
    "detail": get_args(DetailOption),
    "relabel": ("none", *get_args(ParityOption)),
    "estimate": ("auto", *get_args(OutputOption), "none"),
    "mode": get_args(Mode),
    "input_format": tuple(FORMATS),
    "output_format": tuple(FORMATS),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_command_line_offers_every_choice(name):
    command = group.get_command(click.Context(group), "debias")
    option = next(option for option in command.params if option.name == name)
    assert sorted(option.type.choices) == sorted(KNOWN[name])


def test_the_report_has_words_for_every_base():
    assert set(BASES) == set(get_args(BaseKind))
    assert all(base.sentence for base in BASES.values())


def test_every_format_has_a_suffix():
    assert set(SUFFIXES.values()) == set(FORMATS)
