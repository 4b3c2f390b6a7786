"""Verification: whether a model file holds what it states, and what cannot be told from the file alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from fairmaxent.fit.archive import MOST_BYTES, read_archive
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.contents import contents
from fairmaxent.fit.fit import load


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """What was verified of a model file, and what was not; printed, it is a short report."""

    path: str
    sha256: str  # of the whole file, to compare with one that was written down
    version: int  # of the file format
    has_digests: bool  # whether the file has the SHA-256 of each of its members; older ones have not
    holds: str  # which rows of people
    unverified: tuple[str, ...]  # what the file alone cannot show
    certificate: Certificate

    def __str__(self) -> str:
        digests = "match" if self.has_digests else "missing in this older format; save the model again to add them"
        lines = [
            f"{self.path}: verified",
            f"  SHA-256 of the file: {self.sha256}",
            f"  format version {self.version}; digests of its parts: {digests}",
            "  certificate: made again from the stored rows and distribution; every number agrees",
        ]
        certificate = self.certificate
        for kind, name in certificate.rates_shown:
            lines.append(f"  {certificate.measure.rate_name(kind, name)}: {certificate.achieved[kind][name]:.4f}")
        lines += [f"  not verified: {what}" for what in self.unverified]
        lines.append(f"  it holds {self.holds}")
        return "\n".join(lines)


def verify(path: str | PathLike[str], *, max_bytes: int = MOST_BYTES) -> Verification:
    """Check a model file, and say what was checked; nothing in the file is run.

    Raises :class:`fairmaxent.errors.StorageError` if the file is damaged, or if its certificate states something else
    than follows from the rows and the distribution in it. A file that passes is consistent; who made it, and from which
    table, it cannot prove: compare its SHA-256 with one that you trust.
    """
    fit = load(path, max_bytes=max_bytes)
    version = read_version(Path(path), max_bytes)
    unverified = []
    if fit.certificate.estimate is not None:
        unverified.append("the estimate for a trained model, which would have to be trained again")
    if fit.certificate.decisions is not None:
        unverified.append("the decisions of the student of relabelling, which would have to be trained again")
    if fit.certificate.privacy is not None:
        unverified.append("that the counts have the noise that the ledger states, which only the table would show")
    if fit.certificate.left_out_columns:
        unverified.append("which columns were left out, because the model does not have them")
    if fit.request.random_state is not None:
        unverified.append("the seed, which only the rows that were drawn with it would show")
    if fit.certificate.notes:
        unverified.append("the notes on how columns were read, which are kept as text")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Verification(str(path), digest, version, version >= 3, contents(fit), tuple(unverified), fit.certificate)


def read_version(path: Path, max_bytes: int) -> int:
    """The format version of a file that was loaded before."""
    return int(read_archive(path, max_bytes=max_bytes)[0]["version"])
