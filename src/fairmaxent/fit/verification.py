"""Verification: what a saved fit proves by itself, and what it cannot."""

from dataclasses import dataclass
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np

from fairmaxent.data import frames
from fairmaxent.data.levels import Notes
from fairmaxent.data.shareable import shareable
from fairmaxent.document.text import to_text
from fairmaxent.engines.lazy_frame import check_column, collect, open_lazy
from fairmaxent.errors import InputError, LevelError
from fairmaxent.files.content import file_sha256
from fairmaxent.fit.certificate import Certificate
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.records import MOST_BYTES
from fairmaxent.fit.storage import VERSION, load
from fairmaxent.plain_text import visible
from fairmaxent.telling.case import Case, Weight
from fairmaxent.telling.entries import told

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
    case: Case  # all that there is to say

    def __str__(self) -> str:
        said = to_text(told(self.case, least=Weight.WARNING))
        lines = [
            f"{self.path}: verified",
            f"SHA-256 of the file: {self.sha256}",
            f"format version {self.version}; digests of its parts: match",
            (
                "certificate: made again from the stored rows and distribution; every"
                " number agrees"
            ),
            *said.splitlines(),
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
    solved, certificate = load(path, max_bytes=max_bytes)
    fit = Certified(**vars(solved), certificate=certificate)
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
        case=fit.case(rest="; print(verified.certificate) shows them"),
    )


def checked_data(fit: Certified, data: Any) -> Any:
    """The table with its groups; one that the fit was not made from is refused.

    Rows to share were made from a coarser table. Its own values are real people's, so
    copies of them are what counts.
    """
    if data is None:
        return None
    lazy = open_lazy(data)
    if lazy is not None:  # its rows are counted, and not compared
        known = fit.with_groups(lazy)
        for name in fit.columns:
            check_column(known, name)
        _check_rows(fit, int(collect(lazy.select(nw.len())).item()))
        return known.to_native()
    data = fit.with_groups(frames.open_frame(data)).to_native()
    try:
        encoded = fit.encoded(data)
    except LevelError:
        if not fit.request.release:
            raise
        opened = frames.open_frame(data)
        shared, _ = shareable(opened, fit.roles.names, fit.request.weight)
        encoded = fit.encoded(shared.to_native())
    _check_rows(fit, len(encoded))
    if not fit.table.keeps_rows:
        return data
    fitted = fit.distinct_rows
    is_other = encoded != fitted.codes[fitted.inverse]
    others = np.flatnonzero(is_other.any(axis=1))
    if len(others):
        raise InputError(
            f"row {others[0]} of data is not the row that the fit was made from (rows"
            f" that differ: {len(others):,}); pass the table that it was made from, in"
            " the same order"
        )
    return data


def _check_rows(fit: Certified, rows: int) -> None:
    if rows != fit.table.size:
        raise InputError(
            f"data has {rows} rows, but the fit was made from {fit.table.size}; pass"
            " the table that it was made from"
        )
