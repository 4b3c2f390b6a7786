"""Without the packages of the app, its command says what to install."""

import json
import subprocess
import sys


def test_the_command_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from fairmaxent.cli.group import group\n"
        "group.main(['app', '--no-browser'], 'fairmaxent')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 3
    assert "pip install 'fairmaxent[app]'" in done.stderr
    assert json.dumps(done.stdout) == '""'
