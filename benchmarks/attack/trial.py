"""One damaged file, given to the commands that read such files, in this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from attack.kind import Kind
from attack.kinds import KINDS

MOST_S = 20.0  # of the processor: on a busy machine a trial takes no longer than on a quiet one
MOST_WAIT_S = 120.0  # by the clock
MOST_BYTES = 2 * 10**9
_FINE = (0, 2, 3)  # an answer, a sentence about the file, a limit that is broken


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`wrong` is empty, or a word: traceback, hang, peak, exit (a code without a reason), nameless (a
    refusal that does not name the file), warning, answer, refused."""

    kind: str
    number: int
    line: str
    code: int
    seconds: float
    peak_bytes: int
    wrong: str = ""
    what: str = ""


class TookTooLong(BaseException):
    """The alarm. No handler of the product may take it for an error of a file."""


def damaged(kind: Kind, seed: int, number: int) -> tuple[bytes, str]:
    """The file and the command line of a trial: the same for the same three. The first of each line are not damaged."""
    if number < n_valid(kind):
        return kind.valid(), kind.lines[number] if kind.lines else ""
    rng = random.Random(f"{seed}/{kind.name}/{number}")
    line = rng.choice(kind.lines) if kind.lines else ""
    return kind.damage(kind.valid(), rng), line


def n_valid(kind: Kind) -> int:
    """How many trials of a kind are with the valid file: one of each line."""
    return max(1, len(kind.lines))


def tried(name: str, seed: int, number: int, folder: Path) -> Outcome:
    """What became of one file. The folder is emptied first, and holds the file afterwards."""
    kind = KINDS[name]
    content, line = damaged(kind, seed, number)
    outcome = asked(kind, content, line, folder, number)
    if number < n_valid(kind) and outcome.code and not outcome.wrong:
        return replace(outcome, wrong="refused", what="the file is valid")
    return outcome


def asked(kind: Kind, content: bytes, line: str, folder: Path, number: int = 0) -> Outcome:
    """The same of a file that is there already."""
    for left in folder.iterdir() if folder.exists() else ():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in kind.beside.items():
        (folder / name).write_bytes(make())
    path = folder / kind.file
    path.write_bytes(content)
    os.environ["TRAINCAST_HOME"] = str(folder)
    _forget_peak()
    start_s = time.process_time()
    code, wrong, what = _guarded(kind, line, path)
    seconds, peak_bytes = time.process_time() - start_s, _peak_bytes()
    if not wrong and peak_bytes > MOST_BYTES:
        wrong, what = "peak", f"{peak_bytes / 1e9:.1f} GB"
    return Outcome(
        kind=kind.name,
        number=number,
        line=line,
        code=code,
        seconds=seconds,
        peak_bytes=peak_bytes,
        wrong=wrong,
        what=what,
    )


def _guarded(kind: Kind, line: str, path: Path) -> tuple[int, str, str]:
    """Exit code, what is wrong, and its last words."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with _alarm(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _shown_warnings() as shown:
            code = _run(kind, line, path)
    except TookTooLong:
        return -1, "hang", _last_words()
    except MemoryError:
        return -1, "peak", _last_words()
    except Exception:  # noqa: BLE001  (whatever the product lets through is what is looked for)
        return -1, "traceback", _last_words()
    if shown:
        return code, "warning", "\n".join(f'File "{one.filename}", line {one.lineno}\n{one.message}' for one in shown)
    return code, *_judged(code, line, {path.name, *kind.beside}, out.getvalue(), err.getvalue())


def _run(kind: Kind, line: str, path: Path) -> int:
    if kind.reader is not None:
        from traincast.errors import TraincastError

        try:
            kind.reader(path)
        except TraincastError as error:
            sys.stderr.write(f"Error: {error}\n")
            return 2
        return 0
    from traincast.__main__ import run

    return run([part.format(file=path, folder=path.parent) for part in line.split()])


def _judged(code: int, line: str, names: set[str], out: str, err: str) -> tuple[str, str]:
    if code not in _FINE:
        return "exit", f"code {code}: {err.strip()[-300:]}"
    if code == 2 and not any(name in err for name in names):
        return "nameless", err.strip()[-300:]
    if code == 2 and not err.startswith("Error: ") and "\nError: " not in err and "Usage:" not in err:
        return "exit", f"code 2 without a sentence: {err.strip()[-300:]}"
    if "Traceback (most recent call last)" in err:
        return "traceback", err.strip()[-1500:]
    if code != 2 and "--json" in line:
        try:
            json.loads(out, parse_constant=_no_number)
        except ValueError as error:
            return "answer", f"not JSON: {error}"
    return "", ""


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _last_words() -> str:
    return "".join(traceback.format_exc()[-1800:])


@contextlib.contextmanager
def _shown_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Those that a user would see."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for silent in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", silent)
        yield shown


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, MOST_S), (signal.ITIMER_REAL, signal.SIGALRM, MOST_WAIT_S))
    before = [signal.signal(number, ring) for _, number, _ in timers]
    for timer, _, most_s in timers:
        signal.setitimer(timer, most_s)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _forget_peak() -> None:
    """Linux then counts the peak anew; elsewhere it is that of all files so far."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
