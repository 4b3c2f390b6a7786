"""Staging: several files that appear together, each complete, or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairmaxent.errors import InputError, Option, StorageError
from fairmaxent.files import atomic
from fairmaxent.files.form import TableForm
from fairmaxent.files.formats import STANDARD, FileFormat, output_format
from fairmaxent.files.hidden import HiddenFolder, locked, remove_abandoned
from fairmaxent.files.interrupts import undisturbed
from fairmaxent.files.table_writing import write_on_stdout, write_to_file

Name = str | os.PathLike[str]


@dataclass(frozen=True)
class _Staged:
    """A target, and where its content is written until it is complete."""

    path: Path
    temporary: Path
    readable: bool
    is_folder: bool


class Staging:
    """Files and folders that appear all together once each is complete, or not at all.

    The targets are checked at the start. Each is then written to the path that `path_for` returns, in a hidden folder
    beside its target; at the end all of them get their names. Without ``force`` a name that another program has taken
    in the meantime is refused. Only the user can read the results, except those named in ``readable``.
    """

    def __init__(
        self,
        targets: Sequence[Name],
        *,
        folders: Sequence[Name] = (),
        force: bool = False,
        readable: Sequence[Name] = (),
    ) -> None:
        named = [target for target in targets if target != STANDARD]
        files = [_checked_file(target, force=force) for target in named]
        paths = [*files, *(atomic.check_folder(folder) for folder in folders)]
        repeated = next((path for path in paths if paths.count(path) > 1), None)
        if repeated is not None or list(targets).count(STANDARD) > 1:
            raise InputError(f"{repeated or 'stdout'} would be written twice; give each output its own name")
        self._force = force
        self._hidden: dict[Path, HiddenFolder] = {}
        self._staged: dict[Path, _Staged] = {}
        # Links were followed once: somebody may put another one there before the end.
        self._paths = dict(zip(map(Path, [*named, *folders]), paths, strict=True))
        shared = set(map(Path, readable))
        try:
            for name, path in self._paths.items():
                self._stage(path, readable=name in shared, is_folder=path not in files)
        except BaseException:
            self._remove()
            raise

    def _stage(self, path: Path, *, readable: bool, is_folder: bool) -> None:
        parent = atomic.folder_for(path)
        if parent not in self._hidden:
            remove_abandoned(parent)
            try:
                # The workers of a cluster may be other users.
                self._hidden[parent] = HiddenFolder(parent, shared=readable and is_folder)
            except (OSError, ValueError) as problem:
                raise StorageError(
                    f"cannot write in {parent}: {atomic.reason_of(problem)}; choose another location"
                ) from problem
        temporary = self._hidden[parent].path / f"{len(self._staged)}{path.suffix}"
        self._staged[path] = _Staged(path, temporary, readable, is_folder)
        if is_folder:
            with atomic.write_errors(path):
                os.mkdir(temporary)

    def path_for(self, target: Name) -> Path:
        """Return the temporary path to write the content of ``target`` to; a folder is there already, and empty."""
        return self._staged[self._paths[Path(target)]].temporary

    def write_table(
        self,
        frame: Any,
        target: Name,
        *,
        format: FileFormat | None = None,
        schema: Any = None,
        form: TableForm | None = None,
    ) -> tuple[str, ...]:
        """Write a polars table to its temporary path, or to stdout; a lazy frame goes to a file in pieces.

        ``schema`` holds the types that a Parquet file declares, if the frame has categories in place of texts.
        ``form`` is the form of a file that was read, for a result in the same form; what could not be kept is returned.
        """
        if form is not None:
            format = form.output_format(target, format)
        kind, compression = output_format(target, format)
        if target == STANDARD:
            return write_on_stdout(frame, kind, compression, schema=schema, form=form)
        with atomic.write_errors(Path(target)), atomic.open_private(self.path_for(target)) as file:
            return write_to_file(frame, file, kind, compression, target=target, schema=schema, form=form)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: object, problem: object, traceback: object) -> None:
        try:
            if kind is None:
                self._publish()
            elif isinstance(problem, OSError | StorageError):
                self._name_targets(problem)
        finally:
            self._remove()

    def _name_targets(self, problem: OSError | StorageError) -> None:
        """Let an error name the file that was asked for, and not the hidden one, which is gone when it is read."""
        hidden = {str(one.temporary): str(one.path) for one in self._staged.values()}
        hidden |= {str(folder.path): str(parent) for parent, folder in self._hidden.items()}
        if isinstance(problem, StorageError):
            parts = [_replaced(part, hidden) if isinstance(part, str) else part for part in problem.parts]
            StorageError.__init__(problem, *parts)
        elif isinstance(problem.filename, str | os.PathLike):
            problem.filename = _replaced(str(problem.filename), hidden)

    def _publish(self) -> None:
        for one in self._staged.values():
            with atomic.write_errors(one.path):
                if one.is_folder:
                    atomic.set_permissions(one.temporary, one.path, 0o777 if one.readable else 0o700)
                    atomic.flush_folder(one.temporary)
                else:
                    atomic.complete(one.temporary, one.path, readable=one.readable)
        pending = [
            atomic.Pending(one.temporary, one.path, force=self._force and not one.is_folder)
            for one in self._staged.values()
            if not atomic.is_special(one.path)
        ]
        # Of two runs that write the same files, the results of one stay, not some of each.
        with locked({one.path.parent for one in pending}):
            undisturbed(lambda: atomic.publish(pending))

    def _remove(self) -> None:
        def each() -> None:
            for hidden in self._hidden.values():
                hidden.remove()

        undisturbed(each)


def _replaced(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        text = text.replace(name, other)
    return text


def _checked_file(target: Name, *, force: bool) -> Path:
    """Refuse a target that cannot be written, before any work."""
    with atomic.write_errors(Path(target)):
        path = atomic.target_of(target)
        if path.is_dir() or os.fspath(target).endswith("/"):
            raise StorageError(f"{path} is a folder; name a file in it")
        if path.is_symlink():  # links were followed, so this one has no end
            raise StorageError(f"{path} is a link that leads to itself; remove it, or name another file")
        if not path.parent.is_dir():
            raise StorageError(f"cannot write {path}: the folder {path.parent} does not exist; create it first")
        if path.exists() and not atomic.is_special(path) and not force:
            raise StorageError(f"{path} exists; use ", Option("force"), " to replace it, or name another file")
        return path
