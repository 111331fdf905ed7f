"""A Llama-style decoder (Touvron et al. 2023, arXiv 2302.13971) in the shape of Llama 3.2 1B.

RMS norm before each branch, rotary positions, grouped-query attention, a SwiGLU feed-forward, no biases, and
an output layer tied to the embedding. Parameter names are those of Hugging Face's LlamaForCausalLM. Left out:
Llama 3's rescaling of the rotary frequencies for contexts beyond 8,192 tokens, which changes values but no
shape.
Shapes: b batch, s sequence length, h hidden size, d head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from traincast.frontend.models.initialisation import normal_embeddings, normal_linears


class Rotation(Protocol):
    """What rotary positions need to know: how many features of a head turn, and how slowly the last of them."""

    @property
    def head(self) -> int: ...

    @property
    def rotary_base(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSizes:
    hidden: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    feed_forward: int
    vocabulary: int = 128_256
    rotary_base: float = 500_000.0
    norm_eps: float = 1e-5

    @property
    def head(self) -> int:
        return self.hidden // self.n_heads


class RmsNorm(nn.Module):
    """Root-mean-square norm in float32: separate ops, as Hugging Face's Llama runs it, not a fused one."""

    def __init__(self, n_features: int, *, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * normed.to(x.dtype)


class RotaryEmbedding(nn.Module):
    """Cosines and sines of the positions (s, d), computed once a step and shared by all layers."""

    def __init__(self, sizes: Rotation) -> None:
        super().__init__()
        self.head = sizes.head
        self.base = sizes.rotary_base

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        exponents = torch.arange(0, self.head, 2, device=x.device, dtype=torch.float32) / self.head
        positions = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)
        angles = torch.outer(positions, self.base**-exponents).repeat(1, 2)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rotate(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair (i, i + d/2) of a head's features by the angle of its position."""
    cosines, sines = rotary
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), dim=-1) * sines


class Attention(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.head = sizes.head
        self.q_proj = nn.Linear(sizes.hidden, sizes.n_heads * sizes.head, bias=False)
        self.k_proj = nn.Linear(sizes.hidden, sizes.n_kv_heads * sizes.head, bias=False)
        self.v_proj = nn.Linear(sizes.hidden, sizes.n_kv_heads * sizes.head, bias=False)
        self.o_proj = nn.Linear(sizes.n_heads * sizes.head, sizes.hidden, bias=False)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head)).transpose(1, 2)  # (b, s, h) -> (b, heads, s, d)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        query = rotate(self.heads(self.q_proj(x)), rotary)
        key = rotate(self.heads(self.k_proj(x)), rotary)
        value = self.heads(self.v_proj(x))
        attended = scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.o_proj(attended.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.feed_forward, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.feed_forward, bias=False)
        self.down_proj = nn.Linear(sizes.feed_forward, sizes.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.self_attn = Attention(sizes)
        self.mlp = Mlp(sizes)
        self.input_layernorm = RmsNorm(sizes.hidden, eps=sizes.norm_eps)
        self.post_attention_layernorm = RmsNorm(sizes.hidden, eps=sizes.norm_eps)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rotary)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.layers = nn.ModuleList(DecoderLayer(sizes) for _ in range(sizes.n_layers))
        self.norm = RmsNorm(sizes.hidden, eps=sizes.norm_eps)
        self.rotary_emb = RotaryEmbedding(sizes)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embed_tokens(input_ids)
        rotary = self.rotary_emb(x)
        for layer in self.layers:
            x = layer(x, rotary)
        return self.norm(x)


class Llama(nn.Module):
    """Logits of the next token at each position: (b, s) -> (b, s, vocabulary)."""

    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.model = Decoder(sizes)
        self.lm_head = nn.Linear(sizes.hidden, sizes.vocabulary, bias=False)
        normal_linears(self, std=0.02)
        normal_embeddings(self, std=0.02)
        self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.lm_head(self.model(input_ids))


def llama_1b() -> Llama:
    return Llama(LlamaSizes(hidden=2048, n_layers=16, n_heads=32, n_kv_heads=8, feed_forward=8192))
