"""Identifiers: columns that name a row or a person instead of describing it, and free text about people.

A column is taken for one by what it holds, or by its name together with many different values. Measured numbers, such
as incomes, often differ in every row and name nobody, so numbers are suspected only if they look as if they had been
handed out: each once, from a range in which numbers that were measured would have repeated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.arrays import Reals
from fairmaxent.data.attribute import Attribute

FEWEST_VALUES = 20
"""A column with fewer values is taken for an identifier only if these are e-mail addresses, phone numbers and such."""
_NEARLY_EVERY = 0.9
_OFTEN = 0.3  # so many values per row are many for a column of names, notes or numbers of people who come again
_SOMETIMES = 0.1  # and so many if the name of the column says what it is
_SEEN = 1000  # values that are looked at

# Words in the names of columns.
_NAMING = frozenset(
    {"id", "ids", "uid", "guid", "uuid", "key", "ssn", "nin", "passport", "iban", "login", "username", "nickname"}
    | {"name", "names", "surname", "forename", "firstname", "lastname", "fullname", "vorname", "nachname"}
    | {"email", "mail", "phone", "telephone", "tel", "mobile", "fax", "address", "street", "telefon", "adresse"}
)
# Those of numbers that are handed out to people, and are long; a person's number may stand in many rows.
_NUMBERS = frozenset(
    {"phone", "phones", "telephone", "tel", "mobile", "cell", "cellphone", "fax", "msisdn", "telefon", "mobil", "handy"}
    | {"card", "creditcard", "debitcard", "karte", "kreditkarte", "iban", "ssn", "nin", "passport", "imei"}
    | {f"{what}{number}" for what in ("phone", "card", "account") for number in ("number", "no")}
    | {f"{what}nummer" for what in ("telefon", "handy", "karten", "konto", "ausweis", "steuer")}
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DATE = re.compile(r"(\d{4}|\d{1,2})[-/. ]\d{1,2}[-/. ](\d{4}|\d{1,2})([ T].*)?")
_EMAIL = re.compile(r"[^\s@]@[^\s@]+\.\w")  # also inside a text, such as Ann <ann@example.org>
_CONTACT = re.compile(
    r"\+\d[\d ()./-]{6,18}\d"  # a phone number with its country
    r"|\(?\d{2,5}[) ./-]{1,2}\d{2,4}([ ./-]\d{2,5}){1,3}"  # one without, or a national number in groups
    r"|[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"  # a UUID
    r"|[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,3})?"  # an IBAN
)
_PERSON = re.compile(r"([^\W\d_]['’.-]?[\w'’.-]*,? ){1,3}[^\W\d_][\w'’.-]*")
_LONG_NUMBER = re.compile(
    r"(?=(?:\D*\d){7})[A-Z]{0,3}[\d ()+./-]{7,30}[A-Z]{0,3}|[A-Z]{2} ?\d{6} ?[A-Z]", re.IGNORECASE
)
_KEY = re.compile(r"(?=(?:\D*\d){5})[A-Z0-9][A-Z0-9 ./_-]{4,19}", re.IGNORECASE)


def looks_like_identifier(attribute: Attribute, rows: int, *, distinct: int | None = None) -> bool:
    """Say whether a column names people or rows.

    ``rows`` have a value; ``distinct`` is the number of values if the attribute does not hold all of them.
    """
    values = len(attribute.counts) - (attribute.missing is not None)
    different = values if distinct is None else distinct
    if attribute.kind not in ("categorical", "numeric") or not values or not rows:
        return False
    words = {word.lower() for word in _WORD.findall(attribute.name)}
    named = bool(_NAMING & words) and different >= FEWEST_VALUES and different > _SOMETIMES * rows
    numbered = bool(_NUMBERS & words)
    if attribute.values.dtype.is_numeric():
        numbers = frames.to_numbers(attribute.values)[:values]
        if not (numbers == np.round(numbers)).all():
            return False
        return named or (numbered and _are_long(numbers)) or _are_handed_out(numbers, rows, different)
    if attribute.values.dtype.is_temporal():
        return False
    if named or (different >= FEWEST_VALUES and different > _NEARLY_EVERY * rows):
        return True
    step = max(1, values // _SEEN)
    looked_at = attribute.values if step == 1 else frames.take(attribute.values, np.arange(0, values, step))
    seen = [str(value) for value in looked_at.to_list()[:values]]  # missing comes last
    return (numbered and _are_long_numbers(seen)) or _name_people(
        seen, often=different >= FEWEST_VALUES and different > _OFTEN * rows
    )


def _name_people(texts: Sequence[str], *, often: bool) -> bool:
    """Whether most texts are e-mail addresses and such; if there are many for the rows also names, keys and notes."""
    undated = [text for text in texts if not _DATE.fullmatch(text)]
    contacts = (_CONTACT.fullmatch(text.strip()) or _EMAIL.search(text) for text in undated)
    if 2 * sum(contact is not None for contact in contacts) > len(texts):
        return True
    if not often:
        return False
    persons = sum(_PERSON.fullmatch(text) is not None and text.istitle() for text in undated)
    keys = sum(_KEY.fullmatch(text) is not None for text in undated)
    are_notes = np.median([len(text) for text in texts]) >= 30 and np.median([len(text.split()) for text in texts]) >= 5
    return bool(are_notes) or 1.4 * max(persons, keys) > len(texts)


def _are_long_numbers(texts: Sequence[str]) -> bool:
    """Whether most texts are long numbers, maybe in groups or with a few letters."""
    long = (_LONG_NUMBER.fullmatch(text.strip()) and not _DATE.fullmatch(text) for text in texts)
    return 2 * sum(map(bool, long)) > len(texts)


def _are_long(numbers: Reals) -> bool:
    """Whether most whole numbers have the seven digits or more of a phone, card or national number."""
    return 2 * int((numbers >= 1e6).sum()) > len(numbers) and not _are_dates(numbers)


def _are_handed_out(numbers: Reals, rows: int, different: int) -> bool:
    """Whether whole numbers look like keys: far fewer repeat than would by chance in their range, or all are long."""
    if different < FEWEST_VALUES:
        return False
    lowest, highest = float(numbers.min()), float(numbers.max())
    span = highest - lowest + 1
    expected = rows + span * math.expm1(-rows / span)  # repetitions, if numbers were drawn from their range
    if expected >= 10 and rows - different <= 0.1 * expected:
        return True
    is_long = lowest >= 1e7 and len(f"{lowest:.0f}") == len(f"{highest:.0f}")
    return is_long and different > 0.5 * rows and not _are_dates(numbers)


def _are_dates(numbers: Reals) -> bool:
    """Whether numbers are dates written as 20240131."""
    month, day = numbers // 100 % 100, numbers % 100
    return bool(((numbers < 22001232) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())
