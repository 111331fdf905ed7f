"""Multi-head latent attention of DeepSeek-V2 and V3 (arXiv 2405.04434), as it is trained: keys and values written out.

Of each head a part has a position and shares its key with all heads. Shapes: b batch, s sequence length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from traincast.frontend.capturing.fused_ops import attend
from traincast.frontend.models.llama import RmsNorm, rotate

if TYPE_CHECKING:
    from traincast.frontend.models.decoder_sizes import DecoderSizes, LatentSizes


class LatentAttention(nn.Module):
    def __init__(self, sizes: DecoderSizes, latent: LatentSizes) -> None:
        super().__init__()
        self.n_heads, self.latent = sizes.n_heads, latent
        query = sizes.n_heads * (latent.plain + latent.rotary)
        if latent.query_rank:
            self.q_a_proj = nn.Linear(sizes.hidden, latent.query_rank, bias=False)
            self.q_a_layernorm = RmsNorm(latent.query_rank, eps=1e-6)
            self.q_b_proj = nn.Linear(latent.query_rank, query, bias=False)
        else:
            self.q_proj = nn.Linear(sizes.hidden, query, bias=False)
        self.kv_a_proj = nn.Linear(sizes.hidden, latent.key_value_rank + latent.rotary, bias=False)
        self.kv_a_layernorm = RmsNorm(latent.key_value_rank, eps=1e-6)
        self.kv_b_proj = nn.Linear(latent.key_value_rank, sizes.n_heads * (latent.plain + latent.value), bias=False)
        self.o_proj = nn.Linear(sizes.n_heads * latent.value, sizes.hidden, bias=False)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        latent = self.latent
        query = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x))) if latent.query_rank else self.q_proj(x)
        query = query.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        plain_query, turned_query = query.split([latent.plain, latent.rotary], dim=-1)
        narrow, turned_key = self.kv_a_proj(x).split([latent.key_value_rank, latent.rotary], dim=-1)
        both = self.kv_b_proj(self.kv_a_layernorm(narrow)).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        plain_key, value = both.split([latent.plain, latent.value], dim=-1)
        shared_key = rotate(turned_key.unsqueeze(1), rotary).expand(-1, self.n_heads, -1, -1)
        query = torch.cat((plain_query, rotate(turned_query, rotary)), dim=-1)
        key = torch.cat((plain_key, shared_key), dim=-1)
        return self.o_proj(attend(query, key, value).transpose(1, 2).flatten(2))
