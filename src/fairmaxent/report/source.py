"""Where a report comes from, its filing, and the Python that makes the fit again."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from fairmaxent.data.levels import Notes
from fairmaxent.data.table import Names
from fairmaxent.document import Listing, Section
from fairmaxent.document.words import short_name, shortened
from fairmaxent.errors import InputError, Remark, Spell, cut, spelled
from fairmaxent.files.content import file_sha256
from fairmaxent.files.reading import Name
from fairmaxent.files.write import time_of_writing
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.request import Request
from fairmaxent.options import python_lines
from fairmaxent.plain_text import Values
from fairmaxent.report.delivered import Delivered

# characters of a line, and of what may take several
_LINE = 100
_LONGEST = 440


@dataclass(frozen=True)
class FrontDoor:
    """Python, the command line or the app, and how options are spelled there."""

    where: str
    spell: Spell

    def text_of(self, parts: Remark) -> str:
        """Join texts and options to one text."""
        return spelled(parts, self.spell)


IN_PYTHON = FrontDoor("in Python", str)


@dataclass(frozen=True)
class Filing:
    """Title, author and purpose as given, and the time in UTC, as ISO 8601."""

    title: str | None
    author: str | None
    purpose: str | None
    written: str

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """What it is filed under, with a date that reads the same in any locale."""
        date = f"{datetime.fromisoformat(self.written):%Y-%m-%d, %H:%M} UTC"
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
    """Check what was given; without a date, it is SOURCE_DATE_EPOCH, else the clock."""
    texts = {
        "title": title,
        "author": author,
        "purpose": purpose,
    }
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise InputError(f"{name} is a {type(text).__name__}; pass a text")
        # on one line; an empty one is none
        texts[name] = " ".join((text or "").split()) or None
    if date is not None and (not isinstance(date, datetime) or date.tzinfo is None):
        raise InputError(
            "date is not a datetime with a time zone; pass e.g."
            " datetime.now(timezone.utc)"
        )
    time = date or time_of_writing()
    written = time.astimezone(UTC).replace(microsecond=0)
    return Filing(**texts, written=written.isoformat())


@dataclass(frozen=True)
class WrittenFile:
    """A file that belongs to the result, by its name without folders."""

    what: str  # e.g. "Fair table" or "Model"
    name: str
    sha256: str  # of its bytes


@dataclass(frozen=True)
class Source:
    """What a fit does not know about its table; shown, and needed to repeat it."""

    command: str | None = None  # the command line that made it
    file: str | None = None
    sha256: str | None = None  # of the file's bytes
    # what the reader noted about the file, such as its encoding
    reading: Notes = ()
    dropped: Names = ()  # columns of the file that took no part
    # options of Domain.infer, where they were used
    domain: Mapping[str, object] = field(default_factory=dict)
    # what was made from it, where that is in files
    written: tuple[WrittenFile, ...] = ()
    front_door: FrontDoor = IN_PYTHON

    def to_dict(self) -> Values:
        """Everything as plain Python values, for JSON."""
        return asdict(self) | {"front_door": self.front_door.where}

    def section(self, versions: Mapping[str, str]) -> Section:
        """What identifies the result: files with their digests, and versions."""
        lines = []
        if self.file is not None:
            digest = "" if self.sha256 is None else f", SHA-256 {self.sha256}"
            lines.append(f"Data: {short_name(self.file)}{digest}")
        if self.reading:
            lines.append(shortened(f"Read as: {'; '.join(self.reading)}", _LONGEST))
        for file in self.written:
            name = short_name(file.name)
            lines.append(f"{file.what}: {name}, SHA-256 {file.sha256}")
        if not lines:
            lines.append("Files: none: the table was passed in Python")
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        where = self.front_door.where
        lines.append(f"Made with: {listed}; options are named as {where}")
        record = Listing(tuple(lines))
        return Section("record", "Files and versions", "Files", (record,))


def written_file(
    what: str,
    path: Name,
    *,
    name: Name | None = None,
) -> WrittenFile:
    """Take the digest of a file; ``name`` is for one that is at a temporary path."""
    shown = os.path.basename(path if name is None else name)
    return WrittenFile(what, shown, file_sha256(path))


def call(fit: Certified, delivered: Delivered, source: Source) -> str:
    """The Python that makes the fit, and what was delivered, again.

    Options at their defaults are left out.
    """
    name = "debias" if isinstance(fit.request, Request) else "paper.fit"
    lines = [
        "import fairmaxent",
        "",
        *reading_lines(fit, source),
        f"fit = fairmaxent.{name}(",
        "    frame,",
        *python_lines(fit.request),
    ]
    if source.domain or not fit.provenance.shows_rows:
        lines.append("    domain=domain,")
    return "\n".join([*lines, ")", _drawing(fit, delivered)])


def reading_lines(fit: Certified, source: Source) -> Iterator[str]:
    """From the table in the file to the one that was fitted, and to its domain."""
    if source.dropped:
        yield f"frame = {_without(fit, list(source.dropped))}"
    if source.domain:
        weight = fit.request.weight
        table = "frame"
        options = [f"{name}={value!r}" for name, value in source.domain.items()]
        if weight is not None:
            table = _without(fit, [weight])
            options.append(f"weight=frame[{weight!r}].to_numpy()")
        yield f"domain = fairmaxent.Domain.infer({', '.join([table, *options])})"
    elif not fit.provenance.shows_rows:
        yield "domain = fairmaxent.Domain.declare(...)  # as it was declared"


def _without(fit: Certified, names: list[str]) -> str:
    columns = "columns=" if fit.domain.library == "pandas" else ""
    return f"frame.drop({columns}{names!r})"


def _drawing(fit: Certified, delivered: Delivered) -> str:
    if delivered.mode == "weights":
        if fit.soft is None:
            return "weights = fit.weights()"
        return "weighted = fit.weigh(frame)"
    seed = f"random_state={delivered.seed}"
    unknown = ""
    if delivered.seed is None:
        seed = ""
        unknown = "  # drawn with a seed that is not known here"
    if delivered.mode == "top-up":
        return f"added = fit.top_up({seed}){unknown}"
    drawing = "rows = fit.sample"
    options = [str(delivered.rows)]
    first = len(delivered.frame)
    if first < delivered.rows:  # the first batch of several
        drawing = "batches = fit.sample_batches"
        options.append(f"size={first}")
    if seed:
        options.append(seed)
    if delivered.iid:
        options.append("iid=True")
    return f"{drawing}({', '.join(options)}){unknown}"
