"""The folder of a run: settings.json, log.csv, checkpoint.pt, result.json. It holds one run and never mixes two."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from traincast.errors import FileFormatError, InputError, TrainingError
from traincast.recipes.engine.identity import Identity, difference
from traincast.report.files import write_file
from traincast.report.json_ import to_json
from traincast.report.parsing import parse_json

_DIVERGED = "diverged"  # in the place of a result: why there is none


class RunFolder:
    """Where a run lives; made when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint_path = path / "checkpoint.pt"
        self.log_path = path / "log.csv"
        self._settings_path = path / "settings.json"
        self._result_path = path / "result.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """For one process alone. The system lets go of the lock when the process ends, however it ends."""
        with self._lock_file() as file:
            try:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:  # a system without it: then nobody is kept out
                pass
            except OSError:
                raise InputError(f"Another process trains in '{self.path}': wait for it, or use another.") from None
            yield

    def claim(self, identity: Identity) -> None:
        """For this run; raises where the folder holds another that got as far as a checkpoint."""
        if not self._settings_path.exists():
            if self._holds_a_run():
                raise InputError(f"'{self.path}' has no settings.json beside its checkpoint: use another folder.")
            write_file(self._settings_path, to_json(identity) + "\n")
            return
        found = difference(self._read(self._settings_path), json.loads(to_json(identity)))
        if not found:
            return
        if self._holds_a_run():
            raise InputError(f"'{self.path}' has another run ({found}): use another folder, or delete this one.")
        self._result_path.unlink(missing_ok=True)
        write_file(self._settings_path, to_json(identity) + "\n")

    def result(self) -> dict[str, Any] | None:
        """Of a run that has ended; raises what ended it where that was its loss."""
        found = self._read(self._result_path) if self._result_path.exists() else None
        if found is not None and _DIVERGED in found:
            raise TrainingError(str(found[_DIVERGED]))
        return found

    def finish(self, result: Mapping[str, Any]) -> None:
        write_file(self._result_path, to_json(result) + "\n")

    def finish_diverged(self, sentence: str) -> None:
        """A run that cannot go on comes to the same end every time: it is not made again."""
        self.finish({_DIVERGED: sentence})

    def _holds_a_run(self) -> bool:
        if self.checkpoint_path.exists():
            return True
        return self._result_path.exists() and _DIVERGED not in self._read(self._result_path)

    def _lock_file(self) -> IO[bytes]:
        make_folder(self.path)
        try:
            return (self.path / ".lock").open("ab")
        except OSError as error:
            raise InputError(f"The folder '{self.path}' cannot be written to: {error.strerror or error}.") from error

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            content = parse_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FileFormatError(f"'{path}' cannot be read as JSON: delete the folder to begin again.") from error
        if not isinstance(content, dict):
            raise FileFormatError(f"'{path}' is not a file of a traincast run.")
        return content


def make_folder(path: Path) -> None:
    """With those above it; says so where that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder '{path}' cannot be made: {error.strerror or error}.") from error
