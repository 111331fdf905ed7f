"""Captures the decoders of the measured language-model runs once, for `first_sight.py` and for fits.

    python benchmarks/capture_language_models.py --data ../shared/data [--traces DIR] [--longest 60]

One plain decoder stands for all of them: layers, widths, heads, feed-forward, norm, biases, positions and embeddings
are those of the row. Rows with full recomputation run every layer under torch's checkpoint, and rows that ran without a
fused attention write it out. Most models take 1 to 4 seconds. One that would take longer than `--longest` is left out;
how long follows from captures of 1 and 3 layers.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

import traincast as tc
from traincast.frontend.capturing import fused_ops  # noqa: F401 - declares traincast::attention
from traincast.kernels.refit.folders import USUAL_TRACES
from traincast.kernels.refit.modern.architecture import Architecture
from traincast.kernels.refit.modern.language_files import language_rows


def norm_of(arch: Architecture) -> nn.Module:
    return nn.RMSNorm(arch.hidden) if arch.norm == "rms" else nn.LayerNorm(arch.hidden, bias=arch.has_bias)


def turned(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Rotary positions."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Lora(nn.Module):
    """What is learned beside a frozen matrix: two thin ones."""

    def __init__(self, n_in: int, n_out: int, rank: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(n_in, rank, bias=False), nn.Linear(rank, n_out, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(self.down(x))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a decoder is built with beside its sizes. With LoRA, queries and values learn, and nothing else does."""

    is_fused: bool
    is_recomputed: bool = False
    dropout: float = 0.0
    lora_rank: int = 0

    def dropped(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, self.dropout) if self.dropout else x


class Attention(nn.Module):
    def __init__(self, arch: Architecture, choices: Choices) -> None:
        super().__init__()
        self.arch, self.choices = arch, choices
        width = arch.n_heads * arch.head_dim
        self.project = nn.Linear(arch.hidden, width + 2 * arch.n_kv_heads * arch.head_dim, bias=arch.has_bias)
        self.output = nn.Linear(width, arch.hidden, bias=arch.has_bias)
        if choices.lora_rank:
            self.queries = Lora(arch.hidden, width, choices.lora_rank)
            self.values = Lora(arch.hidden, arch.n_kv_heads * arch.head_dim, choices.lora_rank)

    def forward(self, x: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
        arch = self.arch
        batch, length, _ = x.shape
        parts = self.project(x).view(batch, length, -1, arch.head_dim).transpose(1, 2)
        query, key, value = parts.split([arch.n_heads, arch.n_kv_heads, arch.n_kv_heads], dim=1)
        if self.choices.lora_rank:
            query = query + self.queries(x).view(batch, length, -1, arch.head_dim).transpose(1, 2)
            value = value + self.values(x).view(batch, length, -1, arch.head_dim).transpose(1, 2)
        if angles is not None:
            query, key = turned(query, *angles), turned(key, *angles)
        if self.choices.is_fused:
            # What a capture makes of scaled_dot_product_attention, called by name: it does not see the calls that a
            # checkpoint makes again in backward.
            mixed = torch.ops.traincast.attention(query, key, value, None, self.choices.dropout, True)[0]
        else:
            scores = query @ key.transpose(-1, -2) / arch.head_dim**0.5
            hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            mixed = self.choices.dropped(scores.masked_fill(hidden, -1e4).softmax(-1)) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, arch: Architecture) -> None:
        super().__init__()
        self.gate = nn.Linear(arch.hidden, arch.ffn, bias=arch.has_bias) if arch.is_gated else None
        self.up = nn.Linear(arch.hidden, arch.ffn, bias=arch.has_bias)
        self.down = nn.Linear(arch.ffn, arch.hidden, bias=arch.has_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = F.gelu(self.up(x)) if self.gate is None else F.silu(self.gate(x)) * self.up(x)
        return self.down(inner)


class Layer(nn.Module):
    def __init__(self, arch: Architecture, choices: Choices) -> None:
        super().__init__()
        self.choices = choices
        self.norm_1, self.norm_2 = norm_of(arch), norm_of(arch)
        self.attention, self.feed_forward = Attention(arch, choices), FeedForward(arch)

    def forward(self, x: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
        x = x + self.choices.dropped(self.attention(self.norm_1(x), angles))
        return x + self.choices.dropped(self.feed_forward(self.norm_2(x)))


class Decoder(nn.Module):
    def __init__(self, arch: Architecture, choices: Choices) -> None:
        super().__init__()
        self.arch, self.choices = arch, choices
        self.words = nn.Embedding(arch.vocab, arch.hidden)
        self.places = nn.Embedding(arch.seqlen, arch.hidden) if arch.positions == "learned" else None
        self.layers = nn.ModuleList(Layer(arch, choices) for _ in range(arch.n_layers))
        self.norm = norm_of(arch)
        self.head = nn.Linear(arch.hidden, arch.vocab, bias=False)
        if arch.is_tied:
            self.head.weight = self.words.weight
        if arch.positions == "rotary":
            self.register_buffer("cosine", torch.zeros(arch.seqlen, arch.head_dim))
            self.register_buffer("sine", torch.zeros(arch.seqlen, arch.head_dim))
        if choices.lora_rank:
            self.requires_grad_(False)
            for part in self.modules():
                if isinstance(part, Lora):
                    part.requires_grad_(True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        angles = None
        if self.places is None:
            angles = (self.cosine.to(x.dtype), self.sine.to(x.dtype))
        else:
            x = x + self.places(torch.arange(self.arch.seqlen, device=ids.device))
        x = self.choices.dropped(x)
        for layer in self.layers:
            if self.choices.is_recomputed:
                x = checkpoint(layer, x, angles, use_reentrant=False, preserve_rng_state=False)
            else:
                x = layer(x, angles)
        return self.head(self.norm(x))


def capture(arch: Architecture, choices: Choices) -> Any:
    with torch.device("meta"):
        model = Decoder(arch, choices)

    def loss(logits: torch.Tensor, inputs: Any) -> torch.Tensor:
        labels = torch.zeros(logits.shape[0] * logits.shape[1], dtype=torch.long, device=logits.device)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels)

    example = lambda batch: torch.zeros(batch, arch.seqlen, dtype=torch.long)  # noqa: E731
    return tc.capture(model, example, loss=loss, optimizer="adamw", precision="bf16")


def expected_s(arch: Architecture, choices: Choices) -> float:
    """Of all layers, from two captures of few: their time grows with the layers."""
    seconds = []
    for n_layers in (1, 3):
        start = time.perf_counter()
        capture(replace(arch, n_layers=n_layers), choices)
        seconds.append(time.perf_counter() - start)
    return seconds[0] + (arch.n_layers - 1) * (seconds[1] - seconds[0]) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--longest", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--file", help="only the rows of this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    arguments.traces.mkdir(parents=True, exist_ok=True)
    rows = [
        row
        for file, some in language_rows(arguments.data).items()
        for row in some
        if arguments.file in (None, file) and not row.reason
    ]
    for name, row in {row.trace_name: row for row in rows}.items():
        path = arguments.traces / f"{name}.trace"
        if path.exists():
            continue
        assert row.architecture is not None
        choices = Choices(is_fused=row.attention == "fused", is_recomputed=row.recompute == "full")
        try:
            if row.architecture.n_layers > 40 and (n_s := expected_s(row.architecture, choices)) > arguments.longest:
                print(f"{name} ({row.model}): left out, {n_s:.0f} s", flush=True)
                continue
            start = time.perf_counter()
            capture(row.architecture, choices).save(path)
            print(f"{name} ({row.model}): {time.perf_counter() - start:.1f} s", flush=True)
        except Exception as error:  # noqa: BLE001 - one model must not stop the others
            print(f"{name} ({row.model}): FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
