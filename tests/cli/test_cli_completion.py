"""Completion as the reference documents it: the script of each shell, and what it offers."""

import os
import subprocess
import sys

import pytest


def answer(instruction, **words):
    environment = os.environ | {"_FAIRMAXENT_COMPLETE": instruction, **words}
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'fairmaxent'; from fairmaxent.cli import main; main()"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


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
