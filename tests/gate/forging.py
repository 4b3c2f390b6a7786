"""Documents with one change that nobody may make."""

import re


def forged(text, rng):
    """The text with one number, word or line changed that people do not write."""
    while True:
        other = _changed(text, rng)
        if other != text:  # as it is if a line was moved to where it was
            return other


def forged_head(text, rng):
    """The text with one sign changed, deleted or put in before its seal ends."""
    end = text.index("Seal: ") + 20
    while True:
        place = rng.randrange(end)
        sign = rng.choice(["", *',;:= &.x1"\n'])
        other = text[:place] + sign + text[place + rng.choice([0, 1]) :]
        line = text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0]
        if other != text and "To be written" not in line:
            return other


def _changed(text, rng):
    lines = text.split("\n")
    fixed = [
        number
        for number, line in enumerate(lines)
        if line.strip() and not line.startswith(">") and '"To be written' not in line
    ]
    number = rng.choice(fixed)
    line = lines[number]
    way = rng.choice(["number", "word", "deleted", "doubled", "moved"])
    found = [*re.finditer(r"\d" if way == "number" else r"[^\W\d]+", line)]
    if way in ("number", "word") and found:
        place = rng.choice(found)
        other = str((int(place[0]) + rng.randint(1, 9)) % 10) if way == "number" else ""
        other = other or f"{place[0]}x"
        lines[number] = line[: place.start()] + other + line[place.end() :]
    elif way == "moved":
        lines.insert(rng.choice(fixed), lines.pop(number))
    elif way == "doubled":
        lines.insert(number, line)
    else:
        del lines[number]
    return "\n".join(lines)
