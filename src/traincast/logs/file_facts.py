"""What the name of a log tells: the model, the GPU and the split, as in resnet18_A100-PCIe-40GB_train.csv."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from traincast.hardware.catalog import names_a_device

_SPLITS = {"train": "train", "training": "train", "val": "validation", "valid": "validation"}
_SPLITS |= {"validation": "validation", "test": "test"}
_NOISE = ("log", "metrics", "loss", "run", "curve")
_LONGEST_DEVICE = 4  # words: Quadro RTX 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """ "" where the name does not tell."""

    model: str
    device: str
    split: str


def file_facts(path: str) -> FileFacts:
    """Words between underscores, spaces and dots. What is no device, no split and no noise names the model."""
    stem = re.sub(r"(\.(csv|jsonl?|txt|log|gz))+$", "", PurePath(path).name, flags=re.IGNORECASE)
    words = [word for word in re.split(r"[_\s.]+", stem) if word]
    split, device, model = "", "", []
    while words:
        n_device = _n_device_words(words) if not device else 0
        if n_device:
            device, words = "-".join(words[:n_device]), words[n_device:]
            continue
        word = words.pop(0)
        if word.lower() in _SPLITS and not split:
            split = _SPLITS[word.lower()]
        elif word.lower() not in _NOISE:
            model.append(word)
    return FileFacts(model="_".join(model), device=device, split=split)


def _n_device_words(words: list[str]) -> int:
    """How many of the first words name a device together; 0: they do not."""
    longest = min(_LONGEST_DEVICE, len(words))
    return next((n for n in range(longest, 0, -1) if names_a_device(" ".join(words[:n]))), 0)
