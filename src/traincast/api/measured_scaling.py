"""Scaling that was measured, and Optimus' model of it: the two questions beside the forecast of `scale`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from traincast.api.models import load_model, model_options
from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.scaling.measured_epochs import MeasuredEpochs
    from traincast.scaling.optimus_times import OptimusTimes


@question
def measured_scaling(
    measured: o.MeasuredEpochsFile,
    model: o.MaybeModel = None,
    *,
    n_parameters: o.NParameters = None,
    n_samples: o.NSamples = None,
    link: o.InsideLink = None,
    **options: Unpack[o.ModelOptions],
) -> MeasuredEpochs:
    """How measured epochs divide among computing and communication, and what a step waits for.

    Bytes need the size of the model: `n_parameters`, or a `model`. The file is read first: most mistakes are there.
    """
    from traincast.hardware.link_table import find_link_inside
    from traincast.scaling.measured_epochs import epochs_of, measured_epochs

    path = Path(measured)
    rows, left_out = epochs_of(path, n_samples=n_samples)
    if n_parameters is None:
        if model is None:
            raise InputError("Bytes need the size of the model: name the model or its number of parameters.")
        n_parameters = load_model(model, **model_options(options)).n_parameters
    rate = None if link is None else find_link_inside(link).bytes_per_s
    return measured_epochs(path, rows, left_out, n_parameters=n_parameters, n_samples=n_samples, link_bytes_per_s=rate)


@question
def optimus_scaling(
    optimus: o.OptimusSpeeds,
    *,
    batch_size: o.BatchOfAll = None,
    n_steps: o.NSteps = 100_000,
    workers: o.Workers = tuple(range(1, 21)),
    servers: o.Servers = (2, 4),
) -> OptimusTimes:
    """The time to a number of steps over workers and parameter servers, by the speed model of Optimus.

    `optimus` is "paper-sync", "paper-async", or a CSV file with servers, workers and steps_per_s to fit.
    """
    from traincast.scaling.optimus_times import optimus_times

    return optimus_times(optimus, batch_size=batch_size, n_steps=n_steps, n_workers=workers, n_servers=servers)
