"""A decoder-only language model from its sizes: Llama, Qwen, Gemma, Phi, DeepSeek, GPT-NeoX, OPT, BLOOM, MPT, GPT-3 ...

Blocks run the ops that Hugging Face's eager modules run, in their order, with three exceptions that an assumption of
each trace names: attention is one fused kernel with the causal mask (and the sliding window) inside, the products of
experts are grouped, and rows hold one text each. Parameter names follow Llama's where models agree.
Shapes: b batch, s sequence length, h hidden size, d head size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, relu, silu

from traincast.frontend.capturing.fused_ops import attend
from traincast.frontend.models.decoder_sizes import DecoderSizes
from traincast.frontend.models.experts import Experts
from traincast.frontend.models.latent_attention import LatentAttention
from traincast.frontend.models.llama import RmsNorm, RotaryEmbedding, rotate

Rotary = tuple[Tensor, Tensor]


class _Rotation(NamedTuple):
    head: int
    rotary_base: float = 500_000.0


class GemmaNorm(RmsNorm):
    """RMS norm in float32 whose weight is kept around zero."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (normed * (1.0 + self.weight.float())).to(x.dtype)


def norm_of(sizes: DecoderSizes, width: int) -> nn.Module:
    if sizes.norm == "layer":
        return nn.LayerNorm(width, bias=sizes.norm_bias)
    return (GemmaNorm if sizes.norm == "gemma" else RmsNorm)(width, eps=1e-5)


class Attention(nn.Module):
    """Queries, keys and values by one product or three; heads may share keys; positions by rotation, table or bias."""

    def __init__(self, sizes: DecoderSizes, layer: int) -> None:
        super().__init__()
        self.sizes, self.head = sizes, sizes.head_size
        self.widths = [self.head * n for n in (sizes.n_heads, sizes.kv_heads, sizes.kv_heads)]
        if sizes.fused_qkv:
            self.qkv_proj = nn.Linear(sizes.hidden, sum(self.widths), bias=sizes.qkv_bias)
        else:
            self.q_proj, self.k_proj, self.v_proj = (
                nn.Linear(sizes.hidden, width, bias=sizes.qkv_bias) for width in self.widths
            )
        self.o_proj = nn.Linear(self.widths[0], sizes.hidden, bias=sizes.out_bias)
        if sizes.qk_norm:
            norms = [self.head] * 2 if sizes.qk_norm == "head" else self.widths[:2]
            self.q_norm, self.k_norm = (norm_of(sizes, width) for width in norms)
        if sizes.sinks:
            self.sinks = nn.Parameter(torch.zeros(sizes.n_heads))
        self.window = 0 if sizes.is_global(layer) else sizes.window
        self.is_rotated = sizes.position == "rotary" and sizes.has_position(layer)

    def forward(self, x: Tensor, rotary: Rotary | None) -> Tensor:
        if self.sizes.fused_qkv:
            parts = list(self.qkv_proj(x).split(self.widths, dim=-1))
        else:
            parts = [self.q_proj(x), self.k_proj(x), self.v_proj(x)]
        if self.sizes.qk_norm == "full":
            parts[:2] = [self.q_norm(parts[0]), self.k_norm(parts[1])]
        query, key, value = (part.unflatten(-1, (-1, self.head)) for part in parts)
        if self.sizes.qk_norm == "head":
            query, key = self.q_norm(query), self.k_norm(key)
        query, key, value = (
            part.transpose(1, 2) for part in (query, key, value)
        )  # (b, s, heads, d) -> (b, heads, s, d)
        if self.is_rotated and rotary is not None:
            query, key = self.rotated(query, rotary), self.rotated(key, rotary)
        attended = attend(query, key, value, window=self.window)
        if self.sizes.sinks:  # the share of attention that a head's own score takes
            attended = attended * torch.sigmoid(self.sinks).view(-1, 1, 1).to(attended.dtype)
        return self.o_proj(attended.transpose(1, 2).flatten(2))

    def rotated(self, x: Tensor, rotary: Rotary) -> Tensor:
        turned = rotary[0].shape[-1]
        if turned == self.head:
            return rotate(x, rotary)
        return torch.cat((rotate(x[..., :turned], rotary), x[..., turned:]), dim=-1)


class Mlp(nn.Module):
    """Gated (three products) or plain (two)."""

    def __init__(self, sizes: DecoderSizes, width: int) -> None:
        super().__init__()
        self.kind, self.is_fused = sizes.mlp, sizes.fused_gate
        if sizes.mlp in ("swiglu", "geglu"):
            if sizes.fused_gate:
                self.gate_up_proj = nn.Linear(sizes.hidden, 2 * width, bias=sizes.mlp_bias)
            else:
                self.gate_proj = nn.Linear(sizes.hidden, width, bias=sizes.mlp_bias)
                self.up_proj = nn.Linear(sizes.hidden, width, bias=sizes.mlp_bias)
        else:
            self.up_proj = nn.Linear(sizes.hidden, width, bias=sizes.mlp_bias)
        self.down_proj = nn.Linear(width, sizes.hidden, bias=sizes.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "relu":
            return self.down_proj(relu(self.up_proj(x)))
        if self.kind in ("gelu", "gelu_tanh"):
            return self.down_proj(gelu(self.up_proj(x), approximate="tanh" if self.kind == "gelu_tanh" else "none"))
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1) if self.is_fused else (self.gate_proj(x), self.up_proj(x))
        return self.down_proj((silu(gate) if self.kind == "swiglu" else gelu(gate, approximate="tanh")) * up)


class Block(nn.Module):
    """Attention and a feed-forward part, each added to the residual stream; norms where the family has them."""

    def __init__(self, sizes: DecoderSizes, layer: int) -> None:
        super().__init__()
        self.place = sizes.norm_place
        self.self_attn = Attention(sizes, layer) if sizes.latent is None else LatentAttention(sizes, sizes.latent)
        if sizes.experts is not None and sizes.has_experts(layer):
            shared = sizes.experts.shared_feed_forward
            self.mlp = Experts(sizes, Mlp(sizes, shared) if shared else None)
        else:
            self.mlp = Mlp(sizes, sizes.feed_forward)
        if self.place != "post":
            self.input_layernorm = norm_of(sizes, sizes.hidden)
        self.post_attention_layernorm = norm_of(sizes, sizes.hidden)
        if self.place == "both":
            self.pre_feedforward_layernorm = norm_of(sizes, sizes.hidden)
        if self.place in ("both", "post"):
            self.post_feedforward_layernorm = norm_of(sizes, sizes.hidden)

    def forward(self, x: Tensor, rotary: Rotary | None) -> Tensor:
        if self.place == "post":
            x = x + self.post_attention_layernorm(self.self_attn(x, rotary))
            return x + self.post_feedforward_layernorm(self.mlp(x))
        if self.place == "both":
            x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), rotary))
            return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
        if self.place == "after":
            x = self.input_layernorm(x + self.self_attn(x, rotary))
            return self.post_attention_layernorm(x + self.mlp(x))
        if self.place == "parallel":
            attended = self.self_attn(self.input_layernorm(x), rotary)
            return self.mlp(self.post_attention_layernorm(x)) + attended + x
        x = x + self.self_attn(self.input_layernorm(x), rotary)
        return x + self.mlp(self.post_attention_layernorm(x))


class Stem(nn.Module):
    """Words (and positions, where a table has them), all blocks, and the last norm."""

    def __init__(self, sizes: DecoderSizes) -> None:
        super().__init__()
        self.sizes = sizes
        width = sizes.embedding_width or sizes.hidden
        self.embed_tokens = nn.Embedding(sizes.vocabulary, width)
        if sizes.embedding_width:
            self.project_in = nn.Linear(width, sizes.hidden, bias=False)
            self.project_out = nn.Linear(sizes.hidden, width, bias=False)
        if sizes.position == "learned":
            self.embed_positions = nn.Embedding(sizes.positions + sizes.position_offset, sizes.hidden)
        if sizes.embedding_norm:
            self.embedding_norm = norm_of(sizes, sizes.hidden)
        self.layers = nn.ModuleList(Block(sizes, layer) for layer in range(sizes.n_layers))
        self.norm = norm_of(sizes, sizes.hidden) if sizes.final_norm else nn.Identity()
        turned = sizes.latent.rotary if sizes.latent else round(sizes.head_size * sizes.rotary_fraction)
        self.rotary_emb = RotaryEmbedding(_Rotation(turned)) if sizes.position == "rotary" else None

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embed_tokens(input_ids)
        if self.sizes.embedding_width:
            x = self.project_in(x)
        if self.sizes.norm == "gemma":
            x = x * self.sizes.hidden**0.5
        if self.sizes.position == "learned":
            numbers = torch.arange(input_ids.shape[1], device=x.device) + self.sizes.position_offset
            x = x + self.embed_positions(numbers)
        if self.sizes.embedding_norm:
            x = self.embedding_norm(x)
        rotary = self.rotary_emb(x) if self.rotary_emb is not None else None
        for layer in self.layers:
            x = layer(x, rotary)
        x = self.norm(x)
        return self.project_out(x) if self.sizes.embedding_width else x


class LanguageModel(nn.Module):
    """Logits of the next token at each position: (b, s) -> (b, s, vocabulary)."""

    def __init__(self, sizes: DecoderSizes) -> None:
        super().__init__()
        self.model = Stem(sizes)
        self.soft_cap = sizes.soft_cap
        width = sizes.embedding_width or sizes.hidden
        self.lm_head = nn.Linear(width, sizes.vocabulary, bias=sizes.head_bias)
        if sizes.tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        logits = self.lm_head(self.model(input_ids))
        return torch.tanh(logits / 30.0) * 30.0 if self.soft_cap else logits
