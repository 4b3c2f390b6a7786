"""From a table to distinct rows in codes: in memory, or inside the engine of a lazy frame."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fairmaxent.data import frames
from fairmaxent.data.declaration import Declaration
from fairmaxent.data.domain import Domain
from fairmaxent.data.positions import DetailOption
from fairmaxent.data.reading import Reading
from fairmaxent.engines.lazy.frame import engine_errors, open_lazy
from fairmaxent.engines.lazy_reading import read_lazy
from fairmaxent.engines.memory_reading import read_in_memory
from fairmaxent.progress import Progress


def read_rows(
    frame: Any,
    outcome: str,
    protected: Sequence[str],
    *,
    within: Sequence[str] = (),
    also: Sequence[str] = (),
    weight: str | None,
    domain: Domain | Declaration | None,
    detail: DetailOption | None = None,
    keep: Collection[str] | None = None,
    progress: Progress,
) -> Reading:
    """Read a table where its rows are, by the given domain or by one learned from it.

    Columns that look like identifiers are left out unless ``keep`` names them; None keeps all.
    """
    options: dict[str, Any] = {"weight": weight, "domain": domain, "detail": detail, "keep": keep, "progress": progress}
    lazy = open_lazy(frame)
    if lazy is None:
        return read_in_memory(frames.open_frame(frame), outcome, protected, within, also, **options)
    with engine_errors(lazy):
        return read_lazy(lazy, outcome, protected, within, also, **options)
