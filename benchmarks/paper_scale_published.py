"""Runs of image models that others made and published, and our forecasts of them."""

from __future__ import annotations

from dataclasses import dataclass

import traincast as tc
from paper_scale_plan import N_IMAGENET, OPTIMIZER, scoring_trace, trace_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A run that others made and published: the seconds of all of it, or images a second."""

    source: str
    model: str
    on: str
    n_gpus: int
    batch_size: int  # of all GPUs
    precision: str
    layout: str
    n_epochs: int | None = None
    total_s: float | None = None
    images_per_s: float | None = None
    is_scoring: bool = False

    def forecast(self) -> tc.Forecast:
        return tc.forecast(
            scoring_trace(self.model) if self.is_scoring else trace_of(self.model),
            self.on,
            self.batch_size,
            precision=self.precision,
            layout=self.layout,
            optimizer=None if self.is_scoring else OPTIMIZER,
            n_samples=N_IMAGENET,
            n_epochs=self.n_epochs or 1,
        )


GOYAL = "Goyal et al. 2017, arXiv 1706.02677"
AKIBA = "Akiba et al. 2017, arXiv 1711.04325"
NVIDIA_50 = "NVIDIA DeepLearningExamples, resnet50v1.5"
NVIDIA_X = "NVIDIA DeepLearningExamples, resnext101-32x4d"


def of_nvidia(model: str, on: str, batch_per_gpu: int, precision: str, images_per_s: float) -> Published:
    """Rows of the tables "training performance" on 8 GPUs, batches and layouts of the repository's configs.yml."""
    return Published(
        source=NVIDIA_50 if model == "resnet50" else NVIDIA_X,
        model=model,
        on=on,
        n_gpus=8,
        batch_size=8 * batch_per_gpu,
        precision=precision,
        layout="nhwc" if precision == "amp-fp16" else "nchw",
        images_per_s=images_per_s,
    )


def of_nvidia_scoring(model: str, on: str, batch_size: int, precision: str, images_per_s: float) -> Published:
    """Rows of the tables "inference performance" on one GPU: the largest batch of each."""
    return Published(
        source=NVIDIA_50 if model == "resnet50" else NVIDIA_X,
        model=model,
        on=on,
        n_gpus=1,
        batch_size=batch_size,
        precision=precision,
        layout="nhwc" if precision == "amp-fp16" else "nchw",
        images_per_s=images_per_s,
        is_scoring=True,
    )


WHOLE_RUNS = (
    Published(
        source=GOYAL,
        model="resnet50",
        on="8xP100-SXM2-16GB",
        n_gpus=8,
        batch_size=256,
        precision="fp32",
        layout="nchw",
        n_epochs=90,
        total_s=29 * 3600,
    ),
    Published(
        source=GOYAL,
        model="resnet50",
        on="32x8xP100-SXM2-16GB@50Gb/s",
        n_gpus=256,
        batch_size=8_192,
        precision="fp32",
        layout="nchw",
        n_epochs=90,
        total_s=3600,
    ),
    Published(
        source=AKIBA,
        model="resnet50",
        on="128x8xP100-PCIe-16GB@2xInfiniBand-FDR",
        n_gpus=1_024,
        batch_size=32_768,
        precision="fp32",
        layout="nchw",
        n_epochs=90,
        total_s=15 * 60,
    ),
)
TRAINING_RATES = (
    of_nvidia("resnet50", "DGX-1-V100-16GB", 112, "fp32", 2_855),
    of_nvidia("resnet50", "DGX-1-V100-16GB", 256, "amp-fp16", 8_322),
    of_nvidia("resnet50", "DGX-A100", 256, "tf32", 7_248),
    of_nvidia("resnet50", "DGX-A100", 256, "amp-fp16", 16_621),
    of_nvidia("resnext101_32x4d", "DGX-1-V100-16GB", 64, "fp32", 1_151.01),
    of_nvidia("resnext101_32x4d", "DGX-1-V100-16GB", 128, "amp-fp16", 4_000.79),
    of_nvidia("resnext101_32x4d", "DGX-A100-40GB", 128, "tf32", 2_380.51),
    of_nvidia("resnext101_32x4d", "DGX-A100-40GB", 128, "amp-fp16", 6_887.59),
)
SCORING_RATES = (
    of_nvidia_scoring("resnet50", "V100-SXM2-16GB", 256, "fp32", 1_261),
    of_nvidia_scoring("resnet50", "V100-SXM2-16GB", 256, "amp-fp16", 3_382),
    of_nvidia_scoring("resnet50", "T4", 256, "fp32", 415),
    of_nvidia_scoring("resnet50", "T4", 256, "amp-fp16", 1_198),
    of_nvidia_scoring("resnext101_32x4d", "V100-SXM2-16GB", 64, "fp32", 485.70),
    of_nvidia_scoring("resnext101_32x4d", "V100-SXM2-16GB", 128, "amp-fp16", 1_079.10),
    of_nvidia_scoring("resnext101_32x4d", "T4", 64, "fp32", 449.30),
    of_nvidia_scoring("resnext101_32x4d", "T4", 128, "amp-fp16", 948.27),
)
