"""Whole models that came after the last fit: image models on an RTX 4090, NVIDIA's examples on newer GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traincast.kernels.refit.model_rows import Step
from traincast.kernels.refit.modern.devices import known_device
from traincast.kernels.refit.op_rows import read_rows
from traincast.trace.settings import Settings

TIMM, EXAMPLES = "timm_infer_rtx4090.csv.gz", "lambda_newer_gpus.csv"
_EXAMPLE_TRACES = {
    "resnet50": "zoo:resnet50",
    "bert_base_squad": "lambda-train--bert_base_squad--384",
    "bert_large_squad": "lambda-train--bert_large_squad--384",
}


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
    """Training on one GPU of models with a trace, as `kernels.refit.model_rows.lambda_steps` reads the older table."""
    for row in read_rows(data / "e2e" / EXAMPLES):
        device = known_device(row["gpu"])
        if row["num_gpus"] != "1" or row["model"] not in _EXAMPLE_TRACES or device is None:
            continue
        throughput = float(row["throughput"])
        if row["flag"] == "bert_steps_overcounted":
            throughput /= float(row["overcount"])
        precision = "amp-fp16" if row["precision"] == "fp16" else "tf32" if row["tf32_allowed"] == "1" else "fp32"
        is_apex = precision == "amp-fp16" and row["model"] != "resnet50"
        batch_size = int(float(row["batch_size"]))
        yield Step(
            trace=_EXAMPLE_TRACES[row["model"]],
            settings=Settings("bf16" if is_apex else precision, "momentum" if row["model"] == "resnet50" else "adam"),
            is_apex=is_apex,
            device=device,
            batch_size=batch_size,
            observed_s=batch_size / throughput,
            tags={
                "family": row["model"],
                "precision": precision,
                "batch": str(batch_size),
                **{key: row[key] for key in ("suite", "flag", "runs", "spread", "system", "pytorch")},
            },
        )
