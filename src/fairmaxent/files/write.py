"""Files that appear complete or not at all: each is written beside its target, flushed
to disk, then given its name.

Of several files, all are complete before the first gets its name. Files that hold
people's rows can be read by their owner only, unless asked otherwise; a file that is
replaced keeps its permissions.
"""

import atexit
import contextlib
import errno
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from fairmaxent.data.levels import Notes
from fairmaxent.errors import InputError, LimitError, Option, StorageError
from fairmaxent.files.content import reason_of
from fairmaxent.files.formats import output_format, write_on_stdout, write_to_file
from fairmaxent.files.reading import STANDARD, Name, TableForm

Names = Sequence[Name]
_BEGINNING = ".fairmaxent-"  # of the names of temporary files
# What a file system answers that has no hard links, or no permissions; the last is
# Windows' answer on FAT.
_UNSUPPORTED = (
    errno.EPERM,
    errno.EOPNOTSUPP,
    errno.ENOTSUP,
    errno.ENOSYS,
    errno.EMLINK,
    errno.EXDEV,
    errno.EINVAL,
)

# Held while a temporary file is made; whoever ends the process takes it, so none
# appears after the last was removed.
MAKING = threading.RLock()
# Each unfinished file with the process that made it: a forked one must not remove it.
_unfinished: dict[Path, int] = {}


def time_of_writing() -> datetime:
    """The time in UTC that a file states: SOURCE_DATE_EPOCH, else that of the clock."""
    # the convention of reproducible builds: seconds since 1970
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError) as problem:
        raise InputError(
            f"the environment variable SOURCE_DATE_EPOCH is {epoch!r}; set it to a"
            " number of seconds since 1970, or unset it"
        ) from problem


def new_temporary(
    parent: Path, suffix: str = "", *, folder_mode: int | None = None
) -> Path:
    """Make an empty file, or a folder, for its owner only, until the process ends."""
    path = parent / f"{_BEGINNING}{os.urandom(8).hex()}{suffix}"
    with MAKING:
        _unfinished[path] = os.getpid()  # first: an interrupt can come at any point
        if folder_mode is None:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        else:
            os.mkdir(path, folder_mode)
    return path


def remove(path: Path) -> None:
    """Remove a temporary file, or a folder with everything in it, if it is still
    there.
    """
    for _ in range(2):  # a failure may pass
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            _unfinished.pop(path, None)
            return


@atexit.register
def remove_all() -> None:
    """Remove everything unfinished of this process, which is about to end."""
    for path, process in list(_unfinished.items()):
        if process == os.getpid():
            remove(path)


def remove_unfinished(folder: Path) -> None:
    """Remove what other processes left unfinished in a folder that none of them writes
    to any more.
    """
    for path in folder.glob(f"{_BEGINNING}*"):
        remove(path)


@contextlib.contextmanager
def private_folder(parent: Path, suffix: str = "") -> Iterator[Path]:
    """A folder that only its owner can look into, and that is gone at the end."""
    folder = new_temporary(parent, suffix, folder_mode=0o700)
    try:
        yield folder
    finally:
        remove(folder)


def open_temporary(path: Path) -> IO[bytes]:
    """Open a temporary file for writing."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC), "wb")


@contextlib.contextmanager
def write_errors(
    path: Name, what: str = "cannot write {}: {}; choose another location"
) -> Iterator[None]:
    """Turn the system's errors into one that names the file that was to be written."""
    try:
        yield
    except (StorageError, LimitError):
        raise
    except (OSError, ValueError) as problem:
        raise StorageError(what.format(path, reason_of(problem))) from problem


class _Staged(NamedTuple):
    """A target, and where its content is written until it is complete."""

    target: Path
    temporary: Path
    readable: bool
    is_folder: bool

    def complete(self) -> None:
        """Flush a file to disk, with the permissions it is to have: those of what is
        replaced, or as the umask says.
        """
        # The umask can only be read by setting it; meanwhile no file of another thread
        # is too open.
        mask = os.umask(0o077)
        os.umask(mask)
        mode = (
            (0o777 if self.readable else 0o700)
            & ~mask
            & (0o777 if self.is_folder else 0o666)
        )
        if self.target.exists():
            allowed = self.target.stat().st_mode & 0o777
        else:
            allowed = mode

        if not self.is_folder:
            # Windows flushes only what could be written
            with self.temporary.open("r+b") as file:
                os.fsync(file.fileno())

        try:
            os.chmod(self.temporary, allowed)
        except OSError as problem:
            if problem.errno not in _UNSUPPORTED:
                raise

    def publish(self, *, force: bool) -> None:
        """Put what is complete in its place; without ``force``, if that is free."""
        if is_pipe(self.target):
            with self.temporary.open("rb") as source, self.target.open("wb") as pipe:
                shutil.copyfileobj(source, pipe)
            return

        if self.is_folder:
            try:
                # fails if the folder is there and not empty
                os.rename(self.temporary, self.target)
            except FileExistsError:  # on Windows also if it is empty
                os.rmdir(self.target)
                os.rename(self.temporary, self.target)
        elif force:
            os.replace(self.temporary, self.target)
        else:
            _give_new_name(self.temporary, self.target)

        # A power cut cannot take the name then; some file systems cannot say.
        with contextlib.suppress(OSError):
            descriptor = os.open(self.target.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _give_new_name(temporary: Path, target: Path) -> None:
    """Give a file a name that nothing else has, whatever has happened since that was
    checked.
    """
    try:
        try:
            os.link(temporary, target)
        except OSError as problem:
            if problem.errno not in _UNSUPPORTED:
                raise
            # Without hard links: take the name with an empty file, and replace that.
            os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))
            try:
                os.replace(temporary, target)
            except BaseException:
                os.unlink(target)
                raise
    except FileExistsError as problem:
        what = (
            f"{target} was made by another program in the meantime, and is left as it"
            " is; use "
        )
        raise StorageError(
            what, Option("force"), " to replace it, or name another file"
        ) from problem


def is_pipe(target: Name) -> bool:
    """Whether it leads to another program, as ``>(gzip > x.gz)`` of a shell does."""
    return os.path.exists(target) and stat.S_ISFIFO(os.stat(target).st_mode)


def _checked_file(target: Name, *, force: bool) -> Path:
    """Refuse a target (links followed) that cannot be written, before any work."""
    with write_errors(target):
        if is_pipe(target):
            return Path(target)  # whose link leads to a name that no folder has
        path = Path(os.path.realpath(target))
        if path.is_dir() or os.fspath(target).endswith(("/", os.sep)):
            raise StorageError(f"{path} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise StorageError(
                f"cannot write {path}: the folder {path.parent} does not exist; create"
                " it first"
            )
        if path.exists() and not path.is_file():
            raise StorageError(
                f"{target} is a device; name a file, or use - for stdout, and"
                " redirect it"
            )
        if path.exists() and not force:
            raise StorageError(
                f"{path} exists; use ",
                Option("force"),
                " to replace it, or name another file",
            )
        return path


def _checked_folder(target: Name) -> Path:
    """Refuse anything that exists, except an empty folder; return its absolute path."""
    with write_errors(target, "cannot write into {}: {}; name a new folder"):
        folder = Path(os.path.realpath(target))
        entry = None
        if folder.exists():
            entry = next(folder.iterdir(), None)

    if entry is not None:
        raise StorageError(
            f"{target} is not empty: it contains {entry.name}; empty it, or name"
            " another folder"
        )
    return folder


class Staging:
    """Files and folders, all of which are complete before the first gets its name.

    The targets are checked at the start. Each is then written to the path that
    `path_for` returns, beside its target. Without ``force`` a name that another program
    has taken in the meantime is refused. Only the user can read the results, except
    those named in ``readable``.
    """

    def __init__(
        self,
        targets: Names,
        *,
        folders: Names = (),
        force: bool = False,
        readable: Names = (),
    ) -> None:
        named = [target for target in targets if target != STANDARD]
        # Links are followed once: somebody may put another one there before the end.
        paths = [
            *(_checked_file(name, force=force) for name in named),
            *map(_checked_folder, folders),
        ]
        repeated = next((path for path in paths if paths.count(path) > 1), None)
        if repeated is not None or list(targets).count(STANDARD) > 1:
            raise InputError(
                f"{repeated or 'stdout'} would be written twice; give each output its"
                " own name"
            )

        self._force = force
        self._staged: dict[Path, _Staged] = {}
        shared = set(map(Path, readable))
        try:
            for number, (name, path) in enumerate(
                zip(map(Path, [*named, *folders]), paths, strict=True)
            ):
                is_folder = number >= len(named)
                is_shared = name in shared
                # workers of a cluster may be other users
                mode = None
                if is_folder:
                    mode = 0o777 if is_shared else 0o700
                with write_errors(
                    path.parent, "cannot write in {}: {}; choose another location"
                ):
                    if is_pipe(path):
                        beside = Path(tempfile.gettempdir())
                    else:
                        beside = path.parent
                    temporary = new_temporary(beside, path.suffix, folder_mode=mode)
                self._staged[name] = _Staged(path, temporary, is_shared, is_folder)
        except BaseException:
            self._remove()
            raise

    def path_for(self, target: Name) -> Path:
        """The temporary path for ``target``'s content; a folder is there, and empty."""
        staged = self._staged.get(Path(target))
        # It is published already.
        if staged is None:
            return Path(target)
        return staged.temporary

    def publish(self, target: Name) -> None:
        """Give a complete file its name now, whatever becomes of the others."""
        staged = self._staged.pop(Path(target))
        with contextlib.ExitStack() as stack, write_errors(staged.target):
            stack.callback(remove, staged.temporary)
            staged.complete()
            staged.publish(force=self._force)

    def write_table(self, frame: Any, target: Name, **how: Any) -> Notes:
        """Write a table to its temporary path, or to stdout.

        Options and what is returned are as in `write_to_file`.
        """
        if target == STANDARD:
            return write_on_stdout(frame, **how)
        with write_errors(target), open_temporary(self.path_for(target)) as file:
            return write_to_file(frame, file, target, **how)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: object,
        problem: object,
        traceback: object,
    ) -> None:
        try:
            if kind is None:
                for each in self._staged.values():
                    with write_errors(each.target):
                        each.complete()
                for each in sorted(
                    self._staged.values(), key=lambda each: not is_pipe(each.target)
                ):
                    # pipes first: they may be closed, and then no file appears
                    with write_errors(each.target):
                        each.publish(force=self._force)
            # It must not name a temporary file, which is gone when it is read.
            elif isinstance(problem, StorageError):
                parts = list(problem.parts)
                for each in self._staged.values():
                    here = str(each.temporary)
                    name = str(each.target)
                    parts = [
                        part.replace(here, name) if isinstance(part, str) else part
                        for part in parts
                    ]
                StorageError.__init__(problem, *parts)
        finally:
            self._remove()

    def _remove(self) -> None:
        for each in self._staged.values():
            remove(each.temporary)


def write_whole(path: Name, content: bytes, *, readable: bool = False) -> None:
    """Write a file completely or not at all, and replace an existing one.

    ``readable``: also by other users.
    """
    staging = Staging([path], force=True, readable=[path] if readable else [])
    with staging, write_errors(path), open_temporary(staging.path_for(path)) as file:
        file.write(content)


def write_table(
    frame: Any,
    path: Name,
    *,
    format: str | None = None,
    form: TableForm | None = None,
    force: bool = False,
) -> Notes:
    """Write a polars table completely or not at all.

    ``"-"`` is stdout. The suffix sets format and compression.

    ``form``, of a table that was read, writes the table in the same form; what could
    not be kept is returned.
    """
    output_format(path, format, form)
    with Staging([path], force=force) as staging:
        return staging.write_table(
            frame,
            path,
            format=format,
            form=form,
        )
