"""Whole models that came after the last fit: image models on an RTX 4090, NVIDIA's examples on newer GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traincast.kernels.refit.model_rows import Step, lambda_steps
from traincast.kernels.refit.op_rows import read_rows
from traincast.trace.settings import Settings

TIMM, EXAMPLES = "timm_infer_rtx4090.csv.gz", "lambda_newer_gpus.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRow:
    """One inference step of an image model; eager rows are also `Step`s that a fit can take."""

    step: Step
    is_compiled: bool
    pytorch: str

    @property
    def set_name(self) -> str:
        return f"{'compiled' if self.is_compiled else 'eager'} {self.step.layout}, PyTorch {self.pytorch}"


def image_rows(data: Path) -> list[ImageRow]:
    """Under the names of the traces that benchmarks/capture_models.py writes for the RTX 3090's rows."""
    return [
        ImageRow(
            step=Step(
                trace=f"timm-inference--{row['model']}--{row['img_size']}",
                settings=Settings(row["precision"], "none"),
                device=row["gpu"],
                batch_size=int(row["batch_size"]),
                observed_s=float(row["step_ms"]) * 1e-3,
                layout=row["layout"],
                tags={key: row[key] for key in ("family", "model", "img_size", "samples_per_s", "pytorch")}
                | {"batch": row["batch_size"]},
            ),
            is_compiled=row["torch_compile"] == "1",
            pytorch=row["pytorch"],
        )
        for row in read_rows(data / "e2e" / TIMM)
    ]


def example_steps(data: Path) -> Iterator[Step]:
    """Training of NVIDIA's examples on one newer GPU."""
    return lambda_steps(data, EXAMPLES)
