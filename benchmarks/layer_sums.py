"""Why layer sums are not the model:  python benchmarks/layer_sums.py --data DIR [--write]

Predicts, from one device model and two hosts, how long each layer of the course project takes alone and how long the
whole model takes, and so the ratio of the two. With --write the tables and charts of docs/layer_sums.md are renewed
(charts need the extra png).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
import keras_runs
import session_layers
from keras_runs import KerasHost
from lab.markdown import refresh
from layer_rows import layer_rows_table
from layer_sum_charts import charts
from patchcamelyon_sums import patchcamelyon_tables
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.host import Host
from traincast.kernels.host_fit import TimedStep, fit_call
from traincast.kernels.lone_layer import Layer, LoneLayerTime, Part, lone_layer_graph, lone_layer_time
from traincast.kernels.predictor import Traincast
from traincast.report.files import write_file
from traincast.report.png import to_png
from traincast.trace.graph import Floats

DOCS = Path(__file__).parents[1] / "docs"
PROJECT_CONSTANT = 1.5
SHOWN_BATCHES = (8, 96)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedLayer:
    """A layer of the project's tables, alone, trained with Adam."""

    data: str
    name: str
    layer: Layer
    batch: int
    measured_s: float


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ModelSum:
    """One model at one batch size: all layers alone against the whole."""

    data: str
    batch: int
    measured_sum_s: float
    measured_step_s: float
    step_s: float
    layers: tuple[LoneLayerTime, ...]

    @property
    def sum_s(self) -> float:
        return sum(float(layer.seconds[0]) for layer in self.layers)

    @property
    def ratio(self) -> float:
        return self.sum_s / self.step_s

    @property
    def measured_ratio(self) -> float:
        return self.measured_sum_s / self.measured_step_s

    def causes_s(self) -> dict[str, float]:
        """The sum by cause, in seconds."""
        device_s = np.sum([layer.device_s[0] for layer in self.layers], axis=0)
        return {
            "calls": sum(layer.call_s for layer in self.layers),
            "waiting for dispatch": sum(float(layer.waiting_s[0]) for layer in self.layers),
            "layers": float(device_s[Part.LAYER] + device_s[Part.INPUT_GRADIENT]),
            "a loss each": float(device_s[Part.LOSS]),
            "updates of input and target": float(device_s[Part.DATA]),
            "changes of layout": float(device_s[Part.LAYOUT]),
        }


def main() -> None:
    """Predicts, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with layers/ and seeds/")
    parser.add_argument("--write", action="store_true", help="write docs/layer_sums.md and its charts")
    options = parser.parse_args()
    seeds = options.data / "seeds"
    found = session_layers.machines(options.data / "layers")
    dispatch_s = session_layers.middle_host(found).forward_dispatch_s
    timed = timed_layers(seeds)
    keras, session = keras_runs.fit(seeds), session_host(timed, dispatch_s, keras_runs.FITTED_BATCH)
    sums = model_sums(seeds, timed, keras, session)
    patch_tables, patch_chart = patchcamelyon_tables(seeds, keras, session)
    tables = {
        "hosts": hosts_line(keras, session),
        "layers": layers_table(timed, session),
        "ratios": ratios_table(sums),
        "errors": errors_table(sums, seeds, timed, dispatch_s),
        "patchcamelyon": patch_tables,
        "layer rows": layer_rows_table(options.data / "layers", found),
    }
    print("\n\n".join(tables.values()))
    if options.write:
        page = DOCS / "layer_sums.md"
        write_file(page, refresh(page.read_text(encoding="utf-8"), tables))
        for name, chart in {**charts(sums, PROJECT_CONSTANT), "patchcamelyon_ratio": patch_chart}.items():
            write_file(DOCS / "images" / f"{name}.png", to_png(chart))
        print(f"Wrote {page} and its charts")


def timed_layers(seeds: Path) -> list[TimedLayer]:
    return [
        TimedLayer(
            data=row["dataset"],
            name=row["layer"],
            layer=Layer(
                channels_in=int(row["channels_in"]),
                channels_out=int(row["channels_out"]),
                input_size=int(row["input_size"]),
                kernel=int(row["kernel"]),
                stride=int(row["stride"]),
                is_padded=row["padding"] == "SAME",
                has_bias=row["bias"] == "1",
                activation=row["activation"],
            ),
            batch=int(row["batch"]),
            measured_s=float(row["layer_time_s"]),
        )
        for row in keras_runs.read(seeds / "p100_layer_benchmarks_mnist_cifar10.csv")
    ]


def session_host(timed: Sequence[TimedLayer], dispatch_s: float, *batches: int) -> Host:
    """The call that the project's layers show at these batch sizes; a dispatch costs what it does on other machines."""
    device = find_device(keras_runs.DEVICE)
    steps = []
    for each in timed:
        if each.batch in batches:
            graph = lone_layer_graph(each.layer, "adam")
            times = Traincast().op_times(graph, device, np.array([each.batch]), precision="fp32")
            steps.append(TimedStep(graph=graph, times=times, measured_s=each.measured_s))
    return fit_call(steps, dispatch_s=dispatch_s, name="tf1-session")


def alone(layer: Layer, batch: int, session: Host) -> LoneLayerTime:
    device = find_device(keras_runs.DEVICE)
    return lone_layer_time(layer, np.array([batch]), optimizer="adam", device=device, host=session, method=Traincast())


def model_sums(seeds: Path, timed: Sequence[TimedLayer], keras: KerasHost, session: Host) -> list[ModelSum]:
    sums = []
    for (data, batch), (measured_sum_s, measured_step_s) in keras_runs.full_steps(seeds).items():
        layers = [each.layer for each in timed if (each.data, each.batch) == (data, batch)]
        sums.append(
            ModelSum(
                data=data,
                batch=batch,
                measured_sum_s=measured_sum_s,
                measured_step_s=measured_step_s,
                step_s=keras.step_s(keras_runs.MODELS[data], "adam", batch),
                layers=tuple(alone(layer, batch, session) for layer in layers),
            )
        )
    return sums


def best_constant(ratios: Floats) -> float:
    """The constant with the smallest mean absolute error, known only after the fact: the median."""
    return float(np.median(ratios))


def errors_table(sums: list[ModelSum], seeds: Path, timed: list[TimedLayer], dispatch_s: float) -> str:
    """Our fit on one batch size against constants; then the fit on each other batch size, and on one model."""
    lines = [
        "| fitted on | scored on | n | ours | best constant | which is | constant 1.5 |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    batches = sorted({each.batch for each in sums})
    scored = [each for each in sums if each.batch != keras_runs.FITTED_BATCH]
    lines.append(error_line("**batch 8**", "the other batches", scored))
    lines.append(error_line("batch 8", "all rows", sums))
    for batch in batches[1:]:
        try:
            keras = keras_runs.fit(seeds, batch=batch)
        except InputError:  # the device binds there: the steps do not show what a dispatch costs
            lines.append(f"| batch {batch} | no fit | | | | | |")
            continue
        other = model_sums(seeds, timed, keras, session_host(timed, dispatch_s, batch))
        held_out = [each for each in other if each.batch != batch]
        lines.append(error_line(f"batch {batch}", "the other batches", held_out))
    session = session_host(timed, dispatch_s, keras_runs.FITTED_BATCH)
    unfed = model_sums(seeds, timed, keras_runs.fit_with_feed(seeds, 0.0), session)
    held_out = [each for each in unfed if each.batch != keras_runs.FITTED_BATCH]
    lines.append(error_line("batch 8, feeding is free", "the other batches", held_out))
    two = model_sums(seeds, timed, keras_runs.fit_on_two_batches(seeds, batches[-1]), session)
    held_out = [each for each in two if each.batch not in (keras_runs.FITTED_BATCH, batches[-1])]
    lines.append(error_line(f"batch 8; feeding on batch {batches[-1]}", "the other batches", held_out))
    mnist = fitted_on_mnist(seeds, timed, dispatch_s)
    lines.append(error_line("MNIST", "CIFAR-10", [each for each in mnist if each.data == "CIFAR-10"]))
    return "\n".join(lines)


def fitted_on_mnist(seeds: Path, timed: list[TimedLayer], dispatch_s: float) -> list[ModelSum]:
    """Without a second model nothing tells a Keras dispatch from its call: it is taken from the sessions."""
    keras = keras_runs.fit(seeds)
    full = keras_runs.full_steps(seeds)
    name = keras_runs.MODELS["MNIST"]
    steps = [
        keras_runs.timed_step(
            name, "adam", batch, step_s - batch * keras_runs.SAMPLE_BYTES[name] * keras.feed_s_per_byte
        )
        for (data, batch), (_, step_s) in full.items()
        if data == "MNIST"
    ]
    host = fit_call(steps, dispatch_s=dispatch_s)
    mnist = [each for each in timed if each.data == "MNIST"]
    session = session_host(mnist, dispatch_s, *{each.batch for each in mnist})
    changed = KerasHost(host=host, table_host=host, feed_s_per_byte=keras.feed_s_per_byte, start_s=keras.start_s)
    return model_sums(seeds, timed, changed, session)


def error_line(fitted: str, scored: str, sums: Sequence[ModelSum]) -> str:
    measured = np.array([each.measured_ratio for each in sums])
    ours = float(np.abs(np.array([each.ratio for each in sums]) - measured).mean())
    constant = best_constant(measured)
    errors = [float(np.abs(value - measured).mean()) for value in (constant, PROJECT_CONSTANT)]
    return f"| {fitted} | {scored} | {len(sums)} | {ours:.3f} | {errors[0]:.3f} | {constant:.2f} | {errors[1]:.3f} |"


def hosts_line(keras: KerasHost, session: Host) -> str:
    return (
        f"A session call takes {1e6 * session.call_s:.0f} us and {1e6 * session.forward_dispatch_s:.1f} us a dispatch, "
        f"a Keras step {1e3 * keras.host.call_s:.2f} ms and {1e6 * keras.host.forward_dispatch_s:.1f} us a dispatch, "
        f"and feeding {1e9 * keras.feed_s_per_byte:.2f} ns a byte."
    )


def ratios_table(sums: Sequence[ModelSum]) -> str:
    lines = [
        "| model, batch | sum of layers, measured | ours | whole model, measured | ours | ratio, measured | ours |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in sums:
        times = (each.measured_sum_s, each.sum_s, each.measured_step_s, each.step_s)
        mark = " (fitted)" if each.batch == keras_runs.FITTED_BATCH else ""
        cells = [f"{1e3 * time:.2f}" for time in times] + [f"{each.measured_ratio:.2f}", f"{each.ratio:.2f}{mark}"]
        lines.append(f"| {each.data}, {each.batch} | {' | '.join(cells)} |")
    return "\n".join(lines)


def layers_table(timed: Sequence[TimedLayer], session: Host) -> str:
    lines = [
        "| layer, batch | measured | ours | call | waiting | layer | input gradient | loss | input, target | layout |",
        "| --- |" + " ---: |" * 9,
    ]
    for each in (each for each in timed if each.batch in SHOWN_BATCHES):
        time = alone(each.layer, each.batch, session)
        parts = time.device_s[0]
        order = (Part.LAYER, Part.INPUT_GRADIENT, Part.LOSS, Part.DATA, Part.LAYOUT)
        seconds = (each.measured_s, time.seconds[0], time.call_s, time.waiting_s[0], *(parts[part] for part in order))
        cells = " | ".join(f"{1e3 * value:.2f}" for value in seconds)
        lines.append(f"| {each.data} {each.name}, {each.batch} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
