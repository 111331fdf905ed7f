"""Transformer blocks that may be checkpointed, and how they are captured."""

import torch
from torch import nn
from torch.nn.functional import dropout, gelu, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from traincast.frontend.capturing.capture import capture

WIDTH, N_HEADS, N_POSITIONS = 64, 4, 16


class Block(nn.Module):
    """Grouped heads, a norm in fp32, dropout, and a mask or none: what language models are made of."""

    def __init__(self, *, n_kv_heads=2, dropout_p=0.0, masked=False):
        super().__init__()
        self.n_kv_heads, self.dropout_p, self.masked = n_kv_heads, dropout_p, masked
        width_kv = WIDTH // N_HEADS * n_kv_heads
        self.norm = nn.LayerNorm(WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key, self.value = nn.Linear(WIDTH, width_kv), nn.Linear(WIDTH, width_kv)
        self.out, self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm(x.float()).to(self.query.weight.dtype)
        mask = torch.ones(N_POSITIONS, N_POSITIONS, dtype=torch.bool, device=x.device).tril() if self.masked else None
        attended = scaled_dot_product_attention(
            self.heads(self.query(y), N_HEADS),
            self.heads(self.key(y), self.n_kv_heads),
            self.heads(self.value(y), self.n_kv_heads),
            attn_mask=mask,
            dropout_p=self.dropout_p,
            is_causal=not self.masked,
            enable_gqa=self.n_kv_heads != N_HEADS,
        )
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.down(dropout(gelu(self.up(x)), self.dropout_p))

    @staticmethod
    def heads(x, n_heads):
        return x.view(*x.shape[:2], n_heads, -1).transpose(1, 2)


class Net(nn.Module):
    def __init__(self, use_reentrant, **options):
        super().__init__()
        self.first, self.use_reentrant = nn.Linear(WIDTH, WIDTH), use_reentrant
        self.blocks = nn.ModuleList(Block(**options) for _ in range(2))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x) if self.use_reentrant is None else checkpoint(block, x, use_reentrant=self.use_reentrant)
        return x


def captured(module):
    return capture(module, torch.zeros(2, N_POSITIONS, WIDTH), loss=mean_square)


def mean_square(output, _):
    return output.float().square().mean()
