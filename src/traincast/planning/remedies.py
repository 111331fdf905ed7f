"""The changes that are tried on a run: batch, precision, layout, compiler, update, memory, loader, links."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from traincast.errors import InputError
from traincast.forecasting.device_times import DeviceTimes
from traincast.forecasting.question import Question
from traincast.hardware.device import Device
from traincast.hardware.link import Link
from traincast.kernels.predictor import Traincast
from traincast.kernels.timeline import step_timeline
from traincast.planning.checkpointing import saved_bytes
from traincast.planning.gain import (
    COMPILED_LOG_SD,
    DOUBLED_BATCH_LOG_SD,
    LAYOUT_LOG_SD,
    PRECISION_LOG_SD,
    ForecastWithErrors,
    ask,
    gain_of,
)
from traincast.planning.what_if import Found, LeftOut, WhatIf
from traincast.scaling.split import WHOLE
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.fuse import fuse_update

_MULTIPLES = (2, 4, 8, 16, 32, 64)
_NEARLY_BEST = 0.97  # of the best speed: a batch beyond is not worth its price
_CATCH_OF_PRECISION = {
    "tf32": "Products keep 10 bits of mantissa instead of 23: most networks train as before.",
    "amp-fp16": "Needs a gradient scaler; check the accuracy.",
    "amp-bf16": "8 bits of mantissa: check the accuracy; no gradient scaler is needed.",
}
_CHECK_ACCURACY = "Accuracy has to be checked."
_LATER = "A sample waits for all of its batch."
_FUSED = ("momentum", "nesterov", "adagrad", "adam", "adamw")  # what PyTorch has fused, and is more than one op


def larger_batch(before: ForecastWithErrors) -> Found:
    """The smallest batch that is nearly as fast as the fastest that fits."""
    question = before.forecast.question
    fitting = []
    for times in _MULTIPLES:
        asked = ask(replace(question, batch_size=times * question.batch_size))
        if not asked.forecast.fits:
            break
        fitting.append((times, asked))
    if not fitting:
        return [LeftOut("larger batch", f"twice the batch does not fit {question.device.name}")]
    best = max(asked.forecast.samples_per_s for _, asked in fitting)
    times, asked = next(
        (times, asked) for times, asked in fitting if asked.forecast.samples_per_s >= _NEARLY_BEST * best
    )
    return [
        _what_if(
            before,
            asked,
            name="larger batch",
            change=f"batch {asked.forecast.batch_size:,} instead of {question.batch_size:,}",
            catch=_LATER
            if question.is_inference
            else f"1/{times} of the updates per epoch: the learning rate has to be adapted, and convergence may need "
            "more epochs.",
            own_log_sd=DOUBLED_BATCH_LOG_SD * math.sqrt(math.log2(times)),
        )
    ]


def precision(before: ForecastWithErrors) -> Iterator[WhatIf | LeftOut]:
    """Those that the device has units for; with convolutions also in channels-last."""
    question = before.forecast.question
    own = question.settings.precision
    higher = {"fp32": ("tf32", "amp-fp16", "amp-bf16"), "tf32": ("amp-fp16", "amp-bf16")}.get(own, ())
    if not higher:
        yield LeftOut("lower precision", f"it already runs in {own}")
    for name in higher:
        lacking = _lacks(question.device, name)
        if lacking:
            yield LeftOut(name, lacking)
            continue
        changed = replace(question, settings=replace(question.settings, precision=name))
        catch = _CHECK_ACCURACY if question.is_inference else _CATCH_OF_PRECISION[name]
        yield _what_if(
            before,
            ask(changed),
            name=name,
            change=f"{name} instead of {own}",
            catch=catch,
            other_kernels=True,
            own_log_sd=PRECISION_LOG_SD,
        )
        if name.startswith("amp") and _may_change_layout(question):
            yield _what_if(
                before,
                ask(_channels_last(changed)),
                name=f"{name} and channels-last",
                change=f"{name} instead of {own}, images as nhwc",
                catch=f"{catch} Every op has to keep the layout.",
                other_kernels=True,
                own_log_sd=math.hypot(PRECISION_LOG_SD, LAYOUT_LOG_SD),
            )


def channels_last(before: ForecastWithErrors) -> Found:
    """Images as nhwc, alone."""
    question = before.forecast.question
    if not _may_change_layout(question):
        reason = "images already have this layout" if question.layout == "nhwc" else "the model has no convolutions"
        if not isinstance(question.method, Traincast):
            reason = f"the method {question.method.name} does not distinguish layouts"
        return [LeftOut("channels-last", reason)]
    asked = ask(_channels_last(question))
    catch = "Every op has to keep the layout: one that does not copies its input."
    sure = {"other_kernels": True, "own_log_sd": LAYOUT_LOG_SD}
    return [_what_if(before, asked, name="channels-last", change="images as nhwc", catch=catch, **sure)]


def compiling(before: ForecastWithErrors) -> Found:
    """torch.compile."""
    question = before.forecast.question
    if question.compiled:
        return [LeftOut("torch.compile", "the model is already compiled")]
    catch = (
        "The first steps take minutes, and changing shapes compile anew; such gains were measured in inference only."
    )
    asked = ask(replace(question, compiled=True))
    sure = {"other_kernels": True, "own_log_sd": COMPILED_LOG_SD}
    return [_what_if(before, asked, name="torch.compile", change="compiled", catch=catch, **sure)]


def fused_optimizer(before: ForecastWithErrors) -> Found:
    """The whole update in one kernel: states and gradients are read once."""
    question, name = before.forecast.question, "fused optimizer"
    optimizer = question.settings.optimizer
    if question.is_inference:
        return [LeftOut(name, "inference updates no weights")]
    if optimizer not in _FUSED:
        return [
            LeftOut(
                name, f"{optimizer} already makes a single pass over the weights, or PyTorch has no fused form of it"
            )
        ]
    if question.device.kind == "cpu" or question.split != WHOLE:
        return [LeftOut(name, "it is estimated for whole models on GPUs only")]
    known = _with_fused_update(question)
    if not known.times.is_covered.all():
        return [LeftOut(name, f"the method {question.method.name} has no figure for it")]
    asked = ask(question, known)
    catch = "PyTorch has it for Adam, AdamW, SGD and Adagrad (fused=True) on CUDA."
    return [_what_if(before, asked, name=name, change=f"{optimizer} as one kernel", catch=catch)]


def checkpointing(before: ForecastWithErrors) -> Found:
    """Activations made again in the backward pass: reckoned, not asked."""
    question, name = before.forecast.question, "checkpointing"
    if question.is_inference:
        return [LeftOut(name, "inference keeps no activations")]
    if question.graph.op_recomputed.any():
        return [LeftOut(name, "the model already does it")]
    if question.split != WHOLE:
        return [LeftOut(name, "it is estimated for whole models only")]
    saved = saved_bytes(question)
    if not saved:
        return [LeftOut(name, "activations do not dominate its memory")]
    own = before.forecast
    spare_s = min(own.input_wait_s, own.forward_s)  # while the loader is waited for, more work costs nothing
    waited = replace(own, backward_s=own.backward_s + own.forward_s, input_wait_s=own.input_wait_s - spare_s)
    slower = ForecastWithErrors(waited, before.errors)
    needed = own.peak_memory_bytes - saved
    found = _what_if(
        before,
        slower,
        name=name,
        change="the forward pass runs twice",
        catch=_fitting(needed, question, already=own.fits)
        + "Estimated from tensor lifetimes and the forward pass, for the best of several even partitions.",
    )
    return [replace(found, peak_memory_bytes=needed, is_reckoned=True)]


def more_loader_workers(before: ForecastWithErrors) -> Found:
    """A loader of twice the rate."""
    question, name = before.forecast.question, "more loader workers"
    rate = question.input_samples_per_s
    if rate is None:
        return [LeftOut(name, "the loader is assumed to keep up, because its rate is unknown")]
    if not before.forecast.input_wait_s:
        return [LeftOut(name, f"the loader keeps up at {rate:,.0f} samples per second")]
    asked = ask(replace(question, input_samples_per_s=2 * rate))
    change = f"{2 * rate:,.0f} samples per second instead of {rate:,.0f}"
    catch = "Twice the workers deliver twice as much only while there are spare cores and the disk keeps up."
    return [_what_if(before, asked, name=name, change=change, catch=catch)]


def faster_link(before: ForecastWithErrors) -> Iterator[WhatIf | LeftOut]:
    """Twice the rate, inside a node and between nodes."""
    question, name = before.forecast.question, "faster link"
    cluster = question.cluster
    if cluster is None or cluster.n_devices == 1 or question.is_inference:
        yield LeftOut(
            name, "inference sends nothing" if question.is_inference else "a single device does not communicate"
        )
        return
    if cluster.placement[0] > 1:
        changed = replace(cluster, inside=_doubled(cluster.inside))
        asked = ask(replace(question, cluster=changed))
        change = f"twice the rate of {cluster.inside.name} inside a node"
        yield _what_if(before, asked, name=f"{name} in a node", change=change, catch="Another machine.")
    if cluster.n_nodes > 1 and cluster.between is not None:
        changed = replace(cluster, between=_doubled(cluster.between))
        asked = ask(replace(question, cluster=changed))
        change = f"twice the rate of {cluster.between.name} between nodes"
        yield _what_if(before, asked, name=f"{name} between nodes", change=change, catch="Another machine or network.")


ALL = (
    larger_batch,
    precision,
    channels_last,
    compiling,
    fused_optimizer,
    checkpointing,
    more_loader_workers,
    faster_link,
)


def _what_if(
    before: ForecastWithErrors, after: ForecastWithErrors, *, name: str, change: str, catch: str, **sure: Any
) -> WhatIf:
    """`sure` says how far the two forecasts err alike, as `gain_of` takes it."""
    return WhatIf(
        name=name,
        change=change,
        catch=catch,
        forecast=after.forecast,
        gain=gain_of(before, after, **sure),
        peak_memory_bytes=after.forecast.peak_memory_bytes,
    )


def _lacks(device: Device, precision: str) -> str:
    """Why a device gains nothing from a precision, or nothing."""
    try:
        peak = device.peak(precision)
    except InputError as error:  # its rate is not in the table
        return str(error).rstrip(".")
    return f"{device.name} has no {peak.asked} units" if peak.is_fallback else ""


def _may_change_layout(question: Question) -> bool:
    has_images = OpKind.CONVOLUTION in op_kinds(question.graph)
    return has_images and isinstance(question.method, Traincast) and question.layout == "nchw"


def _channels_last(question: Question) -> Question:
    assert isinstance(question.method, Traincast)
    return replace(question, method=replace(question.method, layout="nhwc"))


def _with_fused_update(question: Question) -> DeviceTimes:
    graph, micro = fuse_update(question.timed_graph), np.array([question.micro_batch_size])
    times = question.timed_method.op_times(graph, question.device, micro, precision=question.settings.precision)
    n_passes = question.accumulation_steps
    timeline = step_timeline(graph, times, question.timed_host, n_micro_steps=n_passes)
    return DeviceTimes(graph=graph, micro_batch_sizes=micro, times=times, timeline=timeline)


def _fitting(needed_bytes: int, question: Question, *, already: bool) -> str:
    if already:
        return "Memory for a larger batch or model. "
    usable = question.device.usable_memory_bytes
    return "It would then fit. " if needed_bytes <= usable else "It would still not fit. "


def _doubled(link: Link) -> Link:
    return replace(link, name=f"2 x {link.name}", bytes_per_s=2 * link.bytes_per_s)
