"""Why four GPUs are slower than one:  python benchmarks/dataparallel_epochs.py --data DIR [--write]

Recomputes the columns of a course report on torch.nn.DataParallel, corrects them, and fits what a step waits for.
With --write the tables of docs/measured_scaling.md are renewed.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from traincast.report.files import write_file
from traincast.scaling.measured import DataParallelFit, MeasuredScaling, analyse, fit_data_parallel, least_log_squares
from traincast.scaling.measured_file import MeasuredEpoch, epoch_sum, read_measured
from traincast.trace.graph import Floats
from traincast.units import GIGA

PAGE = Path(__file__).parents[1] / "docs" / "measured_scaling.md"
N_PARAMETERS = 11_173_962  # ResNet-18 for ten classes and small images
N_SAMPLES = 50_000  # CIFAR-10
RESOLUTION_S = 1.0
# PCIe 3.0 x16, one direction: an example of a link to compare with. The report names neither GPU nor link.
LINK_BYTES_PER_S = 15.75e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another explanation of the same rows: a model of a step and where its search starts."""

    name: str
    step_s: Callable[[Floats, Floats, Floats], Floats]  # parameters, global batch, devices
    start: tuple[float, ...]


# h host, r a further replica, c compute a sample, l loader a sample, d a step's fixed time on the device
RIVALS = (
    Rival(
        name="**max(h + r(N-1), cB/N, lB)**, ours",
        step_s=lambda v, b, n: np.maximum.reduce([v[0] + v[1] * (n - 1), v[2] * b / n, v[3] * b]),
        start=(0.024, 0.018, 2.5e-4, 2e-4),
    ),
    Rival(
        name="max(max(h, cB/N) + r(N-1), lB): the devices wait for traffic",
        step_s=lambda v, b, n: np.maximum(np.maximum(v[0], v[2] * b / n) + v[1] * (n - 1), v[3] * b),
        start=(0.024, 0.018, 2.5e-4, 2e-4),
    ),
    Rival(
        name="max(h + r(N-1) + cB/N, lB): nothing overlaps but input",
        step_s=lambda v, b, n: np.maximum(v[0] + v[1] * (n - 1) + v[2] * b / n, v[3] * b),
        start=(0.016, 0.018, 2.5e-4, 2e-4),
    ),
    Rival(
        name="max(h + r(N-1), d + cB/N, lB): small batches leave a device half empty",
        step_s=lambda v, b, n: np.maximum.reduce([v[0] + v[1] * (n - 1), v[4] + v[2] * b / n, v[3] * b]),
        start=(0.024, 0.018, 2.5e-4, 2e-4, 0.005),
    ),
    Rival(
        name="max(hN, cB/N, lB): replicas cost the host alike",
        step_s=lambda v, b, n: np.maximum.reduce([v[0] * n, v[1] * b / n, v[2] * b]),
        start=(0.022, 2.5e-4, 2e-4),
    ),
    Rival(
        name="max(h + r(N-1), cB/N): input is free",
        step_s=lambda v, b, n: np.maximum(v[0] + v[1] * (n - 1), v[2] * b / n),
        start=(0.024, 0.018, 3e-4),
    ),
    Rival(
        name="max(h, cB/N, lB): replicas are free",
        step_s=lambda v, b, n: np.maximum.reduce([v[0] + 0 * n, v[1] * b / n, v[2] * b]),
        start=(0.03, 2.5e-4, 2e-4),
    ),
)


def main() -> None:
    """Analyses, fits, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with seeds/")
    parser.add_argument("--write", action="store_true", help="write docs/measured_scaling.md")
    options = parser.parse_args()
    path = options.data / "seeds" / "dataparallel_epochs.csv"
    rows = read_measured(path, n_samples=N_SAMPLES)
    alone = {row.batch_size for row in rows if row.n_devices == 1}
    usable = [row for row in rows if row.batch_size in alone]
    others = [row for row in rows if row.batch_size not in alone]
    scaling = analyse(usable, N_PARAMETERS, link_bytes_per_s=LINK_BYTES_PER_S)
    fit = fit_data_parallel(usable, n_samples=N_SAMPLES, resolution_s=RESOLUTION_S)
    with path.open(encoding="utf-8", newline="") as stream:
        published = [row for row in csv.DictReader(stream) if int(row["global_batch"]) in alone]
    tables = {
        "published": published_table(published, scaling),
        "traffic": traffic_table(scaling),
        "parameters": parameters_line(fit),
        "fit": fit_table(fit),
        "split": split_table(scaling, fit),
        "scores": scores_table(fit),
        "rivals": rivals_table(usable),
        "batch 8192": unseen_table(fit, others),
        "overlaps": overlaps_line(options.data / "seeds" / "dataparallel_step_log.csv"),
    }
    print("\n\n".join(tables.values()))
    if options.write:
        write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), tables))
        print(f"Wrote {PAGE}")


def published_table(published: Sequence[dict[str, str]], scaling: MeasuredScaling) -> str:
    """The report's columns and ours; a cell that differs in its printed digits stops the run."""
    lines, n_cells = [], 0
    for row, point in zip(published, scaling.points, strict=True):
        elements, rate = point.ring_bytes / 4, point.ring_bytes_per_s
        pairs = [
            (row["speedup_t1_over_tn"], point.speedup),
            (row["assumed_compute_s"], point.compute_s),
            (row["assumed_comm_s"], point.communication_s),
            (row["allreduce_elements_per_gpu_per_epoch"], elements),
            (row["reported_bandwidth"], None if rate is None else rate / 4 / GIGA),
            (row["bandwidth_gbytes_per_s"], None if rate is None else rate / GIGA),
        ]
        for printed, ours in pairs:
            assert not printed or ours is not None, (row, printed)
            if printed and ours is not None:
                digits = len(printed.split("e")[0].replace(".", "").lstrip("0")) or 1
                assert float(f"{ours:.{digits}g}") == float(printed), (row, printed, ours)
                n_cells += 1
        lines.append(
            (row["global_batch"], row["n_gpus"], row["epoch_time_s"], *(printed or "-" for printed, _ in pairs))
        )
    header = (
        "batch", "GPUs", "epoch s", "speedup", "compute s", "communication s", "elements a GPU", "bandwidth as printed",
        "GB/s",
    )  # fmt: skip
    return f"{markdown(header, lines)}\n\nAll {n_cells} printed cells are recomputed to their last digit."


def traffic_table(scaling: MeasuredScaling) -> str:
    header = (
        "batch", "GPUs", "speedup", "efficiency", "serial fraction", "assumed communication s", "ring GB", "ring GB/s",
        "GB through GPU 0", "GB/s through GPU 0", "of 15.75 GB/s",
    )  # fmt: skip
    lines = []
    for point in scaling.points:
        if point.ring_bytes_per_s is None or point.hub_bytes_per_s is None or point.hub_link_fraction is None:
            continue
        lines.append(
            (
                str(point.row.batch_size), str(point.row.n_devices), f"{point.speedup:.2f}",
                percent(point.efficiency_fraction), f"{point.serial_fraction:.2f}", f"{point.communication_s:.1f}",
                f"{point.ring_bytes / GIGA:.1f}", f"{point.ring_bytes_per_s / GIGA:.2f}",
                f"{point.hub_bytes / GIGA:.1f}", f"{point.hub_bytes_per_s / GIGA:.2f}",
                percent(point.hub_link_fraction),
            )
        )  # fmt: skip
    return markdown(header, lines)


def parameters_line(fit: DataParallelFit) -> str:
    model = fit.model
    link = model.least_link_bytes_per_s(4 * N_PARAMETERS)
    return (
        f"Host {1e3 * model.host_s:.1f} ms a step, {1e3 * model.replica_s:.1f} ms for each further replica, devices "
        f"{1e3 * model.compute_s_per_sample:.3f} ms a sample, loader {1e3 * model.input_s_per_sample:.3f} ms a sample "
        f"({1 / model.input_s_per_sample:,.0f} samples/s). If a further replica were nothing but traffic, GPU 0's "
        f"link would carry {link / GIGA:.1f} GB/s. What of it is host time makes the link faster, so this is a bound."
    )


def fit_table(fit: DataParallelFit) -> str:
    lines = []
    rows = zip(fit.rows, fit.predicted_s, fit.left_out_s, fit.bound_by, strict=True)
    for row, ours_s, left_out_s, bound in rows:
        parts_ms = 1e3 * fit.model.parts_s(row.batch_size, row.n_devices)
        lines.append(
            (
                str(row.batch_size), str(row.n_devices), f"{row.epoch_s:.0f}", f"{ours_s:.1f}", signed(ours_s, row),
                signed(left_out_s, row), *(f"{part:.1f}" for part in parts_ms), bound,
            )
        )  # fmt: skip
    header = (
        "batch", "GPUs", "measured s", "ours s", "error", "error, row left out", "host ms a step", "compute ms",
        "input ms", "bound by",
    )  # fmt: skip
    return markdown(header, lines)


def split_table(scaling: MeasuredScaling, fit: DataParallelFit) -> str:
    """Seconds of an epoch that the devices compute, as assumed and as fitted, and the rest."""
    lines = []
    for point in scaling.points:
        row = point.row
        busy_s = fit.model.compute_s_per_sample * N_SAMPLES / row.n_devices
        lines.append(
            (
                str(row.batch_size), str(row.n_devices), f"{row.epoch_s:.0f}", f"{point.compute_s:.1f}",
                f"{busy_s:.1f}", f"{point.communication_s:.1f}", f"{row.epoch_s - busy_s:.1f}",
            )
        )  # fmt: skip
    header = (
        "batch", "GPUs", "epoch s", "compute: report s", "compute: fitted s", "communication: report s",
        "devices idle: fitted s",
    )  # fmt: skip
    return markdown(header, lines)


def scores_table(fit: DataParallelFit) -> str:
    several = np.array([row.n_devices > 1 for row in fit.rows])
    n_several, noise = int(several.sum()), fit.noise_floor_fraction
    assert noise is not None
    assert fit.leave_one_out_error_fraction is not None
    n = len(fit.rows)
    lines = [
        ("ours", f"{n}", "4 fitted", percent(fit.mean_error_fraction), percent(fit.error_fractions.max())),
        ("ours, each row left out", f"{n}", "4 fitted", percent(fit.leave_one_out_error_fraction), "-"),
        ("a perfect model and this clock", f"{n}", "-", percent(noise), percent(3 * noise) + " (mean of the worst)"),
        ("ours", f"{n_several}", "4 fitted", percent(fit.error_fractions[several].mean()), "-"),
    ]
    n_given = n - n_several
    for each in fit.baselines:
        numbers = f"{n_given} given" + (f", {each.n_fitted} fitted" if each.n_fitted else "")
        lines.append((each.name, f"{n_several}", numbers, percent(each.mean_error_fraction), "-"))
    return markdown(("model", "rows", "numbers", "mean error", "largest"), lines)


def rivals_table(rows: Sequence[MeasuredEpoch]) -> str:
    lines = []
    for rival in RIVALS:
        predicted_s = refit(rival, rows, rows)
        left_out_s = [refit(rival, [*rows[:i], *rows[i + 1 :]], rows[i : i + 1])[0] for i in range(len(rows))]
        errors = [np.abs(np.array(each) / [row.epoch_s for row in rows] - 1) for each in (predicted_s, left_out_s)]
        lines.append((rival.name, str(len(rival.start)), *(percent(each.mean()) for each in errors)))
    return markdown(("seconds of a step", "parameters", "mean error", "row left out"), lines)


def refit(rival: Rival, seen: Sequence[MeasuredEpoch], asked: Sequence[MeasuredEpoch]) -> Floats:
    """Epochs of some rows by a rival that was fitted to others."""
    sum_s, measured_s = epoch_sum(seen, N_SAMPLES), np.array([row.epoch_s for row in seen])
    values = least_log_squares(
        lambda v: sum_s(lambda batch, n: rival.step_s(v, batch, n)), measured_s, np.array(rival.start)
    )
    return epoch_sum(asked, N_SAMPLES)(lambda batch, n: rival.step_s(values, batch, n))


def unseen_table(fit: DataParallelFit, rows: Sequence[MeasuredEpoch]) -> str:
    seconds = epoch_sum(rows, N_SAMPLES)(fit.model.step_s).tolist()
    lines = [
        (str(row.batch_size), str(row.n_devices), f"{row.epoch_s:.0f}", f"{each:.1f}", signed(each, row))
        for row, each in zip(rows, seconds, strict=True)
    ]
    return markdown(("batch", "GPUs", "measured s", "ours s", "error"), lines)


def overlaps_line(path: Path) -> str:
    """Runs that were in progress at the same time, by the clock times of their logs."""
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            key, last = (int(row["global_batch"]), int(row["n_gpus"])), int(row["unix_time"])
            first = last - int(row["runtime_s"])
            before = spans.get(key, (first, last))
            spans[key] = (min(first, before[0]), max(last, before[1]))
    found = []
    for (a, first), (b, second) in itertools.combinations(sorted(spans.items()), 2):
        shared_s = min(first[1], second[1]) - max(first[0], second[0])
        if shared_s > 0:
            found.append(f"batch {a[0]} on {a[1]} and batch {b[0]} on {b[1]} ({shared_s} s)")
    days = (max(span[0] for span in spans.values()) - min(span[0] for span in spans.values())) / 86_400
    return f"Runs that overlap in time: {'; '.join(found) or 'none'}. All runs lie within {days:.0f} days."


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def signed(seconds: float, row: MeasuredEpoch) -> str:
    return f"{100 * (seconds / row.epoch_s - 1):+.0f} %"


if __name__ == "__main__":
    main()
