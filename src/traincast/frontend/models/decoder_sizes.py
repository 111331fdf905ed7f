"""The sizes of a decoder-only language model, as data: `decoder.py` builds it. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertSizes:
    """Experts in place of a feed-forward part, from block `first` on in every so many blocks (`every`)."""

    n_experts: int
    n_chosen: int  # experts that a token meets
    feed_forward: int
    shared_feed_forward: int = 0  # of an expert that all tokens meet; 0: none
    every: int = 1
    first: int = 0
    has_bias: bool = False
    router_bias: bool = False
    has_correction: bool = False  # a bias of the choice alone, which no gradient reaches (DeepSeek-V3)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentSizes:
    """DeepSeek's multi-head latent attention (arXiv 2405.04434): keys and values from a narrow vector a token."""

    query_rank: int  # 0: queries come from the hidden vector itself
    key_value_rank: int
    plain: int  # features of a head without and with a position
    rotary: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderSizes:
    """Everything that tells one decoder from another in shapes and kernels."""

    hidden: int
    n_layers: int
    n_heads: int
    n_kv_heads: int = 0  # 0: as many as heads
    head: int = 0  # 0: hidden / heads
    feed_forward: int
    vocabulary: int
    positions: int
    norm: str = "rms"  # | "layer" | "gemma" (rms with 1 + weight)
    norm_bias: bool = True  # of layer norms
    norm_place: str = "pre"  # | "both" (also after each branch) | "post" (OLMo 2) | "after" (the sum) | "parallel"
    mlp: str = "swiglu"  # | "geglu" | "gelu" | "gelu_tanh" | "relu"
    position: str = "rotary"  # | "learned" | "alibi"
    rotary_fraction: float = 1.0
    position_offset: int = 0  # rows of the table of positions before the first
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False  # of the output layer
    fused_qkv: bool = False
    fused_gate: bool = False
    qk_norm: str = ""  # | "head" | "full"
    tied: bool = False
    embedding_norm: bool = False
    embedding_width: int = 0  # OPT-350m: a narrower table, projected
    final_norm: bool = True
    sinks: bool = False  # a learned score a head that takes attention away (GPT-OSS)
    soft_cap: bool = False  # of the logits (Gemma 2)
    window: int = 0
    global_every: int = 0  # with a window: every so many blocks one sees all tokens; 0: none does
    no_position_every: int = 0  # every so many blocks one has no rotary positions (Llama 4)
    experts: ExpertSizes | None = None
    latent: LatentSizes | None = None

    @property
    def kv_heads(self) -> int:
        return self.n_kv_heads or self.n_heads

    @property
    def head_size(self) -> int:
        return self.head or self.hidden // self.n_heads

    @property
    def period(self) -> int:
        """After how many blocks they repeat.

        A gradient that passes a parallel block unchanged is that of the block before, too: these go by twos.
        """
        every = 1 if self.experts is None else self.experts.every
        period = 2 if self.norm_place == "parallel" else 1
        for other in (every, self.global_every or 1, self.no_position_every or 1):
            period = period * other // _common(period, other)
        return period

    @property
    def n_first(self) -> int:
        """Blocks at the start that are of another kind than all others."""
        return 0 if self.experts is None or self.experts.every > 1 else self.experts.first

    def has_experts(self, layer: int) -> bool:
        experts = self.experts
        return experts is not None and layer >= experts.first and (layer + 1) % experts.every == 0

    def is_global(self, layer: int) -> bool:
        """Whether a block sees all tokens before each."""
        return not self.window or bool(self.global_every and (layer + 1) % self.global_every == 0)

    def has_position(self, layer: int) -> bool:
        return not (self.no_position_every and (layer + 1) % self.no_position_every == 0)


def _common(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


def sizes_from(values: dict[str, Any]) -> DecoderSizes:
    """Sizes from a table of plain values, as the file of models has them."""
    parts = {"experts": ExpertSizes, "latent": LatentSizes}
    known = {field.name for field in fields(DecoderSizes)}
    return DecoderSizes(
        **{name: parts[name](**value) if name in parts else value for name, value in values.items() if name in known}
    )
