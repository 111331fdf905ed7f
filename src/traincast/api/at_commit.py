"""The forecast of a job as it was at another commit of its repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traincast.errors import InputError

_BROKEN_LIMIT = 3  # the exit code of a forecast that was made and breaks its limits
_NO_REPOSITORY = "not a git repository"  # git's own words


def forecast_at(ref: str, job: str | Path, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """What `traincast forecast JOB --json` prints for the files of that commit.

    They are unpacked into a folder of their own (git archive: the repository is not touched, no hook runs) and the
    forecast runs there in a process of its own, because a model may be code. Settings in `arguments` hold there too;
    files that they name should be absolute paths.
    """
    path = Path(job).resolve()
    top = _top(path, job)
    found = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found.failed:
        raise InputError(f"'{ref}' is not a commit of the repository '{top}'.")
    with tempfile.TemporaryDirectory(prefix="traincast-") as folder:
        _unpack(top, found.said, Path(folder), ref)
        then = Path(folder) / path.relative_to(top)
        if not then.is_file():
            raise InputError(f"'{job}' did not exist at '{ref}': there is no forecast to compare with.")
        here = Path.cwd().resolve()
        named, below = then, then.parent
        if not Path(job).is_absolute() and here.is_relative_to(top):
            named, below = Path(job), Path(folder) / here.relative_to(top)
            below.mkdir(parents=True, exist_ok=True)
        try:
            printed = _forecast(named, below, ref, arguments)
        except InputError as error:
            raise InputError(str(error).replace(folder, str(top))) from None
    return _read(printed.replace(folder, str(top)), ref)  # a file has the name that it has today


def _forecast(job: Path, folder: Path, ref: str, arguments: Sequence[str]) -> str:
    command = [sys.executable, "-P", "-m", "traincast", "forecast", str(job), *arguments, "--json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, _BROKEN_LIMIT):
        said = ran.stderr.strip().splitlines()
        reason = said[-1].removeprefix("Error: ") if said else f"exit code {ran.returncode}"
        raise InputError(f"At '{ref}' there is no forecast: {reason}")
    return ran.stdout


def _read(printed: str, ref: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(printed)
    except ValueError:
        raise InputError(
            f"At '{ref}' the output is not a forecast: does the model itself print to the terminal?"
        ) from None
    return found


@dataclass(frozen=True, slots=True)
class _Git:
    """How a command of git ended, and what it said: its output, or why it failed."""

    failed: bool
    said: str


def _git(folder: Path, *arguments: str) -> _Git:
    """In English, whatever the user's language: one of its answers is looked at."""
    english = os.environ | {"LC_ALL": "C"}
    try:
        ran = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False, env=english)
    except FileNotFoundError:
        raise InputError("Comparing with a commit needs git, which is not installed.") from None
    except NotADirectoryError:
        return _Git(True, _NO_REPOSITORY)
    if ran.returncode:
        reason = " ".join(ran.stderr.split()).removeprefix("fatal: ")
        return _Git(True, reason or f"exit code {ran.returncode}")
    return _Git(False, ran.stdout.strip())


def _top(path: Path, job: str | Path) -> Path:
    found = _git(path.parent, "rev-parse", "--show-toplevel")
    if not found.failed:
        return Path(found.said).resolve()
    if _NO_REPOSITORY in found.said:
        raise InputError(f"'{job}' is not in a git repository.")
    raise InputError(f"git cannot open the repository of '{job}': {found.said}")


def _unpack(top: Path, commit: str, folder: Path, ref: str) -> None:
    with tempfile.TemporaryDirectory(prefix="traincast-") as beside:
        archive = Path(beside) / "files.tar"
        packed = _git(top, "archive", "--format=tar", f"--output={archive}", commit)
        if packed.failed:
            raise InputError(f"git cannot unpack '{ref}': {packed.said}")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter=lambda member, to: _placed(member, to, top))


def _placed(member: tarfile.TarInfo, folder: str, top: Path) -> tarfile.TarInfo:
    """A link that leads out of the repository leads to the same file as there, say to the data on another disk."""
    try:
        return tarfile.data_filter(member, folder)
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        target = (top / member.name).parent / member.linkname
        return member.replace(linkname=os.path.normpath(target), deep=False)
