"""What can go wrong, in words a user can act on.

TraincastError
├── InputError                a value that cannot be right (batch size 0, unknown precision)
│   ├── ParameterError        the same of a parameter that has a name, so that a command can name its option
│   │   └── ChoiceError       a name that is not among those to choose from
│   ├── UnknownModelError     a model name or path that leads nowhere
│   └── UnknownDeviceError    a device name that is not in the table, or could mean several
├── FileFormatError           a file that is truncated, foreign or of another version
│   └── NothingLoggedError    a log without a row that tells of learning, which may still come
├── DownloadError             a file that could not be fetched whole, or is not the one that was asked for
├── StoreError                a store of measurements that cannot be read or written now (disk full, locked)
├── MissingExtraError         an optional package that this question needs is not installed
├── MeasurementError          a real run that ended before it was measured
│   ├── MemoryEndedError      the device, or the machine, had no more memory
│   └── LostProcessError      one of several processes that had to go on without another
├── BusyError                 a server with more questions than it can answer now
├── TrainingError             a training run that cannot go on: its loss is no number any more
└── CaptureError              a model whose training step cannot be recorded
    ├── DataDependentError    what runs next depends on the values of a tensor
    └── BatchDependentError   the step is not the same list of ops at every batch size

Every message names what was given, what is wrong with it and what would be right, in one sentence or two.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

_LONGEST_QUOTED = 80  # letters
# In a finished sentence: a quoted word without folders, and any run of letters that no path on a disk could be.
_LONG_WORD = re.compile(r"(?<![^\s(\[,=])'([^'/\\]{81,})'")
_LONG_RUN = re.compile(r"[^\s/\\']{256,}")


class TraincastError(Exception):
    """Base of everything that traincast raises on purpose. A long value is cut in its message."""

    def __init__(self, message: object = "", *more: object) -> None:
        super().__init__(shortened(message) if isinstance(message, str) else message, *more)


class InputError(TraincastError, ValueError):
    """A value that cannot be right."""


class ParameterError(InputError):
    """A parameter with a value that cannot be right. Programs know it by its name, command lines by their option."""

    def __init__(self, name: str, value: object, right: str) -> None:
        self.name, self.value, self.right = name, value, right
        super().__init__(self.called(name))

    def called(self, name: str) -> str:
        """The message, with another name for the parameter."""
        return f"{name} cannot be {quoted(self.value)}: {self.right}."


class ChoiceError(ParameterError):
    """A parameter with a name that is not among those to choose from."""

    def __init__(self, name: str, value: str, choices: Iterable[str]) -> None:
        self._choices = tuple(choices)
        super().__init__(name, value, f"choose from {', '.join(self._choices)}")

    def called(self, name: str) -> str:
        known = ", ".join(self._choices)
        return (
            f"{name} {quoted(self.value)} is not known.{close_names(self.value, self._choices)} Choose from: {known}."
        )


class UnknownModelError(InputError):
    """A model name or path that leads nowhere."""


class UnknownDeviceError(InputError):
    """A device name that is not in the table, or could mean several."""


class FileFormatError(TraincastError):
    """A file that is truncated, foreign or of another version."""


class NothingLoggedError(FileFormatError):
    """A log without a row that tells of learning. It may still come: whoever watches the log waits."""


class DownloadError(TraincastError):
    """A file that could not be fetched whole, or is not the one that was asked for."""


class StoreError(TraincastError):
    """A store of measurements that cannot be read or written now: the disk is full, or another program holds it."""


class MissingExtraError(TraincastError, ImportError):
    """An optional package that this question needs is not installed."""

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(f"{what} needs the '{extra}' extra: pip install 'traincast[{extra}]'.")


class MeasurementError(TraincastError):
    """A real run that ended before it was measured. `partial` is what was measured until then, or None."""

    def __init__(self, message: str, *, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class MemoryEndedError(MeasurementError):
    """The device, or the machine, had no more memory."""


class LostProcessError(MeasurementError):
    """One of several processes that had to go on without another: the cause is to be found there."""


class TrainingError(TraincastError):
    """A training run that cannot go on: its loss is no number any more."""


class BusyError(TraincastError):
    """A server with more questions than it can answer now."""

    def __init__(
        self, sentence: str = "The server has more to do than it can answer now: try again in a few seconds."
    ) -> None:
        super().__init__(sentence)


class CaptureError(TraincastError):
    """A model whose training step cannot be recorded."""


class DataDependentError(CaptureError):
    """What runs next depends on the values of a tensor, and a capture has no values."""


class BatchDependentError(CaptureError):
    """The step is not the same list of ops, or not affine in its shapes, at every batch size."""


def quoted(value: object) -> str:
    """A value as a message shows it: as Python writes it, and not all of it where it is long."""
    try:
        text = " ".join(line.strip() for line in repr(value).splitlines())  # arrays have several
    except ValueError:  # a whole number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]}..."


def shortened(sentence: str) -> str:
    """The sentence with at most 80 letters of each value that it quotes; paths keep their folders.

    Null characters and lone surrogates, which no terminal and no page can show, are written as Python writes them.
    """
    sentence = sentence.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    if len(sentence) <= _LONGEST_QUOTED:
        return sentence
    cut = _LONG_WORD.sub(lambda found: f"'{found[1][:_LONGEST_QUOTED]}...'", sentence)
    return _LONG_RUN.sub(lambda found: f"{found[0][:_LONGEST_QUOTED]}...", cut)


def close_names(given: object, known: Iterable[str], *, most: int = 3) -> str:
    """A sentence fragment with the nearest known names, or an empty string."""
    lookup = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(given).lower(), lookup, n=most, cutoff=0.6)
    return f" Close names: {', '.join(lookup[name] for name in near)}." if near else ""
