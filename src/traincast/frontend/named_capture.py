"""Captures a published model from its sizes: what ships was made by this."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from traincast.errors import CaptureError
from traincast.frontend.capturing.fold import capture_folded
from traincast.frontend.capturing.repeating import repeated_blocks, set_blocks
from traincast.frontend.hugging_face.config import read_config
from traincast.frontend.models.decoder import LanguageModel
from traincast.frontend.models.decoder_sizes import DecoderSizes, sizes_from
from traincast.frontend.models.named import NamedModel
from traincast.frontend.models.training_step import next_token_loss
from traincast.frontend.step import TrainingStep
from traincast.trace.folding.folded import LENGTHS, FoldedTrace
from traincast.trace.folding.units import Stack
from traincast.trace.settings import Settings

_DEFAULTS = Settings("bf16", "adamw")
_DEFAULTS_OF_OTHERS = Settings("amp-bf16", "adamw")


def capture_named(model: NamedModel) -> FoldedTrace:
    """Its folded trace."""
    if "config" in model.sizes:
        return _capture_config(model)
    sizes = sizes_from(dict(model.sizes))
    stack = Stack("model.layers", start=sizes.n_first, period=sizes.period)
    n_units, n_last = divmod(sizes.n_layers - sizes.n_first, sizes.period)

    def build(units: Sequence[int], length: int) -> TrainingStep:
        n_layers = sizes.n_first + units[0] * sizes.period + n_last
        return decoder_step(replace(sizes, n_layers=n_layers), length, name=model.name)

    return capture_folded(build, [stack], [n_units], defaults=_DEFAULTS, assumptions=assumptions_of(sizes))


def _capture_config(model: NamedModel) -> FoldedTrace:
    """A model of transformers' own classes, with most of its blocks left out."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(model.sizes["config"]), encoding="utf-8")

        def step_at(length: int) -> TrainingStep:
            step = read_config(path, seqlen=length or None, head=model.sizes["head"])
            return replace(step, name=model.name)

        lengths = LENGTHS if model.seqlen is not None else (0,)
        blocks = repeated_blocks(step_at(lengths[0]).module)

        def build(units: Sequence[int], length: int) -> TrainingStep:
            step = step_at(length)
            for one, n in zip(blocks, units, strict=True):
                whole = list(step.module.get_submodule(one.stack.path))
                set_blocks(step.module, one.stack.path, whole[: one.kept(n)])
            return step

        stacks, counts = [one.stack for one in blocks], [one.n_units for one in blocks]
        try:
            return capture_folded(build, stacks, counts, lengths=lengths, defaults=_DEFAULTS_OF_OTHERS)
        except CaptureError:  # the blocks of a stage may touch those of another: all of them, then
            blocks = []
            return capture_folded(build, [], [], lengths=lengths, defaults=_DEFAULTS_OF_OTHERS)


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
