"""Try the packages in dist/ as strangers would, on every Python from 3.11 on that is
here: a part of `make dist`.

    python scripts/check_dist.py [ANOTHER_PYTHON ...]

In an empty environment, outside this folder: the wheel alone, which may bring three
libraries and no more, then with its extras, then the source distribution. Each line
says what was installed, how many CPU seconds pip took, and what works; anything that is
missing ends it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECK = ROOT / "scripts" / "check_installed.py"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
CORE = {"narwhals", "numpy", "scipy"}
# of CPU for the core, which is said and not enforced: machines differ
MOST_SECONDS = 15
_VERSION = "import ensurepip, sys; print(*sys.version_info[:2], sep='.')"


def main() -> None:
    """Try every package with every Python."""
    wheel, source = only("*.whl"), only("*.tar.gz")
    sizes = (
        f"{path.name} has {path.stat().st_size / 1e6:.2f} MB"
        for path in (wheel, source)
    )
    print(*sizes, sep="\n")
    for version, python in pythons([sys.executable, *PYTHONS, *sys.argv[1:]]).items():
        print(f"Python {version}:")
        for package, extras in (
            (wheel, ""),
            (wheel, "[app,cli,sklearn]"),
            (source, ""),
        ):
            print(
                f"  {package.name}{extras}: {tried(python, package, extras)}",
                flush=True,
            )


def only(pattern: str) -> Path:
    """The one package of a kind in dist/."""
    (path,) = (ROOT / "dist").glob(pattern)
    return path


def pythons(names: list[str]) -> dict[str, str]:
    """Those of the names that start a Python which can make environments, by
    version.
    """
    found: dict[str, str] = {}
    for path in filter(None, map(shutil.which, names)):
        asked = subprocess.run(
            [path, "-c", _VERSION], capture_output=True, text=True, check=False
        )
        if re.fullmatch(r"3\.1[1-9]\n", asked.stdout):
            found.setdefault(asked.stdout.strip(), path)
    return dict(sorted(found.items()))


def tried(python: str, package: Path, extras: str) -> str:
    """Install a package into an empty environment, and see what works there."""
    with tempfile.TemporaryDirectory() as folder:
        run([python, "-m", "venv", folder], folder)
        own = str(Path(folder, "Scripts" if os.name == "nt" else "bin", "python"))
        pip = [own, "-m", "pip", "--disable-pip-version-check"]
        before = os.times()
        run([*pip, "install", "--quiet", f"{package}{extras}"], folder)
        after = os.times()
        brought = {
            each["name"]
            for each in json.loads(run([*pip, "list", "--format", "json"], folder))
        }
        brought -= {"fairmaxent", "pip", "setuptools"}
        if not extras and brought != CORE:
            sys.exit(
                f"the core needs {', '.join(sorted(CORE))}, and pip installed"
                f" {', '.join(sorted(brought))}"
            )
        seconds = (
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
        says = run([own, str(CHECK)], folder).strip().splitlines()[-1]
    bar = "" if extras else f" (bar: {MOST_SECONDS})"
    return f"{len(brought)} libraries, pip took {seconds:.1f} CPU s{bar}; {says}"


def run(command: list[str], folder: str) -> str:
    """Run a command in a folder, without this checkout's settings, and return what it
    printed; end if it fails.
    """
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON")
    }
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
