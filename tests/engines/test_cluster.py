"""A fit on a Dask cluster of two worker processes is the fit in memory, also when one
of them is killed.
"""

import json
import os
import pickle
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from benchmarks.gaps import typed_table
from click.testing import CliRunner
from test_streaming import FAULTS, write_spoilt
from test_types import SEEDS, fits_of

import fairmaxent
from clifiles import ROLES as TYPED
from clifiles import biased_table
from fairmaxent import InputError, debias
from fairmaxent.cli import debias as command
from fairmaxent.cli.group import group
from fairmaxent.data.table import Table, match_rows
from fairmaxent.engines import cluster_partitions
from fairmaxent.engines.cluster_partitions import PartitionedRows, Partitions
from fairmaxent.errors import StorageError
from fairmaxent.maxent import optimum as maxent
from fairmaxent.maxent.priors.mixture import Mixture
from fairmaxent.maxent.priors.rows import Rows
from fairmaxent.solvers import Newton, Status, ThinnedNewton

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
dask = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
ROWS = 1500
# no row is kept on workers
ROLES = {"outcome": "y", "protected": "z", "detail": "bins"}
SHIFT = {"target": {"a": {"0": 0.2, "1": 0.3, "2": 0.5}}, "random_state": 4}


def frame():
    """Dependent columns, a number, and weights of which some are zero."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, ROWS)
    z = rng.random(ROWS) < np.array([0.3, 0.5, 0.7])[a]
    y = rng.random(ROWS) < 0.2 + 0.3 * z + 0.1 * a
    b = np.where(rng.random(ROWS) < 0.7, a, rng.integers(0, 3, ROWS)).astype(str)
    columns = {
        "y": np.where(y, "yes", "no"),
        "z": np.where(z, "f", "m"),
        "a": a.astype(str),
        "b": b,
    }
    return pd.DataFrame(
        columns
        | {
            "n": rng.normal(size=ROWS).round(3) + a,
            "w": rng.integers(0, 4, ROWS) / 2,
        }
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two worker processes on the loopback, and a client that is the active one."""
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    here["local_directory"] = str(tmp_path_factory.mktemp("workers"))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **here) as started,
        distributed.Client(started) as client,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(cluster_partitions, "_ROWS", 50)  # so that there are several
        yield client


def parted(table, parts=3):
    return dask.from_pandas(table, npartitions=parts)


@pytest.fixture(scope="module")
def both(cluster):
    """One fit with everything in it, on the workers and in memory."""
    options = SHIFT | {
        "weight": "w",
        "forbid": [{"z": "f", "b": "1"}],
        "favourable": "yes",
    }
    return debias(parted(frame()), **ROLES, **options), debias(
        frame(), **ROLES, **options
    )


def assert_same_fit(there, here):
    assert isinstance(there.table, Partitions)
    np.testing.assert_allclose(
        there.optimum.solution.multipliers,
        here.optimum.solution.multipliers,
        atol=1e-10,
    )
    assert there.certificate.iterations == here.certificate.iterations
    assert there.certificate.warnings == here.certificate.warnings
    found, wanted = there.certificate.to_dict(), here.certificate.to_dict()
    for name in ("before", "achieved"):
        for kind, rates in wanted[name].items():
            assert found[name][kind] == pytest.approx(rates, abs=1e-10)
    assert found["distance"] == pytest.approx(wanted["distance"], abs=1e-10)
    assert there.certificate.effective_rows == pytest.approx(
        here.certificate.effective_rows, rel=1e-9
    )
    for cost, other in zip(
        there.certificate.costs.groups, here.certificate.costs.groups, strict=True
    ):
        assert_same_cost(cost, other)
    assert_same_cost(
        there.certificate.costs.worst_cell, here.certificate.costs.worst_cell
    )


def assert_same_cost(there, here):
    """Real numbers up to rounding, and all else exactly."""
    for name, known in asdict(here).items():
        same = pytest.approx(known, rel=1e-9) if isinstance(known, float) else known
        assert getattr(there, name) == same, name


def test_the_fit_is_the_one_in_memory(both):
    there, here = both
    assert_same_fit(there, here)
    assert (
        there.distribution.prior.parts[0].parents
        == here.distribution.prior.parts[0].parents
    )
    assert isinstance(there.distribution.prior.parts[1], PartitionedRows)
    assert (there.table.size, there.table.distinct) == (
        here.table.size,
        here.table.distinct,
    )
    found, wanted = (
        fit.distribution.marginal(["b", "y", "n"]).probability for fit in both
    )
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    some = frame().drop(columns="w").head(50)
    np.testing.assert_allclose(
        there.distribution.probability(some),
        here.distribution.probability(some),
        rtol=1e-9,
    )
    assert there.table.total == pytest.approx(here.table.total)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own call of pandas
@pytest.mark.parametrize("seed", SEEDS)
def test_random_tables_from_parquet_are_those_in_memory(cluster, seed, tmp_path):
    """Rows are drawn in parts, so they are others, of the same cells and levels."""
    _, there, here = fits_of(seed, "dask", tmp_path, dask.read_parquet)
    assert isinstance(there.table, Partitions)
    rows = 4000
    codes = here.domain.encode(there.sample(rows, random_state=2))
    for attribute, column in zip(here.domain.attributes, codes.T, strict=True):
        drawn = np.bincount(column, minlength=attribute.size) / rows
        exact = here.distribution.marginal([attribute.name]).probability.to_numpy()
        spread = np.sqrt(exact * (1 - exact) / rows)
        assert (np.abs(drawn - exact) <= 5 * spread + 1 / rows).all(), attribute.name
    places = list(here.roles.root)
    sizes = here.domain.sizes
    cells = np.zeros([sizes[place] for place in places])
    np.add.at(cells, tuple(codes[:, places].T), 1)
    np.testing.assert_allclose(cells, here.distribution.root_table * rows, atol=1)


@pytest.fixture
def brought(monkeypatch):
    """How many bytes Dask has brought to the client, result by result."""
    sizes = []
    gather = distributed.Client.gather

    def counted(client, *futures, **options):
        found = gather(client, *futures, **options)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(distributed.Client, "gather", counted)
    return sizes


@pytest.mark.parametrize(
    "rows", [20_000, pytest.param(400_000, marks=pytest.mark.slow)]
)
def test_sums_come_to_the_client_and_no_rows(cluster, brought, rows, tmp_path):
    """Nearly all rows are distinct: their codes alone are a byte for each level."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=rows)
    columns = {"y": rng.choice(["no", "yes"], rows), "z": group.astype(str)}
    for number in range(8):
        columns[f"c{number}"] = ((rng.integers(9, size=rows) + group) % 9).astype(str)
    table = pd.DataFrame(columns)
    table.to_parquet(tmp_path / "all.parquet", row_group_size=rows // 8)
    frame = dask.read_parquet(tmp_path, split_row_groups=True)
    fit = debias(frame, **ROLES)
    fit.weigh(frame).to_parquet(tmp_path / "weighed")
    fit.write_sample(1000, tmp_path / "drawn")
    codes = fit.table.distinct * len(columns)
    assert fit.table.distinct > 0.98 * rows
    assert sum(brought) < min(0.6 * codes, 2e6), sum(brought)


SLOW = [
    pytest.param(options, marks=pytest.mark.slow)
    for options in ({"base_share": 1.0}, {"base": "product"})
]


@pytest.mark.parametrize("options", [{"base_share": 0.0}, *SLOW])
def test_rows_alone_base_alone_and_another_base(cluster, options):
    table = frame()[["y", "z", "a"]]
    assert_same_fit(
        debias(parted(table), **ROLES, **SHIFT, **options),
        debias(table, **ROLES, **SHIFT, **options),
    )


def test_small_partitions_are_merged(both, monkeypatch):
    there, here = both
    assert there.table.regrouped() is there.table
    monkeypatch.setattr(cluster_partitions, "_ROWS", there.table.distinct - 1)
    fewer = there.table.regrouped()
    assert (len(there.table.parts), len(fewer.parts)) == (3, 2)
    for table in (fewer, there.table):
        taken = table.collect()
        np.testing.assert_array_equal(taken.codes, here.table.codes)
        np.testing.assert_array_equal(taken.squares, here.table.squares)


def test_each_partition_keeps_a_row_when_it_is_thinned(both):
    there, _ = both
    fewer = there.table.thinned(1)
    assert fewer.distinct == len(there.table.parts)
    assert fewer.total == pytest.approx(there.table.total)


def test_tables_are_added_up_once(both, monkeypatch):
    there, here = both
    sizes = there.distribution.blocks.levels
    (first,) = there.table.tables([(0,)], sizes, "squares")
    monkeypatch.setattr("fairmaxent.engines.cluster_partitions.merged", None)
    (again,) = there.table.tables([(0,)], sizes, "squares")
    (wanted,) = here.table.tables([(0,)], sizes, "squares")
    np.testing.assert_allclose([first, again], [wanted, wanted], rtol=1e-12)


def test_rows_are_tilted_by_the_same_potentials_once(both, monkeypatch):
    there, here = both
    rows = PartitionedRows.of(there.distribution.blocks, there.weighted)
    twin = Rows.of(here.distribution.blocks, here.weighted)
    potentials = np.linspace(-1, 1, rows.blocks.width)
    wanted = [twin.tilt(steps * potentials).levels for steps in (1, 2, 1)]
    found = [rows.tilt(steps * potentials).levels for steps in (1, 2)]
    monkeypatch.setattr(cluster_partitions, "merged", None)
    found.append(rows.tilt(potentials).levels)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_table_without_rows_is_refused(cluster):
    domain = debias(frame(), **ROLES).domain
    for options in ({}, {"domain": domain}):
        with pytest.raises(InputError, match="the table has no rows"):
            debias(parted(frame()[:0], 1), **ROLES, **options)


@pytest.fixture
def skewed(both):
    """The rows of a fit as partitions of unequal size and weight, and the same rows as
    one table in memory.
    """
    here, client = both[1], both[0].table.client
    ends = [0, 80, 200, here.weighted.distinct]
    part_of = np.searchsorted(ends, np.arange(ends[-1]), side="right") - 1
    counts = here.weighted.counts * np.array([8.0, 1.0, 0.5])[part_of]
    table = Table(here.weighted.codes, counts, np.ones(ends[-1]), counts**2)
    tables = [
        Table(
            table.codes[part], table.counts[part], table.rows[part], table.squares[part]
        )
        for part in (part_of == number for number in range(3))
    ]
    return (
        Partitions.of(
            client, here.distribution.blocks, client.scatter(tables, hash=False)
        ),
        table,
    )


def test_thinned_partitions_have_each_row_as_often_as_it_weighs(skewed):
    """At equal steps of each partition's weight: what stands for a row is off by one
    step, and its partition's by another.
    """
    (there, here), rows = skewed, 250
    thinned = there.thinned(rows).collect()
    assert len(thinned.counts) < rows + len(there.parts)
    assert thinned.total == pytest.approx(here.total)
    np.testing.assert_allclose(thinned.squares, thinned.counts**2)
    weight = dict.fromkeys(map(tuple, here.codes.tolist()), 0.0)
    for row, count in zip(thinned.codes.tolist(), thinned.counts, strict=True):
        weight[tuple(row)] += count
    step = here.total / rows
    assert (np.abs(np.array(list(weight.values())) - here.counts) < 2 * step).all()
    everything = there.thinned(here.distinct).collect()
    np.testing.assert_array_equal(everything.codes, here.codes)
    np.testing.assert_allclose(everything.counts, here.counts, rtol=1e-12)


def test_newton_on_thinned_partitions_ends_where_newton_in_memory_does(both, skewed):
    known = both[1].optimum.dual
    base, blocks = known.prior.parts[0], known.features.blocks
    there, here = (
        replace(known, prior=Mixture.of((0.2, 0.8), (base, part)))
        for part in (PartitionedRows.of(blocks, skewed[0]), Rows.of(blocks, skewed[1]))
    )
    exact = Newton().solve(here)
    solution = ThinnedNewton(rows=250, refresh=1000).solve(there)
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.multipliers, exact.multipliers, atol=1e-7)
    assert solution.value == pytest.approx(exact.value, abs=1e-10)
    assert there.thinned(250).prior.rows < 253 < there.prior.rows
    assert there.thinned(10**6) is there


def test_rows_are_divided_among_partitions_by_their_mass(both, skewed):
    parts, whole = skewed
    blocks = both[1].distribution.blocks
    tilted = PartitionedRows.of(blocks, parts).tilt(np.zeros(blocks.width))
    (cells,) = whole.tables([(0,)], blocks.levels)
    roots = np.repeat(np.flatnonzero(cells), 1500)
    np.random.default_rng(0).shuffle(roots)
    drawn = tilted.draw(roots, np.random.default_rng(1), spread=True).codes
    np.testing.assert_array_equal(drawn[:, 0], roots)
    places = match_rows(whole.codes, drawn, blocks.levels)
    assert (whole.counts[places] > 0).all()
    part_of = np.searchsorted([80, 200], np.arange(whole.distinct), side="right")
    for root in np.flatnonzero(cells):
        own = whole.codes[:, 0] == root
        mass = np.bincount(part_of[own], whole.counts[own], minlength=3)
        drawn_of = np.bincount(part_of[places[roots == root]], minlength=3)
        np.testing.assert_allclose(drawn_of / 1500, mass / mass.sum(), atol=0.06)


class Killer(distributed.SchedulerPlugin):
    """Once armed with the name of a task, kills the worker that the next one is given
    to.
    """

    name = "killer"

    def __init__(self, client):
        self.scheduler, self.pids = client.cluster.scheduler, client.run(os.getpid)
        self.armed, self.killed = None, []

    def transition(self, key, start, finish, *_, **__):
        if self.armed and finish == "processing" and str(key).startswith(self.armed):
            self.armed = None
            self.killed.append(
                self.pids[self.scheduler.tasks[key].processing_on.address]
            )
            os.kill(self.killed[-1], signal.SIGKILL)


def wait_for_both_workers(client):
    """Until a worker that was killed is back; on a busy machine its nanny may give up,
    so both are started anew.
    """
    try:
        client.wait_for_workers(2, timeout=60)
    except TimeoutError:
        client.cluster.scale(0)
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=120)


@pytest.fixture
def killer(cluster):
    wait_for_both_workers(cluster)
    plugin = Killer(cluster)
    cluster.cluster.scheduler.add_plugin(plugin)
    yield plugin
    cluster.cluster.scheduler.remove_plugin(plugin.name)


def within_minutes(function, *args, **options):
    """So that a hang is an error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args, **options).result(timeout=240)


def test_a_worker_killed_in_the_third_iteration_costs_a_recomputation(cluster, killer):
    table = frame()[["y", "z", "a", "b"]]
    here = debias(table, **ROLES, **SHIFT)
    assert here.certificate.iterations >= 3
    told = []

    def progress(stage, share):
        told.append(stage)
        # once from the pipeline, then before each step
        if told.count("solve") == 4 and not killer.killed:
            killer.armed = "fairmaxent-tilted"

    there = within_minutes(
        debias, parted(table, 4), **ROLES, **SHIFT, progress=progress
    )
    assert len(killer.killed) == 1
    assert killer.killed[0] not in cluster.run(os.getpid).values()
    assert_same_fit(there, here)


def test_a_worker_killed_while_it_writes_leaves_whole_files(both, killer, tmp_path):
    for name in ("calm", "killed"):
        killer.armed = "fairmaxent-write" if name == "killed" else None
        within_minutes(both[0].write_sample, 3000, tmp_path / name, size=300)
    assert len(killer.killed) == 1
    calm, killed = (sorted((tmp_path / name).iterdir()) for name in ("calm", "killed"))
    assert [path.name for path in calm] == [path.name for path in killed]
    assert all(
        one.read_bytes() == other.read_bytes()
        for one, other in zip(calm, killed, strict=True)
    )


def test_a_write_that_fails_leaves_no_folder_even_while_other_workers_go_on(
    cluster, both, killer, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster.cluster.scheduler, "allowed_failures", 0)
    killer.armed = "fairmaxent-write"
    with pytest.raises(InputError, match="several workers of the cluster died"):
        within_minutes(both[0].write_sample, 3000, tmp_path / "parts", size=100)
    assert len(killer.killed) == 1
    assert list(tmp_path.iterdir()) == []
    cluster.run(time.sleep, 0.5)  # whatever was under way is over
    assert list(tmp_path.iterdir()) == []


def pair_table(rows, first, second):
    return rows.groupby([first, second], observed=False).size().unstack(
        fill_value=0
    ).to_numpy() / len(rows)


def test_drawn_rows_have_the_pairwise_tables_of_the_model(both):
    there, here = both
    drawn = there.sample(20_000, random_state=1)
    exact = here.distribution.marginal(["a", "b"]).probability.to_numpy().reshape(3, 3)
    np.testing.assert_allclose(pair_table(drawn, "a", "b"), exact, atol=0.015)
    assert (str(drawn["a"].dtype), drawn["n"].dtype) == ("string", np.float64)
    assert list(drawn.columns) == list(frame().columns)
    assert (drawn["w"] == 1).all()
    pd.testing.assert_frame_equal(drawn, there.sample(20_000, random_state=1))
    given = there.sample(50, given={"b": "2"})
    assert set(given["b"]) == {"2"}
    assert sum(len(batch) for batch in there.sample_batches(100, size=40)) == 100


def test_parts_are_written_by_the_workers(both, tmp_path):
    there, here = both
    there.write_sample(20_000, tmp_path / "one", size=3000, random_state=5)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [f"part-{number:05}.parquet" for number in range(len(names))]
    parts = [pd.read_parquet(tmp_path / "one" / name) for name in names]
    assert len(parts) >= 7
    assert max(map(len, parts)) <= 3000
    rows = pd.concat(parts, ignore_index=True)
    cells = rows.groupby(["y", "z"]).size().to_numpy()
    fair = here.distribution.root_table.ravel()
    np.testing.assert_allclose(cells, fair * 20_000, atol=1)  # by quota over all parts
    exact = here.distribution.marginal(["a", "b"]).probability.to_numpy().reshape(3, 3)
    np.testing.assert_allclose(pair_table(rows, "a", "b"), exact, atol=0.015)
    assert list(rows.columns) == list(frame().columns)
    there.write_sample(20_000, tmp_path / "two", size=3000, random_state=5)
    for name, part in zip(names, parts, strict=True):
        pd.testing.assert_frame_equal(part, pd.read_parquet(tmp_path / "two" / name))
    there.write_sample(500, tmp_path / "women", given={"z": "f"}, iid=True)
    women = pd.read_parquet(tmp_path / "women")
    assert (len(women), set(women["z"])) == (500, {"f"})


def test_workers_draw_from_the_base_as_often_as_the_model_does(cluster, tmp_path):
    """Each partition has its share of the base, in which columns do not depend."""
    fit = debias(parted(frame()[["y", "z", "a", "b"]]), **ROLES, base="product")
    fit.write_sample(20_000, tmp_path / "parts", random_state=1)
    rows = pd.read_parquet(tmp_path / "parts")
    exact = fit.distribution.marginal(["a", "b"]).probability.to_numpy().reshape(3, 3)
    np.testing.assert_allclose(pair_table(rows, "a", "b"), exact, atol=0.015)


def test_weights_come_without_a_join_and_so_do_top_up_and_a_saved_model(both, tmp_path):
    there, here = both
    weighed = there.weigh(parted(frame()), weight_name="fair").compute()
    np.testing.assert_allclose(weighed["fair"], here.weights(), atol=1e-10)
    assert (weighed["fair"][(weighed.z == "f") & (weighed.b == "1")] == 0).all()
    with pytest.raises(InputError, match="pass the Dask frame that was fitted"):
        there.weigh(pl.from_pandas(frame()).lazy())
    for fit in both:  # rows are not added for the shares of a column without a role
        with pytest.raises(InputError, match="cannot go together with top_up"):
            fit.top_up()
    added = [debias(table, **ROLES).top_up() for table in (parted(frame()), frame())]
    assert len(added[0]) == len(added[1])
    there.save(tmp_path / "fit.fme")
    loaded = fairmaxent.load(tmp_path / "fit.fme")
    np.testing.assert_array_equal(loaded.table.codes, here.table.codes)
    np.testing.assert_array_equal(loaded.table.counts, here.table.counts)
    np.testing.assert_allclose(
        loaded.distribution.root_table, here.distribution.root_table, atol=1e-12
    )
    taken = there.collect()
    assert taken.collect() is taken
    pd.testing.assert_frame_equal(
        taken.sample(50, random_state=1), loaded.sample(50, random_state=1)
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    biased_table().drop("weight").write_parquet("census.parquet")
    return tmp_path


def typed(*args):
    return CliRunner().invoke(
        group, ["debias", "census.parquet", *TYPED, *map(str, args)]
    )


def test_the_command_lets_the_workers_write(cluster, folder):
    asked = (
        "--scheduler",
        cluster.scheduler.address,
        "--seed",
        1,
        "--drop",
        "race",
        "--rows",
        999,
    )
    result = typed(*asked, "-o", "fair", "--save", "fit.fme", "--json")
    assert result.exit_code == 0, result.output
    rows = pd.read_parquet("fair")
    assert list(rows.columns) == ["sex", "job", "age", "income"]
    loaded = fairmaxent.load("fit.fme")
    cells = rows.groupby(["income", "sex"]).size().to_numpy()
    np.testing.assert_allclose(
        cells, loaded.distribution.root_table.ravel() * 999, atol=1
    )
    record = json.loads(result.output)
    assert record["rows"] == 999
    rate = float(fairmaxent.metrics.statistical_rate(rows, "income", "sex"))
    assert record["after"]["statistical_rate"]["sex"] == pytest.approx(rate, abs=1e-12)
    shown = typed(*asked)
    assert (
        "Nothing was written.\n\nNext: name a folder with -o, where the workers write"
        " the table" in shown.output
    )


@pytest.fixture
def asking(cluster, folder):
    """Ask of a table in parts, on the cluster, and of the same table in one file; one
    column takes no part, but stays beside its weights.
    """
    table = pl.read_parquet("census.parquet").with_row_index("number")
    table.write_parquet("beside.parquet")
    os.mkdir("parts")
    for number in range(3):
        part = table[number * 200 : (number + 1) * 200 if number < 2 else None]
        part.write_parquet(f"parts/{number}.parquet")
    shared = [*TYPED, "--drop", "number", "--detail", "bins", "--seed", "1", "--mode"]

    def run(mode, output, *args):
        asked = [*shared, mode, "-o", output, *args]
        data = "beside.parquet"
        if not output.endswith(".parquet"):
            data = "parts"
            asked += ["--scheduler", cluster.scheduler.address]
        result = CliRunner().invoke(group, ["debias", data, *asked])
        assert result.exit_code == 0, result.output
        return result.output

    return run


def test_the_command_lets_the_workers_write_weights_and_rows_to_add(asking):
    """Each as with the table in memory; weights part by part, in the order of rows."""
    there, here = (
        json.loads(asking("weights", output, "--json"))
        for output in ("weighed", "weighed.parquet")
    )
    for name in ("before", "after"):
        for kind, rates in here[name].items():
            assert there[name][kind] == pytest.approx(rates, abs=1e-9)
    wanted = pl.read_parquet("weighed.parquet").sort("number")
    for number in range(3):
        own = pl.read_parquet(f"parts/{number}.parquet")
        found = pl.read_parquet(f"weighed/part-{number:05}.parquet")
        assert found.columns == wanted.columns
        assert found["number"].to_list() == own["number"].to_list()
        np.testing.assert_allclose(
            found["fair_weight"],
            wanted["fair_weight"].gather(own["number"]),
            rtol=1e-9,
        )

    for output in ("added", "added.parquet"):
        asking("top-up", output)
    added, wanted = pd.read_parquet("added"), pd.read_parquet("added.parquet")
    cells = [
        rows.astype(str).groupby(["income", "sex"]).size() for rows in (added, wanted)
    ]
    pd.testing.assert_series_equal(*cells)


def test_a_run_on_a_cluster_is_resumed_from_its_counts(asking, folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("fairmaxent.fit.pipeline.fit_rows", lambda *_, **__: 1 / 0)
        with pytest.raises(AssertionError, match="ZeroDivisionError"):
            asking("rows", "again", "--resume")
    assert len(list((folder / "again.counts").glob("part-*"))) > 1
    with monkeypatch.context() as patch:
        patch.setattr("fairmaxent.fit.pipeline.read_rows", lambda *_: 1 / 0)
        asking("rows", "again", "--resume")
    asking("rows", "anew")
    for name in sorted(path.name for path in (folder / "anew").iterdir()):
        one, other = (pd.read_parquet(folder / run / name) for run in ("again", "anew"))
        pd.testing.assert_frame_equal(one, other)
    assert not (folder / "again.counts").exists()


def test_workers_write_each_type_as_it_was(cluster, folder):
    """Some of them pandas has no type for, or none with gaps."""
    names = ["time of day", "category", "int32", "bool", "date", "decimal"]
    pq.write_table(typed_table(names), folder / "whole.parquet")
    roles = ["--outcome", "y", "--protected", "z", "--favourable", "yes"]
    asked = [*roles, "--scheduler", cluster.scheduler.address, "--seed", "1"]
    for mode in ("weights", "rows"):
        arguments = ["debias", "whole.parquet", *asked, "--mode", mode, "-o", mode]
        result = CliRunner().invoke(group, arguments)
        assert result.exit_code == 0, result.stderr
    # texts come back for a dictionary of them, which pandas could not read
    wanted = dict(pl.scan_parquet("whole.parquet").collect_schema())
    wanted["category"] = pl.String
    weighed = pl.scan_parquet("weights").collect_schema()
    assert dict(weighed) == wanted | {"fair_weight": pl.Float64}
    assert dict(pl.scan_parquet("rows").collect_schema()) == wanted
    assert list(pd.read_parquet("rows").columns) == list(wanted)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_part_that_workers_cannot_read_is_named(cluster, folder, fault):
    write_spoilt(folder, fault)
    address = cluster.scheduler.address
    asked = ["debias", "split", *TYPED, "-o", "fair", "--scheduler", address]
    result = CliRunner().invoke(group, asked)
    assert result.exit_code == 5, result.output
    assert FAULTS[fault] in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (folder / "fair").exists()


@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, with new pandas
@pytest.mark.parametrize("fault", FAULTS)
def test_parts_that_cannot_be_read_are_an_error_of_ours(folder, fault):
    """In Python, where Dask knows the files; it mixes types as pandas does."""
    write_spoilt(folder, fault)
    frame = dask.read_parquet(folder / "split")
    if fault == "another type":
        debias(frame, "income", "sex", detail="bins")
        return
    with pytest.raises(StorageError, match="dask could not read or compute the table"):
        debias(frame, "income", "sex", detail="bins")


@pytest.mark.slow
def test_a_report_from_the_cluster_says_what_one_in_memory_says(asking, folder):
    asking("rows", "rows", "--report", "there.json")
    asking("rows", "rows.parquet", "--report", "here.json")
    there, here = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("there", "here")
    )
    assert there.keys() == here.keys()
    for name in ("marginals", "associations", "trade_off"):
        assert_alike(there[name], here[name])
    assert there["copies"]["rows"] == here["copies"]["rows"]
    expected = "expected_same_levels"
    assert there["copies"][expected] == pytest.approx(
        here["copies"][expected], abs=1e-9
    )


def assert_alike(one, other):
    """Numbers up to rounding, and all else exactly."""
    if isinstance(other, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(other, list):
        for first, second in zip(one, other, strict=True):
            assert_alike(first, second)
    elif isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-9)
    else:
        assert one == other


REFUSED = {
    "-o -": "its workers write Parquet",
    "-o fair --output-format csv": "--scheduler cannot go together with --output-format csv",
    "-o fair --report r.json --evaluate": "--scheduler cannot go together with --evaluate",
    "-o fair --estimate rows": "--scheduler cannot go together with --estimate",
    "-o .": "is not empty: it contains census.parquet; empty it",
    "-o fair": "no Dask scheduler answers at tcp://127.0.0.1:",
}


@pytest.mark.parametrize("args", REFUSED)
def test_what_cannot_work_is_one_line(folder, monkeypatch, args):
    monkeypatch.setattr(command, "_PATIENCE", 1)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        result = typed(
            "--scheduler", f"tcp://127.0.0.1:{nobody.getsockname()[1]}", *args.split()
        )
    assert result.exit_code in (2, 3, 5)
    assert REFUSED[args] in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["census.parquet"]


@pytest.mark.slow
def test_a_fit_whose_rows_are_thinned_is_the_fit_in_memory(cluster, monkeypatch):
    table = frame().drop(columns="w")
    options = SHIFT | {"base": "product"}
    here = debias(table, **ROLES, **options)
    monkeypatch.setattr(maxent, "_VISITS", 1)
    monkeypatch.setattr(maxent, "_ROWS_PER_FEATURE", 4)
    there = debias(parted(table), **ROLES, **options)
    assert (here.certificate.method, there.certificate.method) == (
        "newton",
        "thinned-newton",
    )
    np.testing.assert_allclose(
        there.optimum.solution.multipliers, here.optimum.solution.multipliers, atol=1e-7
    )
    np.testing.assert_allclose(
        there.distribution.root_table, here.distribution.root_table, atol=1e-10
    )
    found, wanted = (
        fit.distribution.marginal(["a", "b", "n"]).probability for fit in (there, here)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-9)
