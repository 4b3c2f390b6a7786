"""Verification: what a saved fit proves by itself, and what it cannot."""

from dataclasses import dataclass
from os import PathLike

from fairmaxent.data.levels import Notes
from fairmaxent.files.content import file_sha256
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.records import MOST_BYTES
from fairmaxent.fit.storage import VERSION, load
from fairmaxent.plain_text import visible

# what a file alone cannot show; see `verify`
_UNVERIFIED = (
    "the estimate for a trained model, which would have to be trained again",
    "what is expected by the true groups, which was simulated",
    "the decisions of the table's own model, which would have to be trained again",
    "that the counts have the noise that the ledger states, which only the table would"
    " show",
    "which columns were left out, because the fit does not have them",
    "the seed, which only the rows that were drawn with it would show",
    "the notes on how columns were read, which are kept as text",
    "how often each value of a bin is to be drawn",
)


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """What was verified of a saved fit, and what not; printed, a short report."""

    path: str
    sha256: str  # of the whole file, to compare with one that was written down
    version: int  # of the file format
    holds: str  # which rows of people
    unverified: Notes  # what the file alone cannot show
    certificate: Certificate

    def __str__(self) -> str:
        certificate = self.certificate
        rates = [
            f"{certificate.measure.rate_name(kind, name)}:"
            f" {certificate.achieved[kind][name]:.4f}"
            for kind, name in certificate.rates_shown
        ]
        lines = [
            f"{self.path}: verified",
            f"SHA-256 of the file: {self.sha256}",
            f"format version {self.version}; digests of its parts: match",
            (
                "certificate: made again from the stored rows and distribution; every"
                " number agrees"
            ),
            *rates,
            *(f"not verified: {what}" for what in self.unverified),
            f"it holds {self.holds}",
        ]
        return "\n  ".join(map(visible, lines))


def verify(path: str | PathLike[str], *, max_bytes: int = MOST_BYTES) -> Verification:
    """Check a saved fit, and say what was checked; nothing in the file is run.

    Raises :class:`fairmaxent.errors.StorageError` if the file is damaged, or if its
    certificate states something else than follows from the rows and the distribution in
    it. A file that passes is consistent; who made it, and from which table, it cannot
    prove: compare its SHA-256 with one that you trust.
    """
    fit, certificate = load(path, max_bytes=max_bytes)
    binned = [column for column in fit.domain.attributes if not column.is_value_coded]
    stated = (
        certificate.estimate,
        certificate.likely,
        certificate.decisions,
        certificate.privacy,
        certificate.left_out_columns or None,
        fit.request.random_state,
        certificate.notes or None,
        binned or None,
    )
    return Verification(
        path=str(path),
        sha256=file_sha256(path),
        version=VERSION,
        holds=fit.contents,
        unverified=tuple(
            what
            for what, part in zip(_UNVERIFIED, stated, strict=True)
            if part is not None
        ),
        certificate=certificate,
    )
