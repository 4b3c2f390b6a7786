"""Without the packages of the app, its command says what to install."""

import sys

from click.testing import CliRunner

from fairmaxent.cli.group import group


def test_the_command_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("uvicorn", "fairmaxent.app"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = CliRunner().invoke(group, ["app", "--no-browser"])
    assert result.exit_code == 3
    assert "pip install 'fairmaxent[app]'" in result.stderr
    assert result.stdout == ""
