"""What transformers decides from values that a capture does not have, decided here once and for all.

- Padding and packing: a model looks at its tokens, positions or mask to see whether texts are padded, or
  several packed into one row. The inputs made here are full rows of one text each, so on meta tensors the
  answer is known.
- Layer drop: a layer is skipped at random. A step is forecast with all its layers, the longest it can take.
- SpecAugment: audio models mask random spans of their input, by index; the mask is left out, which costs next
  to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

LAYER_DROPS = ("layerdrop", "encoder_layerdrop", "decoder_layerdrop")


def fix_random_choices(config: Any) -> None:
    """Train every layer on every step, and mask no audio."""
    for name in LAYER_DROPS:
        if getattr(config, name, None):
            setattr(config, name, 0.0)
    if hasattr(config, "apply_spec_augment"):
        config.apply_spec_augment = False


def expect_full_rows(model: Any) -> None:
    """Answer transformers' questions about padding and packing on meta tensors, where they would raise.

    The search functions stay as they are for tensors that have values. Their names are private and come and
    go with the versions of transformers; one that is not there is not asked either.
    """
    from transformers import masking_utils

    _answer_on_meta(masking_utils, "find_packed_sequence_indices", lambda search, positions: None)
    for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
        _answer_on_meta(masking_utils, name, lambda search, mask, *rest, **named: search(None, *rest, **named))
    for module in model.modules():
        if hasattr(module, "warn_if_padding_and_no_attention_mask"):
            module.warn_if_padding_and_no_attention_mask = _no_warning


def _no_warning(*_: Any) -> None:
    """In place of a warning about padded inputs without a mask, which are found by their values."""


def _answer_on_meta(library: Any, name: str, answer: Callable[..., Any]) -> None:
    """Let `answer` reply in place of the function `name` when the tensor that it looks at is on meta."""
    search = getattr(library, name, None)
    if search is None or getattr(search, "answers_on_meta", False):
        return

    def asked(tensor: Any, *rest: Any, **named: Any) -> Any:
        if tensor is not None and tensor.device.type == "meta":
            return answer(search, tensor, *rest, **named)
        return search(tensor, *rest, **named)

    asked.answers_on_meta = True  # type: ignore[attr-defined]
    setattr(library, name, asked)
