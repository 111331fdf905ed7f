"""Vision transformer ViT-B/16 (Dosovitskiy et al. 2021, arXiv 2010.11929), with torchvision's layer names.

torchvision places dropouts with probability 0 in the blocks; they run nothing and are kept for the numbering.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

PATCH = 16
HIDDEN = 768
N_HEADS = 12
N_LAYERS = 12
FEED_FORWARD = 3072


class MLPBlock(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Linear(HIDDEN, FEED_FORWARD),
            nn.GELU(),
            nn.Dropout(0.0),
            nn.Linear(FEED_FORWARD, HIDDEN),
            nn.Dropout(0.0),
        )
        for linear in (self[0], self[3]):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.normal_(linear.bias, std=1e-6)


class EncoderBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(HIDDEN, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(HIDDEN, N_HEADS, batch_first=True)
        self.ln_2 = nn.LayerNorm(HIDDEN, eps=1e-6)
        self.mlp = MLPBlock()

    def forward(self, x: Tensor) -> Tensor:
        normed = self.ln_1(x)
        attended, _ = self.self_attention(normed, normed, normed, need_weights=False)
        x = x + attended
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    def __init__(self, *, seqlen: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, seqlen, HIDDEN).normal_(std=0.02))
        self.layers = nn.Sequential(OrderedDict((f"encoder_layer_{i}", EncoderBlock()) for i in range(N_LAYERS)))
        self.ln = nn.LayerNorm(HIDDEN, eps=1e-6)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.ln(self.layers(tokens + self.pos_embedding))


class VisionTransformer(nn.Module):
    def __init__(self, *, n_classes: int, image_size: int) -> None:
        super().__init__()
        n_patches = (image_size // PATCH) ** 2
        self.conv_proj = nn.Conv2d(3, HIDDEN, kernel_size=PATCH, stride=PATCH)
        self.class_token = nn.Parameter(torch.zeros(1, 1, HIDDEN))
        self.encoder = Encoder(seqlen=n_patches + 1)
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(HIDDEN, n_classes)))
        fan_in = 3 * PATCH * PATCH
        nn.init.trunc_normal_(self.conv_proj.weight, std=fan_in**-0.5)
        nn.init.zeros_(self.conv_proj.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.conv_proj(images).flatten(2).permute(0, 2, 1)
        class_tokens = self.class_token.expand(images.shape[0], -1, -1)
        encoded = self.encoder(torch.cat([class_tokens, patches], dim=1))
        return self.heads(encoded[:, 0])


def vit_b_16(*, n_classes: int, image_size: int) -> VisionTransformer:
    return VisionTransformer(n_classes=n_classes, image_size=image_size)
