"""Text files as offices of many kinds write them, at random: every value comes back,
also when it is written again.
"""

import csv
import datetime as dt
import io
import random
from dataclasses import replace

import pytest

from fairmaxent.files.formats import read_table
from fairmaxent.files.write import write_table
from tables import times

MANY_DAYS = [dt.date(2000, 1, 1) + dt.timedelta(days=day) for day in range(9000)]
UNITS = [
    ("€ ", ""),
    ("", " €"),
    ("$", ""),
    ("CHF ", ""),
    ("", " kr"),
    ("", "%"),
    ("", " %"),
    ("", ""),
]


class Office:
    """How one office writes."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.european = rng.random() < 0.5
        self.decimal = "," if self.european else "."
        self.delimiter = rng.choice(";\t|" if self.european else ",\t")
        self.group = rng.choice(
            [".", "", "\u202f", "'"] if self.european else [",", "", "'"]
        )
        self.encoding = rng.choice(
            ["utf-8", "utf-8-sig", "utf-16", *(["cp1252"] * (self.group != "\u202f"))]
        )
        self.end = rng.choice(["\n", "\r\n"])
        self.marker = rng.choice(["", "NA"])
        self.rows = rng.randint(6, 40)

    def number(self, value, decimals):
        text = (
            f"{abs(value):,.{decimals}f}".replace(",", "\0")
            .replace(".", self.decimal)
            .replace("\0", self.group)
        )
        return "-" * (value < 0) + text

    def amounts(self):
        (prefix, suffix), decimals = self.rng.choice(UNITS), self.rng.choice([1, 2])
        values = [
            round(self.rng.uniform(-1e5, 1e6), decimals) for _ in range(self.rows)
        ]
        return values, [
            f"{prefix}{self.number(value, decimals)}{suffix}" for value in values
        ]

    def counts(self):
        values = [self.rng.randint(-5000, 2_000_000) for _ in range(self.rows)]
        return values, [self.number(value, 0) for value in values]

    def dates(self):
        pattern = (
            self.rng.choice(["%d.%m.%Y", "%d/%m/%Y"]) if self.european else "%m/%d/%Y"
        )
        values = [
            *self.rng.choices(MANY_DAYS, k=self.rows - 2),
            dt.date(2001, 12, 31),
            dt.date(2002, 1, 30),
        ]
        if self.rng.random() < 0.5:
            pattern += " %H:%M"
            values = [
                dt.datetime.combine(
                    day, dt.time(self.rng.randrange(24), self.rng.randrange(60))
                )
                for day in values
            ]
        return values, [value.strftime(pattern) for value in values]

    def words(self):
        values = self.rng.choices(["a", "bü", "c, d", "e;f", 'g "h"'], k=self.rows)
        return values, values

    def table(self):
        """The values of each column, and the file that holds them."""
        values, texts = {}, {}
        for number in range(self.rng.randint(2, 6)):
            kind = self.rng.choice([self.amounts, self.counts, self.dates, self.words])
            name = f"{kind.__name__}{number}"
            values[name], texts[name] = map(list, kind())
            if self.rng.random() < 0.3:  # the last two dates show the order
                row = self.rng.randrange(self.rows - 2)
                values[name][row], texts[name][row] = None, self.marker
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=self.delimiter, lineterminator=self.end)
        titles = [[], [["A title"]], [["A title"], ["by us"], []]]
        if len(texts) > 2:  # of two columns, one may have no name
            titles.append([["A title", *[""] * (len(texts) - 1)]])
        writer.writerows(self.rng.choice(titles))
        writer.writerow(texts)
        writer.writerows(zip(*texts.values(), strict=True))
        return values, buffer.getvalue().encode(self.encoding)


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(times(40)))
def test_values_come_back(seed, put, tmp_path):
    office, folder = Office(seed), tmp_path
    values, content = office.table()
    table = read_table(put(content))
    assert table.frame.to_dict(as_series=False) == values
    assert table.form.separator == office.delimiter
    write_table(table.frame, folder / "back.csv", form=table.form, force=True)
    back = read_table(folder / "back.csv")
    assert back.frame.equals(table.frame)
    form = back.form
    # thousands are not separated when a table is written, so that whole numbers
    # no longer show which mark is the decimal one; where no sign of a currency is
    # left, neither does anything show the encoding
    if not any(kind.is_float() for kind in table.frame.dtypes):
        form = replace(form, decimal=table.form.decimal)
    if (folder / "back.csv").read_bytes().isascii():
        form = replace(form, encoding=table.form.encoding)
    assert form == table.form
