"""The front door: from a frame, or from a file, to a fit."""

from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any

from fairmaxent.fit import storage
from fairmaxent.fit.certified import Certified
from fairmaxent.fit.pipeline import fit_frame
from fairmaxent.fit.records import MOST_BYTES
from fairmaxent.fit.request import Request
from fairmaxent.options import with_options_of

if TYPE_CHECKING:
    from fairmaxent.gate.papers import Comparison


class Fit(Certified):
    """What :func:`fairmaxent.debias` learned.

    One fit has three outputs: new rows (:meth:`sample`), weights for the rows of the
    data (:meth:`weights`), and rows to add to them (:meth:`top_up`). The
    :attr:`certificate` shows what was reached.
    """

    def report(self, path: str | PathLike[str], **options: Any) -> None:
        """Write a report for readers who did not run the fit.

        The path ends in ``.html``, ``.md`` or ``.json``. The options are those of
        :func:`fairmaxent.report.write_report`; pass ``data=`` the table that
        the fit was made from, so that copies of real rows can be counted.
        """
        from fairmaxent.report.writer import write_report  # takes a while to import

        write_report(self, path, **options)

    def document(
        self,
        kind: str,
        *,
        data: str | PathLike[str] | None = None,
        result: str | PathLike[str] | None = None,
    ) -> str:
        """Draft a document to file.

        The kinds are ``"article-10"``, ``"card"`` and ``"croissant"``; ``"ll144"`` is
        about a table of decisions (:func:`fairmaxent.gate.papers.audit`).
        What only you know is marked "To be written by". It states the digests of two
        files: ``data``, which the fit was made from (another is refused), and
        ``result``, with the number of its rows and their rates, e.g. as CSV, whose
        columns Croissant describes.
        """
        from fairmaxent.gate.papers import document  # likewise

        return document(self, kind, data=data, result=result)

    def verify_document(self, path: str | PathLike[str]) -> "Comparison":
        """Make a document again, and show the lines of the file that differ.

        Only the words of people may: in Markdown, lines that begin with ``>`` where
        there was one; in JSON, texts that were "To be written by". The answer has the
        ``kind`` and the ``differences``; printed, it shows them.
        """
        from fairmaxent.gate.papers import compare  # likewise

        return compare(self, path)


@with_options_of(Request)
def debias(frame: Any, request: Request) -> Fit:
    """Learn the distribution closest to the data that has the wanted rates, exactly.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table, one row per record; or a lazy frame (polars
        LazyFrame, DuckDB relation, Dask DataFrame, …), whose engine then counts the
        rows, so that they are never in memory. With a Dask ``distributed.Client`` open,
        even the distinct rows of a Dask frame stay on the workers.
    """
    certified = fit_frame(frame, request)
    return Fit(
        **{field.name: getattr(certified, field.name) for field in fields(certified)}
    )


def load(path: str | PathLike[str], *, max_bytes: int = MOST_BYTES) -> Fit:
    """Read a fit back that :meth:`Fit.save` wrote.

    Raises :class:`fairmaxent.errors.StorageError` if the file is missing, damaged, of
    another kind, or of a newer format, if its certificate states something else than
    follows from what it holds, or if it would take more than ``max_bytes`` of memory.
    Nothing in the file is run.
    """
    solved, certificate = storage.load(path, max_bytes=max_bytes)
    return Fit(**vars(solved), certificate=certificate)
