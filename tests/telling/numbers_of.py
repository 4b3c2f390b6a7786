"""The numbers of a text."""

import re

_NUMBER = re.compile(r"(\d+(?:,\d{3})*)(?:\.(\d+))?(e[-+]?\d+)?( ?%)?")


def numbers_in(text: str) -> list[tuple[float, float]]:
    """Each number of a text, and half a unit of its last digit.

    Nothing is rounded in a whole number without a sign of percent.
    """
    found = []
    for digits, decimals, power, percent in _NUMBER.findall(text):
        unit = 10.0 ** -len(decimals) * float(f"1{power}")
        scale = 0.01 if percent else 1.0
        value = float(f"{digits.replace(',', '')}.{decimals or 0}{power}")
        is_rounded = decimals or percent or power
        found.append((scale * value, scale * unit / 2 if is_rounded else 0.0))
    return found
