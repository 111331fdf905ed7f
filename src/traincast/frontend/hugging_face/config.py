"""Read a Hugging Face `config.json`: the model it describes, without weights, and what it trains on.

The model is built on the meta device, so a config of ten billion parameters costs no memory. Nothing is
downloaded and no code that comes with a model is run. Parameters are fp32 whatever `dtype` the config names
(that is how the checkpoint was stored); the precision of the training is the forecast's to choose. Attention
is `sdpa` where the model has it, else eager.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from traincast.errors import CaptureError, FileFormatError, InputError, MissingExtraError, UnknownModelError
from traincast.frontend.hugging_face import experts, inputs, sizes, values
from traincast.frontend.step import TrainingStep
from traincast.report.parsing import parse_json

# head -> the transformers auto class that knows which class of each model type has this head
HEADS = {
    "base": ("AutoModel",),
    "pretraining": ("AutoModelForPreTraining",),
    "mlm": ("AutoModelForMaskedLM",),
    "causal": ("AutoModelForCausalLM",),
    "seq2seq": ("AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq"),
    "classification": (
        "AutoModelForSequenceClassification",
        "AutoModelForImageClassification",
        "AutoModelForAudioClassification",
    ),
    "token-classification": ("AutoModelForTokenClassification",),
    "qa": ("AutoModelForQuestionAnswering",),
}
# Without a head and without a class in the config, the first of these that the model type has.
DEFAULT_ORDER = ("mlm", "causal", "seq2seq", "classification", "base")
# What a saved config may say about how its last owner ran it.
RUNTIME_KEYS = ("attn_implementation", "_attn_implementation", "quantization_config", "torch_dtype", "dtype")


def read_config(
    path: str | Path,
    *,
    seqlen: int | None = None,
    head: str | None = None,
    image_size: int | None = None,
    n_classes: int | None = None,
) -> TrainingStep:
    """The training step of the model that a `config.json` (or the folder that holds one) describes.

    `head` is one of HEADS; without it, the class that the config names, or else the model type's usual
    pretraining task. `seqlen` defaults to the model's positions or 512, whichever is less; for raw audio it
    counts samples (10 s at 16 kHz) and for spectrograms the length of the transcript. `image_size` defaults
    to the config's own, or 224.
    """
    path = Path(path)
    settings = _read_settings(path)
    transformers = _transformers()
    if head is not None and head not in HEADS:
        raise InputError(f"No head named '{head}' for {path}; the heads are {', '.join(HEADS)}.")
    config = _build_config(transformers, settings, path)
    sizes.check_sizes(config, path)
    with _broken_packages_told():
        task, model_class = _choose_class(transformers, config, head, path)
    size = inputs.InputSizes(seqlen=seqlen, image_size=image_size, n_classes=n_classes)
    inputs.prepare_config(config, model_class, task, size)
    model = _build_model(model_class, config, path)
    example = inputs.example_maker(model, task, size)
    assumptions = (experts.ASSUMPTION,) if experts.are_in(model) else ()
    return TrainingStep(name=_name_of(path, model_class), module=model, example=example, assumptions=assumptions)


def _transformers() -> Any:
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise MissingExtraError("A Hugging Face config.json", extra="hf") from error
    return transformers


@contextmanager
def _broken_packages_told() -> Iterator[None]:
    """transformers loads its modules late: a package that does not fit (torchvision to torch) fails only here."""
    try:
        yield
    except (ImportError, RuntimeError, OSError) as error:
        first: BaseException = error
        while (cause := first.__cause__ or first.__context__) is not None:
            first = cause
        raise InputError(
            f"transformers cannot load this model's module: {_one_line(first)}. A package that it uses does "
            "not fit the installed torch (often torchvision): reinstall both together, or uninstall that package."
        ) from error


def _read_settings(path: Path) -> dict[str, Any]:
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        raise UnknownModelError(
            f"There is no file {file}; a Hugging Face model is named by the path of its config.json."
        )
    try:
        settings = parse_json(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{file} is not a Hugging Face config: it is not valid JSON ({error}).") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("model_type"), str):
        raise FileFormatError(f"{file} is JSON but not a Hugging Face config: it has no 'model_type', such as 'bert'.")
    classes = settings.get("architectures")
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise FileFormatError(f"{file}: 'architectures' should be a list of names of classes.")
    return settings


def _build_config(transformers: Any, settings: dict[str, Any], path: Path) -> Any:
    settings = {key: value for key, value in settings.items() if key not in RUNTIME_KEYS}
    model_type = settings.pop("model_type")
    if model_type not in transformers.CONFIG_MAPPING:
        remote = " Its 'auto_map' names code on the hub, which traincast never runs." if "auto_map" in settings else ""
        raise CaptureError(
            f"{path}: transformers {transformers.__version__} has no model type '{model_type}'.{remote} "
            f"Instead, {inputs.OWN_FILE}."
        )
    config_class = transformers.CONFIG_MAPPING[model_type]
    try:
        with _quiet():
            config = config_class.from_dict(settings)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, _validation_error()) as error:
        raise FileFormatError(f"{path} is not a valid {config_class.__name__}: {_one_line(error)}.") from error
    if hasattr(config, "use_cache"):
        config.use_cache = False
    values.fix_random_choices(config)
    return config


def _validation_error() -> type[Exception]:
    from huggingface_hub.errors import StrictDataclassError

    error: type[Exception] = StrictDataclassError
    return error


def _choose_class(transformers: Any, config: Any, head: str | None, path: Path) -> tuple[str, Any]:
    """The task and the model class: by `head`, by the class that the config names, or by model type."""
    by_task = {task: _classes_of(transformers, config, task) for task in HEADS}
    if head is not None:
        if not by_task[head]:
            have = ", ".join(task for task, classes in by_task.items() if classes)
            raise InputError(f"{path}: a {config.model_type} model has no head '{head}'; it has {have}.")
        return head, by_task[head][0]
    named = (getattr(config, "architectures", None) or [None])[0]
    for task in ("base", *DEFAULT_ORDER, *HEADS):
        for model_class in by_task[task]:
            if model_class.__name__ == named:
                return task, model_class
    if named is not None and hasattr(transformers, named):
        raise CaptureError(
            f"{path} names {named}, and which inputs it trains on is not known; choose a head of "
            f"{', '.join(HEADS)}, or {inputs.OWN_FILE}."
        )
    for task in _default_order(config):
        if by_task[task]:
            return task, by_task[task][0]
    raise CaptureError(f"{path}: transformers has no trainable model of type '{config.model_type}'.")


def _default_order(config: Any) -> tuple[str, ...]:
    if getattr(config, "is_encoder_decoder", False):
        return ("seq2seq", *DEFAULT_ORDER)
    if getattr(config, "is_decoder", False):
        return ("causal", *DEFAULT_ORDER)
    return DEFAULT_ORDER


def _classes_of(transformers: Any, config: Any, task: str) -> list[Any]:
    found: list[Any] = []
    for auto in HEADS[task]:
        mapping = getattr(transformers, auto)._model_mapping
        if type(config) in mapping:
            entry = mapping[type(config)]
            found.extend(entry if isinstance(entry, (tuple, list)) else [entry])
    return found


def _build_model(model_class: Any, config: Any, path: Path) -> Any:
    import torch

    options: dict[str, Any] = {"dtype": torch.float32}
    if model_class._can_set_experts_implementation():
        options["experts_implementation"] = experts.register_balanced_experts()
    try:
        with _on_meta(), _without_init(), _quiet():
            model = model_class._from_config(config, **options)
        model.to("meta")  # a few parameters are made in ways that ignore the device around them
        model.tie_weights()  # part of the initialisation that is left out above
    except (
        TypeError,
        ValueError,
        AttributeError,
        LookupError,
        ArithmeticError,
        RuntimeError,
        AssertionError,
        ImportError,
    ) as error:
        raise CaptureError(
            f"{path}: transformers could not build {model_class.__name__} on meta: {_one_line(error)}."
        ) from error
    if getattr(model, "loss_type", "") is None:
        model.loss_type = "ForCausalLM"  # transformers' own default, which it would announce with a warning
    values.expect_full_rows(model)
    return model.train()


def _on_meta() -> AbstractContextManager[Any]:
    import torch

    context: AbstractContextManager[Any] = torch.device("meta")
    return context


def _without_init() -> AbstractContextManager[None]:
    from transformers.initialization import no_init_weights

    context: AbstractContextManager[None] = no_init_weights()
    return context


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back advice on how to generate text, which is not what the model is built for."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def _name_of(path: Path, model_class: Any) -> str:
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    label = folder.name if path.is_dir() or path.name == "config.json" else path.stem
    return f"{label} ({model_class.__name__})"


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).rstrip(".")
