"""What training at the papers' scale takes: jobs of stages, and what each stage takes on a cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import traincast as tc
from traincast.hardware.cluster import Cluster
from traincast.hardware.cluster_text import find_cluster
from traincast.trace.trace import Trace

N_IMAGENET = 1_281_167  # ILSVRC 2012, training images
N_UNLABELLED = 1_000_000_000
N_YFCC_PHOTOS = 99_200_000  # YFCC100M holds 99.2 million photos and 0.8 million videos
N_PRETRAINING = 1_000_000_000  # images that the student sees, each of them many times
PAPER_BATCH = 1_536  # 64 GPUs x 24 images
LARGE_BATCH = 8_192
SCORING_BATCH = 128  # of each GPU

# How a step runs on all clusters; of the layouts the one that is forecast to be faster.
PRECISION, OPTIMIZER = "amp-fp16", "momentum"
LAYOUTS = ("nchw", "nhwc")
PASSES = (1, 2, 3, 4, 6, 8, 12, 24)

TEACHER, STUDENT = "resnext101_32x16d", "resnet50"
CLUSTERS = ("8xp3.16xlarge", "8xp4d.24xlarge", "16xg4dn.12xlarge")
ONE_FLOW = ("8xp3.16xlarge@5Gb/s", "16xg4dn.12xlarge@5Gb/s")  # what AWS grants one TCP flow between machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of a job: so many images are trained on, or only scored, each counted as often as it is seen."""

    name: str
    kind: Literal["train", "score"]
    model: str
    n_images: int
    batch_size: int  # of an update of all GPUs; when scoring, of each GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    name: str
    stages: tuple[Stage, ...]


PRETRAINING = Stage(
    name="student on the selection, 1 billion images seen",
    kind="train",
    model=STUDENT,
    n_images=N_PRETRAINING,
    batch_size=PAPER_BATCH,
)
LARGER_BATCH = replace(PRETRAINING, batch_size=LARGE_BATCH)


def teacher_student(name: str, unlabelled: str, n_unlabelled: int) -> Job:
    """Yalniz et al. 2019: a teacher from labels, its scores, a student from what it chose, labels again."""
    return Job(
        name=name,
        stages=(
            Stage(
                name="teacher on ImageNet, 100 epochs",
                kind="train",
                model=TEACHER,
                n_images=100 * N_IMAGENET,
                batch_size=PAPER_BATCH,
            ),
            Stage(
                name=f"teacher scores {unlabelled}",
                kind="score",
                model=TEACHER,
                n_images=n_unlabelled,
                batch_size=SCORING_BATCH,
            ),
            PRETRAINING,
            Stage(
                name="student on ImageNet, 30 epochs",
                kind="train",
                model=STUDENT,
                n_images=30 * N_IMAGENET,
                batch_size=PAPER_BATCH,
            ),
        ),
    )


BILLION = teacher_student("teacher and student, 1 billion images", "1 billion images", N_UNLABELLED)
YFCC = teacher_student("teacher and student, YFCC-100M", "YFCC-100M", N_YFCC_PHOTOS)
IMAGENET = Job(
    name="ImageNet, ResNet-50, 90 epochs",
    stages=(
        Stage(
            name="ResNet-50 on ImageNet, 90 epochs",
            kind="train",
            model=STUDENT,
            n_images=90 * N_IMAGENET,
            batch_size=LARGE_BATCH,
        ),
    ),
)
JOBS = (BILLION, YFCC, IMAGENET)


@dataclass(frozen=True, slots=True)
class Range:
    """A median with p10 and p90."""

    low: float
    middle: float
    high: float

    def times(self, factor: float) -> Range:
        return Range(self.low * factor, self.middle * factor, self.high * factor)


def together(parts: Sequence[Range]) -> Range:
    """Of a sum whose parts err together: the same method times them all, on the same machines."""
    return Range(sum(part.low for part in parts), sum(part.middle for part in parts), sum(part.high for part in parts))


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Planned:
    """A stage on a cluster. The forecast is of the whole cluster, or of one GPU where images are only scored."""

    stage: Stage
    cluster: Cluster
    forecast: tc.Forecast
    total_s: Range

    @property
    def gpu_hours(self) -> Range:
        return self.total_s.times(self.cluster.n_devices / 3600)

    @property
    def cost_usd(self) -> Range:
        price = self.cluster.price_usd_per_hour
        assert price is not None, f"no price of {self.cluster.name}"
        return self.total_s.times(price / 3600)

    @property
    def node_images_per_s(self) -> float:
        """What the loader of one machine has to deliver."""
        per_gpu = self.stage.n_images / self.total_s.middle / self.cluster.n_devices
        return per_gpu * self.cluster.devices_per_node


def plan(stage: Stage, on: str) -> Planned:
    """The stage in the faster layout."""
    cluster = find_cluster(on)
    forecast_of = trained if stage.kind == "train" else scored
    forecast = min((forecast_of(stage, cluster, layout) for layout in LAYOUTS), key=lambda found: found.step_s)
    assert forecast.fits, f"{stage.name} does not fit on {on}"
    low, high = forecast.interval("total_s")
    middle = forecast.total_s
    assert middle is not None
    return Planned(stage=stage, cluster=cluster, forecast=forecast, total_s=Range(low, middle, high))


def trained(stage: Stage, cluster: Cluster, layout: str) -> tc.Forecast:
    """With as few passes to an update as the memory of a GPU allows."""
    for n_passes in PASSES:
        if stage.batch_size % (n_passes * cluster.n_devices):
            continue
        found = tc.forecast(
            trace_of(stage.model),
            cluster,
            stage.batch_size,
            n_samples=stage.n_images,
            precision=PRECISION,
            layout=layout,
            optimizer=OPTIMIZER,
            accumulation_steps=n_passes,
        )
        if found.fits:
            return found
    raise SystemExit(f"{stage.name}: no number of passes fits on {cluster.name}")


def scored(stage: Stage, cluster: Cluster, layout: str) -> tc.Forecast:
    """GPUs score shares of their own and say nothing to each other: one of them tells how long all take."""
    return tc.forecast(
        scoring_trace(stage.model),
        cluster.device.name,
        stage.batch_size,
        n_samples=math.ceil(stage.n_images / cluster.n_devices),
        precision=PRECISION,
        layout=layout,
    )


def of_one_gpu(stage: Stage, cluster: Cluster, layout: str) -> tc.Forecast:
    """The stage's share of one GPU of the cluster, without what it says to others."""
    if stage.kind == "score":
        return scored(stage, cluster, layout)
    return tc.forecast(
        trace_of(stage.model),
        cluster.device.name,
        stage.batch_size // cluster.n_devices,
        precision=PRECISION,
        layout=layout,
        optimizer=OPTIMIZER,
    )


@cache
def trace_of(model: str) -> Trace:
    return tc.load_model(model)


@cache
def scoring_trace(model: str) -> Trace:
    """Forward only, in evaluation mode. Needs torch: the shipped traces are training steps."""
    import torch

    from traincast.frontend.models.training_step import build_for_training

    with torch.device("meta"):
        module, example, _ = build_for_training(model)
    return tc.capture(module.eval(), example, mode="inference")
