"""Identifiers: columns that name a row or a person, and free text about people.

A column is taken for one by what it holds, or by its name (words of vocabulary.toml)
together with many values. Measured numbers often differ in every row and name nobody,
so numbers are suspected only if they look as if they had been handed out: each once,
from a range in which numbers that were measured would have repeated.
"""

import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from fairmaxent.data.attribute import Attribute
from fairmaxent.data.frames import take, to_numbers
from fairmaxent.data.table import Reals
from fairmaxent.plain_text import Values

# a column with fewer is taken for one only if they are e-mail addresses and such
FEWEST_VALUES = 20
_FEWEST_NAMES = 5  # in a small table: as many names, each once, are a list of people
_NEARLY_EVERY = 0.9
_MOSTLY = 0.5  # so many texts per row describe nobody: each stands in one row or two
# Values per row that are many for a column of names, notes or numbers of people who
# come again.
_OFTEN = 0.3
_SOMETIMES = 0.1  # and so many if the name of the column says what it is
_SEEN = 1000  # values that are looked at

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|(?:(?![a-zA-Z_])[^\W\d])+|\d+")

_UMLAUTS = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
    }
)
_LETTERS = str.maketrans(
    {
        "ß": "ss",
        "ł": "l",
        "Ł": "L",
        "œ": "oe",
        "æ": "ae",
        "ø": "o",
    }
)


@cache
def vocabulary() -> Values:
    """The words of columns and levels, by what they say."""
    import tomllib  # read when the first word is looked up

    file = resources.files("fairmaxent.data") / "vocabulary.toml"
    return tomllib.loads(file.read_text("utf-8"))


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    """How texts of a kind are written: any of the patterns of the vocabulary."""
    return re.compile("|".join(vocabulary()["patterns"][kind]), re.IGNORECASE)


@cache
def words_for(key: str) -> frozenset[str]:
    """The words of a part of the vocabulary in all languages, or with a meaning."""
    words = (vocabulary()["meanings"] | vocabulary())[key]
    if isinstance(words, dict):
        words = " ".join(words.values())
    return spellings(words)


def spellings(words: str) -> frozenset[str]:
    """Words as names are compared with them.

    That is without accents, and also with umlauts as two letters.
    """
    both = f"{words} {words.translate(_UMLAUTS)}"
    return frozenset(map(without_accents, both.split()))


def words_in(name: str) -> list[str]:
    """Return the words that the name of a column is made of.

    >>> words_in("two_year_recid"), words_in("isHired")
    (['two', 'year', 'recid'], ['is', 'hired'])
    >>> words_in("Jährliches Einkommen")
    ['jahrliches', 'einkommen']
    """
    return [
        unicodedata.normalize("NFC", word).casefold()
        for word in _WORD.findall(without_accents(name))
    ]


def is_total(text: str) -> bool:
    """Whether a text marks a sum, such as "Grand total:"."""
    words = words_in(text)
    return len(words) <= 2 and not words_for("totals").isdisjoint(words)


def without_accents(text: str) -> str:
    """Decompose a text, and leave out marks such as accents."""
    folded = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(mark for mark in folded if not unicodedata.combining(mark))


def looks_like_identifier(
    attribute: Attribute, rows: int, *, distinct: int | None = None
) -> bool:
    """Say whether a column with ``rows`` values names people.

    ``distinct``: so many values are different, if the attribute lacks some.
    """
    values = attribute.present
    is_date = attribute.kind == "date" or attribute.values.dtype.is_temporal()
    if is_date or attribute.kind == "boolean" or not values or not rows:
        return False
    listed = [word for word in words_in(attribute.name) if not word.isdigit()]
    column = _Column(
        # first and name are also firstname
        words={*listed, *map("".join, itertools.pairwise(listed))},
        rows=rows,
        different=values if distinct is None else distinct,
    )
    if attribute.kind == "numeric" or attribute.values.dtype.is_numeric():
        return column.numbers_name_people(to_numbers(attribute.values)[:values])
    if column.is_named or (column.has_many and column.is_said("personal")):
        return True
    if column.has_more_than(_NEARLY_EVERY):
        return True
    looked_at = attribute.values
    step = max(1, values // _SEEN)
    if step > 1:
        looked_at = take(looked_at, np.arange(0, values, step))
    texts = looked_at.to_list()[:values]  # missing comes last
    return column.texts_name_people([str(text) for text in texts])


@dataclass(frozen=True)
class _Column:
    """What is known of a column before its values are looked at."""

    words: set[str]  # of its name
    rows: int
    different: int  # values

    @property
    def has_many(self) -> bool:
        return self.different >= FEWEST_VALUES

    @property
    def is_named(self) -> bool:
        """Whether the name of the column says that it names people."""
        of_parts = bool(self.words) and self.words <= words_for("parts")
        return self.has_more_than(_SOMETIMES) and (self.is_said("naming") or of_parts)

    def is_said(self, key: str) -> bool:
        """Whether a word of the name is in a part of the vocabulary."""
        return not self.words.isdisjoint(words_for(key))

    def has_more_than(self, share: float) -> bool:
        """Whether there are many values, and more than a share of the rows."""
        return self.has_many and self.different > share * self.rows

    def numbers_name_people(self, numbers: Reals) -> bool:
        if not (numbers == np.round(numbers)).all():
            return self.is_said("coordinates") and self.has_more_than(_MOSTLY)
        # most have the seven digits or more of a phone, card or national number
        are_long = 2 * int((numbers >= 1e6).sum()) > len(numbers)
        if self.is_said("numbers") and are_long and not _are_dates(numbers):
            return True
        are_keys = self.has_many and _are_handed_out(numbers, self.rows, self.different)
        return self.is_named or are_keys

    def texts_name_people(self, texts: Sequence[str]) -> bool:
        # most, maybe in groups or with a few letters
        if self.is_said("numbers") and 2 * sum(map(_is_long_number, texts)) > len(
            texts
        ):
            return True
        each_once = self.different > _NEARLY_EVERY * self.rows
        enough = _FEWEST_NAMES if each_once else FEWEST_VALUES
        of_names = bool(self.words) and self.words <= words_for("names")
        of_people = of_names or self.is_said("personal")
        persons = sum(map(_is_person, texts)) if of_people else 0
        if len(texts) >= enough and 2 * persons > len(texts):
            return True
        undated = [text for text in texts if not _pattern("date").fullmatch(text)]
        if 2 * sum(map(_is_contact, undated)) > len(texts):
            return True
        if not self.has_more_than(_OFTEN):
            return False
        # if most rows have their own, anything undated names people
        if self.has_more_than(_MOSTLY) and 2 * len(undated) > len(texts):
            return True
        persons = sum(map(_is_person, undated))
        keys = sum(_pattern("key").fullmatch(text) is not None for text in undated)
        return _are_notes(texts) or 1.4 * max(persons, keys) > len(texts)


def _is_long_number(text: str) -> bool:
    is_long = _pattern("long_number").fullmatch(text.strip())
    return is_long is not None and not _pattern("date").fullmatch(text)


def _is_person(text: str) -> bool:
    """Whether a text could be the name of a person.

    That is a few words, of which the first and last have capital letters.
    """
    if _pattern("person").fullmatch(text) is None:
        return False
    words = text.split()
    return not (words[0][0].islower() or words[-1][0].islower())


def _is_contact(text: str) -> bool:
    is_contact = _pattern("contact").fullmatch(text.strip())
    return bool(is_contact or _pattern("email").search(text))


def _are_notes(texts: Sequence[str]) -> bool:
    """Whether most texts are long, and of several words."""
    letters = np.median([len(text) for text in texts])
    words = np.median([len(text.split()) for text in texts])
    return bool(letters >= 30 and words >= 5)


def _are_handed_out(numbers: Reals, rows: int, different: int) -> bool:
    """Whether whole numbers look like keys.

    Far fewer repeat than would by chance in their range, or all are long.
    """
    # amounts are often round, and repeat less than their range says
    if float(np.abs(numbers).max()) <= 2**53:
        numbers = numbers / max(int(np.gcd.reduce(numbers.astype(int))), 1)
    span = float(numbers.max()) - float(numbers.min()) + 1
    # repetitions, if numbers were drawn from their range
    expected = rows + span * math.expm1(-rows / span)
    if expected >= 10 and rows - different <= 0.1 * expected:
        return True
    digits = np.floor(np.log10(np.maximum(np.abs(numbers), 1))) + 1
    usual = float(np.median(digits))  # a few others, such as -1, may stand for none
    are_as_long = usual >= 8 and bool((digits == usual).mean() > _NEARLY_EVERY)
    return different > _OFTEN * rows and are_as_long and not _are_dates(numbers)


def _are_dates(numbers: Reals) -> bool:
    """Whether numbers are dates written as 20240131."""
    month = numbers // 100 % 100
    day = numbers % 100
    is_month = (month >= 1) & (month <= 12)
    is_day = (day >= 1) & (day <= 31)
    return bool(((numbers < 22001232) & is_month & is_day).all())
