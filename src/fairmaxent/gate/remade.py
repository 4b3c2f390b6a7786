"""A document beside the same one made again from its model: the lines that differ.

All that a document says follows from the model file and from its stamp, so whoever has
the model can make it again. What people write is marked: in Markdown, lines that begin
with ">"; in JSON, texts that were "To be written by …".
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

from fairmaxent.document.text import on_one_line
from fairmaxent.document.words import counted
from fairmaxent.errors import StorageError
from fairmaxent.files.content import read_content
from fairmaxent.files.reading import Name
from fairmaxent.fit.certified import Certified
from fairmaxent.gate.kinds import KINDS
from fairmaxent.gate.papers import SEAL, TO_WRITE, WRITTEN, Draft

# what people write: lines of Markdown, and texts of JSON
_QUOTED = re.compile(r"^>.*(?:\n+>.*)*", re.MULTILINE)
_TEXT = re.compile(r'^( *"[^"]+": )"(?:[^"\\\n]|\\.)*"', re.MULTILINE)
_HTML = re.compile(r"<[!/?a-zA-Z]")  # which could hide what follows
_STAMP = re.compile(rf'({WRITTEN}|Data|Result): ([^;"\n]+)')


@dataclass(frozen=True)
class Difference:
    """Lines of a document, from this number on, that are not as the model gives."""

    line: int
    document: tuple[str, ...]
    model: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"line {self.line}"]
        lines += [f"  document: {on_one_line(text)}" for text in self.document]
        lines += [f"  model:    {on_one_line(text)}" for text in self.model]
        return "\n  ".join(lines)


@dataclass(frozen=True)
class Comparison:
    """A document beside the same one made again; printed, the lines that differ."""

    kind: str
    written: str  # its kind, date and version, as it states them
    differences: tuple[Difference, ...]
    unwritten: int  # parts that people have yet to write

    def __str__(self) -> str:
        if not self.differences:
            return (
                f"document {self.written}: made again from the model; every line agrees"
                f" ({counted(self.unwritten, 'part')} still to be written by people,"
                " whose words are not compared). Not verified: its date, and the"
                " digests of other files"
            )
        return "\n  ".join(
            [
                f"document {self.written}: not what the model gives with fairmaxent"
                f" {version('fairmaxent')}",
                *map(str, self.differences),
            ]
        )


def compare(fit: Certified, path: Name) -> Comparison:
    """Make the document in a file again, and compare all that people did not write."""
    text = read_content(path).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    head, seal, _ = text.partition(f"{SEAL}: ")
    stamp = dict(_STAMP.findall(head.replace("\\", "")))  # of Markdown
    kind = stamp.get(WRITTEN, "").partition(",")[0]
    is_about_it = bool(seal) and fit.certificate.digest in head
    if not is_about_it or kind not in KINDS:
        raise StorageError(
            f"{path} is not a document that fairmaxent wrote about this model, or its"
            " first lines were changed; write it again with 'fairmaxent document'"
        )
    again = Draft(KINDS[kind], fit, stamp).sealed()
    return Comparison(
        kind=kind,
        written=on_one_line(stamp[WRITTEN]),
        differences=tuple(differences(text, again)),
        unwritten=len(re.findall(rf'^(?:> | *"[^"]+": "){TO_WRITE}', text, re.M)),
    )


def differences(text: str, again: str) -> Iterator[Difference]:
    """The lines of a text that are not as made again, but for what people write."""
    found = text.rstrip("\n").split("\n")
    expected = _with_words(again, text).rstrip("\n").split("\n")
    matcher = difflib.SequenceMatcher(None, found, expected, autojunk=False)
    for what, start, end, start_again, end_again in matcher.get_opcodes():
        if what != "equal":
            yield Difference(
                line=start + 1,
                document=tuple(found[start:end]),
                model=tuple(expected[start_again:end_again]),
            )


def _with_words(again: str, text: str) -> str:
    """The text made again, with what people wrote in the places for it."""
    answers = iter(_QUOTED.findall(text))
    texts = {match[1]: match[0] for match in _TEXT.finditer(text)}

    def quoted(place: re.Match[str]) -> str:
        words = next(answers, "")
        return place[0] if _HTML.search(words) else words

    def stated(place: re.Match[str]) -> str:
        is_open = place[0].startswith(f'{place[1]}"{TO_WRITE}')
        return texts.get(place[1], "") if is_open else place[0]

    return _TEXT.sub(stated, _QUOTED.sub(quoted, again))
