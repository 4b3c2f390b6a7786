"""Two or more wishes in one call: refused with their names, or honoured in each output.

`python tests/together/judging.py` prints how many pairs are which.
"""

import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pandas as pd
from asked import MASS, Asked, Delivered
from wishes import PROMISES, WISHES, Wish

from fairmaxent import Estimate, Likely, Model, Privacy, debias, load
from fairmaxent.errors import FairMaxEntError
from people import GOOD, declared, people

ROWS = 900  # that are drawn
EPSILON = 50.0  # of private fits: little noise, so that the rows are still there
PLAIN = {"outcome": "hired", "protected": ["sex"]}
RECORDS = {"model": Model, "estimate": Estimate, "privacy": Privacy}
RECORDS["likely"] = Likely
# What is asked for together, like a record; where that is refused, each has its call.
TOGETHER = {
    # they leave the fair table alone
    **dict.fromkeys(("detail", "keep_columns", "random_state", "progress"), "quiet"),
    "representation_rate": "rates",
    "statistical_rate": "rates",
    "groups": "comparisons",
    "compare_missing": "comparisons",
    "favourable": "readings",
    "weight": "readings",
}
OUTPUTS = ("weights", "rows", "top-up")
PAPERS = ("file", "report", "document")
# how a refusal may name an output
SPELLED = {
    "weights": ("weights",),
    "rows": ("sample",),
    "top-up": ("rows to add", "top_up()", "adding rows"),
}
HONOURED = "honoured"
REFUSED = "refused"


Side = tuple[Wish, ...]  # one wish, or several that are asked for together
Sides = tuple[Side, ...]


@dataclass(frozen=True)
class Judged:
    """What became of some wishes in one output."""

    sides: Sides
    output: str
    verdict: str  # HONOURED, REFUSED, or what is wrong
    message: str = ""  # of the refusal

    @property
    def is_wrong(self) -> bool:
        return self.verdict not in (HONOURED, REFUSED)

    @property
    def pairs(self) -> int:
        """How many pairs of options this was about: of one side, those in it."""
        if len(self.sides) == 1:
            return len(list(combinations(self.sides[0], 2)))
        first, second = self.sides
        return len(first) * len(second)

    def __str__(self) -> str:
        names = " + ".join(wish.label for side in self.sides for wish in side)
        return f"{names} -> {self.output}: {self.verdict} {self.message}"


def single_pairs() -> list[tuple[Side, Side]]:
    """Every two wishes for different options, one call each."""
    return [
        ((first,), (second,))
        for first, second in combinations(WISHES, 2)
        if first.option != second.option
    ]


def sides() -> list[Side]:
    """The first value of each option; some are asked for together.

    Those are the fields of one record, and those in `TOGETHER`.
    """
    joined: dict[str, Side] = {}
    for wish in WISHES:
        if wish.is_variant:
            continue
        record = wish.option.split(".")[0]
        name = TOGETHER.get(record, record)
        joined[name] = (*joined.get(name, ()), wish)
    return list(joined.values())


def joined_pairs() -> list[Sides]:
    """Every pair of options with fewer calls: each side alone, and every two.

    If all wishes of a call are honoured, so is each of its pairs.
    """
    return [*((side,) for side in sides()), *combinations(sides(), 2)]


# ---------------------------------------------------------------- the call


def asked_by(wishes: Side, folder: Path) -> Asked:
    """Put wishes together: what they need first, what they ask for over it."""
    options: dict[str, Any] = dict(PLAIN)
    for part in (*(wish.needs for wish in wishes), *(wish.asks for wish in wishes)):
        for name, value in part.items():
            if name in RECORDS:
                value = {**options.get(name, {}), **value}
            options[name] = value
    table = people(*columns_used(options))
    if options.get("domain") == "declared":
        options["domain"] = declared(list(table.columns))
    if "privacy" in options:
        options["privacy"] = {"epsilon": EPSILON, **options["privacy"]}
        if "undeclared" in options["privacy"]:
            table.loc[0, "drive"] = "boat"
        if "ledger" in options["privacy"]:
            path = folder / "ledger.json"
            path.unlink(missing_ok=True)
            options["privacy"]["ledger"] = path
    if "the outcome" in options.get("target", ()):
        options["target"] = {options["outcome"]: options["target"]["the outcome"]}
    if options.get("favourable") == "good":
        options["favourable"] = GOOD[options["outcome"]]
    if "progress" in options:
        options["progress"] = options["progress"]()
    if "further" in options:
        first = options["outcome"]
        options["outcome"] = [first, options.pop("further")]
        if "favourable" in options:
            options["favourable"] = {first: options["favourable"]}
    return Asked(options, table)


def columns_used(options: dict[str, Any]) -> list[str]:
    """The columns that options name, and an identifier where they are about such."""
    names = [
        options[name] for name in ("outcome", "further", "weight") if name in options
    ]
    if "likely" in options:
        names += [*options["likely"]["columns"].values(), "origin_known"]
    is_declared = "domain" in options  # which would name everybody
    if "keep_columns" in options or ("release" in options and not is_declared):
        names.append("name")
    return names


def fitted(asked: Asked) -> Any:
    """Make the one call."""
    options = dict(asked.options)
    for name, record in RECORDS.items():
        if name in options:
            options[name] = record(**options[name])
    return debias(asked.data, **options)


# ---------------------------------------------------------------- the outputs


def delivered_by(fit: Any, asked: Asked, kind: str) -> Delivered:
    """One output as a table whose rows count by `MASS`."""
    if kind == "weights":
        return Delivered(kind, fit.weigh(asked.data, weight_name=MASS), asked)
    if kind == "rows":
        rows = fit.sample(ROWS, random_state=3)
        table = rows.assign(**{MASS: 1.0})
        return Delivered(kind, table, asked, rows, off=1)
    rows = fit.top_up(random_state=3)
    old = asked.data.assign(**{MASS: asked.masses})
    table = pd.concat([old, rows.assign(**{MASS: 1.0})], ignore_index=True)
    # old rows count by their design weights, which are rounded
    return Delivered(kind, table, asked, rows, off=1.5)


# ---------------------------------------------------------------- the judgement


def judge(
    sides: Sequence[Side], folder: Path, outputs: Sequence[str] = OUTPUTS
) -> Iterator[Judged]:
    """Make the call, and look at each output."""
    sides = tuple(sides)
    asked = asked_by(tuple(wish for side in sides for wish in side), folder)
    try:
        fit = fitted(asked)
    except FairMaxEntError as problem:
        message = str(problem)
        verdict = REFUSED
        if sum(is_named(side, message) for side in sides) < 2:
            verdict = "refused without both names:"
        for output in outputs:
            yield Judged(sides, output, verdict, message)
        return
    for output in outputs:
        yield judge_output(sides, asked, fit, output, folder)


def judge_joined(joined: Sides, folder: Path, outputs: Sequence[str]) -> list[Judged]:
    """The same; where wishes in `TOGETHER` are refused, each is judged by itself."""
    found = list(judge(joined, folder, outputs))
    parts = list(product(*map(parts_of, joined)))
    if len(parts) == 1 or any(one.verdict != REFUSED for one in found):
        return found
    return [one for part in parts for one in judge(part, folder, outputs)]


def parts_of(side: Side) -> list[Side]:
    """Wishes in `TOGETHER` one by one."""
    if side[0].option in TOGETHER:
        return [(wish,) for wish in side]
    return [side]


def is_named(side: Side, message: str) -> bool:
    """Whether a refusal is about one of these wishes."""
    return any(wish.is_named_in(message) for wish in side)


def judge_output(
    sides: Sides, asked: Asked, fit: Any, output: str, folder: Path
) -> Judged:
    """Look at one output of a fit."""
    wishes = tuple(wish for side in sides for wish in side)
    look = PAPER_LOOKS.get(output)
    try:
        if look is not None:
            look(wishes, asked, fit, folder)
        else:
            verify_table(wishes, asked, fit, delivered_by(fit, asked, output))
    except FairMaxEntError as problem:
        message = str(problem)
        is_output = any(name in message for name in SPELLED.get(output, (output,)))
        if is_output and is_named(wishes, message):
            return Judged(sides, output, REFUSED, message)
        return Judged(sides, output, "refused without saying why:", message)
    except AssertionError as problem:
        return Judged(sides, output, "not honoured:", why(problem))
    return Judged(sides, output, HONOURED)


def why(problem: AssertionError) -> str:
    """What a verifier says, or which one it is."""
    last = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{last.name}, line {last.lineno}: {problem} {last.line}"


def verify_table(
    wishes: tuple[Wish, ...], asked: Asked, fit: Any, delivered: Delivered
) -> None:
    """All that was asked for holds, and what holds without being asked."""
    for wish in wishes:
        wish.verify(asked, fit, delivered)
    for promise in PROMISES:
        promise(asked, fit, delivered)


def look_at_file(
    wishes: tuple[Wish, ...], asked: Asked, fit: Any, folder: Path
) -> None:
    """A fit from a file gives the same outputs, and states the same."""
    path = folder / "saved.fit"
    fit.save(path)
    again = load(path)
    assert again.certificate.to_dict() == fit.certificate.to_dict()
    drawn = [one.sample(60, random_state=3) for one in (fit, again)]
    pd.testing.assert_frame_equal(*drawn)
    if not asked.is_private and not asked["release"]:
        pd.testing.assert_frame_equal(fit.weigh(asked.data), again.weigh(asked.data))
    assert list(again.request.words()) == list(fit.request.words())


def look_at_report(
    wishes: tuple[Wish, ...], asked: Asked, fit: Any, folder: Path
) -> None:
    path = folder / "report.md"
    data = asked.data
    if asked.is_private:
        data = None
    fit.report(path, data=data, trade_off=False, seed=3)
    text = path.read_text()
    assert_said(said_by_all(wishes, asked), text)
    for group in fit.certificate.set_apart:
        assert group.name in text, f"{group.name} is not listed"


def look_at_document(
    wishes: tuple[Wish, ...], asked: Asked, fit: Any, folder: Path
) -> None:
    asked_for = [wish for wish in wishes if wish.option != "privacy.rows_per_person"]
    told = said_by_all(tuple(asked_for), asked)
    assert_said(told, fit.document("article-10"))


def said_by_all(wishes: tuple[Wish, ...], asked: Asked) -> tuple[Wish, ...]:
    """Those with words of their own.

    A private fit promises more than sharing, and equal probabilities are no decisions.
    No base makes rows where groups are only likely.
    """
    silent = set()
    if asked.is_private:
        silent.add("release")
    if not asked.decides:
        silent.add("model")
    if "likely" in asked:
        silent.add("base_share")
    return tuple(wish for wish in wishes if wish.option not in silent)


def assert_said(wishes: tuple[Wish, ...], text: str) -> None:
    """What the wishes want said is there, whatever Markdown escapes."""
    plain = text.replace("\\", "")
    for wish in wishes:
        for words in wish.says:
            assert words in plain, f"{wish.label}: nothing says {words!r}"


PAPER_LOOKS = {
    "file": look_at_file,
    "report": look_at_report,
    "document": look_at_document,
}


def counted(judged: Sequence[Judged]) -> Counter:
    """How many pairs of options were refused and honoured, by output."""
    pairs = Counter()
    for one in judged:
        pairs[one.output, one.verdict.split()[0]] += one.pairs
    return pairs


def main() -> None:
    import tempfile

    from quickened import quickened

    with quickened(), tempfile.TemporaryDirectory() as folder:
        judged = [
            one
            for pair in joined_pairs()
            for one in judge_joined(pair, Path(folder), (*OUTPUTS, *PAPERS))
        ]
    for one in judged:
        if one.is_wrong:
            print(one)
    for (output, verdict), count in sorted(counted(judged).items()):
        print(f"{output:10} {verdict:10} {count:5}")


if __name__ == "__main__":
    main()
