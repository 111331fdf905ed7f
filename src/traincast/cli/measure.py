"""`traincast measure`: what does a step really take on this machine?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traincast.cli.measure_processes import AllReduce, MaybeModel, Processes, is_several
from traincast.cli.measure_sweep_options import Data, Epochs, MaxStepS, SampleMs, SampleWaits, Sweep, SweepFlags
from traincast.cli.options import (
    AsJson,
    Head,
    HtmlFile,
    ImageSize,
    NClasses,
    PngFile,
    SeqLen,
    model_options,
)

if TYPE_CHECKING:
    from traincast.errors import MeasurementError
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement

_INTERRUPTED = 130


def measure(
    model: MaybeModel = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Samples in one step.", show_default=False)] = None,
    optimizer: Annotated[str, typer.Option(help="none, sgd, momentum, adam, adamw, ...")] = "sgd",
    precision: Annotated[str, typer.Option(help="fp32, tf32, amp-fp16, amp-bf16 or bf16.")] = "fp32",
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:1.")] = "cpu",
    steps: Annotated[
        int | None, typer.Option(help="Steps to time. Default: 5 to 100, about two seconds.", show_default=False)
    ] = None,
    compiled: Annotated[bool, typer.Option("--compiled", help="Run the model under torch.compile.")] = False,
    default_malloc: Annotated[
        bool, typer.Option("--default-malloc", help="Let the C library give memory back to the system between steps.")
    ] = False,
    repeat: Annotated[int, typer.Option(help="Fresh processes to measure in, one after the other.")] = 1,
    epoch_samples: Annotated[
        int | None,
        typer.Option(help="Measure an epoch of so many made-up samples over a data loader.", show_default=False),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes of that loader. Default: none of its own.", show_default=False)
    ] = None,
    processes: Processes = None,
    all_reduce: AllReduce = False,
    sweep: Sweep = None,
    max_step_s: MaxStepS = None,
    data_source: Data = None,
    sample_ms: SampleMs = None,
    sample_waits: SampleWaits = False,
    epochs: Epochs = None,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="FILE.db", help="Keep the result in a store of records.")
    ] = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What does a step really take on this machine, and what did we forecast?

    Examples: traincast measure cifar_resnet20 --batch 64 --optimizer adam; traincast measure mnist_cnn --batch 32
    --repeat 3 --store runs.db; traincast measure mnist_cnn --batch 32 --epoch-samples 2000 --workers 2;
    traincast measure cifar_resnet20 --sweep batch; traincast measure mnist_cnn --batch 32 --sweep optimizers --epochs
    5; traincast measure cifar_resnet20 --batch 64 --processes 2; traincast measure --processes 2 --all-reduce
    """
    from traincast.cli.measure_document import epoch_document, step_document
    from traincast.cli.show import show
    from traincast.errors import InputError

    options = model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head)
    flags = SweepFlags(
        max_step_s=max_step_s, data=data_source, sample_ms=sample_ms, sample_waits=sample_waits, epochs=epochs
    )
    of_one_step = {
        "--compiled": compiled,
        "--default-malloc": default_malloc,
        "--repeat": repeat != 1,
        "--epoch-samples": epoch_samples is not None,
    }
    flags.check(sweep, {**of_one_step, "--workers": workers is not None})
    if is_several(processes, all_reduce=all_reduce):
        from traincast.cli.measure_processes import refuse, run_processes

        refuse({"--sweep": sweep is not None, "--workers": workers is not None, **of_one_step})
        run_processes(
            model,
            n_processes=processes,
            all_reduce=all_reduce,
            batch_size=batch,
            optimizer=optimizer,
            precision=precision,
            device=device,
            n_steps=steps,
            options=options,
            store=store,
            as_json=as_json,
            html=html,
            png=png,
        )
        return
    if model is None:
        raise InputError("The model is missing: name one, such as mnist_cnn or file.py:factory.")
    if sweep is not None:
        from traincast.cli.measure_sweep import run_sweep

        run_sweep(
            sweep,
            model,
            batch=batch,
            flags=flags,
            optimizer=optimizer,
            precision=precision,
            device=device,
            steps=steps,
            options=options,
            store=store,
            as_json=as_json,
            html=html,
            png=png,
        )
        return
    if batch is None:
        raise InputError("The batch is missing: give --batch, the samples in one step.")
    _check_epoch_flags(epoch_samples, workers, steps=steps, compiled=compiled, repeat=repeat)
    how = {"batch_size": batch, "optimizer": optimizer, "precision": precision, "device": device}
    measured: Measurement | EpochMeasurement
    if epoch_samples is not None:
        measured = _epoch(model, n_samples=epoch_samples, n_workers=workers or 0, **how, **options)
        document, data = epoch_document(measured), measured.to_dict()
    else:
        from traincast.api.measuring import forecast_of

        kept = {"n_steps": steps, "compiled": compiled, "keeps_memory": not default_malloc}
        measured = _step(model, repeat, **kept, **how, **options)
        forecast, why_not = forecast_of(measured, model, **options)
        document = step_document(measured, forecast, why_not)
        data = {**measured.to_dict(), "forecast": None if forecast is None else forecast.to_dict()}
    if store is not None:
        _keep(store, model, measured, how | options)
    show(document, as_json=as_json, html=html, png=png, data=data)
    if measured.is_partial:
        raise typer.Exit(_INTERRUPTED)


def _check_epoch_flags(
    epoch_samples: int | None, workers: int | None, *, steps: int | None, compiled: bool, repeat: int
) -> None:
    """No option is left out quietly."""
    from traincast.errors import InputError

    if epoch_samples is None:
        if workers is not None:
            raise InputError("--workers are those of a data loader: give --epoch-samples too.")
        return
    not_for_epochs = {"--steps": steps is not None, "--compiled": compiled, "--repeat": repeat != 1}
    for flag, is_given in not_for_epochs.items():
        if is_given:
            raise InputError(f"{flag} is of a single step and does not go with --epoch-samples: leave one of them out.")


def _step(model: str, n_processes: int, **how: Any) -> "Measurement":
    from traincast.api.measuring import measure_named
    from traincast.cli.progress import ProgressBar
    from traincast.errors import MeasurementError
    from traincast.measurement.fresh_processes import measure_repeatedly

    with ProgressBar(f"Measuring {model}") as bar:
        try:
            if n_processes == 1:
                return measure_named(model, on_progress=bar, **how)
            return measure_repeatedly([model, *_flags(**how)], n_processes, on_progress=bar)
        except MeasurementError as error:
            raise _with_partial(error) from error


def _epoch(model: str, **how: Any) -> "EpochMeasurement":
    from traincast.api.measuring import measure_synthetic_epoch
    from traincast.cli.progress import ProgressBar
    from traincast.errors import MeasurementError

    with ProgressBar(f"An epoch of {model}") as bar:
        try:
            return measure_synthetic_epoch(model, on_progress=bar, **how)
        except MeasurementError as error:
            raise _with_partial(error) from error


def _flags(**how: Any) -> list[str]:
    """The same question as a command line of its own."""
    names = {"batch_size": "batch", "n_steps": "steps"}
    flags = ["--compiled"] if how.pop("compiled") else []
    flags += [] if how.pop("keeps_memory") else ["--default-malloc"]
    for name, value in how.items():
        if value is not None:
            flags += [f"--{names.get(name, name).replace('_', '-')}", str(value)]
    return flags


def _with_partial(error: "MeasurementError") -> "MeasurementError":
    """What was measured before it failed, in the same line."""
    from traincast.units import show_duration

    summary = getattr(error.partial, "step", None) or getattr(error.partial, "batch", None)
    if summary is None:
        return error
    took = show_duration(summary.median)
    before = f"The step before it took {took}." if summary.n == 1 else f"The {summary.n} before it took {took} each."
    return type(error)(f"{error} {before}", partial=error.partial)


def _keep(path: Path, model: str, measured: "Measurement | EpochMeasurement", settings: dict[str, Any]) -> None:
    """Every measurement is kept: when it was made is part of what was asked."""
    import time

    from traincast.measurement.measured import Measurement
    from traincast.measurement.record import Record
    from traincast.measurement.store import Store

    now_s = time.time()
    record = Record(
        kind="step" if isinstance(measured, Measurement) else "epoch",
        task={"model": model, **settings, "asked_s": now_s},
        values=measured.to_dict(),
        environment=measured.environment,
        created_s=now_s,
    )
    with Store(path) as store:
        store.add(record)
    typer.echo(f"Kept in {path}", err=True)
