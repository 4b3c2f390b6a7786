"""No command writes over anything that it reads: every command, every path that
options, config files and policies can name, every option that writes.
"""

import os

import click
import pytest
from click.testing import CliRunner

from clifiles import ROLES, biased_table, listing
from fairmaxent import debias
from fairmaxent.cli.group import COMMANDS, group
from fairmaxent.cli.values import FILE, TARGET

CHECKED = [*ROLES, "--statistical-rate", "0.1"]
# How each command is called, with what is read where it must be named.
CALLS = {
    "inspect": [["inspect", "data.csv"]],
    "debias": [
        ["debias", "data.csv", *ROLES],
        ["debias", "data.csv", *ROLES, "--epsilon", "1", "--save", "new.fme"],
    ],
    "compare": [["compare", "data.csv", *ROLES, "--epsilon", "1"]],
    "rake": [["rake", "data.csv", "--margins", "margins.csv"]],
    "sample": [["sample", "fit.fme", "-n", "5"]],
    "report": [["report", "fit.fme"]],
    "document": [["document", "card", "fit.fme"]],
    "check": [
        ["check", "data.csv", *CHECKED],
        ["check", "--policies", "policies.toml"],
        ["check", "data.csv", "--policies", "policies.toml"],
        ["check"],
    ],
}
NO_CONFIG = ("sample", "report", "document")
READS = {
    "data": "data.csv",
    "domain": "domain.toml",
    "margins": "margins.csv",
    "saved": "fit.fme",
    "result": "fair.csv",
    "against": "earlier.csv",
    "policies": "policies.toml",
}
# What a policy names, and where policies stand if nobody says.
NAMED = ["table.csv", "earlier.csv", "policies.toml", "pyproject.toml"]
SUFFIXES = {"report": ".html"}
OUTPUTS = {"report": ".html", "check": ".json", "document": ".md"}
POLICY = """\
data = "table.csv"
against = "earlier.csv"
outcome = "income"
protected = ["sex"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    table = biased_table()
    for name in ("data.csv", "table.csv", "earlier.csv", "fair.csv"):
        table.write_csv(folder / name)
    (folder / "margins.csv").write_text("sex,value\nFemale,0.5\nMale,0.5\n")
    (folder / "domain.toml").write_text('[levels]\nsex = ["Female", "Male"]\n')
    (folder / "policies.toml").write_text(POLICY)
    (folder / "pyproject.toml").write_text(f"[tool.fairmaxent.check]\n{POLICY}")
    (folder / "config.toml").write_text("groups = 'each'\n")
    debias(table, "income", "sex").save(folder / "fit.fme")
    return folder


def command_of(name):
    return group.get_command(click.Context(group), name)


def parameters(name, kind):
    return [each for each in command_of(name).params if each.type is kind]


def reads(name, call):
    """What a command reads, each with the words that name it, or a line of a config."""
    # policies in a file take nothing that is typed, or in a config file
    is_by_policies = name == "check" and CHECKED[0] not in call
    takes_config = name not in NO_CONFIG and not is_by_policies
    if takes_config:
        yield "config.toml", ["--config", "config.toml"], ""
    for parameter in parameters(name, FILE):
        path = READS.get(parameter.name)
        if parameter.param_type_name == "argument":
            if path in call:
                yield path, [], ""
            continue
        if parameter.name == "config" or path is None:
            continue
        if parameter.opts[-1] in call:
            yield path, [], ""
            continue
        if parameter.name == "policies" or is_by_policies:
            continue
        yield path, [parameter.opts[-1], path], ""
        key = parameter.opts[-1].lstrip("-")
        if takes_config:
            value = f'["{path}"]' if parameter.multiple else f'"{path}"'
            yield path, ["--config", "named.toml"], f"{key} = {value}\n"
    if is_by_policies:
        for path in NAMED[:2]:
            yield path, [], ""
        yield "policies.toml" if "--policies" in call else "pyproject.toml", [], ""


def linked(path, suffix, kind):
    """Another name of a file, as the option wants it."""
    name = f"{kind}-{path}{suffix}"
    if not os.path.lexists(name):
        if kind == "soft":
            os.symlink(path, name)
        else:
            os.link(path, name)
    return name


CASES = [(name, call) for name, calls in CALLS.items() for call in calls]


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("name", "call"), CASES, ids=[" ".join(call) for _, call in CASES]
)
def test_nothing_that_is_read_is_written(folder, name, call, monkeypatch):
    monkeypatch.chdir(folder)
    tried = 0
    for path, words, config in reads(name, call):
        if config:
            (folder / "named.toml").write_text(config)
        for target in parameters(name, TARGET):
            if target.name == "ledger" and "--epsilon" not in call:
                continue
            if target.opts[0] in call:
                continue
            suffix = SUFFIXES.get(target.name, "")
            if target.name == "output":
                suffix = OUTPUTS.get(name, ".csv")
            for kind in ("soft", "hard"):
                written = linked(path, suffix, kind)
                before = listing(folder)
                typed = [*call, *words, target.opts[-1], written]
                forced = [] if name == "compare" else ["--force"]
                result = CliRunner().invoke(group, [*typed, *forced])
                assert result.exit_code == 2, (typed, result.output)
                assert f"{written} is an input file" in result.stderr, typed
                assert listing(folder) == before
                tried += 1
    assert tried >= 2


def test_every_path_is_read_or_written():
    """A new option that names a file says which, or it would not be looked at."""
    others = {("app", "data"), ("demo", "out")}  # one only reads, one only writes
    for name in COMMANDS:
        for parameter in command_of(name).params:
            if isinstance(parameter.type, click.Path):
                known = parameter.type is FILE or parameter.type is TARGET
                assert known or (name, parameter.name) in others
        if parameters(name, TARGET):
            assert name in CALLS
