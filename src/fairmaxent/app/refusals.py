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


class UnspentError(InputError):
    """A private fit has to look at the table, and nobody has agreed yet to spend its budget."""

    def __init__(self) -> None:
        super().__init__(
            "A private result looks at the table once, which spends its budget. Press “Spend the budget” under "
            "Privacy; after that, the rates can be moved freely."
        )
