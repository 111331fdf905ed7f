"""What a run takes, at one place or at many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from traincast.options.question import question
from traincast.api.models import load_model
from traincast.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traincast.forecasting.forecast import Forecast
    from traincast.forecasting.question import Question
    from traincast.forecasting.scale import Scaling
    from traincast.forecasting.scale_sweep import ScaleSweep
    from traincast.forecasting.sweep import Sweep
    from traincast.hardware.cluster import Cluster
    from traincast.trace.trace import Trace


@question
def forecast(
    model: str | Path | Trace,
    on: str | Cluster,
    batch_size: int,
    *,
    n_samples: int | None = None,
    n_epochs: int = 1,
    precision: str | None = None,
    optimizer: str | None = None,
    layout: str = "nchw",
    compiled: bool = False,
    accumulation_steps: int = 1,
    strategy: str = "ddp",
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    method: str = "traincast",
    ppp: float | None = None,
    host: str | None = None,
    input_samples_per_s: float | None = None,
    price_usd_per_hour: float | None = None,
    devices: str | Path | None = None,
) -> Forecast:
    """What a training run takes on one device or many: step, epoch and total time, memory, cost.

    `on` is a device name ("T4"), "4xT4" (one node), "2x4xT4@50Gb/s" (nodes x devices @ bandwidth of a node), a machine
    ("p3.16xlarge"), a cluster file (.toml), a Cluster, or "this-machine". `batch_size` is that of one update of all
    devices; with `accumulation_steps` it is shared by so many passes. `strategy` is "ddp", "dp", "mirrored", "ps:P",
    "ps-async:P", "fsdp" or "zero1" to "zero3". `tensor_parallel` devices of a node share every block of a transformer,
    `pipeline_parallel` stages its blocks (with "ddp"; its passes fill the stages). A price is per device. None for
    precision and optimizer: as captured (zoo: fp32, sgd). `method` is "traincast", "roofline", "paleo" (with `ppp`, the
    fraction of the peaks that it reaches) or "layerwise". `host` dispatches the ops: "torch-eager" (the default),
    "tf1-session", "tf2-keras" or "this-machine". `input_samples_per_s` is what the data loader can deliver. `devices`
    is a file with devices of your own.
    """
    from traincast.forecasting.sweep import forecast_step

    (question,) = _questions(
        model,
        [on],
        method=method,
        layout=layout,
        compiled=compiled,
        ppp=ppp,
        host=host,
        devices=devices,
        precision=precision,
        optimizer=optimizer,
        batch_size=batch_size,
        accumulation_steps=accumulation_steps,
        strategy=strategy,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        n_samples=n_samples,
        n_epochs=n_epochs,
        input_samples_per_s=input_samples_per_s,
        price_usd_per_hour=price_usd_per_hour,
    )
    return forecast_step(question)


@question
def forecast_many(
    model: str | Path | Trace, on: Sequence[str | Cluster], batch_sizes: Sequence[int], **options: Any
) -> Sweep:
    """Forecasts on several devices at several batch sizes; options are those of `forecast`."""
    from traincast.forecasting.sweep import forecast_many as run

    if not len(batch_sizes):
        raise InputError("A sweep needs at least one device and one batch size.")
    return run(_questions(model, on, batch_size=batch_sizes[0], **options), batch_sizes)


@question
def scale(
    model: str | Path | Trace,
    on: str | Cluster,
    gpus: Sequence[int] | None = None,
    *,
    batch_size: int | None = None,
    batch_size_per_gpu: int | None = None,
    strategy: str = "ddp",
    algorithm: str = "nccl",
    link: str | None = None,
    n_samples: int | None = None,
    n_epochs: int = 1,
    price_usd_per_hour: float | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    layout: str = "nchw",
    compiled: bool = False,
    accumulation_steps: int = 1,
    method: str = "traincast",
    ppp: float | None = None,
    host: str | None = None,
    input_samples_per_s: float | None = None,
    devices: str | Path | None = None,
) -> Scaling:
    """What more devices make of a run: strong and weak scaling side by side, communication, runtime and cost.

    `on` is a device ("T4": a node with as many as are asked for), "2x4xT4@50Gb/s", a machine, a cluster file or a
    Cluster; `gpus` are the numbers of devices, by default 1, 2, 4 ... up to what it holds (8 of a device).
    `batch_size` is global, for strong scaling; `batch_size_per_gpu` is for weak scaling. One follows from the other
    on the largest number of devices; without both it is 32 per GPU, and `batches.remark` says so. `algorithm` is that
    of an all-reduce: "nccl" (its choice of ring and double tree), "best", "ring", "double-tree", "hierarchical", and in
    one node "tree", "butterfly", "recursive-doubling" or "master". `link` replaces the link inside a node. Other
    options are those of `forecast`.
    """
    from traincast.forecasting.scale import scale as run
    from traincast.forecasting.scale_choices import choose_batches, choose_strategy
    from traincast.forecasting.scale_places import find_places

    places = find_places(on, gpus, link=link, devices_file=devices)
    chosen = choose_strategy(strategy, algorithm)
    batches = choose_batches(batch_size, batch_size_per_gpu, n_most=places.counts[-1], n_passes=accumulation_steps)
    (question,) = _questions(
        model,
        [places.by_count[1]],
        method=method,
        layout=layout,
        compiled=compiled,
        ppp=ppp,
        host=host,
        precision=precision,
        optimizer=optimizer,
        batch_size=batches.of_all,
        accumulation_steps=accumulation_steps,
        n_samples=n_samples,
        n_epochs=n_epochs,
        input_samples_per_s=input_samples_per_s,
        price_usd_per_hour=price_usd_per_hour,
    )
    return run(replace(question, strategy=chosen), places, batches)


@question
def scale_many(
    model: str | Path | Trace,
    on: Sequence[str | Cluster],
    gpus: Sequence[int],
    batch_sizes: Sequence[int],
    *,
    strategies: Sequence[str] = ("ddp",),
    devices: str | Path | None = None,
    accumulation_steps: int = 1,
    **options: Any,
) -> ScaleSweep:
    """Steps at several places on several numbers of devices, by several strategies, at several global batch sizes."""
    from traincast.forecasting.scale_choices import choose_strategy
    from traincast.forecasting.scale_places import find_places
    from traincast.forecasting.scale_sweep import scale_many as run

    places = [find_places(each, gpus, devices_file=devices) for each in on]
    questions = _questions(
        model,
        [each.by_count[1] for each in places],
        batch_size=accumulation_steps,
        accumulation_steps=accumulation_steps,
        **options,
    )
    return run(questions, places, [choose_strategy(name) for name in strategies], batch_sizes)


@question
def _questions(
    model: str | Path | Trace,
    places: Sequence[str | Cluster],
    *,
    strategy: str = "ddp",
    method: str = "traincast",
    layout: str = "nchw",
    compiled: bool = False,
    ppp: float | None = None,
    host: str | None = None,
    devices: str | Path | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    **run: Any,
) -> list[Question]:
    """The same run at several places. Names become what they stand for, with what had to be assumed for that."""
    from traincast.forecasting.place import find_place
    from traincast.forecasting.question import Question
    from traincast.hardware.host import DEFAULT_HOST, find_host
    from traincast.kernels.methods import make_method
    from traincast.scaling.strategy import find_strategy

    chosen = make_method(method, layout=layout, ppp=ppp)
    chosen_strategy = find_strategy(strategy)
    found_host = find_host(DEFAULT_HOST if host is None else host)
    assumed = []
    if method == "paleo" and ppp is None:
        assumed.append("Paleo with a PPP of 1 reaches the datasheet's peaks, which no device does: too fast.")
    if host is not None and found_host.name != host.strip().lower():
        assumed.append(found_host.notes)
    found = [find_place(on, devices_file=devices) for on in places]
    trace = load_model(model)
    settings = trace.defaults.override(precision, optimizer)
    return [
        Question(
            trace=trace,
            device=place.device,
            cluster=place.cluster,
            strategy=chosen_strategy,
            settings=settings,
            method=chosen,
            host=found_host,
            compiled=compiled,
            warnings=(*place.warnings, *assumed),
            **run,
        )
        for place in found
    ]
