"""Completion as the reference documents it: the script of each shell, and what it offers."""

import pytest
from click.testing import CliRunner

from fairmaxent.cli.group import group


def answer(instruction, **words):
    return CliRunner().invoke(group, prog_name="fairmaxent", env={"_FAIRMAXENT_COMPLETE": instruction, **words}).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell):
    assert "_fairmaxent_completion" in answer(f"{shell}_source")


@pytest.mark.parametrize(
    ("typed", "position", "offered"),
    [
        ("fairmaxent deb", 1, ["debias"]),
        ("fairmaxent debias --representation-r", 2, ["--representation-rate"]),
        ("fairmaxent debias --base t", 3, ["tree"]),
    ],
)
def test_what_is_offered(typed, position, offered):
    said = answer("bash_complete", COMP_WORDS=typed, COMP_CWORD=str(position))
    assert said.splitlines() == [f"plain,{word}" for word in offered]
