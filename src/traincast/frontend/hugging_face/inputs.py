"""What a Hugging Face model trains on: tokens, pixels or sound, and the labels of its task."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traincast.errors import CaptureError, InputError
from traincast.frontend.hugging_face import experts

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_SEQLEN = 512
DEFAULT_IMAGE_SIZE = 224
DEFAULT_AUDIO_SAMPLES = 160_000  # 10 s at 16 kHz
POSITION_NAMES = ("max_target_positions", "max_position_embeddings", "n_positions", "max_seq_len")
# These families count positions from pad_token_id + 1: the rows of the table before that are not for tokens.
PADDED_POSITIONS = {
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "roberta-prelayernorm",
    "camembert",
    "longformer",
}
PADDED_POSITIONS |= {"data2vec-text", "ibert", "mpnet", "xmod", "luke", "esm"}
TEXT, IMAGE, SPECTROGRAM, SOUND = "input_ids", "pixel_values", "input_features", "input_values"
OWN_FILE = "build the model in Python and capture it with traincast.capture"
CLASSIFYING = ("classification", "token-classification")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSizes:
    """What the user asked for; None leaves it to the config."""

    seqlen: int | None
    image_size: int | None
    n_classes: int | None

    def __post_init__(self) -> None:
        for name in ("seqlen", "image_size", "n_classes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1; {value} was given.")


def refuse_several_kinds(config: Any, model_class: Any) -> None:
    """A model of text and images (or sound) at once trains on pairs that a config does not describe."""
    several = [
        name for name in ("text_config", "vision_config", "audio_config") if getattr(config, name, None) is not None
    ]
    if len(several) > 1 and model_class.main_input_name == TEXT:
        raise CaptureError(
            f"{model_class.__name__} trains on more than text, and its config does not say how much of each; "
            f"{OWN_FILE}."
        )


def prepare_config(config: Any, model_class: Any, task: str, sizes: InputSizes) -> None:
    """Write the options into the config before the model is built; refuse those it does not have."""
    refuse_several_kinds(config, model_class)
    kind, name = _kind_of(model_class), model_class.__name__
    if sizes.n_classes is not None:
        if task not in CLASSIFYING:
            raise InputError(f"{name} has no classes; n_classes goes with head 'classification'.")
        config.num_labels = sizes.n_classes
    if sizes.image_size is not None:
        if kind != IMAGE:
            raise InputError(f"{name} takes no images; image_size does not apply.")
        if hasattr(config, "image_size"):
            config.image_size = sizes.image_size
    if sizes.seqlen is not None and kind == IMAGE:
        raise InputError(f"{name} takes images; set image_size, not seqlen.")
    if task == "classification" and getattr(config, "problem_type", None) is None:
        config.problem_type = "single_label_classification" if config.num_labels > 1 else "regression"
    if getattr(config, "is_encoder_decoder", False) and getattr(config, "decoder_start_token_id", None) is None:
        # T5's config leaves it to the generation settings, but the labels are shifted with it in training as
        # well.
        config.decoder_start_token_id = getattr(config, "pad_token_id", None) or 0
    if task == "classification" and kind == TEXT and getattr(config, "pad_token_id", None) is None:
        # A decoder classifies at the last token that is no padding, and refuses a batch if it has no padding
        # token.
        config.pad_token_id = 0


def example_maker(model: Any, task: str, sizes: InputSizes) -> Callable[[int], dict[str, Any]]:
    """A callable that gives the keyword arguments of one training step for any batch size."""
    shapes = _input_shapes(model, sizes) | _label_shapes(model, task, sizes)
    regression = getattr(model.config, "problem_type", None) == "regression"

    def example(batch_size: int) -> dict[str, Any]:
        import torch

        def make(name: str, shape: tuple[int, ...]) -> Any:
            real = name in (IMAGE, SPECTROGRAM, SOUND) or (name == "labels" and task == "classification" and regression)
            return torch.zeros(batch_size, *shape, dtype=torch.float32 if real else torch.int64)

        return {name: make(name, shape) for name, shape in shapes.items()}

    return example


def _kind_of(model_class: Any) -> str:
    kind = model_class.main_input_name
    if kind not in (TEXT, IMAGE, SPECTROGRAM, SOUND):
        raise CaptureError(f"{model_class.__name__} takes '{kind}', whose shape is not known; {OWN_FILE}.")
    return str(kind)


def _input_shapes(model: Any, sizes: InputSizes) -> dict[str, tuple[int, ...]]:
    """The shape of each input, without the batch."""
    config = model.config
    kind = _kind_of(type(model))
    if kind == IMAGE:
        height, width = _image_size(config, sizes)
        return {kind: (getattr(config, "num_channels", 3), height, width)}
    if kind == SPECTROGRAM:
        n_frames = 2 * config.max_source_positions if hasattr(config, "max_source_positions") else 3000
        return {kind: (config.num_mel_bins, n_frames)}
    if kind == SOUND and hasattr(config, "num_mel_bins"):  # an image of the sound, such as AST's
        return {kind: (config.max_length, config.num_mel_bins)}
    if kind == SOUND:
        return {kind: (sizes.seqlen or DEFAULT_AUDIO_SAMPLES,)}
    return {kind: (_seqlen(config, sizes),)}


def _image_size(config: Any, sizes: InputSizes) -> tuple[int, int]:
    size = sizes.image_size or getattr(config, "image_size", None) or DEFAULT_IMAGE_SIZE
    if isinstance(size, dict):
        return size["height"], size["width"]
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _seqlen(config: Any, sizes: InputSizes) -> int:
    n_positions = _n_positions(config)
    multiple = experts.token_multiple(config)
    if sizes.seqlen is None:
        return max(min(n_positions or DEFAULT_SEQLEN, DEFAULT_SEQLEN) // multiple, 1) * multiple
    if n_positions is not None and sizes.seqlen > n_positions:
        raise InputError(f"seqlen {sizes.seqlen} is more than the {n_positions} positions of this {config.model_type}.")
    if sizes.seqlen % multiple:
        raise InputError(
            f"seqlen {sizes.seqlen} cannot be shared equally by the experts of this {config.model_type}; "
            f"choose a multiple of {multiple}."
        )
    return sizes.seqlen


def _n_positions(config: Any) -> int | None:
    """How many tokens the model can tell apart by position; None if it has no such limit."""
    if config.model_type in ("t5", "mt5", "umt5", "longt5"):
        return None  # relative positions: n_positions is what it was trained with, not a limit
    values = (getattr(config, name, None) for name in POSITION_NAMES)
    n_positions = next((value for value in values if isinstance(value, int) and value > 0), None)
    if n_positions is not None and config.model_type in PADDED_POSITIONS:
        return n_positions - (config.pad_token_id or 0) - 1
    return n_positions


def _label_shapes(model: Any, task: str, sizes: InputSizes) -> dict[str, tuple[int, ...]]:
    config, kind = model.config, _kind_of(type(model))
    per_sample: tuple[int, ...] = ()
    if task == "classification":
        n_labels = config.num_labels
        return {"labels": (n_labels,) if getattr(config, "problem_type", "").startswith("multi") else per_sample}
    if task == "qa":
        return {"start_positions": per_sample, "end_positions": per_sample}
    if task == "base":
        if getattr(config, "is_encoder_decoder", False):
            return {"decoder_input_ids": (_seqlen(config, sizes),)}
        return {}
    if kind in (IMAGE, SOUND):
        raise CaptureError(
            f"How {type(model).__name__} is labelled is not known; choose head 'classification' or "
            f"'base', or {OWN_FILE}."
        )
    labels: dict[str, tuple[int, ...]] = {"labels": (_seqlen(config, sizes),)}
    if task == "pretraining" and "next_sentence_label" in inspect.signature(model.forward).parameters:
        labels["next_sentence_label"] = per_sample
    return labels
