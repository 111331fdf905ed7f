"""What more devices make of a run: strong scaling (the global batch stays) and weak scaling (that of a device stays).

Legend: T(N) is the time of one step on N devices. All words are those of `scaling/speedup.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from traincast.forecasting.device_times import device_times, micro_batches, steps_at
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.port_traffic import port_bytes
from traincast.forecasting.question import Question
from traincast.forecasting.scale_choices import ScaleBatches
from traincast.forecasting.scale_places import Places
from traincast.hardware.link import Link
from traincast.scaling import speedup
from traincast.units import show_duration, show_percent, show_ratio

_INTERVALS = ("step_s", "samples_per_s", "epoch_s", "total_s", "cost_usd")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ScalingPoint:
    """One number of devices. `speedup` is T(1)/T(N) in strong scaling and the scaled N T(1)/T(N) in weak scaling.

    `serial_fraction` is Amdahl's (by Karp and Flatt) in strong scaling and Gustafson's in weak; NaN on one device.
    """

    forecast: Forecast
    speedup: float
    efficiency_fraction: float
    serial_fraction: float

    @property
    def n_devices(self) -> int:
        return self.forecast.question.n_devices

    @property
    def batch_size_per_device(self) -> int:
        """Of the fullest device where shares are not even."""
        return self.forecast.question.micro_batch_size * self.forecast.question.accumulation_steps

    @property
    def n_steps(self) -> int | None:
        """Of an epoch; None without a number of samples."""
        n_samples = self.forecast.question.n_samples
        return None if n_samples is None else math.ceil(n_samples / self.forecast.batch_size)

    @property
    def compute_s(self) -> float:
        """Of a step: forward, loss, backward and update of a device, with what it waits for the host."""
        one = self.forecast
        return one.forward_s + one.loss_s + one.backward_s + one.optimizer_s

    @property
    def link(self) -> Link | None:
        """What the devices send through: the link between nodes where there are several. None: a device alone."""
        cluster = self.forecast.question.cluster
        if cluster is None or not self.forecast.bytes_sent:
            return None
        return cluster.between if cluster.n_nodes > 1 else cluster.inside

    @property
    def bytes_per_s(self) -> float | None:
        """What the process that sends most reaches while the links are busy, in one direction."""
        one = self.forecast
        return one.bytes_sent / one.communication_s if one.bytes_sent and one.communication_s else None

    @property
    def link_fraction(self) -> float | None:
        """What passes the link meanwhile over its nominal rate: of one process inside a node, of a node between."""
        if self.link is None or self.bytes_per_s is None:
            return None
        of_node = port_bytes(self.forecast.question)
        rate = self.bytes_per_s if of_node is None else of_node / self.forecast.communication_s
        return rate / self.link.bytes_per_s

    def to_dict(self) -> dict[str, object]:
        one = self.forecast
        return {
            "n_devices": self.n_devices,
            "batch_size": one.batch_size,
            "batch_size_per_device": self.batch_size_per_device,
            "step_s": one.step_s,
            "samples_per_s": one.samples_per_s,
            "epoch_s": one.epoch_s,
            "total_s": one.total_s,
            "cost_usd": one.cost_usd,
            "intervals": {name: one.interval(name) for name in _INTERVALS if getattr(one, name) is not None},
            "efficiency_fraction": self.efficiency_fraction,
            "n_steps_per_epoch": self.n_steps,
            "compute_s": self.compute_s,
            "communication_s": one.communication_s,
            "exposed_communication_s": one.exposed_communication_s,
            "input_wait_s": one.input_wait_s,
            "bytes_sent": one.bytes_sent,
            "bytes_per_s": self.bytes_per_s,
            "node_bytes_sent": port_bytes(one.question),
            "link": None if self.link is None else self.link.name,
            "link_bytes_per_s": None if self.link is None else self.link.bytes_per_s,
            "link_fraction": self.link_fraction,
            "bound_by": one.bound_by,
            "peak_memory_bytes": one.peak_memory_bytes,
            "fits": one.fits,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class ScalingCurve:
    """One way of scaling: the run on one device, and on each number of devices that was asked about."""

    kind: speedup.Kind
    one: Forecast
    forecasts: tuple[Forecast, ...]

    @cached_property
    def scaling(self) -> speedup.Speedups:
        measure = speedup.strong_scaling if self.kind == "strong" else speedup.weak_scaling
        counts = [each.question.n_devices for each in self.forecasts]
        return measure(counts, [each.step_s for each in self.forecasts], one_device_s=self.one.step_s)

    @cached_property
    def points(self) -> tuple[ScalingPoint, ...]:
        found = self.scaling
        measures = zip(found.speedup, found.efficiency_fraction, found.serial_fraction, strict=True)
        return tuple(
            ScalingPoint(
                forecast=forecast,
                speedup=float(gain),
                efficiency_fraction=float(efficiency),
                serial_fraction=float(serial),
            )
            for forecast, (gain, efficiency, serial) in zip(self.forecasts, measures, strict=True)
        )

    def to_dict(self) -> dict[str, object]:
        """With the names that the measures have in this kind of scaling."""
        is_strong = self.kind == "strong"
        gain, serial = ("speedup", "amdahl_serial_fraction") if is_strong else ("scaled_speedup", "gustafson_fraction")
        points = [each.to_dict() | {gain: each.speedup, serial: each.serial_fraction} for each in self.points]
        return {"one_device_step_s": self.one.step_s, "one_device_fits": self.one.fits, "points": points}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Scaling:
    """A run on several numbers of devices, with the same global batch and with the same batch of each device."""

    question: Question  # with the global batch of strong scaling; its place is one of several
    places: Places
    batches: ScaleBatches
    strong: ScalingCurve
    weak: ScalingCurve

    @property
    def model(self) -> str:
        return self.question.trace.name

    @property
    def on(self) -> str:
        return self.places.name

    def to_dict(self) -> dict[str, object]:
        """What --json prints."""
        question, settings = self.question, self.question.settings
        return {
            "model": self.model,
            "mode": question.trace.mode,
            "device": question.device.name,
            "on": self.on,
            "strategy": question.strategy.name,
            "algorithm": question.strategy.algorithm,
            "precision": settings.precision,
            "optimizer": settings.optimizer,
            "layout": question.layout,
            "compiled": question.compiled,
            "compile_mode": question.compile_mode if question.compiled else None,
            "method": question.method.name,
            "host": question.host.name,
            "accumulation_steps": question.accumulation_steps,
            "input_samples_per_s": question.input_samples_per_s,
            "n_samples": question.n_samples,
            "n_epochs": question.n_epochs,
            "price_usd_per_hour": question.price_usd_per_hour,
            "strong": {"batch_size": self.batches.of_all, **self.strong.to_dict()},
            "weak": {"batch_size_per_device": self.batches.of_each, **self.weak.to_dict()},
            "remarks": [self.batches.remark] if self.batches.remark else [],
            "warnings": self.warnings,
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to know before relying on it; what holds on some numbers of devices only names them."""
        answers = {curve.kind: (curve.one, *curve.forecasts) for curve in (self.strong, self.weak)}
        everywhere = set.intersection(*(set(each.warnings) for group in answers.values() for each in group))
        notes = [*self.places.warnings, *(text for text in self.strong.one.warnings if text in everywhere)]
        for kind, group in answers.items():
            for text in dict.fromkeys(text for each in group for text in each.warnings if text not in everywhere):
                counts = sorted({each.question.n_devices for each in group if text in each.warnings})
                some = "" if len(counts) == len(self.places.by_count) else f", {', '.join(map(str, counts))} GPUs"
                notes.append(f"{kind.capitalize()} scaling{some.replace(' 1 GPUs', ' 1 GPU')}: {text}")
        for curve in (self.strong, self.weak):
            notes += [f"{curve.kind.capitalize()} scaling: {text}" for text in curve.scaling.warnings]
        if not all(each.fits for group in answers.values() for each in group):
            notes.append("Times of runs that do not fit are estimated as if they did.")
        return tuple(dict.fromkeys(notes))

    def __repr__(self) -> str:
        last, scaled = self.strong.points[-1], self.weak.points[-1]
        return (
            f"Scaling({self.model!r} on {self.on}: batch {self.batches.of_all} takes "
            f"{show_duration(self.strong.one.step_s)} on 1 device and {show_duration(last.forecast.step_s)} on "
            f"{last.n_devices}, speedup {last.speedup:.2f}; {self.batches.of_each} per device, scaled speedup "
            f"{scaled.speedup:.2f})"
        )

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook

        rows = [
            (f"{strong.n_devices}", *_told(strong), *_told(weak))
            for strong, weak in zip(self.strong.points, self.weak.points, strict=True)
        ]
        measures = ("step", "speedup", "efficiency")
        header = ("GPUs", *(f"strong: {name}" for name in measures), *(f"weak: {name}" for name in measures))
        batches = f"a batch of {self.batches.of_all:,}, or {self.batches.of_each:,} per device"
        return to_notebook(f"{self.model} on {self.on}: {batches}", rows, header=header, notes=self.warnings)


def _told(point: ScalingPoint) -> tuple[str, str, str]:
    speedup, efficiency = show_ratio(point.speedup), show_percent(point.efficiency_fraction)
    return show_duration(point.forecast.step_s), speedup, efficiency


def scale(question: Question, places: Places, batches: ScaleBatches) -> Scaling:
    """Both curves. The op times of the device are worked out once, for all batch sizes that one of its passes has."""

    def asked(n: int, batch_size: int) -> Question:
        return replace(question, cluster=places.by_count[n], batch_size=batch_size)

    strong = {n: asked(n, batches.of_all) for n in places.by_count}
    weak = {n: asked(n, n * batches.of_each) for n in places.by_count}
    all_questions = [*strong.values(), *weak.values()]
    sizes = np.array([int(micro_batches(each, np.array([each.batch_size]))[0]) for each in all_questions])
    known = device_times(all_questions[0], sizes)

    def answer(each: Question) -> Forecast:
        return steps_at(known, each, np.array([each.batch_size])).forecasts()[0]

    return Scaling(
        question=strong[places.counts[-1]],
        places=places,
        batches=batches,
        strong=_curve("strong", strong, places, answer),
        weak=_curve("weak", weak, places, answer),
    )


def _curve(
    kind: speedup.Kind, questions: dict[int, Question], places: Places, answer: Callable[[Question], Forecast]
) -> ScalingCurve:
    answers = {n: answer(each) for n, each in questions.items()}
    return ScalingCurve(kind=kind, one=answers[1], forecasts=tuple(answers[n] for n in places.counts))
