"""The answer: what one step, one epoch and the whole run take, how sure that is, and whether it fits."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traincast import __version__
from traincast.errors import InputError
from traincast.estimate import Estimate
from traincast.forecasting.assumptions import assumptions_of
from traincast.forecasting.by_bound import seconds_by_bound
from traincast.forecasting.energy import Energy, energy_of
from traincast.forecasting.question import Question
from traincast.forecasting.split_memory import split_memory_bytes
from traincast.forecasting.spread import LINK_LOG_SD
from traincast.forecasting.utilisation import may_pass_peak, passed_peak, peak_s
from traincast.hardware.grid import Grid, grid_named
from traincast.lognormal import p90_factor
from traincast.memory.overhead import reported_bytes
from traincast.scaling.held_memory import held_bytes_change
from traincast.scaling.model_parallel import WHOLE
from traincast.trace.flop import op_flop
from traincast.trace.traffic import op_bytes
from traincast.units import show_bytes, show_duration, show_ratio, show_usd

if TYPE_CHECKING:
    from traincast.forecasting.to_target import ToTarget

PARTS = (
    "forward_s",
    "loss_s",
    "backward_s",
    "optimizer_s",
    "exposed_communication_s",
    "input_wait_s",
)
NO_LENGTH = "Total time and cost need the number of samples per epoch."
_EXACT = ("peak_memory_bytes", "covered_flop_fraction")
_COMPILED = (
    "Compiled steps have the kernels that PyTorch's Inductor plans in its default mode; measured runs have checked "
    "them in inference on one GPU only."
)
NUMBERS = (
    "step_s",
    *PARTS,
    "samples_per_s",
    "flop_utilisation",
    "epoch_s",
    "total_s",
    "cost_usd",
    "peak_memory_bytes",
    "covered_flop_fraction",
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Forecast:
    """One training run on one device or many. Times are medians; `interval` gives p10 and p90.

    Memory, utilisation and warnings are worked out when they are first asked for: a search over thousands of
    forecasts often needs the times alone.
    """

    question: Question
    forward_s: float
    loss_s: float
    backward_s: float
    optimizer_s: float
    exposed_communication_s: float = 0.0
    communication_s: float = 0.0  # how long the links are busy
    bytes_sent: float = 0.0  # by the process that sends most
    input_wait_s: float = 0.0
    bubble_s: float = 0.0  # of forward, loss and backward: a stage of a pipeline waits for others
    host_s: float  # what the host works on a step
    device_s: float  # what the device works on it
    compute_s: float  # and what of that more FLOP/s would shrink
    log_sd: float  # of the step without waiting for input
    is_covered: NDArray[np.bool_]  # ops of the lowered graph that the method has a figure for
    method_warnings: tuple[str, ...] = field(default=())
    grid: Grid | None = None  # what its electricity emits; None: that of the region whose price counts
    pue: float = 1.0
    to_target: ToTarget | None = None

    @property
    def model(self) -> str:
        return self.question.trace.name

    @property
    def device(self) -> str:
        return self.question.device.name

    @property
    def place(self) -> str:
        """What it runs on, in the user's words: a device or a cluster."""
        return self.question.place

    @property
    def batch_size(self) -> int:
        return self.question.batch_size

    @property
    def step_s(self) -> float:
        """One update, from the first op until host and device are done."""
        return self._busy_s + self.input_wait_s

    @property
    def _busy_s(self) -> float:
        return self.forward_s + self.loss_s + self.backward_s + self.optimizer_s + self.exposed_communication_s

    @cached_property
    def bound_s(self) -> dict[str, float]:
        """Seconds of a step by what would have to be faster; they add up to it."""
        found = seconds_by_bound(
            np.array([self._busy_s - self.exposed_communication_s]),
            np.array([self.device_s]),
            np.array([self.compute_s]),
            bubble_s=np.array([self.bubble_s]),
            exposed_s=np.array([self.exposed_communication_s]),
            input_wait_s=np.array([self.input_wait_s]),
        )
        return {name: float(seconds[0]) for name, seconds in found.items()}

    @property
    def bound_by(self) -> str:
        """Its largest part: "compute" | "memory" | "host" | "input" | "communication" | "pipeline" (the bubble)."""
        return max(self.bound_s, key=self.bound_s.__getitem__)

    @property
    def samples_per_s(self) -> float:
        return self.batch_size / self.step_s if self.step_s else math.inf

    @property
    def epoch_s(self) -> float | None:
        """A last batch that is not full takes as long as a full one."""
        n_samples = self.question.n_samples
        return None if n_samples is None else math.ceil(n_samples / self.batch_size) * self.step_s

    @property
    def total_s(self) -> float | None:
        return None if self.epoch_s is None else self.question.n_epochs * self.epoch_s

    @property
    def cost_usd(self) -> float | None:
        price = self.question.run_price_usd_per_hour
        return None if price is None or self.total_s is None else price * self.total_s / 3600

    @cached_property
    def flop_utilisation(self) -> float:
        """Flop of the model's step over what the devices could do in that time at the peak of this precision.

        Above 1 where convolutions run by algorithms that need fewer: a warning says so.
        """
        return peak_s(self.question) / self.step_s if self.step_s else 0.0

    @cached_property
    def covered_flop_fraction(self) -> float:
        """Share of the work that the method has a figure for: of the flop, and of the bytes of ops without flop."""
        if self.is_covered.all():
            return 1.0
        batch = np.array([self.question.micro_batch_size])
        graph = self.question.timed_graph
        flop, moved = op_flop(graph, batch)[0], op_bytes(graph, batch)[0]
        uncovered_flop = flop[~self.is_covered].sum() / max(flop.sum(), 1.0)
        uncovered_bytes = moved[~self.is_covered & (flop == 0)].sum() / max(moved.sum(), 1.0)
        return float((1 - uncovered_flop) * (1 - uncovered_bytes))

    @cached_property
    def peak_memory_bytes(self) -> int:
        """What the device is expected to report at the peak, with the allowances of `traincast memory`."""
        question, graph = self.question, self.question.graph
        if question.split != WHOLE:
            return split_memory_bytes(question)
        reported = reported_bytes(graph, question.micro_batch_size, device=question.device)
        return reported + held_bytes_change(question.strategy, graph, question.n_devices)

    @property
    def fits(self) -> bool:
        return self.peak_memory_bytes <= self.question.device.usable_memory_bytes

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to know before relying on it."""
        question = self.question
        found = [*question.warnings, *self.method_warnings]
        if question.compiled:
            found.append(_COMPILED)
        found += _without_effect(question, has_traffic=self.communication_s > 0)
        if question.split != WHOLE:
            found += _split_warnings(question)
        peak = question.device.peak(question.settings.precision)
        if peak.is_fallback:
            found.append(f"{self.device} has no {peak.asked} units: matrix products run at the {peak.used} rate.")
        if question.has_limited_flows:
            found.append(
                "Over TCP a ring is one flow from node to node unless NCCL opens several, and clouds limit flows (AWS "
                "to 5 Gb/s, 10 in a placement group): if yours is one, write its rate after the @."
            )
        if not question.is_even:
            who = "devices" if question.split == WHOLE else "replicas"
            found.append(
                f"A batch of {self.batch_size:,} does not divide evenly by {question.n_replicas:,} {who}: the fullest "
                f"has {question.micro_batch_size:,} samples per pass, and the others wait for it."
            )
        if self.flop_utilisation > 1:
            found.append(passed_peak(question))
        if not self.fits:
            need, usable = show_bytes(self.peak_memory_bytes), show_bytes(question.device.usable_memory_bytes)
            found.append(f"Does not fit: needs {need}, but {self.device} has {usable} usable.")
        if self.covered_flop_fraction < 1:
            found.append(
                f"The method {question.method.name} has figures for {100 * self.covered_flop_fraction:.1f} % of the "
                "work; the rest counts as zero time."
            )
        if self.to_target is not None:
            from traincast.forecasting.to_target import ends_before  # curves are loaded by those who ask for one

            short = ends_before(self, self.to_target)
            found += [] if short is None else [short]
        return tuple(found)

    @cached_property
    def energy(self) -> Energy | None:
        """Power, energy and CO2; None where the power limit of the device is not known."""
        cluster = self.question.cluster
        of_place = grid_named(cluster.region) if cluster is not None and cluster.region else None
        return energy_of(self, grid=self.grid or of_place, pue=self.pue)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers take for granted."""
        return assumptions_of(self)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Every number that is known, with its p10 and p90."""
        known = {name: value for name in NUMBERS if (value := getattr(self, name)) is not None}
        ends = {name: self.interval(name) for name in known}
        return {name: Estimate(ends[name][0], value, ends[name][1]) for name, value in known.items()}

    def interval(self, name: str) -> tuple[float, float]:
        """p10 and p90 of a number. Memory and coverage have no spread of their own: both ends are the value."""
        if name not in NUMBERS:
            raise InputError(f"'{name}' has no interval; these have: {', '.join(NUMBERS)}.")
        value = getattr(self, name)
        if value is None:
            raise InputError(f"{name} is not known: it needs n_samples{' and a price' if name == 'cost_usd' else ''}.")
        if name in _EXACT or not self.step_s:
            return value, value
        factor = p90_factor(self.log_sd)
        fast_s, slow_s = self._busy_s / factor, self._busy_s * factor
        if name == "input_wait_s":
            return max(self._input_s - slow_s, 0.0), max(self._input_s - fast_s, 0.0)
        if name == "exposed_communication_s":
            return value / p90_factor(LINK_LOG_SD), value * p90_factor(LINK_LOG_SD)
        if name in PARTS:
            return value / factor, value * factor
        low, high = (max(seconds, self._input_s) / self.step_s for seconds in (fast_s, slow_s))
        if name == "flop_utilisation":
            is_bounded = value <= 1 and not may_pass_peak(self.question)
            return value / high, min(value / low, 1.0) if is_bounded else value / low
        return (value / high, value / low) if name == "samples_per_s" else (value * low, value * high)

    @property
    def _input_s(self) -> float:
        """How long the loader needs for a batch; 0 where it is not asked about."""
        rate = self.question.input_samples_per_s
        return 0.0 if rate is None else self.batch_size / rate

    def to_dict(self) -> dict[str, object]:
        """What --json prints."""
        question = self.question
        return {
            "model": self.model,
            "device": self.device,
            "on": question.place,
            "n_devices": question.n_devices,
            "strategy": question.strategy.name if question.n_devices > 1 else None,
            "tensor_parallel": question.tensor_parallel,
            "pipeline_parallel": question.pipeline_parallel,
            "batch_size": self.batch_size,
            "batch_size_per_device": question.micro_batch_size * question.accumulation_steps,
            "accumulation_steps": question.accumulation_steps,
            "precision": question.settings.precision,
            "optimizer": question.settings.optimizer,
            "layout": question.layout,
            "compiled": question.compiled,
            "method": question.method.name,
            "host": question.host.name,
            "input_samples_per_s": question.input_samples_per_s,
            "n_samples": question.n_samples,
            "n_epochs": question.n_epochs,
            "price_usd_per_hour": question.price_usd_per_hour,
            "run_price_usd_per_hour": question.run_price_usd_per_hour,
            **{name: getattr(self, name) for name in NUMBERS},
            "bound_by": self.bound_by,
            "fits": self.fits,
            "usable_memory_bytes": question.device.usable_memory_bytes,
            "communication_s": self.communication_s,
            "bytes_sent": self.bytes_sent,
            "host_s": self.host_s,
            "device_s": self.device_s,
            **self._energy_dict(),
            "bound_s": self.bound_s,
            "to_target": None if self.to_target is None else self.to_target.to_dict(),
            "intervals": self._intervals(),
            "assumptions": self.assumptions,
            "warnings": self.warnings,
            "version": __version__,
        }

    def _energies(self) -> dict[str, Estimate | None]:
        energy = self.energy
        if energy is None:
            return {"power_w": None, "energy_j": None, "co2_kg": None}
        return {"power_w": energy.power_w, "energy_j": energy.total_j, "co2_kg": energy.co2_kg}

    def _energy_dict(self) -> dict[str, object]:
        energy = self.energy
        return {
            **{name: None if value is None else value.p50 for name, value in self._energies().items()},
            "pue": None if energy is None else energy.pue,
            "grid": None if energy is None or energy.grid is None else asdict(energy.grid),
        }

    def _intervals(self) -> dict[str, tuple[float, float]]:
        known = {name: value.ends for name, value in self.estimates.items()}
        return known | {name: value.ends for name, value in self._energies().items() if value is not None}

    def __repr__(self) -> str:
        low, high = (show_duration(seconds) for seconds in self.interval("step_s"))
        return (
            f"Forecast({self.model!r} on {self.place}, batch {self.batch_size}: {show_duration(self.step_s)} per step "
            f"({low} to {high}), bound by {self.bound_by})"
        )

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook

        shows = {"step": ("step_s", show_duration), "samples/s": ("samples_per_s", show_ratio)}
        shows |= {"epoch": ("epoch_s", show_duration), "total": ("total_s", show_duration)}
        shows |= {"cost": ("cost_usd", show_usd)}
        rows: list[tuple[str | None, ...]] = [
            (words, show(getattr(self, name)), *(show(end) for end in self.interval(name)))
            for words, (name, show) in shows.items()
            if getattr(self, name) is not None
        ]
        rows.append(("memory", show_bytes(self.peak_memory_bytes), "fits" if self.fits else "does not fit", ""))
        rows.append(("bound by", self.bound_by, "", ""))
        title = f"{self.model} on {self.place}, batch {self.batch_size}"
        table = to_notebook(title, rows, header=("", "expected", "p10", "p90"), notes=self.warnings)
        shares = [(name, show_duration(seconds)) for name, seconds in self.bound_s.items()]
        return f"{table}{to_notebook('A step by what bounds it', shares, notes=self.assumptions)}"


def complete(forecast: Forecast) -> Forecast:
    """The same, with all that is worked out on demand there: for those who show the whole of it."""
    _ = forecast.flop_utilisation, forecast.fits, forecast.estimates, forecast.energy
    _ = forecast.bound_by, forecast.warnings, forecast.assumptions
    return forecast


def _without_effect(question: Question, *, has_traffic: bool) -> list[str]:
    """What was asked for and changes nothing."""
    found = []
    if question.n_devices == 1 and question.strategy.kind != "ddp" and not has_traffic:
        found.append(f"Strategy '{question.strategy.name}' has no effect on a single device.")
    if question.n_samples is None and (question.n_epochs > 1 or question.price_usd_per_hour is not None):
        found.append(NO_LENGTH)
    return found


def _split_warnings(question: Question) -> list[str]:
    found = ["Tensor and pipeline parallelism are modelled, but not yet checked against measurements."]
    n_passes, n_stages = question.accumulation_steps, question.pipeline_parallel
    if n_passes < n_stages:
        idle = question.split.bubble_fraction(n_passes)
        found.append(
            f"{n_passes} pass{'es' * (n_passes > 1)} for {n_stages} stages leave{'s' * (n_passes == 1)} the pipeline "
            f"idle for {100 * idle:.0f} % of its time: more accumulation steps would fill it."
        )
    return found
