"""Without the packages of the app, its command says what to install."""

import sys

from click.testing import CliRunner

from fairmaxent.cli.group import group


def test_the_command_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "fairmaxent.app.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = CliRunner().invoke(group, ["app", "--no-browser"])
    assert result.exit_code == 3
    assert "pip install 'fairmaxent[app]'" in result.stderr
    assert result.stdout == ""
