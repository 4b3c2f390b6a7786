"""Faults on purpose: the k-th call of the system that writes, names, flushes or removes
a file fails.
"""

import errno
import os

from fairmaxent.errors import StorageError

CALLS = (
    "open",
    "mkdir",
    "link",
    "replace",
    "rename",
    "fsync",
    "chmod",
    "unlink",
    "rmdir",
)
REASONS = (errno.ENOSPC, errno.EIO, errno.EACCES)


class Faults:
    """Counts the calls, and lets one of them fail; ``failing=None`` only counts."""

    def __init__(self, monkeypatch, failing=None, reason=errno.ENOSPC):
        self.failing, self.reason, self.calls = failing, reason, []
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrapped(name, getattr(os, name)))
        opened = os.fdopen
        monkeypatch.setattr(
            os,
            "fdopen",
            lambda *args, **options: Writer(opened(*args, **options), self),
        )

    def count(self, name):
        self.calls.append(name)
        if len(self.calls) == self.failing:
            raise OSError(self.reason, os.strerror(self.reason))

    def wrapped(self, name, function):
        def call(*args, **options):
            if (
                name != "open"
                or args[1] & (os.O_CREAT | os.O_WRONLY)
                or os.path.isdir(args[0])
            ):
                self.count(name)
            return function(*args, **options)

        return call


class Writer:
    """An open file, each write to which counts."""

    def __init__(self, file, faults):
        self.file, self.faults = file, faults

    def write(self, content):
        self.faults.count("write")
        return self.file.write(content)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def all_or_nothing(make, run, look, reasons=REASONS):
    """Let each call of ``run(folder)`` fail in turn: what ``look`` sees is then as
    before, or as after a calm run.

    ``make()`` makes a new folder with what is there before. Returns how often it
    failed.
    """
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        calm = make()
        counted = Faults(patch)
        run(calm)
    wanted, failed = look(calm), 0
    for failing in range(1, len(counted.calls) + 1):
        for reason in (
            reasons if len(reasons) == 1 else (reasons[failing % len(reasons)],)
        ):
            folder = make()
            before = look(folder)
            with pytest.MonkeyPatch.context() as patch:
                faults = Faults(patch, failing, reason)
                try:
                    run(folder)
                except StorageError:
                    failed += 1
                    assert look(folder) == before, (failing, faults.calls)
                else:
                    assert look(folder) == wanted, (failing, faults.calls)
    return failed
