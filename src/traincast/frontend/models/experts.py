"""A layer of experts: a router chooses some for each token, and each expert works on the tokens that chose it.

Tokens are sorted by expert, met by grouped products, weighed and added up where they came from, as `torch._grouped_mm`
and Megablocks have it. How tokens fall to experts is not known without values; the products are timed as if every
expert had an equal share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, silu, softmax

from traincast.frontend.capturing.grouped_ops import grouped_product

if TYPE_CHECKING:
    from traincast.frontend.models.decoder_sizes import DecoderSizes


class Experts(nn.Module):
    def __init__(self, sizes: DecoderSizes, shared: nn.Module | None) -> None:
        super().__init__()
        experts = sizes.experts
        assert experts is not None
        self.n_chosen, self.kind = experts.n_chosen, sizes.mlp
        self.gate = nn.Linear(sizes.hidden, experts.n_experts, bias=experts.router_bias)
        wide, narrow = 2 * experts.feed_forward, experts.feed_forward
        self.gate_up_proj = nn.Parameter(torch.empty(experts.n_experts, sizes.hidden, wide))
        self.down_proj = nn.Parameter(torch.empty(experts.n_experts, narrow, sizes.hidden))
        self.has_bias = experts.has_bias
        if experts.has_bias:
            self.gate_up_bias = nn.Parameter(torch.empty(experts.n_experts, wide))
            self.down_bias = nn.Parameter(torch.empty(experts.n_experts, sizes.hidden))
        self.has_correction = experts.has_correction
        if experts.has_correction:
            self.correction = nn.Parameter(torch.empty(experts.n_experts), requires_grad=False)
        self.shared_expert = shared

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, 1)  # (b, s, h) -> (b s, h)
        scores = softmax(self.gate(tokens), dim=-1, dtype=torch.float32)
        if self.has_correction:
            chosen = (scores + self.correction).topk(self.n_chosen, dim=-1).indices
            weights = scores.gather(1, chosen)
        else:
            weights, chosen = scores.topk(self.n_chosen, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        expert, order = chosen.flatten().sort()
        token = order // self.n_chosen
        wide = grouped_product(tokens.index_select(0, token), self.gate_up_proj)
        if self.has_bias:
            wide = wide + self.gate_up_bias.index_select(0, expert)
        gate, up = wide.chunk(2, dim=-1)
        rows = grouped_product((gelu(gate) if self.kind == "geglu" else silu(gate)) * up, self.down_proj)
        if self.has_bias:
            rows = rows + self.down_bias.index_select(0, expert)
        rows = rows * weights.flatten().index_select(0, order).unsqueeze(-1)
        found = torch.zeros_like(tokens).index_add(0, token, rows)
        if self.shared_expert is not None:
            found = found + self.shared_expert(tokens)
        return found.view_as(x)
