"""What a decoder is made of, as far as its speed goes, read from the settings that a measured row prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Norm = Literal["layer", "rms"]
Positions = Literal["learned", "rotary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A dense decoder. `has_bias` is of every linear layer and norm."""

    n_layers: int
    hidden: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    is_gated: bool
    norm: Norm
    positions: Positions
    has_bias: bool
    is_tied: bool
    seqlen: int

    @property
    def name(self) -> str:
        """The same for the same layers, whatever a source calls them."""
        heads = f"a{self.n_heads}k{self.n_kv_heads}d{self.head_dim}"
        marks = [self.norm, self.positions, *["bias"] * self.has_bias, *["tied"] * self.is_tied]
        ffn = f"f{self.ffn}{'g' * self.is_gated}"
        return "-".join([f"L{self.n_layers}", f"h{self.hidden}", heads, ffn, f"v{self.vocab}", *marks])

    @property
    def n_parameters(self) -> int:
        """Of the matrices, embeddings included; biases and norms are left out, being next to nothing."""
        width = self.head_dim * (2 * self.n_heads + 2 * self.n_kv_heads)
        layer = self.hidden * (width + (3 if self.is_gated else 2) * self.ffn)
        tables = (1 if self.is_tied else 2) * self.vocab + (self.seqlen if self.positions == "learned" else 0)
        return self.n_layers * layer + tables * self.hidden

    @property
    def flop_per_token(self) -> float:
        """6 N and 12 L h s, as MFU is usually counted: attention over all pairs, the input's embedding left out."""
        n_multiplied = self.n_parameters - self.hidden * (
            (0 if self.is_tied else self.vocab) + (self.seqlen if self.positions == "learned" else 0)
        )
        return 6.0 * n_multiplied + 12.0 * self.n_layers * self.n_heads * self.head_dim * self.seqlen


def architecture_of(settings: Mapping[str, Any], seqlen: int) -> Architecture | None:
    """None where a size is missing. What is left out is what the models of these files have in common.

    Layers without a norm named are those of the speed runs of GPT-2 (rms, rotary, two matrices a feed-forward layer).
    Layer norm without `no_bias` is a GPT of Megatron, whose linear layers have biases.
    """
    sizes = {key: settings.get(key) for key in ("layers", "hidden", "heads", "ffn", "vocab")}
    if not all(sizes.values()) or settings.get("experts") or settings.get("mla"):
        return None
    n_layers, hidden, n_heads, ffn, vocab = (int(value) for value in sizes.values())  # type: ignore[arg-type]
    norm = str(settings.get("norm", "rmsnorm"))
    is_layer_norm = "layernorm" in norm
    positions = str(settings.get("pos", "learned" if is_layer_norm else "rope"))
    return Architecture(
        n_layers=n_layers,
        hidden=hidden,
        n_heads=n_heads,
        n_kv_heads=int(settings.get("kv_heads") or n_heads),
        head_dim=int(settings.get("head_dim") or hidden // n_heads),
        ffn=ffn,
        vocab=vocab,
        is_gated=bool(settings.get("gated_mlp", False)),
        norm="layer" if is_layer_norm else "rms",
        positions="learned" if positions.startswith("learned") else "rotary",
        has_bias=is_layer_norm and not settings.get("no_bias", False),
        is_tied=bool(settings.get("tied_embeddings", True)),
        seqlen=seqlen,
    )
