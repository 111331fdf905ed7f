"""Real data-parallel training in 2 processes against its forecast:  python benchmarks/live_ddp.py [--write]

Calibrates with 2 processes, forecasts models that calibration does not run, then trains them for real under torchrun
(gloo, CPU), each several times. Takes about 20 minutes, in which nothing else should run. With --write the page
docs/live_ddp.md is made.
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import traincast as tc
from traincast.api.calibrating import Calibration
from traincast.api.processes import measure_processes
from traincast.forecasting.forecast import Forecast
from traincast.measurement.processes.result import ProcessesMeasurement
from traincast.report.files import write_file
from traincast.units import show_bytes, show_bytes_per_s, show_duration

PAGE = Path(__file__).parents[1] / "docs" / "live_ddp.md"
FIVE = Path(__file__).with_name("five_models.py")
TARGET = 0.20
N_PROCESSES = 2


def perceptron() -> Any:
    """13.6 million weights and little to compute: communication and copies are most of a step."""
    import torch

    layers = [torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 4096), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(4096, 768)), lambda n: torch.randn(n, 1024)


# Model, batch of both processes, optimizer.
RUNS = (
    ("mnist_cnn", 64, "sgd"),
    ("cifar_resnet20", 32, "sgd"),
    ("cifar10_cnn", 64, "adam"),
    ("mobilenet_v2", 4, "sgd"),
    (f"{FIVE}:cnn", 64, "sgd"),
    (f"{FIVE}:mlp", 128, "adam"),
    (f"{FIVE}:transformer", 16, "adam"),
    (f"{FIVE}:lstm", 32, "sgd"),
    (f"{FIVE}:mixed", 32, "sgd"),
    (f"{__file__}:perceptron", 32, "sgd"),
    (f"{__file__}:perceptron", 512, "sgd"),
)


@dataclass(frozen=True)
class Row:
    """One run, measured several times, and the forecasts of it."""

    forecast: Forecast
    found: tuple[ProcessesMeasurement, ...]

    @property
    def name(self) -> str:
        return f"{self.found[0].model.rpartition(':')[2]}, {self.found[0].batch_size}, {self.found[0].optimizer}"

    def median(self, what: Callable[[ProcessesMeasurement], float]) -> float:
        return float(np.median([what(each) for each in self.found]))

    @property
    def step_s(self) -> float:
        return self.median(lambda each: each.step_s)

    @property
    def noise(self) -> float:
        """How far one repeat is from the median of all, on average."""
        return float(np.mean([abs(each.step_s / self.step_s - 1) for each in self.found]))

    @property
    def errors(self) -> dict[str, float]:
        compute_s = self.forecast.step_s - self.forecast.exposed_communication_s
        return {
            "forecast": self.forecast.step_s / self.step_s - 1,
            "no exchange": compute_s / self.step_s - 1,
            "alone": self.median(lambda each: each.alone_s) / self.step_s - 1,
        }

    @property
    def is_inside(self) -> bool:
        low_s, high_s = self.forecast.interval("step_s")
        return low_s <= self.step_s <= high_s


def main() -> None:
    """Calibrates, forecasts, measures, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="times to measure each model")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as home:
        os.environ["TRAINCAST_HOME"] = home
        calibration = tc.calibrate(n_processes=N_PROCESSES)
        forecasts = [
            tc.forecast(tc.load_model(model), f"{N_PROCESSES}xthis-machine", batch, optimizer=optimizer)
            for model, batch, optimizer in RUNS
        ]
    found: list[list[ProcessesMeasurement]] = [[] for _ in RUNS]
    for _ in range(options.repeat):  # all models, then all again: a slow quarter of an hour spoils one repeat of each
        for place, (model, batch, optimizer) in enumerate(RUNS):
            found[place].append(measure_processes(model, batch, n_processes=N_PROCESSES, optimizer=optimizer))
            so_far = Row(forecasts[place], tuple(found[place]))
            print(f"{so_far.name}: {so_far.errors['forecast']:+.1%}", flush=True)
    rows = [Row(forecast, tuple(each)) for forecast, each in zip(forecasts, found, strict=True)]
    text = page(rows, calibration, load=load)
    print(text)
    if options.write:
        write_file(PAGE, text)
        print(f"Wrote {PAGE}")


def page(rows: list[Row], calibration: Calibration, *, load: float) -> str:
    """The whole page."""
    environment = rows[0].found[0].environment
    device = calibration.device
    head = HEAD.format(
        date=datetime.datetime.now(tz=datetime.UTC).date(),
        machine=f"{environment.device}, {environment.n_cores} cores, torch {environment.versions['torch']}",
        n_threads=environment.n_threads,
        load=f"{load:.1f}",
        n_repeats=len(rows[0].found),
        took=show_duration(calibration.seconds),
        rate=show_bytes_per_s(device.link_bytes_per_s or 0.0),
        latency=show_duration(device.link_latency_s or 0.0),
        waiting=f"{device.waiting_fraction or 0.0:.1%}",
    )
    return "\n\n".join([head, summary(rows), steps_table(rows), parts_table(rows), METHOD]) + "\n"


def summary(rows: list[Row]) -> str:
    lines = ["| forecast | mean error | largest | within 20 % |", "| --- | ---: | ---: | ---: |"]
    for which, title in FORECASTS.items():
        errors = np.array([row.errors[which] for row in rows])
        n_within = int((np.abs(errors) <= TARGET).sum())
        largest = errors[np.argmax(np.abs(errors))]
        lines.append(f"| {title} | {np.mean(np.abs(errors)):.1%} | {largest:+.1%} | {n_within} of {len(rows)} |")
    noise = np.mean([row.noise for row in rows])
    n_inside = sum(row.is_inside for row in rows)
    lines += ["", f"Noise floor, one repeat against the median of {len(rows[0].found)}: {noise:.1%}. "]
    lines[-1] += f"p10 to p90 hold {n_inside} of {len(rows)}."
    return "\n".join(lines)


def steps_table(rows: list[Row]) -> str:
    lines = ["## Steps", "", "| model, batch, optimizer | measured | repeats | forecast | p10 to p90 | error |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        repeats_s = [each.step_s for each in row.found]
        low_s, high_s = row.forecast.interval("step_s")
        error = row.errors["forecast"]
        mark = "**" if abs(error) > TARGET else ""
        cells = [
            row.name,
            show_duration(row.step_s),
            f"{show_duration(min(repeats_s))} to {show_duration(max(repeats_s))}",
        ]
        cells += [show_duration(row.forecast.step_s), f"{show_duration(low_s)} to {show_duration(high_s)}"]
        lines.append(f"| {' | '.join([*cells, f'{mark}{error:+.1%}{mark}'])} |")
    return "\n".join(lines)


def parts_table(rows: list[Row]) -> str:
    """Where the time is, and whether the forecast is right for the right reason."""
    header = (
        "alone | crowded | forecast of it | step minus crowded | forecast of it | gradients | reduced by themselves"
    )
    lines = ["## Parts", "", f"| model, batch, optimizer | {header} |", "| --- |" + " ---: |" * 7]
    for row in rows:
        first, exposed_s = row.found[0], row.forecast.exposed_communication_s
        crowded_s = row.median(lambda each: each.crowded_s)
        seconds = (
            row.median(lambda each: each.alone_s),
            crowded_s,
            row.forecast.step_s - exposed_s,
            row.step_s - crowded_s,
            exposed_s,
        )
        cells = [row.name, *map(show_duration, seconds)]
        cells.append(f"{show_bytes(first.gradient_bytes)} in {len(first.bucket_bytes)}")
        cells.append(show_duration(row.median(lambda each: each.all_reduce_s)))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


FORECASTS = {
    "forecast": '**`forecast(model, on="2xthis-machine")`**',
    "no exchange": "the same without communication and waiting",
    "alone": "measured step of one process alone with its share",
}

HEAD = """# Live check: data-parallel training in 2 processes

Written by `python benchmarks/live_ddp.py --write` on {date}.
{machine}; {n_threads} thread a process; load average {load} before the start; each model trained {n_repeats} times.
Real steps of DistributedDataParallel under torchrun (gloo), against forecasts made before them from
`traincast calibrate --processes 2` ({took}), which runs none of these models. It found a link of {rate} with {latency}
a message, and that {waiting} of a step are lost to the other process. Errors are forecast over measured, minus one;
bold ones miss the target of 20 %."""

METHOD = """## Method

**What is measured.** Both processes train for real, as `traincast measure MODEL --batch N --processes 2` does: with the
gradients reduced (*step*), of the bare model both at once (*crowded*), of the bare model by one process while the other
waits (*alone*), in turns. See [processes](processes.md).

**What is forecast.** The step of one process from prices that were measured with both at work; plus what reducing adds
to a step. That is not what an all-reduce takes by itself: inside a step its messages find the other process still
computing and all cores taken, and the last column of the second table is often a fraction of what is added. So
calibration trains eleven small networks at two sizes with and without reducing, and fits three prices to the
difference (`measurement/processes/ddp_fit.py`): of waiting for each other, a share of the step; of per message; of a
byte. Nothing is hidden behind backward: both need the same cores.

**How often was this looked at?** An earlier form took the link from lone all-reduces and had 4 of 7 models within 20 %
(-27 % to +21 %), communication at half of what was measured; that led to the three prices. They were chosen among seven
sets of terms by errors on calibration's own networks, not on these models; a price for each gradient tensor
came out as zero. With them a first run, while other jobs ran, had 6 of 7 models within 20 % (-20 % to +33 %); then the
median of rounds was priced (see [calibration](calibration.md)). The first run after that had 10 of 11 within 20 %, mean
11.2 %, the mixed model (convolutions, attention, GRU) -24 %. This page is the second, on another machine of the same
type with nothing changed: again all but one. **The aim, all within 20 %, is missed by one model each time**, and not by
the same: the LSTM's own step is taken for a fifth too long, without any communication (38.7 ms measured and 48.9 ms
forecast on the first machine).

**What is not in it.** More than two processes, cores to spare (buckets might then be hidden), other machines."""


if __name__ == "__main__":
    main()
