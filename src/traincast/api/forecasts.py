"""What a run takes, at one place or at many."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.models import trace_of
from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from traincast.curves.status.status import Status
    from traincast.forecasting.forecast import Forecast
    from traincast.forecasting.question import Question
    from traincast.forecasting.scale import Scaling
    from traincast.forecasting.scale_sweep import ScaleSweep
    from traincast.forecasting.sweep import Sweep
    from traincast.hardware.cluster import Cluster
    from traincast.hardware.grid import Grid
    from traincast.trace.trace import Trace


@question
def forecast(model: o.Model, on: o.Place, batch_size: o.BatchSize, **options: Unpack[o.ForecastOptions]) -> Forecast:
    """What a training run takes on one device or many: step, epoch and total time, memory, cost, energy.

    `on` is a device name ("T4"), "4xT4" (one node), "2x4xT4@50Gb/s" (nodes x devices @ bandwidth of a node), a machine
    ("p3.16xlarge"), a cluster file (.toml), a Cluster, or "this-machine". `batch_size` is that of one update of all
    devices; with `accumulation_steps` it is shared by so many passes. `strategy` is "ddp", "dp", "mirrored", "ps:P",
    "ps-async:P", "fsdp", "zero1" to "zero3" or "hsdp:N" (sharded over N devices, with copies beyond). With "ddp" or a
    sharded one, `tensor_parallel` devices of a node share every block of a transformer, `pipeline_parallel` stages its
    blocks (its passes fill the stages, in the order `pipeline_schedule`), and `context_parallel` devices every sequence
    (`context_kind` "ring" or "ulysses"). A price is per device. None for precision
    and optimizer: as captured (zoo: fp32, sgd). `method` is "traincast", "roofline", "paleo" (with `ppp`, the fraction
    of the peaks that it reaches) or "layerwise" (with `layer_weights` those of your own benchmarks). `host` dispatches
    the ops: "torch-eager" (the default), "tf1-session", "tf2-keras" or "this-machine". `input_samples_per_s` is what
    the data loader can deliver. `devices` is a file with devices of your own. `region` or `grid_g_per_kwh`, and `pue`,
    are for CO2; without them the region of the machine's price counts. `curve` is the log of an earlier run of the same
    model and data, `target` what its `metric` is to reach. `mode="inference"` is forward passes of the trained model,
    without loss, backward pass and update. `n_classes`, `image_size`, `seqlen` and `head` are those of `load_model`.
    """
    from traincast.forecasting.sweep import forecast_step

    beside = _beside(options)
    (asked,) = questions_of(model, [on], batch_size, options)
    return beside.told(forecast_step(asked))


@question
def forecasts(
    model: o.Model, on: o.Places, batch_sizes: o.MaybeBatchSizes = None, **options: Unpack[o.ForecastOptions]
) -> tuple[Forecast, ...]:
    """The forecast of each place at each batch size; options are those of `forecast`.

    Without batch sizes a language model is asked about with as many sequences on each device as fit.
    """
    if batch_sizes is None:
        return _at_usual_batches(model, on, options)
    if not len(batch_sizes):
        raise InputError(_NO_SWEEP)
    beside = _beside(options)
    each_once = list(dict.fromkeys(batch_sizes))
    questions = questions_of(model, list(dict.fromkeys(on)), each_once[0], options)
    from traincast.forecasting.sweep import forecast_many as run  # once all names are looked up

    return tuple(beside.told(one) for one in run(questions, each_once).forecasts())


def _at_usual_batches(
    model: str | Path | Trace, on: Sequence[str | Cluster], options: Mapping[str, Any]
) -> tuple[Forecast, ...]:
    """One forecast a place, each with a batch of its own."""
    from traincast.api.usual import at_usual_batch, tokens_of
    from traincast.forecasting.sweep import forecast_step

    beside = _beside(options)
    trace = trace_of(model, options, optimizer=options["optimizer"])
    tokens_of(trace)
    whole = {**options, **dict.fromkeys(o.ModelOptions.__annotations__), "mode": "train"}  # it is what was asked for
    found = []
    for asked in questions_of(trace, list(dict.fromkeys(on)), _ANY_BATCH, whole):

        def ask(batch_size: int, asked: Question = asked) -> Forecast:
            return forecast_step(replace(asked, batch_size=batch_size))

        answer, told = at_usual_batch(trace, asked.n_replicas * asked.accumulation_steps, ask)
        question = replace(answer.question, warnings=(*answer.question.warnings, told))
        found.append(beside.told(replace(answer, question=question)))
    return tuple(found)


_ANY_BATCH = 1_048_576  # until the usual one is known: no place has as many devices


@question
def forecast_many(model: o.Model, on: o.Places, batch_sizes: o.BatchSizes, **options: Unpack[o.PlacedOptions]) -> Sweep:
    """Steps on several devices at several batch sizes, as arrays; options are those of `forecast`."""
    from traincast.forecasting.sweep import forecast_many as run

    if not len(batch_sizes):
        raise InputError(_NO_SWEEP)
    return run(questions_of(model, on, batch_sizes[0], options), batch_sizes)


_NO_SWEEP = "A sweep needs at least one device and one batch size."


@question
def answer(forecast: Any, **options: Unpack[o.BesideOptions]) -> Forecast:
    """A forecast that was made, with its CO2 and its way to a target; options are those of `forecast`."""
    found: Forecast = _beside(options).told(forecast)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What a forecast tells beside its times."""

    grid: Grid | None
    pue: float
    status: Status | None

    def told(self, forecast: Forecast) -> Forecast:
        if self.status is None:
            return replace(forecast, grid=self.grid, pue=self.pue)
        from traincast.forecasting.to_target import time_to_target

        return replace(forecast, grid=self.grid, pue=self.pue, to_target=time_to_target(forecast, self.status))


def _beside(options: Mapping[str, Any]) -> _Beside:
    """Looked up before a model is loaded, which may take long."""
    return _Beside(grid=_grid(options), pue=options["pue"], status=_status(options))


def _grid(options: Mapping[str, Any]) -> Grid | None:
    from traincast.hardware.grid import Grid, find_grid

    region, g_per_kwh = options["region"], options["grid_g_per_kwh"]
    if region is not None and g_per_kwh is not None:
        raise InputError("Give either a region or the grid's emissions, not both.")
    if g_per_kwh is not None:
        return Grid(name="your own", g_per_kwh=g_per_kwh)
    return None if region is None else find_grid(region)


def _status(options: Mapping[str, Any]) -> Status | None:
    curve, target = options["curve"], options["target"]
    if curve is None:
        if target is not None or options["metric"] is not None:
            raise InputError("A target needs a curve: the log of an earlier run of the same model and data.")
        return None
    if target is None:
        raise InputError("A curve needs a target: the loss or accuracy that is good enough.")
    from traincast.api.converging import converge

    return converge(curve, metric=options["metric"], target=target)


@question
def scale(
    model: o.Model,
    on: o.Place,
    gpus: o.Gpus = None,
    *,
    batch_size: o.BatchOfAll = None,
    batch_size_per_gpu: o.BatchPerGpu = None,
    strategy: o.Strategy = "ddp",
    algorithm: o.Algorithm = "nccl",
    link: o.InsideLink = None,
    **options: Unpack[o.RunOptions],
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

    places = find_places(on, gpus, link=link, devices_file=options["devices"])
    chosen, n_passes = choose_strategy(strategy, algorithm), options["accumulation_steps"]
    batches = choose_batches(batch_size, batch_size_per_gpu, n_most=places.counts[-1], n_passes=n_passes)
    (asked,) = questions_of(model, [places.by_count[1]], batches.of_all, {**options, "devices": None})
    return run(replace(asked, strategy=chosen), places, batches)


@question
def scale_many(
    model: o.Model,
    on: o.Places,
    gpus: Sequence[int],
    batch_sizes: o.BatchSizes,
    *,
    strategies: Sequence[str] = ("ddp",),
    **options: Unpack[o.RunOptions],
) -> ScaleSweep:
    """Steps at several places on several numbers of devices, by several strategies, at several global batch sizes."""
    from traincast.forecasting.scale_choices import choose_strategy
    from traincast.forecasting.scale_places import find_places
    from traincast.forecasting.scale_sweep import scale_many as run

    places = [find_places(each, gpus, devices_file=options["devices"]) for each in on]
    first = [each.by_count[1] for each in places]
    questions = questions_of(model, first, options["accumulation_steps"], {**options, "devices": None})
    return run(questions, places, [choose_strategy(name) for name in strategies], batch_sizes)


def _length(trace: Trace, options: Mapping[str, Any]) -> dict[str, int]:
    """A run in tokens as samples of one epoch: two ways to say the same."""
    n_tokens, n_samples, n_epochs = (options.get(name) for name in ("n_tokens", "n_samples", "n_epochs"))
    if n_tokens is None:
        return {}
    each = trace.tokens_per_sample
    if each is None:
        raise InputError(
            f"{trace.name} does not read tokens: give the samples per epoch and the number of epochs instead."
        )
    needed = -(-n_tokens // each)
    if n_samples is not None and n_samples * n_epochs != needed:
        raise InputError(
            f"{n_tokens:,} tokens are {needed:,} samples of {each:,} tokens, but {n_samples * n_epochs:,} samples "
            "were given: leave one of them out."
        )
    return {} if n_samples is not None else {"n_samples": needed, "n_epochs": 1}


def questions_of(
    model: str | Path | Trace, places: Sequence[str | Cluster], batch_size: int, options: Mapping[str, Any]
) -> list[Question]:
    """The same run at several places. Names become what they stand for, with what had to be assumed for that.

    The model comes last: it may have to be captured, and a mistake in an option should not wait for that.
    """
    from traincast.forecasting.question import Question, check_before_capture
    from traincast.hardware.host import DEFAULT_HOST, find_host
    from traincast.hardware.run_place import find_place
    from traincast.kernels.methods import make_method
    from traincast.scaling.strategy import DDP, find_strategy

    found = [find_place(on, devices_file=options["devices"]) for on in places]
    method, ppp, name = options["method"], options["ppp"], options["host"]
    host = find_host(DEFAULT_HOST if name is None else name)
    chosen = make_method(method, layout=options["layout"], ppp=ppp, weights=options["layer_weights"])
    strategy = find_strategy(options["strategy"]) if "strategy" in options else DDP
    assumed = []
    if method == "paleo" and ppp is None:
        assumed.append(
            "Paleo with a PPP of 1 assumes the datasheet's peak rates, which no device reaches: the forecast is "
            "too fast."
        )
    if name is not None and host.name != name.strip().lower():
        assumed.append(host.notes)
    check_before_capture(found, batch_size, options)
    trace = trace_of(model, options, optimizer=options["optimizer"])
    settings = trace.defaults.chosen(options)
    options = {**options, **_length(trace, options)}
    as_it_is = {field.name: options[field.name] for field in fields(Question) if field.name in options}
    as_it_is["compiled"] = options["compiled"] or options["stack"] == "torch-compile"
    as_it_is |= {
        "trace": trace,
        "batch_size": batch_size,
        "settings": settings,
        "method": chosen,
        "host": host,
        "strategy": strategy,
    }
    return [
        Question(**as_it_is, device=place.device, cluster=place.cluster, warnings=(*place.warnings, *assumed))
        for place in found
    ]
