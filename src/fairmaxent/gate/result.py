"""What a check found: a line for each limit, the answer over all, documents, files."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np

from fairmaxent.data.levels import value_text
from fairmaxent.document import Block, Document, Listing, Paragraph, Section, Table
from fairmaxent.document.text import to_markdown, to_text
from fairmaxent.document.words import first
from fairmaxent.errors import FairMaxEntError, UnfairError
from fairmaxent.gate.policy import LARGEST, SECTION, Policy
from fairmaxent.metrics.intervals import interval_text
from fairmaxent.metrics.rates import GroupRate, Rate, group_text
from fairmaxent.metrics.rows import Columns, stratum_text
from fairmaxent.plain_text import json_text, visible

# "error": it could not be checked, for a wrong option, column, file or policy
Answer = Literal["error", "fail", "cannot tell", "pass"]
# How a build ends, the worst first. 2 is also the command line's code for wrong usage.
CODES: dict[Answer, int] = {
    "error": 2,
    "fail": 1,
    "cannot tell": 3,
    "pass": 0,
}
MEANINGS = (
    "Exit code 0: pass. 1: fail, which is unfair. 2: it could not be checked; an"
    " option, a column, a file or a policy is wrong. 3: cannot tell, for too few"
    " people. Of several policies, 2 counts before 1, and 1 before 3."
)
_NAMES = {"calibration": "calibration gap"}
_MOST_NEEDED = 4  # groups that are named
_FOOTER = f"{MEANINGS} A rate is evidence, and no verdict on anybody's conduct."
# how a file begins that one of the forms below wrote
_OWN = re.compile(
    r"# Fairness check: "
    r"|[^\n]*: (?:(?:pass|fail|cannot tell) \(\d+ of \d|error, so nothing was checked)"
    r'|<testsuites><testsuite [^>]*package="tool\.fairmaxent\.check"'
    r'|\{\s*"answer": "[a-z ]+",\s*"checks": \['
)
_UNCHECKED = "policy"  # the case of JUnit of one with an error


def now() -> datetime:
    """The time by the clock of the world."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Finding:
    """One limit and the rate that it is for."""

    kind: str
    columns: Columns
    limit: float
    rate: Rate
    answer: Answer = "cannot tell"
    before: Rate | None = None  # of an earlier table, if that is the limit
    # groups of an earlier table that are gone, or have become too small
    lost: tuple[GroupRate, ...] = ()
    # how many people would tell, which takes a moment
    ask: Callable[[], dict[str, int]] = dict

    @cached_property
    def needed(self) -> dict[str, int]:
        """How many people would be needed of each group that has too few to tell.

        Empty: no number would do.
        """
        if self.answer == "cannot tell":
            return self.ask()
        return {}

    @property
    def sign(self) -> int:
        """1 if the limit is the smallest value allowed, -1 if it is the largest."""
        return -1 if self.kind in LARGEST else 1

    @property
    def name(self) -> str:
        """The rate, and what it is compared with."""
        since = " since before" if self.before else ""
        return f"{self._rate_name}{since}"

    @property
    def _rate_name(self) -> str:
        kind = _NAMES.get(self.kind, self.kind.replace("_", " "))
        return f"{kind} of {' × '.join(self.columns)}"

    @cached_property
    def hollow(self) -> list[str]:
        """Where nobody has the outcome, so that no ratio tells anything."""
        if self.sign < 0:
            return []
        somebody = {(one.outcome, one.stratum) for one in self.rate.groups if one.rate}
        where = {(one.outcome, one.stratum) for one in self.rate.groups} - somebody
        return sorted(
            f"{value_text(outcome)}{stratum_text(stratum)}"
            for outcome, stratum in where
        )

    @property
    def sentence(self) -> str:
        """What was found, and what that rests on, in a few sentences."""
        if self.rate.likely is None:
            return self._found
        return f"{self._found} {self.rate.likely.sentence}"

    @property
    def _found(self) -> str:
        """What was found, in a sentence or two."""
        found = (
            f"The {self._rate_name} is {self.rate.value:.3f}"
            f"{interval_text(self.rate.interval)}"
        )
        if self.rate.is_alone:
            return self._nothing_compared
        if self.before is not None:
            return f"{found}, after {self.before.value:.3f}: {self._changed}"
        limit = f"the limit of {self.limit:g}"
        beyond = "below" if self.sign > 0 else "above"
        if self.answer == "fail":
            return f"{found}, {beyond} {limit} {self._who}."
        if self.answer == "pass":
            return f"{found}, not {beyond} {limit} {self._who}."
        if self.rate.is_refuted:
            return f"{found}; so nobody can tell whether that is {beyond} {limit}."
        if self.hollow:
            return (
                f"{found} {self._who}. Nobody has the outcome"
                f" {' or '.join(self.hollow)}, so nothing can be compared there with"
                f" {limit}."
            )
        if not self.needed:
            return (
                f"{found}; no number of people like these would tell whether that is"
                f" {beyond} {limit} {self._who}."
            )
        return (
            f"{found}, so chance alone may put it above {limit}, or below {self._who}."
            f" It is {abs(self.rate.value - self.limit):.3f} from the limit: an answer,"
            f" four times in five, would need about {self._more}."
        )

    @property
    def _nothing_compared(self) -> str:
        few = "There is one group only"
        if self.rate.set_apart:
            few = "Fewer than two groups are large enough to compare"
        limit = "the earlier table"
        if self.before is None:
            limit = f"the limit of {self.limit:g}"
        names = f"{' × '.join(self.columns)}{self.rate.not_compared}"
        return f"{few}, so nothing can be compared with {limit} ({names})."

    @property
    def _changed(self) -> str:
        """What became of an earlier rate."""
        worse = "fall" if self.sign > 0 else "rise"
        if self.answer == "fail":
            return f"more of a {worse} than chance explains {self._who}."
        text = f"no {worse} beyond chance {self._who}."
        if self.answer == "pass":
            return text
        if self.before is not None and self.before.is_alone:
            return f"{text} But the earlier table has one group only."
        if not self.lost:
            return f"{text} But so few people can hide a large one."
        names = ", ".join(
            f"{group_text(group.group)}{stratum_text(group.stratum)}"
            for group in self.lost
        )
        return f"{text} Too few are left to compare: {names}."

    @property
    def _more(self) -> str:
        """How many people of each group would tell."""
        people = [f"{count:,} people of {name}" for name, count in self.needed.items()]
        return ", ".join(first(people, _MOST_NEEDED, "group"))

    @property
    def _who(self) -> str:
        """The groups that are furthest apart, how many they are, and who is not."""
        worst = self.rate.worst
        counts = {
            group.group: f"{group.count or 0:,}"
            for group in self.rate.groups
            if (group.outcome, group.stratum) == (worst.outcome, worst.stratum)
        }
        people = [*counts.values()]
        if worst.lowest != worst.highest:
            people = [counts[worst.lowest], counts[worst.highest]]
        return f"({worst}: {' and '.join(people)} people{self.rate.not_compared})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "name": self.name,
            "answer": self.answer,
            "value": self.rate.value,
            "interval": self.rate.interval,
            "limit": self.limit,
            "needed": self.needed,
            "set_apart": self.rate.set_apart,
            "likely": self.rate.likely,
            "lost": self.lost,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class CheckResult:
    """The answer of a check: pass, fail or cannot tell, and what it is made of."""

    name: str
    policy: Policy | None = None
    findings: tuple[Finding, ...] = ()
    rows: int = 0
    file: str | None = None
    problem: FairMaxEntError | None = None  # why it could not be checked
    started: datetime = field(default_factory=now, compare=False)
    seconds: float = field(default=0.0, compare=False)

    @property
    def answer(self) -> Answer:
        """A failure of one limit first, then what nobody can tell."""
        if self.problem is not None:
            return "error"
        return worst(finding.answer for finding in self.findings)

    @property
    def ok(self) -> bool:
        """Whether every limit is kept."""
        return self.answer == "pass"

    def raise_if_unfair(self) -> None:
        """Raise :class:`fairmaxent.errors.UnfairError` unless every limit is kept.

        It is an AssertionError. What could not be checked raises what is wrong.
        """
        if self.problem is not None:
            raise self.problem
        if not self.ok:
            raise UnfairError(
                f"{self.answer}:",
                *(f" {one.sentence}" for one in self.findings if one.answer != "pass"),
            )

    @property
    def lines(self) -> list[tuple[str, Answer, str]]:
        """Each limit: its name, its answer, and what was found.

        What could not be checked is one line, too.
        """
        if self.problem is not None:
            return [(_UNCHECKED, "error", str(self.problem))]
        return [(one.name, one.answer, one.sentence) for one in self.findings]

    @property
    def document(self) -> Document:
        """The answer, what was found, and every rate."""
        kept = sum(found.answer == "pass" for found in self.findings)
        summary = (
            f"{self.name}: {self.answer} ({kept} of {len(self.findings)} limits kept,"
            f" {self.rows:,} rows)"
        )
        rates = [
            (one.name, _digits(one.rate.value), _digits(one.limit, ".3g"), one.answer)
            for one in self.findings
        ]
        table = Table(
            "Rates and limits", ("Rate", "Value", "Limit", "Answer"), tuple(rates)
        )
        found = Listing(tuple(sentence for *_, sentence in self.lines))
        blocks: tuple[Block, ...] = (found, table, Paragraph(self._assumed))
        if self.problem is not None:
            summary = f"{self.name}: error, so nothing was checked"
            blocks = (found,)
        section = Section("limits", "What was checked", "Limits", blocks)
        return Document(
            kind="Fairness check",
            title=self.name,
            filing=(
                ("Table", self.file or "no file"),
                ("Answer", self.answer),
            ),
            summary=summary,
            first_page=(section,),
            appendix=(),
            footer=_FOOTER,
        )

    @property
    def _assumed(self) -> str:
        """What intervals assume about people who belong together."""
        cluster = self.policy and self.policy.cluster
        if cluster is None:
            return "Intervals assume that people are independent of each other."
        return f"Intervals allow for people of the same {cluster!r} being alike."

    def __str__(self) -> str:
        document = self.document
        return f"{visible(document.summary)}\n{to_text(document.first_page[0].blocks)}"


def _digits(value: float, form: str = ".3f") -> str:
    """A rate; a dash if there is nothing to compare."""
    if np.isnan(value):
        return "–"
    return format(value, form)


def is_own(path: str) -> bool:
    """Whether a file is one that a check wrote, or that is not there yet."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # what is wrong is said when it is written
        return True
    return _OWN.match(text) is not None


def worst(answers: Iterable[Answer]) -> Answer:
    """One answer for several."""
    return min(answers, key=list(CODES).index)


def _junit(results: Sequence[CheckResult]) -> str:
    """JUnit's XML: a suite for each policy, a case for each limit.

    What nobody can tell is an error, not a failure. Everything that the schemas of
    Jenkins and of Ant want is there, and nothing that one of them refuses.
    """
    suites = ElementTree.Element("testsuites")
    for number, result in enumerate(results):
        answers = [answer for _, answer, _ in result.lines]
        failures = answers.count("fail")
        name = result.name.strip() or SECTION
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=name,
            package=SECTION,
            id=str(number),
            hostname="localhost",
            timestamp=f"{result.started:%Y-%m-%dT%H:%M:%S}",
            time=f"{result.seconds:.3f}",
            tests=str(len(answers)),
            failures=str(failures),
            errors=str(len(answers) - failures - answers.count("pass")),
        )
        ElementTree.SubElement(suite, "properties")
        for case_name, answer, sentence in result.lines:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=name,
                name=case_name,
                time=f"{result.seconds / len(answers):.3f}",
            )
            if answer != "pass":
                kind = "failure" if answer == "fail" else "error"
                ElementTree.SubElement(
                    case,
                    kind,
                    message=sentence,
                    type=answer,
                )
        ElementTree.SubElement(suite, "system-out")
        ElementTree.SubElement(suite, "system-err")
    text = visible(ElementTree.tostring(suites, encoding="unicode"))
    # XML cannot hold these two.
    return text.translate(dict.fromkeys((0xFFFE, 0xFFFF))) + "\n"


def _json(results: Sequence[CheckResult]) -> str:
    checks = [
        {
            "name": one.name,
            "answer": one.answer,
            "file": one.file,
            "rows": one.rows,
            "findings": [found.to_dict() for found in one.findings],
            "problem": one.problem and str(one.problem),
        }
        for one in results
    ]
    answer = worst(one.answer for one in results)
    return json_text({"answer": answer, "checks": checks}) + "\n"


# The forms of an answer, by name, and by the suffixes of files.
FORMS: dict[str, Callable[[Sequence[CheckResult]], str]] = {
    "text": lambda results: "\n\n".join(map(str, results)) + "\n",
    "markdown": lambda results: "\n".join(
        to_markdown(result.document) for result in results
    ),
    "junit": _junit,
    "json": _json,
}
SUFFIXES = dict(zip((".txt", ".md", ".xml", ".json"), FORMS, strict=True))
