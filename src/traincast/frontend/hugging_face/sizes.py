"""Sizes of a Hugging Face config that no model can have, told before transformers builds it.

transformers takes some of them in silence (a model of -1 layers has none) and works for hours on others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError

_MOST_LAYERS = 1_000  # torch crashes on the step of some thousand
# By the names that all configs answer to, whatever their file calls them ('n_layer', 'd_model').
_LARGEST = {
    "num_hidden_layers": _MOST_LAYERS,
    "num_layers": _MOST_LAYERS,
    "hidden_size": 1_000_000,
    "encoder_layers": _MOST_LAYERS,
    "decoder_layers": _MOST_LAYERS,
    "intermediate_size": 10_000_000,
    "d_ff": 10_000_000,
    "d_kv": 1_000_000,
    "encoder_ffn_dim": 10_000_000,
    "decoder_ffn_dim": 10_000_000,
    "num_attention_heads": 100_000,
    "num_key_value_heads": 100_000,
    "vocab_size": 100_000_000,
    "max_position_embeddings": 1_000_000_000,
    "image_size": 1_000_000,
    "patch_size": 1_000_000,
    "num_channels": 1_000_000,
    "num_experts": 100_000,
    "num_local_experts": 100_000,
}
_MAY_BE_NONE = (
    "num_hidden_layers",
    "num_layers",
    "encoder_layers",
    "decoder_layers",
    "num_experts",
    "num_local_experts",
)
# Where one of these is there, heads need not share the hidden size.
_OWN_HEAD_SIZE = ("d_kv", "d_head", "kv_channels", "attention_head_dim", "qk_head_dim", "v_head_dim")


def check_sizes(config: Any, path: Path) -> None:
    """One sentence for the first size that cannot be, in the config or in one inside it."""
    for part in _configs(config):
        for name, largest in _LARGEST.items():
            value = getattr(part, name, None)
            if not isinstance(value, int) or isinstance(value, bool):
                continue
            least = 0 if name in _MAY_BE_NONE else 1
            if not least <= value <= largest:
                raise FileFormatError(
                    f"{path} is not a model that can be built: {_named(part, name)} is {value:,}, and it should be "
                    f"from {least} to {largest:,}."
                )
        _check_heads(part, path)


def _check_heads(config: Any, path: Path) -> None:
    hidden, heads = getattr(config, "hidden_size", None), getattr(config, "num_attention_heads", None)
    if not isinstance(hidden, int) or not isinstance(heads, int) or hidden % heads == 0:
        return
    own = getattr(config, "head_dim", None)
    if own not in (None, hidden // heads) or any(getattr(config, name, None) is not None for name in _OWN_HEAD_SIZE):
        return
    raise FileFormatError(
        f"{path} is not a model that can be built: {_named(config, 'num_attention_heads')} = {heads:,} does not divide "
        f"{_named(config, 'hidden_size')} = {hidden:,}."
    )


def _configs(config: Any) -> Iterator[Any]:
    """The config, and those of its parts (text, images)."""
    yield config
    for name in getattr(config, "sub_configs", None) or ():
        part = getattr(config, name, None)
        if part is not None and hasattr(part, "model_type"):
            yield from _configs(part)


def _named(config: Any, name: str) -> str:
    """As its file calls it."""
    return str((getattr(config, "attribute_map", None) or {}).get(name, name))
