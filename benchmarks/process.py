"""Fresh processes: a job runs in an interpreter of its own, so that no job inherits
another's memory or caches.

The child runs this file as a module: ``python -m benchmarks.process MODULE FUNCTION
ARGUMENTS``.
"""

import contextlib
import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# One thread of linear algebra: threads that wait for each other count as CPU seconds
# without doing any work.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# A job that wants more is ended with an error, before the machine is short of memory.
MOST_BYTES = 10 * 10**9


class JobFailedError(Exception):
    """A job ended with an error or ran too long; the message is one line."""


def fresh(
    job: Callable[..., Any],
    *arguments: Any,
    seconds: float = 3600.0,
    python: str = sys.executable,
) -> Any:
    """Run a function of a module in a fresh process; arguments and result are what JSON
    can say.
    """
    command = [
        python,
        "-m",
        "benchmarks.process",
        job.__module__,
        job.__name__,
        json.dumps(arguments),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise JobFailedError(f"over {seconds:,.0f} s") from problem
    if done.returncode:
        raise JobFailedError(
            _last_line(done.stderr) or f"ended with status {done.returncode}"
        )
    return json.loads(done.stdout)


def environment() -> dict[str, str]:
    """Return the environment of the jobs; COMPAS large is found in shared/data beside
    the checkout.
    """
    data = os.environ.get("FAIRMAXENT_DATA", str(ROOT.parent / "shared" / "data"))
    return os.environ | dict.fromkeys(_THREADS, "1") | {"FAIRMAXENT_DATA": data}


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def main() -> None:
    """Run the job named on the command line; libraries that print do so on stderr."""
    module, name, arguments = sys.argv[1:]
    resource.setrlimit(
        resource.RLIMIT_DATA, (MOST_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1])
    )
    with contextlib.redirect_stdout(sys.stderr):
        result = getattr(importlib.import_module(module), name)(*json.loads(arguments))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
