"""Captures a published model from its sizes: what ships was made by this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from traincast.frontend.capturing.fold import capture_folded
from traincast.frontend.models.decoder import LanguageModel
from traincast.frontend.models.decoder_sizes import DecoderSizes, sizes_from
from traincast.frontend.models.named import NamedModel
from traincast.frontend.models.training_step import next_token_loss
from traincast.frontend.step import TrainingStep
from traincast.trace.folding.folded import FoldedTrace
from traincast.trace.folding.units import Stack
from traincast.trace.settings import Settings

_DEFAULTS = Settings("bf16", "adamw")


def capture_named(model: NamedModel) -> FoldedTrace:
    """Its folded trace."""
    sizes = sizes_from(dict(model.sizes))
    stack = Stack("model.layers", start=sizes.n_first, period=sizes.period)
    n_units, n_last = divmod(sizes.n_layers - sizes.n_first, sizes.period)

    def build(units: Sequence[int], length: int) -> TrainingStep:
        n_layers = sizes.n_first + units[0] * sizes.period + n_last
        return decoder_step(replace(sizes, n_layers=n_layers), length, name=model.name)

    return capture_folded(build, [stack], [n_units], defaults=_DEFAULTS, assumptions=assumptions_of(sizes))


def decoder_step(sizes: DecoderSizes, length: int, *, name: str) -> TrainingStep:
    """One step over full rows of tokens."""
    with torch.device("meta"):
        module = LanguageModel(sizes)

    def example(batch_size: int) -> Any:
        return (torch.zeros(batch_size, length, dtype=torch.long, device="meta"),)

    return TrainingStep(module=module, example=example, loss=next_token_loss, name=name)


def assumptions_of(sizes: DecoderSizes) -> tuple[str, ...]:
    """What the trace of a decoder takes for granted."""
    found = ["attention is one fused kernel with its causal mask inside; rows are full and hold one text each"]
    if sizes.window:
        seen = "all" if not sizes.global_every else f"{sizes.global_every - 1} of {sizes.global_every}"
        found.append(f"attention of {seen} blocks sees a sliding window of {sizes.window:,} tokens, inside the kernel")
    if sizes.experts is not None:
        n, chosen = sizes.experts.n_experts, sizes.experts.n_chosen
        found.append(f"each token meets {chosen} of {n} experts, balanced: grouped products, as many rows for each")
    return tuple(found)
