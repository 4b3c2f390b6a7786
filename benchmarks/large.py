"""Past one machine: every type through every engine, what each of them costs, what is
foreseen beforehand, and faults at many points.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.outcome import Bar, Outcome, Table
from benchmarks.process import JobFailedError, fresh

ROLES = ["--outcome", "income", "--protected", "sex", "--seed", "1"]
ENGINES = ("polars", "DuckDB", "Dask, two workers", "Spark local[2]")
NESTED = ("list", "struct")
# what an engine does not read from Parquet, or has no arithmetic for
NOT_READ = {
    "DuckDB": ("duration",),
    "Spark local[2]": ("nanoseconds", "time of day", "short time of day", "duration"),
}
# What Spark compiles for a query costs more than small tables do.
LIGHT = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
BY_POLARS, CLIENT, WITHIN = 3.0, 300.0, 0.3
PART = 250_000  # rows of a file
TOO_LATE = "had ended before"  # what was to be interrupted
TRIES = 5  # at a point, as long as the run has ended before it
IDLE = 20.0  # seconds in which it is measured what processes take while they wait
# on ten machines of 32 cores, from the CPU seconds of a row and its bytes
PAPER_BYTES, PAPER_CORES = 500e9, 320


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    seeds: int  # random tables
    spark_seeds: int  # the same for Spark, which takes seconds for each query
    few: int  # rows, with as many distinct ones as Adult has
    many: int  # rows, nearly all distinct
    shapes: Sequence[tuple[int, int]]  # rows and columns whose memory is foreseen
    workers: int  # points at which a worker is killed
    others: int  # the same for the scheduler, and for an executor of Spark


FULL = Sizes(
    seeds=25,
    spark_seeds=5,
    few=2_000_000,
    many=500_000,
    shapes=(
        (200_000, 8),
        (500_000, 14),
        (1_000_000, 6),
        (1_000_000, 12),
        (1_500_000, 10),
        (2_000_000, 14),
    ),
    workers=10,
    others=3,
)
QUICK = Sizes(
    seeds=1,
    spark_seeds=1,
    few=100_000,
    many=50_000,
    shapes=((50_000, 6),),
    workers=1,
    others=1,
)


def measure(sizes: Sizes) -> Outcome:
    """Each part in processes of its own; one that fails is a line of the page."""
    tables: list[Table] = []
    bars: list[Bar] = []
    for part in (alike, costs, foreseen, faults):
        try:
            found, kept = part(sizes)
        except JobFailedError as problem:
            found = []
            kept = [Bar(part.__name__, None, 0.0, why=str(problem))]
        tables += found
        bars += kept
    return Outcome(
        "Past one machine",
        "Parquet in parts, through each engine. CPU seconds and peaks are those of"
        " the processes themselves; Spark's include its Java machine. A cluster is a"
        " scheduler and two workers of one thread, each a process.",
        tuple(tables),
        tuple(bars),
    )


# ---------------------------------------------------------------- every type


def alike(sizes: Sizes) -> tuple[list[Table], list[Bar]]:
    """Types with gaps, and random tables: the same as in memory, or refused."""
    from benchmarks.gaps import TYPES

    seeds = dict.fromkeys(ENGINES, sizes.seeds) | {ENGINES[-1]: sizes.spark_seeds}
    found = {engine: fresh(compared, engine, seeds[engine]) for engine in ENGINES}
    rows = [(name, *(found[engine][name] for engine in ENGINES)) for name in TYPES]
    random = [found[engine]["random"] for engine in ENGINES]
    rows.append(
        (
            f"{sizes.seeds} random tables ({sizes.spark_seeds} by Spark), with rows and weights",
            *random,
        )
    )
    worse = sum(str(cell).startswith("differs") for row in rows for cell in row[1:])
    return (
        [
            Table(
                "Types with gaps, beside the table in memory",
                ("type", *ENGINES),
                tuple(rows),
            )
        ],
        [Bar("Types and random tables that differ", worse, 0.0)],
    )


def compared(engine: str, seeds: int) -> dict[str, str]:
    """Say of each type whether a fit by this engine is that of the table in memory."""
    from benchmarks.gaps import TYPES, random_table, typed_table

    skipped = NOT_READ.get(engine, ())
    found = dict.fromkeys(skipped, "not read by it")
    plain = [name for name in TYPES if name not in (*NESTED, *skipped)]
    with tempfile.TemporaryDirectory() as folder, opening(engine, folder) as opened:
        frame = opened(_in_parts(typed_table(plain), Path(folder) / "types"))
        found |= _fits_alike(frame, plain, engine)
        for name in NESTED:
            frame = opened(_in_parts(typed_table([name]), Path(folder) / name))
            found[name] = _both_refuse(frame)
        differing = []
        for seed in range(seeds):
            table = random_table(seed)
            names = [name for name in table.column_names if name not in skipped]
            frame = opened(_in_parts(table.select(names), Path(folder) / str(seed)))
            fits = _fits_alike(frame, names[2:-1], engine, weight="w")
            differing += [f"{seed}: {why}" for why in set(fits.values()) - {"same"}]
        found["random"] = f"differs: {differing}" if differing else "same"
    return found


@contextlib.contextmanager
def opening(
    engine: str, folder: str, settings: dict[str, str] = LIGHT
) -> Iterator[Callable[[Path], Any]]:
    """How this engine opens a folder of Parquet files."""
    if engine == "polars":
        import polars

        yield polars.scan_parquet
    elif engine == "DuckDB":
        import duckdb

        connection = duckdb.connect()
        yield lambda path: connection.from_parquet(f"{path}/*.parquet")
    elif engine.startswith("Dask"):
        from dask.dataframe import read_parquet
        from distributed import Client

        with cluster(folder) as (address, _), Client(address):
            yield read_parquet
    else:
        with spark(folder, "local[2]", **settings) as session:
            yield lambda path: session.read.parquet(str(path))


def _in_parts(table: Any, folder: Path, parts: int = 3) -> Path:
    import pyarrow.parquet

    folder.mkdir()
    step = -(-len(table) // parts)
    for number in range(parts):
        part = table.slice(number * step, step)
        pyarrow.parquet.write_table(part, folder / f"part-{number}.parquet")
    return folder


def _in_memory(frame: Any) -> Any:
    import narwhals as nw

    opened = nw.from_native(frame)
    if opened.implementation.is_duckdb():
        return frame.to_arrow_table()
    return opened.collect().to_native()


def _fits_alike(
    frame: Any, names: Sequence[str], engine: str, weight: str | None = None
) -> dict[str, str]:
    """Compare levels, counts, multipliers, drawn rows and weights with those in memory."""
    from fairmaxent import debias

    options = {
        "outcome": "y",
        "protected": "z",
        "favourable": "yes",
        "detail": "bins",
        "keep_columns": list(names),
        "random_state": 1,
        "weight": weight,
    }
    memory = _in_memory(frame)
    there, here = (debias(table, **options) for table in (frame, memory))
    found = {}
    for name in names:
        one, other = (fit.domain.attribute(name) for fit in (there, here))
        same = (one.kind, one.labels) == (other.kind, other.labels)
        found[name] = "same" if same else "differs: levels"
    ours, twin = there.table.collect(), here.table.collect()
    # a cluster draws by partition, so its rows are others, in the same cells
    both = [_drawn(fit, only_cells=engine.startswith("Dask")) for fit in (there, here)]
    weights = [
        np.sort(_column(there.weigh(frame, weight_name="fair"), "fair")),
        np.sort(here.weights()),
    ]
    checks = {
        "rows": np.array_equal(ours.codes, twin.codes)
        and np.allclose(ours.counts, twin.counts, rtol=1e-12),
        "multipliers": np.allclose(
            there.optimum.solution.multipliers,
            here.optimum.solution.multipliers,
            atol=1e-9,
            rtol=0,
        ),
        "drawn rows": np.array_equal(*both),
        "weights": np.allclose(*weights, rtol=1e-9, atol=1e-12),
    }
    wrong = [what for what, same in checks.items() if not same]
    if wrong:
        return {name: f"differs: {', '.join(wrong)}" for name in names}
    return found


def _drawn(fit: Any, *, only_cells: bool) -> Any:
    codes = fit.domain.encode(fit.sample(80, random_state=2))
    if only_cells:
        codes = codes[:, list(fit.roles.root)]
        return codes[np.lexsort(codes.T)]
    return codes


def _column(frame: Any, name: str) -> Any:
    import narwhals as nw

    column = nw.from_native(frame).select(name).collect().get_column(name)
    return column.to_numpy().astype(float)


def _both_refuse(frame: Any) -> str:
    from fairmaxent import debias
    from fairmaxent.errors import FairMaxEntError

    for table in (frame, _in_memory(frame)):
        try:
            debias(table, "y", "z")
        except FairMaxEntError:
            continue
        return "differs: taken"
    return "refused"


# ---------------------------------------------------------------- processes


@contextlib.contextmanager
def cluster(folder: str) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process; and its address."""
    file = Path(folder) / f"scheduler-{time.monotonic_ns()}.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    tool = [sys.executable, "-m", "dask"]
    processes = [
        _started([*tool, "scheduler", *common, "--host", "127.0.0.1", "--port", "0"])
    ]
    try:
        for _ in range(2):
            own = [
                "--nthreads",
                "1",
                "--local-directory",
                folder,
                "--memory-limit",
                "0",
            ]
            processes.append(_started([*tool, "worker", *common, *own]))
        from distributed import Client

        with Client(scheduler_file=str(file), timeout=120) as client:
            client.wait_for_workers(2, timeout=120)
            address = client.scheduler.address
        yield address, processes
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet)


@contextlib.contextmanager
def spark(folder: str, master: str, **more: str) -> Iterator[Any]:
    """A session of Spark on the loopback."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_LOCAL_DIRS"] = folder
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master).appName("fairmaxent")
    for name, value in (settings | more).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@dataclass(frozen=True)
class Cost:
    """What processes took."""

    cpu: float  # seconds
    peak: float  # megabytes of the largest


def cost_of(processes: Sequence[Any]) -> Cost:
    """What running processes have taken so far, with what has ended below them."""
    cpu = 0.0
    peak = 0.0
    for process in processes:
        times = process.cpu_times()
        cpu += sum(times[:4])
        status = Path(f"/proc/{process.pid}/status").read_text()
        for line in status.splitlines():
            if line.startswith("VmHWM"):  # not that of a process that has ended
                peak = max(peak, int(line.split()[1]) * 1024 / 1e6)
    return Cost(cpu, peak)


def below(pid: int) -> list[Any]:
    """The processes below one."""
    import psutil

    return psutil.Process(pid).children(recursive=True)


def command(*arguments: str) -> tuple[int, str, Cost]:
    """Run the command line; its status, what it says, and what it takes."""
    with tempfile.TemporaryFile() as told:
        process = _command_started(arguments, told)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        told.seek(0)
        text = told.read().decode()
    cost = Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)
    return process.returncode, text, cost


def _command_started(arguments: Sequence[str], told: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairmaxent", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=told,
    )


# ---------------------------------------------------------------- what it costs


def costs(sizes: Sizes) -> tuple[list[Table], list[Bar]]:
    """CPU and memory of each engine, weights written, and what 500 GB would take."""
    measured = []
    for what, count, share in (
        ("few distinct rows", sizes.few, 0.0),
        ("nearly all rows distinct", sizes.many, 0.5),
    ):
        with tempfile.TemporaryDirectory() as folder:
            data = f"{folder}/data"
            fresh(write_rows, data, count, 14, share)
            size = sum(path.stat().st_size for path in Path(data).iterdir())
            common = {"what": what, "rows": count, "size": size}
            common["said"] = fresh(said_beforehand, data)
            for engine in ENGINES:
                found = fresh(weighed_by, engine, data, f"{folder}/{engine[:4]}")
                measured.append({**common, "engine": engine, **found})
    return cost_tables(measured), cost_bars(measured)


def cost_tables(measured: Sequence[dict[str, Any]]) -> list[Table]:
    """What was measured, and what 500 GB would take at that cost of a byte."""
    rows: list[tuple[Any, ...]] = []
    paper: list[tuple[Any, ...]] = []
    shown = ("rows", "cpu", "idle", "client", "worker", "distinct")
    for one in measured:
        name = f"{one['what']}, {one['engine']}"
        rows.append((name, *(one[column] for column in shown)))
        cpu = one["cpu"] - one["idle"]
        hours = cpu / one["size"] * PAPER_BYTES / 3600
        wide = one["size"] / one["rows"]
        paper.append((name, 1e6 * cpu / one["rows"], wide, hours, hours / PAPER_CORES))
    heads = (
        *("table, engine", "rows", "CPU s", "of it waiting", "client MB", "worker MB"),
        "distinct",
    )
    return [
        Table("From Parquet to Parquet with weights, 14 columns", heads, tuple(rows)),
        Table(
            "On paper: 500 GB on ten machines of 32 cores",
            ("table, engine", "CPU µs a row", "bytes a row", "CPU h", "hours"),
            tuple(paper),
        ),
    ]


def cost_bars(measured: Sequence[dict[str, Any]]) -> list[Bar]:
    """Dask beside polars, and beside what was foreseen of its processes."""
    cpu = {(one["what"], one["engine"]): one["cpu"] - one["idle"] for one in measured}
    bars = []
    for one in measured:
        if not one["engine"].startswith("Dask"):
            continue
        what = one["what"]
        for process in ("client", "worker"):
            error = abs(one["said"][process] / one[process] - 1)
            name = f"Error of the {process}'s memory foreseen, {what}"
            bars.append(Bar(name, error, WITHIN))
        times = cpu[what, one["engine"]] / cpu[what, "polars"]
        bars += [
            Bar(f"Client, {what}", one["client"], CLIENT, "MB"),
            Bar(f"Dask's CPU but waiting, {what}", times, BY_POLARS, "× polars"),
        ]
    return bars


def write_rows(folder: str, rows: int, columns: int, share: float) -> None:
    """Write rows of Adult; a share of the cells are those of other rows."""
    import polars

    import fairmaxent

    adult = fairmaxent.datasets.load("adult", library="polars").frame
    adult = adult.drop("final_weight")
    kept = ["income", "sex"]
    kept += [name for name in adult.columns if name not in kept][: columns - 2]
    Path(folder).mkdir()
    for number, begin in enumerate(range(0, rows, PART)):
        rng = np.random.default_rng(number)
        count = min(PART, rows - begin)
        own = rng.integers(len(adult), size=count)
        made = {}
        for name in kept:
            other = rng.integers(len(adult), size=count)
            chosen = np.where(rng.random(count) < share, other, own)
            made[name] = adult[name].gather(chosen)
        path = Path(folder) / f"part-{number:04}.parquet"
        polars.DataFrame(made).write_parquet(path)


def weighed_by(engine: str, data: str, output: str) -> dict[str, Any]:
    """Fit a table, and write it with its weights: this process is the client.

    Processes of a cluster take CPU time while they wait; on a busy machine that is much
    of it.
    """
    import psutil

    from fairmaxent import debias

    with tempfile.TemporaryDirectory() as folder, opening(engine, folder, {}) as opened:
        frame = opened(Path(data))
        begin = time.monotonic()
        before = cost_of([psutil.Process(), *below(os.getpid())])
        time.sleep(IDLE)
        waiting = cost_of([psutil.Process(), *below(os.getpid())]).cpu - before.cpu
        fit = debias(frame, "income", "sex", detail="bins", random_state=1)
        weighed = fit.weigh(frame)
        if engine == "polars":
            weighed.sink_parquet(f"{output}.parquet")
        elif engine == "DuckDB":
            weighed.write_parquet(f"{output}.parquet")
        elif engine.startswith("Dask"):
            weighed.to_parquet(output, write_index=False)
        else:
            weighed.write.parquet(output)
        client = cost_of([psutil.Process()])
        others = below(os.getpid())
        every = cost_of([psutil.Process(), *others])
        return {
            "cpu": every.cpu - before.cpu,
            "idle": waiting / IDLE * (time.monotonic() - begin),
            "client": client.peak,
            "worker": cost_of(others).peak if others else None,
            "distinct": fit.table.distinct,
        }


# ---------------------------------------------------------------- what is foreseen


def foreseen(sizes: Sizes) -> tuple[list[Table], list[Bar]]:
    """Peak of a fit by polars beside what `inspect` says, and bytes that Dask reads."""
    rows = []
    worst = {"memory": 0.0, "distinct rows": 0.0, "bytes": 0.0}
    for count, columns in sizes.shapes:
        with tempfile.TemporaryDirectory() as folder:
            data = f"{folder}/data"
            fresh(write_rows, data, count, columns, 0.3)
            said = fresh(said_beforehand, data)
            found = fresh(fitted, data)
            read = fresh(bytes_read, data)
        rows.append(
            (
                count,
                columns,
                said["distinct"],
                found["distinct"],
                said["memory"],
                found["memory"],
                said["bytes"],
                read,
            )
        )
        for what, one, other in (
            ("memory", said["memory"], found["memory"]),
            ("distinct rows", said["distinct"], found["distinct"]),
            ("bytes", said["bytes"], read),
        ):
            worst[what] = max(worst[what], abs(one / other - 1))
    heads = (
        *("rows", "columns", "distinct, said", "distinct", "MB, said", "MB"),
        *("MB read, said", "MB read"),
    )
    return (
        [Table("What inspect says beforehand", heads, tuple(rows))],
        [
            Bar(f"Largest error of the {what} foreseen", error, WITHIN)
            for what, error in worst.items()
        ],
    )


def said_beforehand(data: str) -> dict[str, float]:
    """What `inspect` says of a folder."""
    import narwhals as nw
    import polars

    from fairmaxent.engines.lazy_counts import foresee

    table = polars.scan_parquet(data)
    found = foresee(nw.from_native(table))
    size = sum(path.stat().st_size for path in Path(data).iterdir())
    rows = min(PART, table.select(polars.len()).collect().item())
    return {
        "distinct": found.distinct,
        "memory": found.memory / 1e6,
        "bytes": found.passes * size / 1e6,
        "client": found.client / 1e6,
        "worker": found.worker(2, rows) / 1e6,
    }


def fitted(data: str) -> dict[str, float]:
    """The peak of this process as it fits a folder."""
    import polars
    import psutil

    from fairmaxent import debias
    from fairmaxent.engines.lazy_frame import FEW, READ_AHEAD

    os.environ[READ_AHEAD] = FEW
    fit = debias(polars.scan_parquet(data), "income", "sex", detail="bins")
    peak = cost_of([psutil.Process()]).peak
    return {"distinct": fit.table.distinct, "memory": peak}


def bytes_read(data: str) -> float:
    """Megabytes that Dask reads of a folder for a fit, in this process."""
    import dask
    from dask.dataframe import read_parquet

    from fairmaxent import debias

    with dask.config.set(scheduler="synchronous"):
        frame = read_parquet(data)
        first = frame.partitions[0].compute().head(1000)
        debias(first, "income", "sex", detail="bins")  # modules are read, too
        before = _read_so_far()
        debias(frame, "income", "sex", detail="bins")
    return (_read_so_far() - before) / 1e6


def _read_so_far() -> int:
    first = Path("/proc/self/io").read_text().splitlines()[0]
    return int(first.split()[1])


# ---------------------------------------------------------------- faults


def faults(sizes: Sizes) -> tuple[list[Table], list[Bar]]:
    """Kill what computes, at points spread over a run; then run again with --resume."""
    rows: list[tuple[Any, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        fresh(write_rows, f"{folder}/data", 500_000, 8, 0.3)
        rows += fresh(killed_workers, folder, sizes.workers)
        rows += fresh(killed_schedulers, folder, sizes.others)
        rows += fresh(killed_executors, folder, sizes.others)
    wrong = sum("wrong" in f"{outcome} {again}" for _, _, outcome, again in rows)
    return (
        [
            Table(
                "Killed at a point",
                ("what", "at", "outcome", "again"),
                tuple(map(tuple, rows)),
            )
        ],
        [Bar("Faults that left something behind", wrong, 0.0)],
    )


def _asked(folder: str, address: str, output: str) -> list[str]:
    return [
        *("debias", f"{folder}/data", *ROLES, "--mode", "weights", "--resume"),
        *("-o", output, "--scheduler", address),
    ]


def _wait_for_two(address: str) -> None:
    from distributed import Client

    with Client(address, timeout=60) as client:
        client.wait_for_workers(2, timeout=120)


def _in_time(attempt: Callable[[str], tuple[str, ...]], output: str) -> tuple[str, ...]:
    """Try again as long as the run is faster than the one before, by which it is timed."""
    for number in range(TRIES):
        row = attempt(f"{output}-{number}")
        if row[2] != TOO_LATE:
            break
    return row


def killed_workers(
    folder: str, points: int, begin: int = 0, end: int | None = None
) -> list[Any]:
    """A worker ends by signal; its nanny starts another."""
    rows = []
    with cluster(folder) as (address, processes):
        _undisturbed(folder, address)
        for number in range(begin, end or points):
            at = (number + 0.5) / points
            nanny = processes[1 + number % 2]

            def attempt(output: str, at: float = at, nanny: Any = nanny) -> Any:
                # a new worker reads modules first, so each try has its own time
                whole = _undisturbed(folder, address)
                _wait_for_two(address)
                asked = _asked(folder, address, output)
                first = _interrupted(asked, at * whole, lambda: _kill_below(nanny))
                _wait_for_two(address)
                return _judged("worker", at, first, asked, output, folder)

            rows.append(_in_time(attempt, f"{folder}/worker{number}"))
    return rows


def killed_schedulers(folder: str, points: int) -> list[Any]:
    """The scheduler ends by signal; the run is repeated on another cluster."""
    rows = []
    with cluster(folder) as (address, _):
        whole = _undisturbed(folder, address)
    for number in range(points):
        at = (number + 0.5) / points

        def attempt(output: str, at: float = at) -> Any:
            with cluster(folder) as (address, processes):
                asked = _asked(folder, address, output)
                first = _interrupted(asked, at * whole, processes[0].kill)
            with cluster(folder) as (address, _):
                asked = _asked(folder, address, output)
                return _judged("scheduler", at, first, asked, output, folder)

        rows.append(_in_time(attempt, f"{folder}/scheduler{number}"))
    return rows


def _undisturbed(folder: str, address: str) -> float:
    """Write what all other runs are compared with, and say how many seconds it took."""
    output = f"{folder}/whole"
    shutil.rmtree(output, ignore_errors=True)
    begin = time.monotonic()
    _check(command(*_asked(folder, address, output)))
    return time.monotonic() - begin


def _kill_below(process: subprocess.Popen[bytes]) -> None:
    for child in below(process.pid):
        if "resource_tracker" not in " ".join(child.cmdline()):
            os.kill(child.pid, signal.SIGKILL)


def _interrupted(
    asked: Sequence[str], seconds: float, kill: Callable[[], None]
) -> tuple[int, str]:
    with tempfile.TemporaryFile() as told:
        process = _command_started(asked, told)
        time.sleep(seconds)
        if process.poll() is not None:
            return process.returncode, TOO_LATE
        kill()
        status = process.wait(300)
        told.seek(0)
        return status, told.read().decode()


def _judged(
    what: str,
    at: float,
    first: tuple[int, str],
    asked: Sequence[str],
    output: str,
    folder: str,
) -> tuple[str, str, str, str]:
    """Whether it ended, or said why and left nothing; and what another try did."""
    status, told = first
    again = ""
    lines = told.strip().splitlines() or [""]
    outcome = TOO_LATE if told == TOO_LATE else "finished"
    if status:
        clear = lines[-1].startswith("Error: ") and "bug" not in told
        outcome = f"error {status}: {lines[-1][:90]}"
        if not clear or Path(output).exists():
            outcome = f"wrong: {outcome}"
        kept = Path(f"{output}.counts").exists()
        status, told, _ = command(*asked)
        again = "finished from its counts" if kept else "finished anew"
        if status:
            again = f"wrong: {told[-200:]}"
    if not status and not _same_weights(output, f"{folder}/whole"):
        outcome = f"wrong weights: {outcome}"
    return what, f"{at:.0%}", outcome, again


def _same_weights(one: str, other: str) -> bool:
    import polars

    parts = [f"{folder}/*.parquet" for folder in (one, other)]  # Spark adds others
    weights = [polars.read_parquet(part)["fair_weight"] for part in parts]
    return bool(np.allclose(*weights, rtol=1e-9))


def killed_executors(folder: str, points: int) -> list[Any]:
    """An executor of Spark ends by signal while it fits and weighs."""
    import threading

    from fairmaxent import debias

    rows = []
    with spark(folder, "local-cluster[2,1,1024]", **LIGHT) as session:
        frame = session.read.parquet(f"{folder}/data")
        for output in ("first", "spark"):  # the first takes several times as long
            begin = time.monotonic()
            _weigh_by_spark(debias, frame, f"{folder}/{output}")
            whole = time.monotonic() - begin
        for number in range(points):
            at = (number + 0.5) / points

            def attempt(output: str, at: float = at) -> tuple[str, ...]:
                timer = threading.Timer(at * whole, _kill_an_executor)
                timer.start()
                try:
                    _weigh_by_spark(debias, frame, output)
                    outcome = TOO_LATE if timer.is_alive() else "finished"
                    if not _same_weights(output, f"{folder}/spark"):
                        outcome = f"wrong weights: {outcome}"
                except Exception as problem:  # whatever it raises
                    outcome = f"error: {str(problem)[:90]}"
                    if Path(output, "_SUCCESS").exists():
                        outcome = f"wrong: {outcome}"
                timer.cancel()
                return "executor of Spark", f"{at:.0%}", outcome, ""

            rows.append(_in_time(attempt, f"{folder}/spark{number}"))
    return rows


def _weigh_by_spark(debias: Any, frame: Any, output: str) -> None:
    fit = debias(frame, "income", "sex", detail="bins", random_state=1)
    fit.weigh(frame).write.parquet(output)


def _kill_an_executor() -> None:
    for process in below(os.getpid()):
        if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
            os.kill(process.pid, signal.SIGKILL)
            return
    raise RuntimeError("Spark has no executor to kill")


def _check(done: tuple[int, str, Cost]) -> Cost:
    status, told, cost = done
    if status:
        raise JobFailedError(told[-300:])
    return cost
