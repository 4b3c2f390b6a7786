"""Why the app does not answer as asked; light to import, so that the page is there before the library is."""

from __future__ import annotations

from fairmaxent.errors import InputError


class SupersededError(Exception):
    """Newer work has come in, so nobody needs this any more."""


class StaleError(Exception):
    """The page shows another table than the one that is open."""


class StoppedError(Exception):
    """The user stopped the work, or asked for it anew."""


class TooLargeError(InputError):
    """What the browser sent is larger than the app takes."""
