"""Two jobs of Gavel's table that the zoo lacks, after the table's words (`gavel_jobs.csv`).

The word-level LSTM has the vocabulary of WikiText-2, 33,278 words. Of the translation model (Multi30k) neither the
vocabulary nor the length of sentences is given: 9,500 words and 20 tokens are guesses.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_WORDS, _TOKENS = 33_278, 35
_TRANSLATED_WORDS, _SENTENCE = 9_500, 20


class WordModel(nn.Module):
    """Two LSTM layers of 200."""

    def __init__(self, width: int = 200) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_WORDS, width)
        self.recurrent = nn.LSTM(width, width, 2, dropout=0.2, batch_first=True)
        self.output = nn.Linear(width, _WORDS)
        self.dropout = nn.Dropout(0.2)

    def forward(self, words: Tensor) -> Tensor:
        hidden, _ = self.recurrent(self.dropout(self.embedding(words)))
        logits: Tensor = self.output(self.dropout(hidden))
        return logits


class Translator(nn.Module):
    """Encoder and decoder of six layers; the output shares its weight with the decoder's embedding."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.source = nn.Embedding(_TRANSLATED_WORDS, width)
        self.target = nn.Embedding(_TRANSLATED_WORDS, width)
        self.layers = nn.Transformer(width, 8, 6, 6, 2048, batch_first=True)
        self.output = nn.Linear(width, _TRANSLATED_WORDS, bias=False)
        self.output.weight = self.target.weight

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        logits: Tensor = self.output(self.layers(self.source(source), self.target(target)))
        return logits


def word_example(batch_size: int) -> Tensor:
    return torch.zeros(batch_size, _TOKENS, dtype=torch.long)


def sentence_example(batch_size: int) -> tuple[Tensor, Tensor]:
    sentences = torch.zeros(batch_size, _SENTENCE, dtype=torch.long)
    return sentences, sentences.clone()
