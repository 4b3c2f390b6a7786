"""What a report is filed under: its title, its author, its purpose, and when it was written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from fairmaxent.errors import InputError

# The convention of reproducible builds: seconds since 1970 that replace the clock.
SOURCE_DATE_EPOCH = "SOURCE_DATE_EPOCH"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Filing:
    """Title, author and purpose as given, None if they were not; the time of writing in UTC, as ISO 8601."""

    title: str | None
    author: str | None
    purpose: str | None
    written: str

    @property
    def date(self) -> str:
        """The time of writing as people write it, whatever the locale.

        >>> Filing(None, None, None, "2026-11-06T09:05:00+00:00").date
        '6 November 2026, 09:05 UTC'
        """
        time = datetime.fromisoformat(self.written)
        return f"{time.day} {_MONTHS[time.month - 1]} {time.year}, {time:%H:%M} UTC"


def filed(
    *, title: str | None = None, author: str | None = None, purpose: str | None = None, date: datetime | None = None
) -> Filing:
    """Check what was given; without a date, take SOURCE_DATE_EPOCH, and without that, the clock."""
    written = _time(date).replace(microsecond=0).isoformat()
    return Filing(_text("title", title), _text("author", author), _text("purpose", purpose), written)


def _text(name: str, text: object) -> str | None:
    """A text on one line; an empty one is none."""
    if text is not None and not isinstance(text, str):
        raise InputError(f"{name} is a {type(text).__name__}; pass a text")
    return " ".join((text or "").split()) or None


def _time(date: object) -> datetime:
    if date is not None:
        if not isinstance(date, datetime) or date.tzinfo is None:
            raise InputError("date is not a datetime with a time zone; pass e.g. datetime.now(timezone.utc)")
        return date.astimezone(UTC)
    epoch = os.environ.get(SOURCE_DATE_EPOCH)
    if not epoch:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError) as problem:
        raise InputError(
            f"the environment variable {SOURCE_DATE_EPOCH} is {epoch!r}; set it to a number of seconds since 1970, or "
            "unset it"
        ) from problem
