"""Where a report comes from, what it is filed under, and the Python that makes the fit
again.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from fairmaxent.document import Listing, Section
from fairmaxent.document.words import short_name, shortened
from fairmaxent.errors import InputError, Option, cut, spelled
from fairmaxent.fit.fitted import Fitted
from fairmaxent.fit.request import Request
from fairmaxent.options import python_lines
from fairmaxent.report.delivered import Delivered

# characters of a line, and of what may take several
_LINE = 100
_LONGEST = 440
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DROP = {"pandas": "columns=", "polars": "", "pyarrow": ""}


@dataclass(frozen=True)
class FrontDoor:
    """Python, the command line or the app: how options are spelled there, and what
    others are told about that.
    """

    where: str
    spell: Callable[[Option], str]

    def text_of(self, parts: tuple[object, ...]) -> str:
        """Join texts and options to one text."""
        return spelled(parts, self.spell)


IN_PYTHON = FrontDoor("in Python", str)


@dataclass(frozen=True)
class Filing:
    """Title, author and purpose as given, None if they were not; the time of writing in
    UTC, as ISO 8601.
    """

    title: str | None
    author: str | None
    purpose: str | None
    written: str

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """What it is filed under, as readers see it, with a date as people write it,
        whatever the locale.
        """
        time = datetime.fromisoformat(self.written)
        date = f"{time.day} {_MONTHS[time.month - 1]} {time.year}, {time:%H:%M} UTC"
        author = cut(self.author or "not stated", _LINE)
        purpose = shortened(self.purpose or "not stated", _LONGEST)
        return ("Author", author), ("Written", date), ("Purpose", purpose)


def filed(
    *,
    title: str | None = None,
    author: str | None = None,
    purpose: str | None = None,
    date: datetime | None = None,
) -> Filing:
    """Check what was given; without a date, take the environment variable
    SOURCE_DATE_EPOCH, else the clock.
    """
    texts = {}
    for name, text in {"title": title, "author": author, "purpose": purpose}.items():
        if text is not None and not isinstance(text, str):
            raise InputError(f"{name} is a {type(text).__name__}; pass a text")
        # on one line; an empty one is none
        texts[name] = " ".join((text or "").split()) or None
    if date is not None and (not isinstance(date, datetime) or date.tzinfo is None):
        raise InputError(
            "date is not a datetime with a time zone; pass e.g."
            " datetime.now(timezone.utc)"
        )
    # the convention of reproducible builds: seconds since 1970
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        time = date or (
            datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
        )
    except (ValueError, OverflowError, OSError) as problem:
        raise InputError(
            f"the environment variable SOURCE_DATE_EPOCH is {epoch!r}; set it to a"
            " number of seconds since 1970, or unset it"
        ) from problem
    return Filing(
        **texts, written=time.astimezone(UTC).replace(microsecond=0).isoformat()
    )


@dataclass(frozen=True)
class WrittenFile:
    """A file that belongs to the result, by its name without folders, and the SHA-256
    of its bytes.
    """

    what: str  # e.g. "Fair table" or "Model"
    name: str
    sha256: str


@dataclass(frozen=True)
class Source:
    """What a fit does not know about its table; all of it is shown, and the call to
    repeat it is made from it.
    """

    command: str | None = None  # the command line that made it
    file: str | None = None
    sha256: str | None = None  # of the file's bytes
    # what the reader noted about the file, such as its encoding
    reading: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()  # columns of the file that took no part
    # options of Domain.infer, where they were used
    domain: Mapping[str, object] = field(default_factory=dict)
    # what was made from it, where that is in files
    written: tuple[WrittenFile, ...] = ()
    front_door: FrontDoor = IN_PYTHON

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values, for JSON."""
        return asdict(self) | {"front_door": self.front_door.where}

    def section(self, versions: Mapping[str, str]) -> Section:
        """What identifies the result: files with their digests, and versions."""
        lines = [
            f"{file.what}: {short_name(file.name)}, SHA-256 {file.sha256}"
            for file in self.written
        ]
        if self.reading:
            lines.insert(0, shortened(f"Read as: {'; '.join(self.reading)}", _LONGEST))
        if self.file is not None:
            if self.sha256 is None:
                digest = ""
            else:
                digest = f", SHA-256 {self.sha256}"
            lines.insert(0, f"Data: {short_name(self.file)}{digest}")
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        lines = lines or ["Files: none: the table was passed in Python"]
        record = Listing(
            (
                *lines,
                f"Made with: {listed}; options are named as {self.front_door.where}",
            )
        )
        return Section("record", "Files and versions", "Files", (record,))


def written_file(
    what: str,
    path: str | os.PathLike[str],
    *,
    name: str | os.PathLike[str] | None = None,
) -> WrittenFile:
    """Take the digest of a file; ``name`` is the one it will have, if it is still at a
    temporary path.
    """
    return WrittenFile(
        what, os.path.basename(path if name is None else name), file_sha256(path)
    )


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def call(fit: Fitted, delivered: Delivered, source: Source) -> str:
    """Return the Python that makes the fit and what was delivered again; options at
    their defaults are left out.
    """
    name = "debias" if isinstance(fit.request, Request) else "paper.fit"
    if source.domain or fit.request.privacy is not None:
        domain = ["    domain=domain,"]
    else:
        domain = []
    fitting = [
        f"fit = fairmaxent.{name}(",
        "    frame,",
        *python_lines(fit.request),
        *domain,
        ")",
    ]
    return "\n".join(
        [
            "import fairmaxent",
            "",
            *reading_lines(fit, source),
            *fitting,
            _drawing(fit, delivered),
        ]
    )


def reading_lines(fit: Fitted, source: Source) -> Iterator[str]:
    """From the table in the file to the one that was fitted, and to its domain."""
    if source.dropped:
        yield f"frame = {_without(fit, list(source.dropped))}"
    if source.domain:
        weight = fit.request.weight
        if weight is None:
            table = "frame"
        else:
            table = _without(fit, [weight])
        options = [f"{name}={value!r}" for name, value in source.domain.items()]
        if weight is not None:
            options += [f"weight=frame[{weight!r}].to_numpy()"]
        yield f"domain = fairmaxent.Domain.infer({', '.join([table, *options])})"
    elif fit.request.privacy is not None:
        yield "domain = fairmaxent.Domain.declare(...)  # as it was declared"


def _without(fit: Fitted, names: list[str]) -> str:
    return f"frame.drop({_DROP.get(fit.domain.library, '')}{names!r})"


def _drawing(fit: Fitted, delivered: Delivered) -> str:
    if delivered.mode == "weights":
        return (
            "weights = fit.weights()"
            if fit.soft is None
            else "weighted = fit.weigh(frame)"
        )
    if delivered.seed is None:
        seed = ""
    else:
        seed = f"random_state={delivered.seed}"
    unknown = (
        "  # drawn with a seed that is not known here" if delivered.seed is None else ""
    )
    if delivered.mode == "top-up":
        return f"added = fit.top_up({seed}){unknown}"
    first = len(delivered.frame)
    at_once = delivered.rows == len(delivered.frame)
    options = [
        str(delivered.rows),
        "" if at_once else f"size={first}",
        seed,
        "iid=True" if delivered.iid else "",
    ]
    drawing = "rows = fit.sample" if at_once else "batches = fit.sample_batches"
    return f"{drawing}({', '.join(filter(None, options))}){unknown}"
