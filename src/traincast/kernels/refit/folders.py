"""Where refits and comparisons find their measurements and the traces of the measured models."""

from __future__ import annotations

from pathlib import Path

from traincast.errors import InputError
from traincast.report.input_files import is_there

# Capturing takes most of an hour, so all commands that need the traces look for them at one place.
USUAL_TRACES = Path.home() / ".cache" / "traincast" / "traces"
_DATA_FILES = (
    "e2e/lambda.csv",
    "e2e/lambda_newer_gpus.csv",
    "e2e/neusight.csv",
    "e2e/timm_infer_rtx3090.csv",
    "e2e/timm_infer_rtx4090.csv.gz",
    "e2e/timm_train_rtx3090.csv",
    "modern/gemm_xla.csv.gz",
    "modern/kernels_cudnn.csv.gz",
    "modern/llm_foundry.csv.gz",
    "ops/conv.csv.gz",
    "ops/elementwise.csv.gz",
    "ops/elementwise_amd.csv.gz",
    "ops/gemm_amd.csv.gz",
    "ops/gemm_bmm.csv.gz",
    "ops/gemm_linear.csv.gz",
    "ops/softmax_ln.csv.gz",
)


def check_folders(data: Path, traces: Path) -> None:
    """One sentence where the measurements or the traces are not there."""
    if not (is_there(data) and data.is_dir()):
        raise InputError(
            f"There is no folder '{data}': --data is the folder of public measurements, with ops/, e2e/ and layers/."
        )
    missing = [name for name in _DATA_FILES if not (data / name).is_file()]
    if missing:
        more = f" and {len(missing) - 1} more files" if len(missing) > 1 else ""
        raise InputError(f"'{data}' lacks {missing[0]}{more}: --data is the folder that holds ops/ and e2e/.")
    if not traces.is_dir() or not any(traces.glob("*.trace")):
        raise InputError(
            f"'{traces}' holds no traces: make them with 'python benchmarks/capture_models.py --data {data} "
            f"--traces {traces} --set timm-train', then with the other sets, or name their folder with --traces."
        )
