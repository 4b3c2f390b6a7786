"""Refuse a release that is not ready: `python scripts/check_release.py v0.1.0`, a step
of the release workflow.

The tag is the version of pyproject.toml, the changelog has a date for it, and nothing
is left that only a person can fill in: such places are marked, and docs/publishing.md
lists them.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS, MARK = ("", "conda", "docs"), "PERSON:"


def places() -> dict[str, list[str]]:
    """The files with something that only a person can fill in, and what that is."""
    found: dict[str, list[str]] = {}
    for path in sorted(
        each
        for folder in FOLDERS
        for each in (ROOT / folder).glob("*.*")
        if each.is_file()
    ):
        for line in path.read_text(encoding="utf-8").splitlines():
            if MARK in line:
                found.setdefault(path.relative_to(ROOT).as_posix(), []).append(
                    line.partition(MARK)[2].strip()
                )
    return found


def problems(tag: str) -> Iterator[str]:
    """Every reason not to release."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, and pyproject.toml has version {version}"
    if f"## {version} (not released yet)" in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    ):
        yield (
            f"CHANGELOG.md calls {version} not released yet; put the date there, and"
            " into CITATION.cff"
        )
    for name, wanted in places().items():
        yield from (f"{name}: {each}" for each in wanted)


if __name__ == "__main__":
    found = list(problems(sys.argv[1]))
    sys.stderr.writelines(f"{line}\n" for line in found)
    sys.exit(bool(found))
