"""A real scaling experiment on this machine and its forecast:  python benchmarks/recipe_scaling.py [--write]

Trains cifar_resnet20 on scikit-learn's digits in 1, 2 and 4 processes at three batch sizes, as `traincast train
scaling` does. Calibrates with 2 processes first, unless --home names a folder that has such a profile. Takes about
seven minutes, in which nothing else should run. With --write the page docs/scaling_experiment.md is made.
"""

from __future__ import annotations

import argparse
import datetime
import os
import tempfile
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
import traincast as tc
from lab import markdown
from traincast.api.scaling_experiment import ScalingResult, plan_scaling, run_scaling
from traincast.hardware.this_machine import read_profile
from traincast.recipes.scaling_experiment.settings import Cell
from traincast.report.files import write_file
from traincast.report.table import Table
from traincast.views.train_scaling import result_document

PAGE = Path(__file__).parents[1] / "docs" / "scaling_experiment.md"
TARGET = 0.20
N_PROCESSES = 2


def main() -> None:
    """Calibrates if need be, forecasts, runs, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--home", type=Path, help=f"folder with a profile of {N_PROCESSES} processes")
    parser.add_argument("--epochs", type=int, default=3, help="of each run; the first is not counted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        os.environ["TRAINCAST_HOME"] = str(options.home or made)
        if read_profile(N_PROCESSES) is None:
            tc.calibrate(n_processes=N_PROCESSES)
        load = os.getloadavg()[0]
        experiment = plan_scaling(
            "cifar_resnet20",
            batch_sizes=(32, 128, 512),
            n_devices=(1, 2, 4),
            n_epochs=options.epochs,
            out=Path(made) / "scaling",
        )
        result = run_scaling(experiment, on_progress=lambda done, total: print(done, "of", total, flush=True))
        text = page(result, load=load)
    print(text)
    if options.write:
        write_file(PAGE, text)
        print(f"Wrote {PAGE}")


def page(result: ScalingResult, *, load: float) -> str:
    """The whole page."""
    tables = result_document(result, Path("FOLDER")).tables
    head = HEAD.format(
        date=datetime.datetime.now(tz=datetime.UTC).date(),
        device=result.runs[0].device,
        n_cores=os.cpu_count(),
        load=f"{load:.1f}",
        n_counted=result.experiment.settings.n_epochs - 1,
        n_samples=f"{result.experiment.n_samples:,}",
    )
    first, second, third = ("\n\n".join(map(rendered, tables[2 * i : 2 * i + 2])) for i in range(3))
    busy = [
        f"**{text} Its times, and what is said about the forecast, are of a busy machine.**" for text in result.warnings
    ]
    parts = [head, *busy, SPEEDUPS, first, told_speedups(result), PARTS, second, told_parts(result), BANDWIDTH, third]
    profile = read_profile(N_PROCESSES)
    assert profile is not None  # made above
    parts += [
        FORECAST.format(source=profile.source),
        rendered(tables[6], has_title=False),
        told_forecast(result),
        LIMITS,
    ]
    return "\n\n".join(parts) + "\n"


def rendered(table: Table, *, has_title: bool = True) -> str:
    title = f"**{table.title.partition('. ')[2] or table.title}**\n\n" if has_title else ""
    return title + markdown.table([column.header for column in table.columns], table.formatted(), n_text=0)


def told_speedups(result: ScalingResult) -> str:
    lines = []
    for comparison in (result.weak, result.strong):
        two = [each for each in comparison.rows if each.run.cell.n_devices == N_PROCESSES]
        words = ", ".join(f"{each.point.speedup:.2f} at {each.batch_size}" for each in two)
        lines.append(f"Speedup on two processes, {comparison.kind}: {words}.")
    return " ".join(lines)


def told_parts(result: ScalingResult) -> str:
    """How far the assumed communication is from the measured one, in each definition."""
    lines = []
    for comparison in (result.weak, result.strong):
        rows = [each for each in comparison.rows if each.run.cell.n_devices == N_PROCESSES]
        assumed_s, measured_s = (
            sum(each.point.communication_s for each in rows),
            sum(each.run.communication_s for each in rows),
        )
        lines.append(f"{comparison.kind}: {assumed_s:.2f} s assumed, {measured_s:.2f} s measured")
    return f"Communication of the epochs on two processes together, {'; '.join(lines)}."


def told_forecast(result: ScalingResult) -> str:
    errors = [
        found.epoch_s / run.epoch_s - 1
        for run in result.runs
        if (found := result.experiment.forecast.of(run.cell)) is not None
    ]
    if not errors:
        return "No run could be forecast."
    n_within = int((np.abs(errors) <= TARGET).sum())
    inside = sum(
        found.low_s <= run.epoch_s <= found.high_s
        for run in result.runs
        if (found := result.experiment.forecast.of(run.cell)) is not None
    )
    return (
        f"Mean error {np.mean(np.abs(errors)):.1%}, from {min(errors):+.1%} to {max(errors):+.1%}; {n_within} of "
        f"{len(errors)} epochs are within 20 %, p10 to p90 hold {inside}. Runs without a forecast: "
        f"{_unknown(result)}."
    )


def _unknown(result: ScalingResult) -> str:
    cells: list[Cell] = [run.cell for run in result.runs if result.experiment.forecast.of(run.cell) is None]
    return f"{len(cells)}, all of four processes" if {cell.n_devices for cell in cells} == {4} else str(len(cells))


HEAD = """# A scaling experiment

`traincast train scaling` is the experiment that courses assign: train on 1, 2, 4 devices at several batch sizes, count
the seconds of an epoch, discard the first, and fill three tables. It runs on processes of a CPU (gloo) or on GPUs
(nccl, `--device cuda`), both with `DistributedDataParallel` under torchrun. Code: `recipes/scaling_experiment/` (what a
process does, and the tables), `launch/scaling_run.py` (starts the processes), `api/scaling_cells.py`.

```console no-run
$ traincast train scaling --n-devices 1,2,4 --batch-sizes 32,128,512
```

Every run has a file in the folder of the experiment as soon as it is done: killed and started again, the command does
what is missing. `--batch-sizes 32,...` goes on fourfold until memory ends, as forecast, or the data do not fill a step.
Where a GPU runs out of memory all the same, the run is noted as such and larger batches are not tried, until
`--retry-failed`. The forecast has time and memory of every run and, with `--price`, cost.

Written by `python benchmarks/recipe_scaling.py --write` on {date}. {device}, {n_cores} cores, load average {load}
before the start. cifar_resnet20 on scikit-learn's digits ({n_samples} images of 16 x 16), momentum, fp32; counted
epochs a run: {n_counted}. **A device is a process with one thread**, for every number of devices, so that one device is
the same thing everywhere. Four of them share two cores: what they show is a machine that is too small."""

SPEEDUPS = """## 1. Time and speedup

A batch size counts twice. *Weak*: it is that of each device, and N devices share N times as much. *Strong*: it is that
of all devices together, and each gets its Nth. An epoch has the same images on any number of devices, so speedup is
T1/TN of epochs in both: that of steps, N T1/TN, is the same number in weak scaling. The serial fraction is Gustafson's
in weak scaling and Karp and Flatt's in strong scaling ([the words](measured_scaling.md))."""

PARTS = """## 2. Compute and communication

Twice again. *Assumed*, as one does who has nothing but epochs: compute is T1/N, all else is communication. *Measured*:
after the epochs each run makes steps with and without reducing gradients (`no_sync`) in turns; what reducing adds to
a step, times the steps of an epoch, is communication, and the rest besides input is compute. With the batch of a
device fixed, T1/N is made of the very steps that N devices run, so the assumption misses only what processes do to each
other: they share memory, caches and cores. With the batch of all fixed it also takes small batches to be as fast per
image as large ones, and calls communication what they are slower. Differences below 0 are noise."""

BANDWIDTH = """## 3. Bandwidth

A ring sends 2(N-1)/N of the gradient from each device, once per step; over the seconds of communication that is a rate.
The link is what one message of 16 MiB reached in the same run (`--link` names another). *Reduced alone* is the gradient
with nothing beside it: small buckets wait for latency. *Measured* and *assumed* divide by the seconds of table 2, in
which processes also wait for each other: a low share says that the wire is not what is waited for."""

FORECAST = """## Forecast and measurement

Made before the runs from a profile ({source}). One process alone is forecast with the prices of one of two, since it
has one thread too; nothing stands for four until the machine is calibrated with four."""

LIMITS = """## Limits

- One run of each kind on one machine of two cores. Epochs of a few seconds differ by 5 to 20 % from one to the next.
- `torch.nn.DataParallel` itself is not run: it does nothing on a CPU. [Measured epochs](measured_scaling.md) has a
  published table of it; `traincast scale --measured FOLDER/measured.csv` reads the epochs of this experiment.
- On GPUs the same code runs with nccl; it has not been tried there."""


if __name__ == "__main__":
    main()
