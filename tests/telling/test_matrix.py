"""The matrix of fact and door: nothing is missing where it must be said, nothing wrong.

`python tests/telling/test_matrix.py` prints it for all fits.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import pytest
from doors import Made
from matrix import ALL_DOORS, contradictions, facts_of, lines_of
from more_fits import ALL, FITS

Finding = tuple[str, str, str, str]  # the fit, the fact, the door, and the verdict


def findings(name: str, made: Made) -> Iterator[Finding]:
    """Each fact of a fit at each door, and each claim that it contradicts."""
    facts = [*facts_of(made)]
    claims = [*contradictions(made)]
    for door in ALL_DOORS:
        if door in made.closed:
            continue
        lines = lines_of(made, door)
        for one in facts:
            verdict = one.verdict(lines, door)
            if verdict:
                yield name, one.key, door, verdict
        for key, claim in claims:
            is_claimed = any(said(claim, line) for line in lines)
            yield name, f"not: {key}", door, "wrong" if is_claimed else "right"


def said(claim: str, line: str) -> bool:
    return re.search(claim, line, re.IGNORECASE) is not None


def matrix(names: Iterable[str]) -> list[Finding]:
    return [one for name in names for one in findings(name, Made(name, ALL[name]))]


def is_bad(finding: Finding) -> bool:
    return finding[-1] != "right"


@pytest.mark.parametrize("name", FITS)
def test_facts_are_where_they_must_be_and_nothing_is_wrong(name, made):
    found = [*findings(name, made(name))]
    assert found
    assert not [*filter(is_bad, found)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL.keys() - FITS.keys())
def test_facts_of_other_fits_too(name):
    assert not [*filter(is_bad, matrix([name]))]


def main() -> None:
    """Print fact × door: right / missing / wrong."""
    table: dict[str, dict[str, Counter]] = defaultdict(lambda: defaultdict(Counter))
    total: Counter = Counter()
    for name in ALL:
        for fit, key, door, verdict in matrix([name]):
            table[key][door][verdict] += 1
            total[verdict] += 1
            if verdict != "right":
                print(f"{verdict}: {key} at {door}, of {fit!r}")
    print("fact".ljust(24), *(door[:10].rjust(11) for door in ALL_DOORS))
    for key, by_door in table.items():
        cells = []
        for door in ALL_DOORS:
            counts = by_door[door]
            cell = "/".join(str(counts[kind]) for kind in ("right", "missing", "wrong"))
            cells.append(cell.rjust(11) if counts else "–".rjust(11))
        print(key.ljust(24), *cells)
    print(len(ALL), "fits:", dict(total))


if __name__ == "__main__":
    main()
