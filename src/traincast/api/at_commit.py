"""The forecast of a job as it was at another commit of its repository."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from traincast.errors import InputError

_BROKEN_LIMIT = 3  # the exit code of a forecast that was made and breaks its limits


def forecast_at(ref: str, job: str | Path, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """What `traincast forecast JOB --json` prints for the files of that commit.

    They are unpacked into a folder of their own (git archive: the repository is not touched, no hook runs) and the
    forecast runs there in a process of its own, because a model may be code. Settings in `arguments` hold there too.
    """
    path = Path(job).resolve()
    top = Path(_git(path.parent, "rev-parse", "--show-toplevel", told=f"'{job}' is not in a git repository")).resolve()
    wrong = f"'{ref}' is not a commit of the repository '{top}'"
    commit = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", told=wrong)
    with tempfile.TemporaryDirectory(prefix="traincast-") as folder:
        _unpack(top, commit, Path(folder))
        then = Path(folder) / path.relative_to(top)
        if not then.is_file():
            raise InputError(f"'{job}' was not there at '{ref}': its forecast cannot be compared.")
        here = Path.cwd().resolve()
        if Path(job).is_absolute() or not here.is_relative_to(top):
            printed = _forecast(then, then.parent, ref, arguments)
        else:
            below = Path(folder) / here.relative_to(top)
            below.mkdir(parents=True, exist_ok=True)
            printed = _forecast(Path(job), below, ref, arguments)
    found: dict[str, Any] = json.loads(printed.replace(folder, str(top)))  # a file has the name that it has today
    return found


def _forecast(job: Path, folder: Path, ref: str, arguments: Sequence[str]) -> str:
    command = [sys.executable, "-P", "-m", "traincast", "forecast", str(job), *arguments, "--json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, _BROKEN_LIMIT):
        said = ran.stderr.strip().splitlines()
        reason = said[-1].removeprefix("Error: ") if said else f"exit code {ran.returncode}"
        raise InputError(f"At '{ref}' there is no forecast: {reason}")
    return ran.stdout


def _git(folder: Path, *arguments: str, told: str) -> str:
    try:
        ran = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("Comparing with a commit needs git, which is not installed.") from None
    except NotADirectoryError:
        raise InputError(f"{told}.") from None
    if ran.returncode:
        raise InputError(f"{told}.")
    return ran.stdout.strip()


def _unpack(top: Path, commit: str, folder: Path) -> None:
    archive = subprocess.Popen(["git", "archive", "--format=tar", commit], cwd=top, stdout=subprocess.PIPE)
    assert archive.stdout is not None
    with archive, tarfile.open(fileobj=archive.stdout, mode="r|") as tar:
        tar.extractall(folder, filter="data")
    if archive.returncode:
        raise InputError(f"git could not unpack {commit}: exit code {archive.returncode}.")
