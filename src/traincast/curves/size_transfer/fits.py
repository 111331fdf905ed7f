"""What is known of the siblings: Optimus parameters fitted to their runs, from a CSV file or from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traincast.curves.size_transfer.table import Row, number, read_rows
from traincast.errors import FileFormatError, InputError
from traincast.logs import gate
from traincast.logs.argument_checks import MOST
from traincast.logs.counting import of_all

EPOCHS = ("epochs", "epochs_to_target", "epoch_to_92acc")  # any of these headers
DEPTH = ("depth", "num_layers", "layers", "n_layers")
_HARDWARE = ("gpu", "hardware", "device")
_STEPS_OF_EPOCH = 1_000  # as far as a degenerate fit is told from a good one
PARAMETERS = ("b0", "b1", "b2")
_CHOOSE = "split"  # curves of training and of validation are different curves


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One run of a model: loss = 1/(b0*step + b1) + b2, and the epochs that it took to a target, where it got there."""

    model: str
    n_layers: int  # or another whole number by which models of a family are told apart, such as their parameters
    b0: float
    b1: float
    b2: float
    family: str = ""  # models of one family are built of the same blocks; depth tells them apart
    gpu: str = ""
    epochs: float | None = None
    counts_epochs: bool = False  # the curve's steps are epochs

    def __post_init__(self) -> None:
        if not 1 <= self.n_layers <= MOST:
            raise InputError(f"A model should have from 1 to {MOST:g} layers, not {self.n_layers:g}.")
        for name in ("b0", "b1", "b2"):
            value = getattr(self, name)
            if not 0 <= value <= gate.MOST_VALUE:
                raise InputError(f"{name} of '{self.model}' should be a number from 0, not {value}.")
        if self.epochs is not None and gate.amount(self.epochs) is None:
            raise InputError(f"The epochs of '{self.model}' should be above 0 and at most {MOST:g}, not {self.epochs}.")

    @property
    def is_degenerate(self) -> bool:
        """Whether the curve has fallen within a single step, or has no start: nobody can learn from it."""
        return self.b0 >= (_STEPS_OF_EPOCH if self.counts_epochs else 1) or not (self.b0 > 0 and self.b1 > 0)


def read_fits(path: str | Path, *, split: str | None = None) -> tuple[Fit, ...]:
    """Rows of a table with model, depth, b0, b1, b2, and where known family, gpu, split and epochs.

    `split` chooses among rows of training and of validation.
    """
    return tuple(fit_of(where, line) for where, line in chosen_rows(path, split=split))


def chosen_rows(path: str | Path, *, split: str | None = None) -> list[tuple[str, Row]]:
    """The rows of one split, which must be said where there are several."""
    lines = read_rows(Path(path))
    splits = sorted({line.get(_CHOOSE, "") for _, line in lines})
    if split is not None and split not in splits:
        raise InputError(
            f"'{path}' has no rows of split '{split}'; it has {', '.join(filter(None, splits)) or 'none'}."
        )
    if split is None and len(splits) > 1:
        known = " and ".join(name or "no split" for name in splits)
        raise InputError(f"'{path}' has rows of {known}: choose one, such as {next(filter(None, splits))}.")
    return [(where, line) for where, line in lines if split is None or line.get(_CHOOSE, "") == split]


def usable(fits: Sequence[Fit]) -> tuple[tuple[Fit, ...], tuple[str, ...]]:
    """The rows that a prediction can learn from, and a remark on those that it cannot."""
    kept = tuple(fit for fit in fits if not fit.is_degenerate)
    n_lost = len(fits) - len(kept)
    if len({(fit.family, fit.n_layers, fit.model) for fit in kept}) < 2:
        raise InputError(
            f"A transfer needs fits of at least 2 models; of these {len(fits)} rows it can use {len(kept)}."
        )
    models = ", ".join(sorted({fit.model for fit in fits if fit.is_degenerate}))
    many = of_all(n_lost, len(fits), "rows", "is a degenerate fit", "are degenerate fits")
    return kept, (f"{many} and left out ({models}).",) if n_lost else ()


def fit_of(
    where: str,
    line: Row,
    *,
    size: str | None = None,
    found: Mapping[str, float] | None = None,
    counts_epochs: bool = False,
) -> Fit:
    """A row as a fit. `size` is the column that tells models apart, if not a depth; `found` are numbers from a log."""
    _, model = _cell(where, line, ("model",))
    names = DEPTH if size is None else (size, *DEPTH) if size in DEPTH else (size,)
    name, text = _cell(where, line, names)
    n_layers = number(where, name, text)
    if not n_layers.is_integer():
        raise FileFormatError(f"{where}: {name} should be a whole number, not {text}.")
    known = dict(found or {})
    for name in PARAMETERS:
        if name not in known:
            known[name] = number(where, *_cell(where, line, (name,)))
    epochs = next((line[name] for name in EPOCHS if line.get(name)), None)
    if epochs is not None:
        known["epochs"] = number(where, "epochs", epochs)
    try:
        return Fit(
            model=model,
            n_layers=int(n_layers),
            family=line.get("family", ""),
            gpu=next((line[name] for name in _HARDWARE if line.get(name)), ""),
            counts_epochs=counts_epochs,
            **known,
        )
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _cell(where: str, line: Row, names: Sequence[str]) -> tuple[str, str]:
    """The first of these columns that has something in it: its name, and that."""
    found = next(((name, line[name]) for name in names if line.get(name)), None)
    if found is None:
        has = ", ".join(name for name, cell in line.items() if cell) or "nothing"
        raise FileFormatError(
            f"{where}: there is no {names[0]}; a row needs model, depth or the size that is asked for, and b0, b1, b2 "
            f"or a log; it has {has}."
        )
    return found
