"""A scheduler that cannot be reached, or dies: one line, and a code that says what to look at."""

import asyncio
import logging
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from distributed import KilledWorker
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError

from clifiles import ROLES, biased_table
from fairmaxent import InputError
from fairmaxent.cli.group import group
from fairmaxent.engines.cluster_tasks import results
from fairmaxent.errors import StorageError


@pytest.mark.parametrize("address", ["tls://127.0.0.1:1", "ucx://127.0.0.1:1", "nonsense://x", "tcp://", ""])
def test_an_address_that_cannot_be_used_is_no_bug(address, tmp_path):
    biased_table().write_parquet(tmp_path / "data.parquet")
    args = ["debias", str(tmp_path / "data.parquet"), *ROLES, "--scheduler", address]
    result = CliRunner().invoke(group, args)
    assert result.exit_code == 3, result.stderr
    assert "no Dask scheduler answers" in result.stderr
    assert result.stderr.count("\n") == 1
    assert logging.root.manager.disable == logging.NOTSET


@pytest.mark.parametrize(
    "problem",
    [
        CommClosedError("the connection was closed"),
        FutureCancelledError("task-1", "scheduler-connection-lost"),
        asyncio.CancelledError(),
        TimeoutError("timed out"),
    ],
)
def test_a_lost_cluster_is_an_error_of_ours(problem):
    def gather(_):
        raise problem

    with pytest.raises(StorageError, match="the Dask cluster failed or stopped answering"):
        results(SimpleNamespace(status="running", gather=gather), [])


def test_what_else_happens_on_a_cluster_is_told_as_before():
    def gather(problem):
        def raised(_):
            raise problem

        return SimpleNamespace(status="running", gather=raised)

    killed = KilledWorker("task-1", SimpleNamespace(address="tcp://127.0.0.1:1"), 3)
    with pytest.raises(InputError, match="several workers"):
        results(gather(killed), [])
    with pytest.raises(ZeroDivisionError):
        results(gather(ZeroDivisionError()), [])
