"""A scheduler that cannot be reached, or dies: one line, and a code that says what to
look at.
"""

import asyncio
import logging
from types import SimpleNamespace

import dask.config
import pytest
from click.testing import CliRunner
from distributed import KilledWorker
from distributed.client import FutureCancelledError, _global_clients
from distributed.comm import CommClosedError

from clifiles import ROLES, biased_table
from fairmaxent import InputError
from fairmaxent.cli.group import group
from fairmaxent.engines.cluster_tasks import results, spread_out
from fairmaxent.errors import StorageError

LOST = "the Dask cluster failed or stopped answering"


@pytest.fixture(autouse=True)
def _no_cluster():
    """Tests that follow must not ask the cluster that did not answer."""
    with dask.config.set(scheduler="threads"):
        yield
    _global_clients.clear()


@pytest.mark.parametrize(
    "address", ["tls://127.0.0.1:1", "ucx://127.0.0.1:1", "nonsense://x", "tcp://", ""]
)
def test_an_address_that_cannot_be_used_is_no_bug(address, tmp_path):
    biased_table().write_parquet(tmp_path / "data.parquet")
    args = ["debias", str(tmp_path / "data.parquet"), *ROLES, "--scheduler", address]
    result = CliRunner().invoke(group, args)
    assert result.exit_code == 3, result.stderr
    assert "no Dask scheduler answers" in result.stderr
    assert result.stderr.count("\n") == 1
    assert logging.root.manager.disable == logging.NOTSET


@pytest.mark.parametrize(
    ("problem", "error", "says"),
    [
        (CommClosedError("the connection was closed"), StorageError, LOST),
        (
            FutureCancelledError("task-1", "scheduler-connection-lost"),
            StorageError,
            LOST,
        ),
        (asyncio.CancelledError(), StorageError, LOST),
        (TimeoutError("timed out"), StorageError, LOST),
        (
            KilledWorker("task-1", SimpleNamespace(address="tcp://127.0.0.1:1"), 3),
            InputError,
            "several workers",
        ),
        (ZeroDivisionError("as it is"), ZeroDivisionError, "as it is"),
    ],
)
def test_a_lost_cluster_is_an_error_of_ours_and_all_else_is_told_as_before(
    problem, error, says
):
    def gather(_):
        raise problem

    with pytest.raises(error, match=says):
        results(SimpleNamespace(status="running", gather=gather), [])


def test_a_client_that_is_closed_is_said():
    closed = SimpleNamespace(status="closed")
    with pytest.raises(InputError, match="its client is closed; fit again"):
        results(closed, [])
    with pytest.raises(InputError, match="its client is closed; fit again"):
        spread_out(closed, len, [])
