"""What is known of the siblings: Optimus parameters fitted to their runs, from a CSV file or from Python."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traincast.errors import FileFormatError, InputError

_EPOCHS = ("epochs", "epochs_to_target", "epoch_to_92acc")  # any of these headers
_NEEDED = ("model", "num_layers", "b0", "b1", "b2")
_CHOOSE = "split"  # curves of training and of validation are different curves


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One run of a model: loss = 1/(b0*step + b1) + b2, and the epochs that it took to a target, where it got there."""

    model: str
    n_layers: int
    b0: float
    b1: float
    b2: float
    family: str = ""  # models of one family are built of the same blocks; depth tells them apart
    gpu: str = ""
    epochs: float | None = None

    def __post_init__(self) -> None:
        if self.n_layers < 1:
            raise InputError(f"A model has 1 layer or more, not {self.n_layers}.")
        for name in ("b0", "b1", "b2"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InputError(f"{name} of '{self.model}' should be a number from 0, not {value}.")
        if self.epochs is not None and not 0 < self.epochs < math.inf:
            raise InputError(f"The epochs of '{self.model}' should be above 0, not {self.epochs}.")

    @property
    def is_degenerate(self) -> bool:
        """Whether the curve has fallen within a single step, or has no start: nobody can learn from it."""
        return self.b0 >= 1 or not (self.b0 > 0 and self.b1 > 0)


def read_fits(
    path: str | Path, *, split: str | None = None, families: Mapping[str, str] | None = None
) -> tuple[Fit, ...]:
    """Rows of a CSV file with model, num_layers, b0, b1, b2, and where known family, gpu, split and epochs.

    `split` chooses among rows of training and of validation. `families` gives a model's family where the file does not.
    """
    lines = _lines(Path(path))
    splits = sorted({line.get(_CHOOSE, "") for _, line in lines})
    if split is not None and split not in splits:
        raise InputError(f"'{path}' has no rows of split '{split}'; it has {', '.join(splits) or 'none'}.")
    if split is None and len(splits) > 1:
        raise InputError(f"'{path}' holds rows of {' and '.join(splits)}: say which with split.")
    unknown = sorted(set(families or {}) - {line["model"] for _, line in lines})
    if unknown:
        raise InputError(f"'{path}' has no model '{unknown[0]}', for which a family is given.")
    return tuple(
        _fit(where, line, families or {}) for where, line in lines if split is None or line.get(_CHOOSE, "") == split
    )


def usable(fits: Sequence[Fit]) -> tuple[tuple[Fit, ...], tuple[str, ...]]:
    """The rows that a prediction can learn from, and a remark on those that it cannot."""
    kept = tuple(fit for fit in fits if not fit.is_degenerate)
    n_lost = len(fits) - len(kept)
    if len({(fit.family, fit.n_layers, fit.model) for fit in kept}) < 2:
        raise InputError(
            f"A transfer needs fits of 2 models or more; of these {len(fits)} rows it can use {len(kept)}."
        )
    models = ", ".join(sorted({fit.model for fit in fits if fit.is_degenerate}))
    return kept, (f"{n_lost} of {len(fits)} rows are degenerate fits and left out ({models}).",) if n_lost else ()


def _lines(path: Path) -> list[tuple[str, dict[str, str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"There is no file '{path}'.") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"'{path}' cannot be read as a text file.") from None
    if "\0" in text:
        raise InputError(f"'{path}' cannot be read as a text file.")
    reader = csv.reader(text.splitlines())
    header = [name.strip().lower() for name in next(reader, [])]
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        raise FileFormatError(f"'{path}' has no column {' and '.join(missing)}; it needs {', '.join(_NEEDED)}.")
    lines = []
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        where = f"'{path}', line {reader.line_num}"
        if len(cells) != len(header):
            raise FileFormatError(f"{where}: {len(cells)} cells where the header has {len(header)}.")
        lines.append((where, {name: cell.strip() for name, cell in zip(header, cells, strict=True)}))
    if not lines:
        raise FileFormatError(f"'{path}' holds no fits.")
    return lines


def _fit(where: str, line: Mapping[str, str], families: Mapping[str, str]) -> Fit:
    model = line["model"]
    epochs = next((line[name] for name in _EPOCHS if line.get(name)), None)
    n_layers = _number(where, "num_layers", line["num_layers"])
    if not n_layers.is_integer():
        raise FileFormatError(f"{where}: num_layers should be a whole number, not {line['num_layers']}.")
    try:
        return Fit(
            model=model,
            n_layers=int(n_layers),
            b0=_number(where, "b0", line["b0"]),
            b1=_number(where, "b1", line["b1"]),
            b2=_number(where, "b2", line["b2"]),
            family=families.get(model, line.get("family", "")),
            gpu=line.get("gpu", ""),
            epochs=None if epochs is None else _number(where, "epochs", epochs),
        )
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _number(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise FileFormatError(f"{where}: {name} is '{text}', not a number.") from None
    if not math.isfinite(value):
        raise FileFormatError(f"{where}: {name} should be a finite number, not {text}.")
    return value
