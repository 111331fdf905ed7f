"""What the papers' scale would take:  python benchmarks/paper_scale.py [--write]

Semi-supervised training with a billion images (Yalniz et al. 2019) and ResNet-50 on ImageNet, stage by stage on three
clusters, from the forecasts that `traincast forecast` gives. Needs torch, and half a minute. With --write the tables
and the chart of docs/paper_scale.md are renewed (the chart needs the extra png).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from paper_scale_plan import (
    BILLION,
    CLUSTERS,
    JOBS,
    LARGER_BATCH,
    LAYOUTS,
    ONE_FLOW,
    PRECISION,
    PRETRAINING,
    Job,
    Planned,
    Range,
    Stage,
    of_one_gpu,
    plan,
    together,
)
from paper_scale_published import SCORING_RATES, TRAINING_RATES, WHOLE_RUNS, Published
from traincast.hardware.cluster_text import find_cluster
from traincast.report.chart import Chart, Series
from traincast.report.files import write_file
from traincast.report.png import to_png
from traincast.units import show_bytes, show_duration

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "paper_scale.md"
IMAGE = DOCS / "images" / "paper_scale_gpu_hours.png"
JPEG_BYTES = 138e9 / 1_281_167  # ImageNet's training images are 138 GB


def main() -> None:
    """Forecasts, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} and its chart")
    options = parser.parse_args()
    tables = {
        "clusters": clusters_table(),
        "totals": totals_table(CLUSTERS),
        "stages": "\n\n".join(stages_table(on) for on in CLUSTERS),
        "loader": loader_table(),
        "flow": totals_table(ONE_FLOW),
        "batch": batch_table(),
        "layouts": layouts_table(),
        "runs": runs_table(),
        "rates": rates_table(),
    }
    for name, text in tables.items():
        print(f"{name}\n{text}\n")
    if options.write:
        image = to_png(chart())
        write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), tables))
        write_file(IMAGE, image)
        print(f"Wrote {PAGE} and {IMAGE}")


def clusters_table() -> str:
    rows = []
    for on in CLUSTERS:
        cluster = find_cluster(on)
        assert cluster.between is not None
        rows.append(
            (
                f"`{on}`",
                f"{cluster.n_devices} x {cluster.device.name}",
                cluster.inside.name,
                f"{cluster.between.name}, {8 * cluster.between.bytes_per_s / 1e9:.0f} Gb/s",
                f"${cluster.price_usd_per_hour:,.2f}",
                f"{cluster.price_date}, {cluster.region}",
            )
        )
    return table(("cluster", "GPUs", "inside a machine", "between machines", "an hour", "price of"), "llllrl", rows)


def totals_table(places: Sequence[str]) -> str:
    """One row a job and cluster."""
    rows = []
    for job in JOBS:
        for on in places:
            found = planned(job, on)
            rows.append(
                (
                    job.name,
                    f"`{on}`",
                    *times(together([each.total_s for each in found])),
                    *whole(together([each.gpu_hours for each in found])),
                    *whole(together([each.cost_usd for each in found]), "$"),
                )
            )
    header = ("job", "cluster", "time", "p10 to p90", "GPU hours", "p10 to p90", "cost", "p10 to p90")
    return table(header, "llrrrrrr", rows)


def planned(job: Job, on: str) -> list[Planned]:
    return [plan(stage, on) for stage in job.stages]


def stages_once() -> Iterable[Stage]:
    """Stages that jobs have in common appear once."""
    return dict.fromkeys(stage for job in JOBS for stage in job.stages)


def stages_table(on: str) -> str:
    rows = [stage_row(plan(stage, on)) for stage in stages_once()]
    header = (
        "stage",
        "images",
        "per GPU",
        "layout",
        "memory",
        "step",
        "bound by",
        "time",
        "p10 to p90",
        "GPU h",
        "cost",
    )
    return f"`{on}`:\n\n{table(header, 'lrrlrrlrrrr', rows)}"


def stage_row(one: Planned) -> tuple[str, ...]:
    forecast, question = one.forecast, one.forecast.question
    passes = "" if question.accumulation_steps == 1 else f" x {question.accumulation_steps}"
    return (
        one.stage.name,
        f"{one.stage.n_images / 1e6:,.1f} M",
        f"{question.micro_batch_size}{passes}",
        question.layout,
        f"{show_bytes(forecast.peak_memory_bytes)} of {show_bytes(question.device.usable_memory_bytes)}",
        show_duration(forecast.step_s),
        forecast.bound_by,
        *times(one.total_s),
        f"{one.gpu_hours.middle:,.0f}",
        f"${one.cost_usd.middle:,.0f}",
    )


def loader_table() -> str:
    """What the input pipeline of one machine must deliver so that it does not bind."""
    rows = []
    for stage in stages_once():
        rates = [plan(stage, on).node_images_per_s for on in CLUSTERS]
        rows.append((stage.name, *(f"{rate:,.0f} ({rate * JPEG_BYTES / 1e6:,.0f} MB/s)" for rate in rates)))
    return table(("images a second and machine", *(f"`{on}`" for on in CLUSTERS)), "lrrr", rows)


def batch_table() -> str:
    """The longest training of the student, at the paper's batch and at a larger one."""
    rows = []
    for on in (*CLUSTERS, *ONE_FLOW):
        cells: list[str] = []
        for stage in (PRETRAINING, LARGER_BATCH):
            one = plan(stage, on)
            waiting = one.forecast.exposed_communication_s / one.forecast.step_s
            cells += [" ".join(times(one.total_s)[:1]), f"{100 * waiting:.0f} %", f"${one.cost_usd.middle:,.0f}"]
        rows.append((f"`{on}`", *cells))
    small, large = (f"batch {stage.batch_size:,}" for stage in (PRETRAINING, LARGER_BATCH))
    header = ("cluster", f"{small}: time", "waits for links", "cost", f"{large}: time", "waits for links", "cost")
    return table(header, "lrrrrrr", rows)


def layouts_table() -> str:
    """Images a second of one GPU, without communication."""
    header = ["GPU"]
    rows = [[find_cluster(on).device.name] for on in CLUSTERS]
    for stage in BILLION.stages[:3]:
        header += [f"{stage.name.split(',')[0]}, {layout}" for layout in LAYOUTS]
        for on, row in zip(CLUSTERS, rows, strict=True):
            found = [of_one_gpu(stage, find_cluster(on), layout) for layout in LAYOUTS]
            row += [f"{each.samples_per_s:,.0f}" for each in found]
    return table(header, "lrrrrrr", rows)


def runs_table() -> str:
    """Whole runs: published hours beside ours."""
    rows, ours_s = [], []
    for run in WHOLE_RUNS:
        forecast = run.forecast()
        assert run.total_s is not None
        assert forecast.total_s is not None
        ours_s.append(forecast.total_s)
        low, high = forecast.interval("total_s")
        rows.append(
            (
                run.source,
                f"`{run.on}`",
                f"{run.batch_size:,}",
                f"{run.total_s / 3600:.3g} h",
                f"{forecast.total_s / 3600:.3g} h",
                f"{low / 3600:.3g} to {high / 3600:.3g} h",
                f"{forecast.total_s / run.total_s:.2f}",
            )
        )
    header = ("run", "place", "batch", "published", "forecast", "p10 to p90", "forecast / published")
    n_more = WHOLE_RUNS[1].n_gpus / WHOLE_RUNS[0].n_gpus
    published, ours = WHOLE_RUNS[0].total_s / WHOLE_RUNS[1].total_s / n_more, ours_s[0] / ours_s[1] / n_more
    kept = f"{100 * published:.1f} % of its speed as published, {100 * ours:.1f} % as forecast."
    return f"{table(header, 'llrrrrr', rows)}\n\nFrom 8 to 256 GPUs a GPU keeps {kept}"


def rates_table() -> str:
    """Images a second: published beside ours, and how far off times are by kind of run."""
    header = ("model", "place", "per GPU", "step", "published", "forecast", "p10 to p90", "time: forecast / published")
    rows = [rate_row(run) for run in (*TRAINING_RATES, *SCORING_RATES)]
    groups = {
        "Mixed-precision training": [run for run in TRAINING_RATES if run.precision == PRECISION],
        "fp32 and tf32 training": [run for run in TRAINING_RATES if run.precision != PRECISION],
        "Scoring": SCORING_RATES,
    }
    errors = [
        f"- {name}: mean error {100 * mean_error(runs):.0f} %, p10 to p90 hold {held(runs)} of {len(runs)}."
        for name, runs in groups.items()
    ]
    return "\n".join([table(header, "llrlrrrr", rows), "", *errors])


def mean_error(runs: Sequence[Published]) -> float:
    """Of the time, relative to the published one."""
    return statistics.fmean(abs(time_ratio(run) - 1) for run in runs)


def held(runs: Sequence[Published]) -> int:
    """Published rates between p10 and p90."""
    ends = [run.forecast().interval("samples_per_s") for run in runs]
    return sum(low <= (run.images_per_s or 0) <= high for run, (low, high) in zip(runs, ends, strict=True))


def time_ratio(run: Published) -> float:
    assert run.images_per_s is not None
    return run.images_per_s / run.forecast().samples_per_s


def rate_row(run: Published) -> tuple[str, ...]:
    forecast = run.forecast()
    low, high = forecast.interval("samples_per_s")
    return (
        f"{run.model}, {'scoring' if run.is_scoring else 'training'}",
        f"`{run.on}`",
        f"{run.batch_size // run.n_gpus}",
        f"{run.precision}, {run.layout}",
        f"{run.images_per_s:,.0f} images/s",
        f"{forecast.samples_per_s:,.0f}",
        f"{low:,.0f} to {high:,.0f}",
        f"{time_ratio(run):.2f}",
    )


def chart() -> Chart:
    """GPU hours of each stage on each cluster."""
    found = {on: planned(BILLION, on) for on in CLUSTERS}
    places = [f"{on} ({find_cluster(on).device.name})" for on in CLUSTERS]
    return Chart(
        title="One billion unlabelled images: GPU hours by stage",
        kind="stacked_bar",
        series=tuple(
            Series(name=stage.name, x=places, y=[found[on][i].gpu_hours.middle for on in CLUSTERS])
            for i, stage in enumerate(BILLION.stages)
        ),
        x_label="cluster",
        y_label="GPU hours",
        y_show="integer",
    )


def times(value: Range) -> tuple[str, str]:
    return show_duration(value.middle), f"{show_duration(value.low)} to {show_duration(value.high)}"


def whole(value: Range, sign: str = "") -> tuple[str, str]:
    return f"{sign}{value.middle:,.0f}", f"{sign}{value.low:,.0f} to {sign}{value.high:,.0f}"


def table(header: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> str:
    rule = ["---:" if side == "r" else "---" for side in align]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


if __name__ == "__main__":
    main()
