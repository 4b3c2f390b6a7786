"""The values in a TOML file, however deep somebody has nested them."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from fairmaxent.errors import InputError

_DEEPEST = 100  # a.b.c… takes memory by the square of its length


def toml_values(text: str, path: str) -> dict[str, Any]:
    """Read a text of TOML; ``path`` is how messages name it."""
    try:
        if any(part.count(".") > _DEEPEST for part in re.split("[=,\n]", text)):
            raise RecursionError
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not valid TOML: {problem}; check that line") from problem
    except RecursionError as problem:
        raise InputError(f"{path} is nested too deeply; list options and values as 'inspect' writes them") from problem
