"""Whole training steps of models by name: NVIDIA's examples as their READMEs print them, and MLPerf's submissions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.accuracy.modern.askable import reason_of
from traincast.kernels.refit.modern.devices import known_device
from traincast.kernels.refit.op_rows import read_rows

EXAMPLES, MLPERF = "nvidia_dle.csv.gz", "mlperf.csv.gz"
_BERT = "PyTorch/LanguageModeling/BERT"
_USUAL_BETWEEN = {"A100": "1600Gb/s", "": "3200Gb/s"}  # DGX A100, DGX H100 and later
_NOT_FOR_GRADIENTS = ("storage", "management", "ethernet")
# As in "8x ConnectX-6 IB HDR 200Gb/Sec" or "4 x Mellanox Technologies MT28908 Family [ConnectX-6] HDR 200 Gb/S".
_PORTS = re.compile(r"(\d+)\s*x\s[^,|]*?(\d+)\s*Gb", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One measured step, and the question that a user would ask about it. `trace` is of capture_more_models.py."""

    file: str
    model: str
    trace: str
    device: str  # as the file writes it
    n_gpus: int
    n_nodes: int
    between: str
    precision: str
    layout: str
    optimizer: str
    batch_size: int  # of all devices
    accumulation_steps: int
    step_s: float
    not_asked: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def device_name(self) -> str | None:
        """In the device table; None while it has no such device."""
        return known_device(self.device)

    @property
    def reason(self) -> str:
        return reason_of(self.not_asked, self.device)

    @property
    def place(self) -> str:
        """The devices as a user writes them."""
        if self.n_nodes == 1:
            return f"1x{self.n_gpus}x{self.device_name}"
        return f"{self.n_nodes}x{self.n_gpus // self.n_nodes}x{self.device_name}@{self.between}"


def model_rows(data: Path) -> dict[str, list[ModelRow]]:
    """By file."""
    read = {EXAMPLES: example_row, MLPERF: mlperf_row}
    return {file: [row_of(line) for line in read_rows(data / "modern" / file)] for file, row_of in read.items()}


def example_row(line: Mapping[str, str]) -> ModelRow:
    """A cell of accumulation steps such as '64 and 32' is of fp32 or tf32, then of mixed precision.

    Where no column has the accumulated batch, the batch is that (DGX-1). Fine-tuning of BERT is SQuAD at its usual
    length.
    """
    n_gpus, batch = int(line["n_gpus"]), int(float(line["micro_batch"] or 0))
    is_mixed = line["precision"].startswith("amp")
    passes = [int(text) for text in re.findall(r"\d+", line["grad_accum"])] or [1]
    n_passes = passes[-1] if is_mixed else passes[0]
    if "Accumulated Batch" in line["note"]:
        batch *= n_passes
    per_gpu = float(line["samples_per_s_per_gpu"] or "nan")
    is_bert, is_tuned = line["model"] == _BERT, "Fine-tuning" in line["note"]
    checks = (
        (not batch, "batch not told"),
        (not is_bert, f"layers of the model not told: {line['model'].rpartition('/')[2]}"),
    )
    return ModelRow(
        file=EXAMPLES,
        model=line["model"].rpartition("/")[2] + (" fine-tuning" if is_tuned else ""),
        trace="bert-large--qa--384" if is_tuned else f"bert-large--mlm--{line['seqlen']}" if is_bert else "",
        device=line["device"],
        n_gpus=n_gpus,
        n_nodes=1,
        between="",
        precision=line["precision"],
        layout="nchw",
        optimizer="adamw",
        batch_size=n_gpus * batch,
        accumulation_steps=n_passes,
        step_s=batch / per_gpu,
        not_asked=next((why for is_so, why in checks if is_so), ""),
        assumed=("384 tokens of SQuAD",) if is_tuned else ("adamw for lamb",),
    )


def mlperf_row(line: Mapping[str, str]) -> ModelRow:
    """Submissions say neither precision nor optimizer: ResNet-50 runs in fp16 with LARS in all of them."""
    between, is_told = _between(line["interconnect"], line["device"])
    n_nodes = int(line["n_nodes"])
    assumed = ["momentum for lars"] + [f"{between} between nodes"] * (n_nodes > 1 and not is_told)
    checks = (
        (not line["step_ms"], "no time of a step"),
        (line["model"] == "bert", "sequences of varying length, packed; fp8 or 16 bits not told"),
        (line["model"] == "llama2_70b_lora", "LoRA"),
        (line["model"] != "resnet", f"layers of the model not told: {line['model']}"),
    )
    return ModelRow(
        file=MLPERF,
        model=line["model"],
        trace="resnet50",
        device=line["device"],
        n_gpus=int(line["n_gpus"]),
        n_nodes=n_nodes,
        between=between,
        precision="amp-fp16",
        layout="nhwc",
        optimizer="momentum",
        batch_size=int(float(line["global_batch"] or 0)),
        accumulation_steps=int(float(line["grad_accum"] or 1)),
        step_s=float(line["step_ms"] or "nan") * 1e-3,
        not_asked=next((why for is_so, why in checks if is_so), ""),
        assumed=tuple(assumed),
    )


def _between(interconnect: str, device: str) -> tuple[str, bool]:
    """Bits a second of a node's fastest ports, and whether the file tells."""
    network = interconnect.partition("|")[2]
    parts = [part for part in network.split(",") if not any(word in part.lower() for word in _NOT_FOR_GRADIENTS)]
    rates = [int(n) * int(rate) for part in parts for n, rate in _PORTS.findall(part)]
    if rates:
        return f"{max(rates)}Gb/s", True
    return _USUAL_BETWEEN["A100" if device.startswith("A100") else ""], False
