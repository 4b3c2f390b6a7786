"""Identifiers: columns that name a row or a person instead of describing it, and free text about people.

A column is taken for one by what it holds, or by its name together with many different values. Measured numbers, such
as incomes, often differ in every row and name nobody, so numbers are suspected only if they look as if they had been
handed out: each once, from a range in which numbers that were measured would have repeated.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.attribute import Attribute
from fairmaxent.data.table import Reals

FEWEST_VALUES = 20
"""A column with fewer values is taken for an identifier only if these are e-mail addresses, phone numbers and such."""
_FEWEST_NAMES = 5  # in a small table: as many names, each once, are a list of people
_NEARLY_EVERY = 0.9
_MOSTLY = 0.5  # so many texts per row describe nobody: each stands in one row or two
_OFTEN = 0.3  # so many values per row are many for a column of names, notes or numbers of people who come again
_SOMETIMES = 0.1  # and so many if the name of the column says what it is
_SEEN = 1000  # values that are looked at


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words in the names of columns, without accents and in small letters.
_NAMING = _words(
    "id ids uid guid uuid key ssn nin passport iban login username nickname name names surname forename firstname "
    "lastname fullname vorname nachname email mail phone telephone tel mobile fax address street telefon adresse"
)
# Those of texts that tell people apart, however often each stands in the table.
_PERSONAL = _words(
    "surname forename firstname lastname fullname givenname familyname middlename maidenname username nickname "
    "patientname studentname pupilname employeename applicantname customername clientname membername "
    "vorname nachname familienname geburtsname benutzername prenom patronyme apellido apellidos cognome sobrenome "
    "voornaam achternaam fornavn etternavn efternavn fornamn efternamn imie nazwisko jmeno prijmeni soyad soyadi "
    "address street streetaddress adresse anschrift strasse rue direccion domicilio indirizzo endereco straat adres "
    "имя фамилия отчество фио адрес 姓名 名字 氏名 名前 住所 地址 이름 성명 주소 الاسم العنوان שם όνομα"
)
_NAMES = _words("name names nom noms nome nombre naam navn namn")  # of people, unless a word says of what else
# Those that say whom or which part of a name a column holds, if it is called nothing else.
_PARTS = _words(
    "first last given family user author patient student pupil employee applicant customer client member teacher person"
)
_COORDINATES = _words("lat latitude lon lng longitude gps breitengrad langengrad")
# Those of numbers that are handed out to people, and are long; a person's number may stand in many rows.
_NUMBERS = _words(
    "phone phones telephone tel mobile cell cellphone fax msisdn telefon mobil handy telefono telefone telephone "
    "телефон 电话 手机 電話 전화 card creditcard debitcard karte kreditkarte carte tarjeta iban ssn nin passport imei "
    "phonenumber phoneno cardnumber cardno accountnumber accountno "
    "telefonnummer handynummer kartennummer kontonummer ausweisnummer steuernummer 身份证"
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|(?:(?![a-zA-Z_])[^\W\d])+")
_DATE = re.compile(r"(\d{4}|\d{1,2})[-/. ]\d{1,2}[-/. ](\d{4}|\d{1,2})([ T]\d{1,2}[:.h].*)?|\d{1,2}:\d{2}(:\d{2})?")
_EMAIL = re.compile(r"[^\s@]@[^\s@]+\.\w")  # also inside a text, such as Ann <ann@example.org>
_CONTACT = re.compile(
    r"\+\d[\d ()./-]{6,18}\d"  # a phone number with its country
    r"|\(?\d{2,5}[) ./-]{1,2}\d{2,4}([ ./-]\d{2,5}){1,3}"  # one without, or a national number in groups
    r"|\d{1,2}([ .-]\d{2,3}){4,6}"  # one in groups of two or three digits
    r"|(?=(?:\D*\d){9})\(?0\d{1,4}\)?[ /-]{1,3}\d{4,9}"  # one in two groups
    r"|\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?"  # a UUID
    r"|(?=.*\d)([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})"  # a hash
    r"|[A-Z]{2}\d{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,3})?"  # an IBAN
    r"|[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]|\d{8}-?[A-Z]"  # national numbers of the United Kingdom and Spain
    r"|[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]|\d{6}(\d{2})?[-+]\d{4}"  # of Italy and Sweden
    r"|(\d{1,3}\.){3}\d{1,3}|([0-9a-f]{2}[:-]){5}[0-9a-f]{2}|([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"  # of machines
    r"|[-+]?\d{1,3}\.\d{3,}°?[ ,;/]+[-+]?\d{1,3}\.\d{3,}°?",  # a latitude and a longitude
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"([^\W\d_]['’.-]?[\w'’.-]*,? ){1,3}[^\W\d_][\w'’.-]*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,5}"
)
_LONG_NUMBER = re.compile(
    r"(?=(?:\D*\d){7})[A-Z]{0,3}[\d ()+./-]{7,30}[A-Z]{0,3}|[A-Z]{2} ?\d{6} ?[A-Z]", re.IGNORECASE
)
_KEY = re.compile(
    r"(?=(?:\D*\d){5})[A-Z0-9][A-Z0-9 ./_-]{4,39}|https?://\S+|www\.\S+|@\w+"
    r"|(?=.*[._\d])[A-Z]{2,}([._-][A-Z]{2,})*[._-]?\d{0,6}[A-Z]?",  # a user name
    re.IGNORECASE,
)


def looks_like_identifier(attribute: Attribute, rows: int, *, distinct: int | None = None) -> bool:
    """Say whether a column names people or rows.

    ``rows`` have a value; ``distinct`` is the number of values if the attribute does not hold all of them.
    """
    values = len(attribute.counts) - (attribute.missing is not None)
    different = values if distinct is None else distinct
    if attribute.kind not in ("categorical", "ordered", "numeric") or not values or not rows:
        return False
    words = _words_of(attribute.name)
    many = different >= FEWEST_VALUES
    named = bool(_NAMING & words or (words and words <= _PARTS)) and many and different > _SOMETIMES * rows
    numbered = bool(_NUMBERS & words)
    if attribute.values.dtype.is_numeric():
        numbers = frames.to_numbers(attribute.values)[:values]
        if not (numbers == np.round(numbers)).all():
            return bool(_COORDINATES & words) and many and different > _MOSTLY * rows
        return named or (numbered and _are_long(numbers)) or _are_handed_out(numbers, rows, different)
    if attribute.values.dtype.is_temporal():
        return False
    if named or (many and (different > _NEARLY_EVERY * rows or _PERSONAL & words)):
        return True
    step = max(1, values // _SEEN)
    looked_at = attribute.values if step == 1 else frames.take(attribute.values, np.arange(0, values, step))
    seen = [str(value) for value in looked_at.to_list()[:values]]  # missing comes last
    if numbered and _are_long_numbers(seen):
        return True
    of_people = _PERSONAL & words or (words and words <= _NAMES)
    if of_people and _are_people(seen, each_once=different > _NEARLY_EVERY * rows):
        return True
    return _name_people(seen, often=many and different > _OFTEN * rows, mostly=many and different > _MOSTLY * rows)


def _words_of(name: str) -> set[str]:
    """The words of a column's name, and each two that follow each other, joined: first and name, firstname."""
    folded = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(mark for mark in folded if not unicodedata.combining(mark))
    words = [unicodedata.normalize("NFC", word.lower()) for word in _WORD.findall(plain)]
    return {*words, *map("".join, itertools.pairwise(words))}


def _are_people(texts: Sequence[str], *, each_once: bool) -> bool:
    """Whether most texts of a column called a name are people's; few suffice if each is there once."""
    enough = len(texts) >= (_FEWEST_NAMES if each_once else FEWEST_VALUES)
    return enough and 2 * sum(map(_is_person, texts)) > len(texts)


def _is_person(text: str) -> bool:
    """Whether a text could be the name of a person: a few words, of which the first and last have capital letters."""
    words = text.split()
    return _PERSON.fullmatch(text) is not None and not any(word[0].islower() for word in (words[0], words[-1]))


def _name_people(texts: Sequence[str], *, often: bool, mostly: bool) -> bool:
    """Whether most texts are e-mail addresses and such.

    If there are many for the rows (``often``) also names, keys and notes, and if most rows have another, anything but
    dates.
    """
    undated = [text for text in texts if not _DATE.fullmatch(text)]
    contacts = (_CONTACT.fullmatch(text.strip()) or _EMAIL.search(text) for text in undated)
    if 2 * sum(contact is not None for contact in contacts) > len(texts):
        return True
    if not often:
        return False
    if mostly and 2 * len(undated) > len(texts):
        return True
    persons = sum(map(_is_person, undated))
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
    numbers = _counted(numbers)
    lowest, highest = float(numbers.min()), float(numbers.max())
    span = highest - lowest + 1
    expected = rows + span * math.expm1(-rows / span)  # repetitions, if numbers were drawn from their range
    if expected >= 10 and rows - different <= 0.1 * expected:
        return True
    return different > _OFTEN * rows and _have_as_many_digits(numbers) and not _are_dates(numbers)


def _counted(numbers: Reals) -> Reals:
    """Numbers in units of what all are multiples of: amounts are often round, and repeat less than their range says."""
    if float(np.abs(numbers).max()) > 2**53:
        return numbers
    unit = int(np.gcd.reduce(numbers.astype(np.int64)))
    return numbers / max(unit, 1)


def _have_as_many_digits(numbers: Reals) -> bool:
    """Whether nearly all numbers have the same eight digits or more; a few, such as -1, may stand for none."""
    digits = np.floor(np.log10(np.maximum(np.abs(numbers), 1))) + 1
    usual = float(np.median(digits))
    return usual >= 8 and bool((digits == usual).mean() > _NEARLY_EVERY)


def _are_dates(numbers: Reals) -> bool:
    """Whether numbers are dates written as 20240131."""
    month, day = numbers // 100 % 100, numbers % 100
    return bool(((numbers < 22001232) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())
