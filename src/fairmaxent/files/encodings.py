"""The encoding of a text: by its mark, by its zeros, or by the letters that result.

A byte such as B3 stands for ł in Poland and for ³ in France. Whoever reads the file
knows which; here the words decide: in the right encoding, all letters of a word are
those of one language.
"""

import codecs
import re
from typing import NamedTuple

from fairmaxent.errors import InputError, Option
from fairmaxent.files.reading import Remark

# How languages were written before UTF-8, with their letters beyond ASCII; of equals,
# the first is taken. (The last letter of Turkish is the dot of a small İ.)
_LANGUAGES = [
    line.split()
    for line in """\
cp1252 German äöüß
cp1252 French àâæçéèêëîïôœùûüÿ
cp1252 Spanish áéíóúüñ
cp1252 Portuguese ãáâàçéêíóôúü
cp1252 Italian àèéìîòóù
cp1252 Dutch áèéëïóöü
cp1252 Nordic äåæéöø
cp1252 Catalan àçèéíïòóúü
cp1250 Polish ąćęłńóśźż
cp1254 Turkish çğıöşüâîû\u0307
cp1250 Hungarian áéíóöőúüű
cp1250 Czech áčďéěíňóřšťúůýž
cp1250 Slovak áäčďéíĺľňóôŕšťúýž
cp1250 Romanian ăâîşţ
cp1250 Croatian čćđšž
cp1252 Icelandic áæðéíóöúýþ
cp932 Japanese kanji
gb18030 Chinese hanzi
cp1251 Russian абвгдеёжзийклмнопрстуфхцчшщъыьэюя
cp1251 Ukrainian абвгґдеєжзиіїйклмнопрстуфхцчшщьюя
iso8859-2 Polish ąćęłńóśźż
iso8859-2 Czech áčďéěíňóřšťúůýž
iso8859-2 Slovak áäčďéíĺľňóôŕšťúýž""".splitlines()
]
_USUAL = {"cp932": "iso2022_jp", "gb18030": "gb2312"}  # which have no rare signs
_ALONE = (*_USUAL, "cp1251")  # a word has no ASCII letters beside its own
_MARKS = frozenset("‘’‚“”„–—…€«»°§№\xa0")  # found in every language
# What ends a word, whatever the encoding: no byte of a longer character is among them.
_BETWEEN = re.compile(rb"[\x00-\x2f\x3a-\x3f]+")
_STRANGE = re.compile(rb"[^\x00-\x7f]")
_LOOKED_AT = 1 << 20  # bytes, from the first that is strange


class Guess(NamedTuple):
    """The encoding that a text seems to have, and the next best if it was guessed."""

    encoding: str
    other: str = ""
    language: str = ""  # whose letters say so

    def remarks(self, path: str) -> list[Remark]:
        """What to know about it, and how to set another one."""
        if self.encoding == "utf-8":
            return []
        taken = f"{path} was read as {self.encoding}"
        if not self.other:
            return [taken]
        if self.language:
            taken += f" ({self.language} letters)"
        return [(f"{taken}; if words look wrong, set ", Option("encoding", self.other))]


def guessed(content: bytes, given: str | None = None) -> Guess:
    """The encoding that is given, or else UTF-16 by its mark or its zeros, UTF-8 if
    possible, or that of the letters.
    """
    if given:
        return Guess(given)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Guess("utf-16")
    head = content[:1000]
    for zeros, name in ((head[1::2], "utf-16-le"), (head[::2], "utf-16-be")):
        if len(head) > 3 and zeros.count(0) > 0.8 * len(zeros):
            return Guess(name)
    if _is_possible(content, "utf-8"):
        return Guess("utf-8")

    start = _STRANGE.search(content).start()  # type: ignore[union-attr]
    parts = set(_BETWEEN.split(content[start : start + _LOOKED_AT]))
    words = [part for part in parts if not part.isascii()]
    # what is taken if no language has more than half of the words
    scores = [(0.5 * len(words), name, "") for name in ("cp1252", "latin-1")]
    for encoding, language, letters in _LANGUAGES:
        known = sum(_is_word(word, encoding, letters) for word in words)
        scores.append((known, encoding, language))
    scores.sort(key=lambda score: -score[0])
    names = dict.fromkeys(encoding for _, encoding, _ in scores)
    possible = (name for name in names if _is_possible(content, name))
    first = next(possible)
    other = next((name for name in possible if name != "latin-1"), "")
    best, *_ = [language for _, encoding, language in scores if encoding == first]
    return Guess(first, other, best)


def unknown_encoding(encoding: str) -> InputError:
    """The error for an encoding that nobody knows."""
    return InputError(
        Option("encoding"),
        f" {encoding!r} is not known; try utf-8, utf-16, cp1252 or latin-1",
    )


def _is_possible(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_word(word: bytes, encoding: str, letters: str) -> bool:
    """Whether a word has only the letters of a language."""
    try:
        # in Portuguese, õ stands before e only; elsewhere it is Hungarian's ő
        text = word.decode(encoding).lower().replace("õe", "e")
        text.encode(_USUAL.get(encoding, "utf-8"))
    except UnicodeError:
        return False
    if encoding in _ALONE and re.search("[a-z]", text):
        return False
    strange = {letter for letter in text if not letter.isascii()} - _MARKS
    return encoding in _USUAL or strange <= set(letters)
