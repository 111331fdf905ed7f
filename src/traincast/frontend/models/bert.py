"""BERT (Devlin et al. 2019, arXiv 1810.04805) with a head for questions ("qa") or for masked words ("mlm").

Shapes and parameter names are those of Hugging Face's BertForQuestionAnswering and BertForMaskedLM: no pooler
in either, and the output layer of "mlm" is tied to the word embedding.
Shapes below: b batch, s sequence length, h hidden size, v vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from traincast.frontend.models.initialisation import normal_embeddings, normal_linears

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class BertSizes:
    hidden: int
    n_layers: int
    n_heads: int
    feed_forward: int
    vocabulary: int = 30_522
    n_positions: int = 512
    n_token_types: int = 2
    dropout: float = 0.1
    norm_eps: float = 1e-12


BASE = BertSizes(hidden=768, n_layers=12, n_heads=12, feed_forward=3072)
LARGE = BertSizes(hidden=1024, n_layers=24, n_heads=16, feed_forward=4096)


class Embeddings(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(sizes.vocabulary, sizes.hidden, padding_idx=0)
        self.position_embeddings = nn.Embedding(sizes.n_positions, sizes.hidden)
        self.token_type_embeddings = nn.Embedding(sizes.n_token_types, sizes.hidden)
        self.LayerNorm = nn.LayerNorm(sizes.hidden, eps=sizes.norm_eps)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        summed = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.LayerNorm(summed + self.position_embeddings(positions)))


class SelfAttention(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.n_heads = sizes.n_heads
        self.dropout_probability = sizes.dropout
        self.query = nn.Linear(sizes.hidden, sizes.hidden)
        self.key = nn.Linear(sizes.hidden, sizes.hidden)
        self.value = nn.Linear(sizes.hidden, sizes.hidden)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (b, s, h) -> (b, heads, s, h / heads)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        dropout = self.dropout_probability if self.training else 0.0
        attended = scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        return attended.transpose(1, 2).flatten(2)


class ResidualOutput(nn.Module):
    """Project back to the hidden size, add what went in, and normalise after it ("post-norm")."""

    def __init__(self, n_in: int, sizes: BertSizes) -> None:
        super().__init__()
        self.dense = nn.Linear(n_in, sizes.hidden)
        self.LayerNorm = nn.LayerNorm(sizes.hidden, eps=sizes.norm_eps)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class Attention(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.self = SelfAttention(sizes)
        self.output = ResidualOutput(sizes.hidden, sizes)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(x, mask), x)


class Intermediate(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.dense = nn.Linear(sizes.hidden, sizes.feed_forward)
        self.intermediate_act_fn = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return self.intermediate_act_fn(self.dense(x))


class Layer(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.attention = Attention(sizes)
        self.intermediate = Intermediate(sizes)
        self.output = ResidualOutput(sizes.feed_forward, sizes)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(sizes) for _ in range(sizes.n_layers))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Bert(nn.Module):
    """The network below the head: token ids (b, s) -> hidden states (b, s, h)."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.embeddings = Embeddings(sizes)
        self.encoder = Encoder(sizes)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None, attention_mask: Tensor | None) -> Tensor:
        """The mask (b, s) is nonzero at real tokens and 0 at padding; None means that there is no padding."""
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        return self.encoder(self.embeddings(input_ids, token_type_ids), mask)


class BertForQuestionAnswering(nn.Module):
    """Logits (b, s, 2): how likely the answer starts, and ends, at each token."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.bert = Bert(sizes)
        self.qa_outputs = nn.Linear(sizes.hidden, 2)
        normal_linears(self, std=0.02)
        normal_embeddings(self, std=0.02)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        return self.qa_outputs(self.bert(input_ids, token_type_ids, attention_mask))


class Transform(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.dense = nn.Linear(sizes.hidden, sizes.hidden)
        self.transform_act_fn = nn.GELU()
        self.LayerNorm = nn.LayerNorm(sizes.hidden, eps=sizes.norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.LayerNorm(self.transform_act_fn(self.dense(x)))


class Predictions(nn.Module):
    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.transform = Transform(sizes)
        self.decoder = nn.Linear(sizes.hidden, sizes.vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.transform(x))


class BertForMaskedLM(nn.Module):
    """Logits (b, s, v) of the word at each position."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.bert = Bert(sizes)
        self.cls = nn.ModuleDict({"predictions": Predictions(sizes)})
        normal_linears(self, std=0.02)
        normal_embeddings(self, std=0.02)
        self.cls["predictions"].decoder.weight = self.bert.embeddings.word_embeddings.weight

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        return self.cls["predictions"](self.bert(input_ids, token_type_ids, attention_mask))


HEADS: dict[str, Callable[[BertSizes], nn.Module]] = {"qa": BertForQuestionAnswering, "mlm": BertForMaskedLM}


def bert_base(*, head: str) -> nn.Module:
    return HEADS[head](BASE)


def bert_large(*, head: str) -> nn.Module:
    return HEADS[head](LARGE)
