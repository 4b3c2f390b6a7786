"""Out of core: a Parquet table that is never in memory, beside the group-by of two
engines over the same columns.
"""

import contextlib
import os
import re
import resource
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.meter import Reading, reading
from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.process import JobFailedError, fresh

# Group-bys that a whole fit may take, megabytes, and rows drawn and written per CPU
# second.
GROUP_BYS, MEGABYTES, DRAWN = 2.5, 1000.0, 1e6

# Megabytes of addresses, and threads, with which the whole command must do: threads
# reserve more than they touch.
ADDRESS_SPACE, THREADS = 3000.0, 2

CHANGED = 0.5  # share of the rows with one value of another row
FILES = "*.parquet"
ROLES = ("income", "sex")
MEASURED = ("distinct rows", "CPU s", "on the clock s", "peak MB", "address space MB")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int
    part: int  # rows of one file


FULL = Sizes(rows=10_000_000, part=1_000_000)
QUICK = Sizes(rows=200_000, part=100_000)


def measure(sizes: Sizes) -> Outcome:
    """Write the tables, then measure each job in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        varied, plain = str(Path(folder) / "varied"), str(Path(folder) / "plain")
        columns = fresh(write_census, varied, sizes.rows, sizes.part, CHANGED)
        fresh(write_census, plain, sizes.rows, sizes.part, 0.0)
        found = {
            "group-by of polars": fresh(by_polars, varied),
            "group-by of DuckDB": fresh(by_duckdb, varied),
            "whole fit": fresh(fit, varied),
            "rows drawn and written": fresh(
                draw, varied, sizes.rows, f"{folder}/drawn.parquet"
            ),
        }
        commands, failed = {}, []
        for name, table in (
            ("whole command", varied),
            ("whole command, few distinct rows", plain),
        ):
            try:
                commands[name] = fresh(
                    command, table, f"{table}.parquet", ADDRESS_SPACE
                )
            except JobFailedError as problem:
                failed.append(f"{name}: {problem}")
    rows = tuple(
        (name, *(own.get(column) for column in MEASURED))
        for name, own in (found | commands).items()
    )
    return Outcome(
        "Out of core",
        f"{sizes.rows:,} rows × {columns} columns of Parquet: rows of Adult, half of"
        " them with another value in one column; all as they are where there are few"
        " distinct rows. A group-by is by all columns. The whole command fits and"
        f" draws as many rows, with {THREADS} threads and a limit of its address"
        " space.",
        (Table("", ("what", *MEASURED), rows), *_memory(commands)),
        (*_bars(found, sizes.rows), *_command_bars(commands, "; ".join(failed))),
    )


def _bars(found: dict[str, Any], rows: int) -> list[Bar]:
    cpu = {name: own["CPU s"] for name, own in found.items()}
    return [
        *(
            Bar(
                f"Whole fit, in group-bys of {engine}",
                cpu["whole fit"] / cpu[f"group-by of {engine}"],
                GROUP_BYS,
                "×",
            )
            for engine in ("polars", "DuckDB")
        ),
        Bar("Peak memory of the fit", found["whole fit"]["peak MB"], MEGABYTES, "MB"),
        Bar(
            "Rows drawn and written",
            rows / cpu["rows drawn and written"],
            DRAWN,
            "rows per CPU s",
            at_least=True,
        ),
    ]


def _command_bars(commands: dict[str, Any], why: str) -> list[Bar]:
    """The most that either command took; one that did not end took too much."""
    most = {
        name: None if why else max(own[name] for own in commands.values())
        for name in MEASURED[-2:]
    }
    return [
        Bar(
            "Peak memory of the whole command",
            most["peak MB"],
            MEGABYTES,
            "MB",
            why=why,
        ),
        Bar(
            "Address space of the whole command",
            most["address space MB"],
            ADDRESS_SPACE,
            "MB",
            why=why,
        ),
    ]


def _memory(commands: dict[str, Any]) -> list[Table]:
    """What a distinct row costs: the difference between two tables of as many rows."""
    if len(commands) < 2:
        return []
    many, few = commands.values()
    cost = (
        1e6
        * (many["peak MB"] - few["peak MB"])
        / max(many["distinct rows"] - few["distinct rows"], 1)
    )
    return [
        Table(
            "Memory by distinct rows",
            ("what", "bytes"),
            (("one more distinct row", cost),),
        )
    ]


# ---------------------------------------------------------------- jobs


def write_census(folder: str, rows: int, part: int, share: float) -> int:
    """Write rows of Adult as Parquet files, a share of them with one value of another
    row.
    """
    import polars

    import fairmaxent

    adult = fairmaxent.datasets.load("adult", library="polars").frame.drop(
        "final_weight"
    )
    Path(folder).mkdir()
    for number, begin in enumerate(range(0, rows, part)):
        rng = np.random.default_rng(number)
        count = min(part, rows - begin)
        own, other = rng.integers(len(adult), size=(2, count))
        changed = np.where(
            rng.random(count) < share, rng.integers(adult.width, size=count), -1
        )
        columns = [
            column.gather(np.where(changed == place, other, own))
            for place, column in enumerate(adult.iter_columns())
        ]
        polars.DataFrame(columns).write_parquet(
            Path(folder) / f"part-{number:04}.parquet"
        )
    return int(adult.width)


def by_polars(folder: str) -> dict[str, Any]:
    """Count the distinct rows, streaming."""
    import polars

    lazy = polars.scan_parquet(Path(folder) / FILES)
    names = lazy.collect_schema().names()
    return _measured(
        lambda: len(lazy.group_by(names).len().collect(engine="streaming"))
    )


def by_duckdb(folder: str) -> dict[str, Any]:
    """Count the distinct rows, and hand them over as Arrow."""
    import duckdb

    query = f"SELECT *, count(*) FROM '{Path(folder) / FILES}' GROUP BY ALL"
    return _measured(lambda: len(duckdb.sql(query).to_arrow_table()))


def fit(folder: str) -> dict[str, Any]:
    """Fit the table where it lies."""
    return _measured(lambda: len(_fitted(folder).table.codes))


def draw(folder: str, rows: int, target: str) -> dict[str, Any]:
    """Draw rows, and write them as they are drawn."""
    from fairmaxent.cli.output import write_drawn
    from fairmaxent.files.write import Staging

    fitted = _fitted(folder)
    with reading() as cost, Staging([target]) as staging:
        write_drawn(fitted, rows, staging, target, format=None)
    return _costs(cost)


def command(folder: str, target: str, megabytes: float) -> dict[str, Any]:
    """Run ``fairmaxent debias FOLDER -o TARGET`` with no more than that much address
    space.
    """
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import fairmaxent
    from fairmaxent.cli.group import group

    most = int(megabytes * 1e6)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    outcome, protected = ROLES
    model = f"{target}.fme"
    arguments = [
        "debias",
        folder,
        "--outcome",
        outcome,
        "--protected",
        protected,
        "-o",
        target,
        "--save",
        model,
    ]
    with reading() as cost:
        try:
            group.main(arguments)
        except SystemExit as ended:
            if ended.code:
                raise JobFailedError(f"ended with status {ended.code}") from ended
    return {"distinct rows": len(fairmaxent.load(model).table.codes)} | _costs(cost)


def _fitted(folder: str) -> Any:
    import polars

    import fairmaxent

    return fairmaxent.debias(
        polars.scan_parquet(Path(folder) / FILES), *ROLES, random_state=0
    )


def _measured(job: Callable[[], int]) -> dict[str, Any]:
    """Run once: a table that is read is not to be remembered."""
    with reading() as cost:
        distinct = job()
    return {"distinct rows": distinct} | _costs(cost)


def _costs(cost: Reading) -> dict[str, Any]:
    return dict(
        zip(
            MEASURED[1:],
            (cost.cpu, cost.wall, cost.peak, _address_space()),
            strict=True,
        )
    )


def _address_space() -> float:
    """Megabytes of addresses that this process has had at most; none where the system
    does not say.
    """
    with contextlib.suppress(OSError):
        found = re.search(r"VmPeak:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) * 1024 / 1e6
    return 0.0
