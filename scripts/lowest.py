"""Print the lower bounds of pyproject.toml as constraints for pip: ``name==bound``, one
line each.
"""

import re
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?>=(?P<bound>[\w.]+)")


def lower_bounds(text: str) -> dict[str, str]:
    """The lower bound of each library that a pyproject.toml names, by its name; the
    highest if there are several.
    """
    project = tomllib.loads(text)["project"]
    named = [
        *project["dependencies"],
        *(
            name
            for extra in project["optional-dependencies"].values()
            for name in extra
        ),
    ]
    bounds: dict[str, str] = {}
    for bound in filter(None, map(BOUND.match, named)):
        bounds[bound["name"]] = max(
            bounds.get(bound["name"], "0"), bound["bound"], key=_numbers
        )
    return bounds


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    bounds = lower_bounds(
        Path(__file__)
        .parent.parent.joinpath("pyproject.toml")
        .read_text(encoding="utf-8")
    )
    sys.stdout.writelines(
        f"{name}=={bound}\n" for name, bound in sorted(bounds.items())
    )
