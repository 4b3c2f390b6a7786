"""The help of the commands, completion, and choices: what most people need first, and
all that the library knows.
"""

import re

import click
import pytest
from click.testing import CliRunner

from fairmaxent.cli.debias import debias_command as debias
from fairmaxent.cli.group import COMMANDS, group
from fairmaxent.cli.options import OTHERS


def sections(command):
    """The options of each heading, by their first spelling, in the order of the
    help.
    """
    result = CliRunner().invoke(group, [command, "--help"])
    assert result.exit_code == 0, result.stderr
    listed, heading = {}, None
    for line in result.stdout.splitlines():
        if title := re.fullmatch(r"(\S.*):", line):
            heading = title[1]
            assert heading not in listed
            listed[heading] = []
        elif not line:
            heading = None  # what follows is text, until the next heading
        elif heading is not None and (option := re.match(r"  (-[\w-]+)", line)):
            listed[heading].append(option[1])
    return listed


def options_of(command):
    """The first spelling of each option that is not hidden."""
    context = click.Context(command)
    return [
        one.opts[0]
        for one in command.get_params(context)
        if isinstance(one, click.Option) and not one.hidden
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_names_no_page_that_is_not_installed(command):
    result = CliRunner().invoke(group, [command, "--help"])
    assert not re.search(r"\b(docs|questions|reference|coming-from)/", result.stdout)


def test_the_main_options_come_first_and_the_rest_is_under_headings_that_say_what_it_is_about():
    headings = sections("debias")
    assert next(iter(headings)) == "Options"
    main = headings["Options"]
    assert {
        "--outcome",
        "--protected",
        "--favourable",
        "--statistical-rate",
        "-o",
        "--report",
    } <= {*main}
    assert main[:2] == ["--outcome", "--protected"]
    assert len(main) < len(options_of(debias)) / 2
    assert len(headings) > 4
    # click keeps the option of help that was asked for first, by one name or by two
    assert set(headings.get(OTHERS, ())) <= {"--config", "-h", "--help"}
    for first, others in {
        "What is compared": ["--groups", "--weight"],
        "What is asked for": ["--parity", "--threshold", "--target", "--base-share"],
        "What is written": ["--estimate", "--force", "--json"],
    }.items():
        assert set(others) <= set(headings[first])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_appears_exactly_once_under_a_heading(command):
    listed = [option for options in sections(command).values() for option in options]
    assert sorted(listed) == sorted(
        options_of(group.get_command(click.Context(group), command))
    )


def answer(instruction, **words):
    return (
        CliRunner()
        .invoke(
            group,
            prog_name="fairmaxent",
            env={"_FAIRMAXENT_COMPLETE": instruction, **words},
        )
        .stdout
    )


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("deb", "debias"),
        ("debias --representation-r", "--representation-rate"),
        ("debias --base t", "tree"),
    ],
)
def test_what_is_offered(typed, offered):
    said = answer(
        "bash_complete",
        COMP_WORDS=f"fairmaxent {typed}",
        COMP_CWORD=str(len(typed.split())),
    )
    assert said == f"plain,{offered}\n"
    assert all(
        "_fairmaxent_completion" in answer(f"{shell}_source")
        for shell in ("bash", "zsh", "fish")
    )
