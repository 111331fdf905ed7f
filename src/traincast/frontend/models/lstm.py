"""A word-level LSTM language model: the "medium" network of Zaremba et al. 2014 (arXiv 1409.2329).

Two layers of 650 units, a vocabulary of 10,000 words (Penn Treebank), dropout of 0.5 on the connections
between layers only. PyTorch's LSTM has two bias vectors per layer where the paper has one.
"""

from __future__ import annotations

from torch import Tensor, nn

VOCABULARY = 10_000
HIDDEN = 650
N_LAYERS = 2
DROPOUT = 0.5
INITIAL_RANGE = 0.05


class LstmLanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.dropout = nn.Dropout(DROPOUT)
        self.lstm = nn.LSTM(HIDDEN, HIDDEN, num_layers=N_LAYERS, dropout=DROPOUT, batch_first=True)
        self.decoder = nn.Linear(HIDDEN, VOCABULARY)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -INITIAL_RANGE, INITIAL_RANGE)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Logits of the next word at each position: (batch, seqlen) -> (batch, seqlen, vocabulary)."""
        hidden, _ = self.lstm(self.dropout(self.embedding(input_ids)))
        return self.decoder(self.dropout(hidden))


def lstm_lm() -> LstmLanguageModel:
    return LstmLanguageModel()
