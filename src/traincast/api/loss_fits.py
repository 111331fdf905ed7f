"""Optimus' law through the losses of many logs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.curves.loss_fits import LossFit, LossFits

_COLUMNS = ("path", "model", "depth", "hardware", "split", "unit", "n_points")


@question
def loss_fits(
    files: Sequence[str],
    *,
    target: o.Target = None,
    metric: o.Metric = None,
    split: o.Split = None,
    reading: Mapping[str, Any] | None = None,
) -> LossFits:
    """A row per log: b0, b1 and b2 of loss = 1/(b0 k + b1) + b2 with intervals, R^2, and when the target is reached.

    The loss is that of `split`, of the validation if there is one, else of the training. `metric` is what the `target`
    is of: a loss, or an accuracy in the same log. Model, GPU and split are those that the file's name tells.
    """
    from traincast.curves.loss_fits import LossFits

    found = [_fit_of(file, target, metric or "loss", split, dict(reading or {})) for file in files]
    ordered = sorted(found, key=lambda one: (one.facts.model, one.facts.device, one.split))
    return LossFits(fits=tuple(ordered), target=target, metric=metric or "loss")


def write_fits(fits: LossFits, path: str | Path) -> Path:
    """A CSV file with a row per log, as `traincast transfer` reads it: the depth is the number in the model's name."""
    import csv
    import io
    import re

    from traincast.curves.loss_fits import PARAMETERS
    from traincast.report.files import write_file

    if Path(path).suffix.lower() != ".csv":
        raise InputError(f"Fits are exported to a .csv file, and '{path}' is none.")
    ends = [f"{name}_{end}" for name in PARAMETERS for end in ("p10", "p90")]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*_COLUMNS, *PARAMETERS, *ends, "r_squared", "step_to_target", "epochs"])
    for one in fits.fits:
        depth = re.search(r"\d+", one.facts.model)
        row = {**one.to_dict(), "hardware": one.facts.device, "depth": depth.group() if depth else ""}
        there = one.arrival
        values = [row[name] for name in (*_COLUMNS, *PARAMETERS)]
        limits = [end for name in PARAMETERS for end in row["intervals"][name]]
        step, epochs = ("", "") if there is None else (there.steps.p50, there.epochs.p50 if there.epochs else "")
        writer.writerow([*values, *limits, row["r_squared"], step, epochs])
    return write_file(path, text.getvalue())


def _fit_of(file: str, target: float | None, metric: str, split: str | None, reading: dict[str, Any]) -> LossFit:
    from traincast.api.converging import converge
    from traincast.curves.loss_fits import LossFit
    from traincast.logs.file_facts import file_facts
    from traincast.logs.names import is_loss

    of_loss = is_loss(metric)
    status = converge(
        file,
        family="optimus",
        metric=metric if of_loss else "loss",
        split=split,
        reading=reading,
        target=target if of_loss else None,
    )
    if status.curve is None:
        raise InputError(f"'{file}' has diverged or has too few points for a fit: leave it out.")
    there = status.arrival
    if target is not None and not of_loss:
        there = converge(file, metric=metric, target=target, reading=reading).arrival
    remarks = tuple(dict.fromkeys((*status.warnings, *status.remarks, *status.curve.warnings)))
    return LossFit(
        path=str(file),
        facts=file_facts(str(file)),
        series=status.series,
        curve=status.curve,
        unit=status.unit,
        arrival=there,
        remarks=remarks,
    )
