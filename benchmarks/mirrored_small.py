"""The small networks under MirroredStrategy, MNIST and CIFAR-10: steps that the host binds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

import keras_runs
import traincast as tc
from mirrored_step import HOST, PLACE, error_cell, errors, slower_host, step_of
from traincast.hardware.host import Host
from traincast.trace.graph import Floats

MNIST, CIFAR = keras_runs.MODELS["MNIST"], keras_runs.MODELS["CIFAR-10"]
FITTED = ("SGD", 8)  # the one row behind lines that fit something


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run of ten epochs on two GPUs."""

    optimizer: str
    batch: int  # of one replica
    measured_s: float  # median epoch over its steps
    start_s: float  # what ten median epochs leave of the whole run
    total_s: float

    @property
    def key(self) -> tuple[str, int]:
        return self.optimizer, self.batch


Predicted = dict[tuple[str, int], float]


def read_rows(seeds: Path) -> list[Row]:
    return [
        Row(
            optimizer=row["optimizer"],
            batch=int(row["batch_per_replica"]),
            measured_s=float(row["time_per_batch_s"]),
            start_s=float(row["total_time_s"]) - int(row["epochs"]) * float(row["median_epoch_time_s"]),
            total_s=float(row["total_time_s"]),
        )
        for row in keras_runs.read(seeds / "p100_mnist_mirrored_2gpu.csv")
    ]


def tables(seeds: Path) -> dict[str, str]:
    rows, alone = read_rows(seeds), one_gpu_steps(seeds)
    return {
        "mnist": batch_table(rows),
        "mnist errors": error_table(rows, alone, keras_runs.fit(seeds)),
        "noise": noise_lines(seeds, rows),
        "cifar10": cifar_table(seeds, rows),
    }


def one_gpu_steps(seeds: Path) -> Predicted:
    """Measured on one GPU, without a start's share."""
    start_s, rows = keras_runs.start_s(seeds), keras_runs.mnist_rows(seeds)
    names = {"RMSProp": "RMSprop"}
    return {
        (names.get(row.optimizer, row.optimizer), row.batch): row.measured_s - start_s / row.n_steps for row in rows
    }


def predict(rows: Iterable[Row], host: Host, feed_s_per_byte: float = 0.0) -> Predicted:
    found = {}
    for row in rows:
        fed_s = feed_s_per_byte * row.batch * keras_runs.SAMPLE_BYTES[MNIST]
        found[row.key] = float(step_of(MNIST, row.optimizer.lower(), [row.batch], host).step_s[0]) + fed_s
    return found


def slowed(factor: float) -> Host:
    return slower_host(HOST, call=factor, dispatch=factor)


def fitted_factor(rows: list[Row]) -> float:
    row = next(row for row in rows if row.key == FITTED)
    return float(brentq(lambda factor: predict([row], slowed(factor))[FITTED] - row.measured_s, 0.01, 100.0))


def batch_table(rows: list[Row]) -> str:
    predicted, optimizers = predict(rows, HOST), ("SGD", "RMSprop", "Adam")
    header = [f"{optimizer}: {what}" for optimizer in optimizers for what in ("measured", "ours")]
    lines = [f"| batch of a replica | {' | '.join(header)} |", "| ---: |" + " ---: |" * len(header)]
    measured = {row.key: row.measured_s for row in rows}
    for batch in dict.fromkeys(row.batch for row in rows):
        cells = []
        for optimizer in optimizers:
            measured_s = measured[optimizer, batch]
            cells += [f"{1e3 * measured_s:.2f}", error_cell(predicted[optimizer, batch], measured_s)]
        lines.append(f"| {batch} | {' | '.join(cells)} |")
    return "\n".join(lines)


def error_table(rows: list[Row], alone: Predicted, keras: keras_runs.KerasHost) -> str:
    plain, factor = predict(rows, HOST), fitted_factor(rows)
    held_out = [row for row in rows if row.key != FITTED]
    both = [row for row in held_out if row.key in alone]
    of_fitted = next(row for row in rows if row.key == FITTED).measured_s
    more_s = of_fitted - alone[FITTED]
    middle_s = min((row.measured_s for row in rows), key=lambda s: mean_error(rows, {row.key: s for row in rows}))
    lines = ["| prediction | fitted on | n | mean error | largest |", "| --- | --- | ---: | ---: | ---: |"]
    for name in ("SGD", "RMSprop", "Adam"):
        lines.append(line(f"ours, {name}", "nothing", [row for row in rows if row.optimizer == name], plain))
    one_call, two_dispatches = slower_host(HOST, call=0.5, dispatch=1), slower_host(HOST, call=1, dispatch=2)
    two_of_table = slower_host(keras.table_host, call=1, dispatch=2)
    here, one = "SGD, batch 8", "one GPU: SGD, batch 8"
    lines += [
        line("**ours**", "nothing", rows, plain),
        line(f"ours, factor on the host's time ({factor:.2f})", here, held_out, predict(rows, slowed(factor))),
        line("ours, call of the one-GPU table", one, rows, predict(rows, keras.table_host)),
        line("the same, dispatches too count once a replica", one, rows, predict(rows, two_of_table)),
        line("ours, feeding is not hidden", "nothing", rows, predict(rows, HOST, keras.feed_s_per_byte)),
        line("ours, one call, not one a replica", "nothing", rows, predict(rows, one_call)),
        line("ours, dispatches too count once a replica", "nothing", rows, predict(rows, two_dispatches)),
        line('`tc.forecast(..., strategy="mirrored", host="tf2-keras")`', "nothing", rows, forecasts(rows)),
        line("a constant", here, held_out, {row.key: of_fitted for row in rows}),
        line("the best constant", "all 60", rows, {row.key: middle_s for row in rows}),
        line("ours, where one GPU was measured too", "nothing", both, plain),
        line("measured step of one GPU", "nothing", both, alone),
        line("measured step of one GPU, twice", "nothing", both, {key: 2 * s for key, s in alone.items()}),
        line("measured step of one GPU and a constant", here, both, {key: s + more_s for key, s in alone.items()}),
    ]
    return "\n".join(lines)


def mean_error(rows: list[Row], predicted: Predicted) -> float:
    return float(np.mean([abs(predicted[row.key] / row.measured_s - 1) for row in rows]))


def line(name: str, fitted_on: str, rows: list[Row], predicted: Predicted) -> str:
    largest = max(abs(predicted[row.key] / row.measured_s - 1) for row in rows)
    mean = mean_error(rows, predicted)
    return f"| {name} | {fitted_on} | {len(rows)} | {100 * mean:.1f} % | {100 * largest:.1f} % |"


def forecasts(rows: list[Row]) -> Predicted:
    """What a user gets who knows the model, the place, the strategy and the framework."""
    trace = tc.load_model(MNIST)
    return {
        row.key: tc.forecast(
            trace, PLACE, 2 * row.batch, optimizer=row.optimizer.lower(), strategy="mirrored", host="tf2-keras"
        ).step_s
        for row in rows
    }


def noise_lines(seeds: Path, rows: list[Row]) -> str:
    """How much the same run differs from itself, and runs with another optimizer from each other."""
    totals: dict[int, list[float]] = {row.batch: [row.total_s] for row in rows if row.optimizer == "SGD"}
    for row in keras_runs.read(seeds / "p100_mnist_mirrored_repeats.csv"):
        totals[int(row["batch_per_replica"])].append(float(row["total_time_s"]))
    repeated = {batch: np.array(times) for batch, times in totals.items() if len(times) > 1}
    apart = np.concatenate([np.abs(errors(np.delete(t, i), t[i])) for t in repeated.values() for i in range(len(t))])
    measured = {row.key: row.measured_s for row in rows}
    lines = ["| the same but for | n | mean difference | largest |", "| --- | ---: | ---: | ---: |"]
    lines.append(
        f"| nothing (SGD, batch 16, 32, 64) | {len(apart)} | {100 * apart.mean():.1f} % | {100 * apart.max():.1f} % |"
    )
    for optimizer in ("Adam", "RMSprop"):
        found = np.array([abs(measured[optimizer, batch] / measured["SGD", batch] - 1) for batch in totals])
        lines.append(difference(f"{optimizer} instead of SGD", found))
    return "\n".join(lines)


def difference(name: str, apart: Floats) -> str:
    return f"| {name} | {len(apart)} | {100 * apart.mean():.1f} % | {100 * apart.max():.1f} % |"


def cifar_table(seeds: Path, mnist: list[Row]) -> str:
    """Ten epochs and their start, which is that of the MNIST runs on two GPUs."""
    start_s = float(np.median([row.start_s for row in mnist]))
    hosts = (HOST, slower_host(HOST, call=1, dispatch=2))
    lines = [
        "| batch of a replica | measured | ours | dispatches too once a replica |",
        "| ---: | ---: | ---: | ---: |",
    ]
    found = []
    for row in keras_runs.read(seeds / "p100_cifar10_mirrored_2gpu.csv"):
        batch, n_steps = int(row["batch_per_replica"]), int(row["epochs"]) * int(row["batches_correct"])
        measured_s = float(row["total_time_s"]) / n_steps
        steps = [float(step_of(CIFAR, row["optimizer"].lower(), [batch], host).step_s[0]) for host in hosts]
        predicted_s = [step_s + start_s / n_steps for step_s in steps]
        found.append([abs(seconds / measured_s - 1) for seconds in predicted_s])
        cells = [error_cell(seconds, measured_s) for seconds in predicted_s]
        lines.append(f"| {batch} | {1e3 * measured_s:.2f} | {' | '.join(cells)} |")
    means = [f"{100 * mean:.1f} %" for mean in np.mean(found, axis=0)]
    lines.append(f"| mean error of {len(found)} | | {' | '.join(means)} |")
    return "\n".join([*lines, "", f"A start of {start_s:.1f} s is shared by all steps: the median of the MNIST runs."])
