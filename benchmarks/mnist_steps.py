"""The MNIST network on a P100, host-bound and then not:  python benchmarks/mnist_steps.py --data DIR [--write]

A course project trained it in Keras at batch sizes 2 to 256 with three optimizers and predicted the steps from layer
times. The host is fitted on one row, the cost of feeding input on another, the start of a run on other runs; all other
rows are held out. With --write the table and the chart of docs/forecast.md are renewed (the chart needs the extra png).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
import keras_runs
import traincast as tc
from keras_runs import KerasHost, MnistRow
from lab.markdown import refresh
from traincast.report.chart import Chart, Series
from traincast.report.files import write_file
from traincast.report.png import to_png

DOCS = Path(__file__).parents[1] / "docs"
N_PARAMETERS = 113_386  # of the published script


def main() -> None:
    """Predicts, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with seeds/")
    parser.add_argument("--write", action="store_true", help="write docs/forecast.md and its chart")
    options = parser.parse_args()
    assert tc.load_model(keras_runs.MODELS["MNIST"]).n_parameters == N_PARAMETERS
    seeds = options.data / "seeds"
    rows, keras = keras_runs.mnist_rows(seeds), keras_runs.fit(seeds)
    predicted = {key(row): keras.table_s(row) for row in rows}
    tables = {"mnist": table(rows, predicted), "mnist errors": errors(rows, predicted, keras)}
    print("\n\n".join(tables.values()))
    if options.write:
        write_file(DOCS / "forecast.md", refresh((DOCS / "forecast.md").read_text(encoding="utf-8"), tables))
        write_file(DOCS / "images" / "mnist_steps.png", to_png(chart(rows, predicted)))
        print(f"Wrote {DOCS / 'forecast.md'} and its chart")


Predicted = dict[tuple[str, int], float]


def table(rows: list[MnistRow], predicted: Predicted) -> str:
    optimizers = list(dict.fromkeys(row.optimizer for row in rows))
    header = [f"{optimizer}: {what}" for optimizer in optimizers for what in ("measured", "ours", "project")]
    lines = [f"| batch | {' | '.join(header)} |", "| ---: |" + " ---: |" * len(header)]
    for batch in dict.fromkeys(row.batch for row in rows):
        cells = []
        for row in (row for row in rows if row.batch == batch):
            mark = " (fitted)" if row.is_fitted else ""
            measured = f"{1e3 * row.measured_s:.2f}{' (outlier)' if row.is_outlier else ''}"
            cells += [measured, f"{1e3 * predicted[row.optimizer, row.batch]:.2f}{mark}", f"{1e3 * row.authors_s:.2f}"]
        lines.append(f"| {batch} | {' | '.join(cells)} |")
    return "\n".join(lines)


def errors(rows: list[MnistRow], predicted: Predicted, keras: KerasHost) -> str:
    held_out = [row for row in rows if not row.is_fitted]
    lines = ["| held-out rows | n | mean error | largest |", "| --- | ---: | ---: | ---: |"]
    for name in ("SGD", "RMSProp", "Adam"):
        lines.append(error_line(f"ours, {name}", [row for row in held_out if row.optimizer == name], predicted))
    lines.append(error_line("**ours**", held_out, predicted))
    regular = [row for row in held_out if not row.is_outlier]
    lines.append(error_line("ours, without the outlier", regular, predicted))
    for what, changes in {
        "ours, feeding left out": {"feed_s_per_byte": 0.0},
        "ours, feeding and the share of the start left out": {"feed_s_per_byte": 0.0, "start_s": 0.0},
    }.items():
        poorer = replace(keras, **changes)
        lines.append(error_line(what, held_out, {key(row): poorer.table_s(row) for row in rows}))
    lines.append(error_line('`tc.forecast(..., host="tf2-keras")`', held_out, plain_forecasts(rows)))
    lines.append(error_line("the project", held_out, {key(row): row.authors_s for row in rows}))
    fitted = (
        f"Fitted: a call of {1e3 * keras.table_host.call_s:.2f} ms (SGD, batch 8), "
        f"{1e6 * keras.host.forward_dispatch_s:.1f} us a dispatch (two networks at batch 8 in other runs), "
        f"{1e9 * keras.feed_s_per_byte:.2f} ns to feed a byte of input (SGD, batch 256), "
        f"{keras.start_s:.2f} s to start a run (first epochs of other runs)."
    )
    return "\n".join([*lines, "", fitted])


def key(row: MnistRow) -> tuple[str, int]:
    return row.optimizer, row.batch


def error_line(name: str, rows: list[MnistRow], predicted: Predicted) -> str:
    error = [abs(predicted[key(row)] / row.measured_s - 1) for row in rows]
    return f"| {name} | {len(rows)} | {100 * np.mean(error):,.1f} % | {100 * max(error):,.1f} % |"


def plain_forecasts(rows: list[MnistRow]) -> Predicted:
    """What a user gets who knows the model, the device and the framework."""
    trace = tc.load_model(keras_runs.MODELS["MNIST"])
    return {
        key(row): tc.forecast(
            trace, keras_runs.DEVICE, row.batch, optimizer=row.optimizer.lower(), host="tf2-keras"
        ).step_s
        for row in rows
    }


def chart(rows: list[MnistRow], predicted: Predicted) -> Chart:
    chosen = [row for row in rows if row.optimizer == "SGD"]
    batches = [str(row.batch) for row in chosen]
    lines = {
        "measured": [row.measured_s for row in chosen],
        "ours (batch 8 and 256 fitted)": [predicted[row.optimizer, row.batch] for row in chosen],
        "the project's sum of layers": [row.authors_s for row in chosen],
    }
    return Chart(
        title="MNIST network on a P100, SGD",
        kind="line",
        series=tuple(Series(name=name, x=batches, y=values) for name, values in lines.items()),
        x_label="batch size",
        y_label="step",
        y_show="duration",
        log_y=True,
    )


if __name__ == "__main__":
    main()
