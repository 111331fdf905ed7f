"""GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners") in its four sizes.

Parameter names are those of Hugging Face's GPT2LMHeadModel; its Conv1D is an nn.Linear here, with the weight
transposed. The output layer is tied to the word embedding. Shapes: b batch, s sequence length, h hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from traincast.frontend.models.initialisation import normal_embeddings, normal_linears


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpt2Sizes:
    hidden: int
    n_layers: int
    n_heads: int
    vocabulary: int = 50_257
    n_positions: int = 1024
    dropout: float = 0.1


class Attention(nn.Module):
    def __init__(self, sizes: Gpt2Sizes) -> None:
        super().__init__()
        self.n_heads = sizes.n_heads
        self.dropout_probability = sizes.dropout
        self.c_attn = nn.Linear(sizes.hidden, 3 * sizes.hidden)
        self.c_proj = nn.Linear(sizes.hidden, sizes.hidden)
        self.resid_dropout = nn.Dropout(sizes.dropout)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (b, s, h) -> (b, heads, s, h / heads)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self.heads(part) for part in self.c_attn(x).chunk(3, dim=-1))
        dropout = self.dropout_probability if self.training else 0.0
        attended = scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
        return self.resid_dropout(self.c_proj(attended.transpose(1, 2).flatten(2)))


class Mlp(nn.Module):
    def __init__(self, sizes: Gpt2Sizes) -> None:
        super().__init__()
        self.c_fc = nn.Linear(sizes.hidden, 4 * sizes.hidden)
        self.act = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * sizes.hidden, sizes.hidden)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, sizes: Gpt2Sizes) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(sizes.hidden, eps=1e-5)
        self.attn = Attention(sizes)
        self.ln_2 = nn.LayerNorm(sizes.hidden, eps=1e-5)
        self.mlp = Mlp(sizes)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, sizes: Gpt2Sizes) -> None:
        super().__init__()
        self.wte = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.wpe = nn.Embedding(sizes.n_positions, sizes.hidden)
        self.drop = nn.Dropout(sizes.dropout)
        self.h = nn.ModuleList(Block(sizes) for _ in range(sizes.n_layers))
        self.ln_f = nn.LayerNorm(sizes.hidden, eps=1e-5)

    def forward(self, input_ids: Tensor) -> Tensor:
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.drop(self.wte(input_ids) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class Gpt2(nn.Module):
    """Logits of the next token at each position: (b, s) -> (b, s, vocabulary)."""

    def __init__(self, sizes: Gpt2Sizes) -> None:
        super().__init__()
        self.transformer = Transformer(sizes)
        self.lm_head = nn.Linear(sizes.hidden, sizes.vocabulary, bias=False)
        normal_linears(self, std=0.02)
        normal_embeddings(self, std=0.02)
        for block in self.transformer.h:
            # Two residual branches a layer, scaled so that their sum does not grow with depth (section 2.3).
            for projection in (block.attn.c_proj, block.mlp.c_proj):
                nn.init.normal_(projection.weight, std=0.02 * (2 * sizes.n_layers) ** -0.5)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.lm_head(self.transformer(input_ids))


def gpt2() -> Gpt2:
    return Gpt2(Gpt2Sizes(hidden=768, n_layers=12, n_heads=12))


def gpt2_medium() -> Gpt2:
    return Gpt2(Gpt2Sizes(hidden=1024, n_layers=24, n_heads=16))


def gpt2_large() -> Gpt2:
    return Gpt2(Gpt2Sizes(hidden=1280, n_layers=36, n_heads=20))


def gpt2_xl() -> Gpt2:
    return Gpt2(Gpt2Sizes(hidden=1600, n_layers=48, n_heads=25))
