"""A plugin of pytest for Windows, which has other signals, terminals, permissions,
links and pipes.

What is about those of POSIX is skipped: ``PYTHONPATH=scripts pytest -p windows_tests``,
as the workflow does.
"""

import inspect
import re
from pathlib import Path

import pytest

FILES = (
    "fuzz/*",
    "cli/test_cli_signals.py",
    "cli/test_cli_stream*.py",
    "cli/test_cli_terminal.py",
)
OF_POSIX = re.compile(
    r"mkfifo|umask|symlink_to|chmod|st_mode|0o[67]|/dev/|/proc/|SIGKILL|killpg|getuid|benchmarks"
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files that import what Windows does not have."""
    return (
        True
        if any(collection_path.match(f"tests/{pattern}") for pattern in FILES)
        else None
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that name what Windows does not have; the benchmarks measure memory in
    its ways, too.
    """
    for item in items:
        if isinstance(item, pytest.Function) and OF_POSIX.search(
            inspect.getsource(item.function)
        ):
            item.add_marker(
                pytest.mark.skip(
                    reason=(
                        "about permissions, links, pipes or signals that Windows"
                        " has not"
                    )
                )
            )
