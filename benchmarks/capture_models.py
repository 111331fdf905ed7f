"""Captures the models of the public measurements (timm, Hugging Face) once, for `accuracy.py` and the refit.

    python benchmarks/capture_models.py --data ../shared/data [--traces DIR] [--timm DIR] [--set timm-train]

timm imports torchvision, whose wheel does not load on a CPU build of torch; `--shim FILE` is run before timm to
declare the operators it misses. Attention is taken apart where the measurement was made before PyTorch fused it
(timm-train: PyTorch 1.12) or asked for it (NeuSight: attn_implementation="eager").
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import runpy
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traincast.kernels.refit.folders import USUAL_TRACES

SETS = ("timm-train", "timm-renamed", "timm-inference", "transformers", "distributed")
# Models of the measured list that timm has under another name today, or builds from another one's options. They came
# after the last fit: under a prefix of their own they are scored beside the others and not learnt from.
RENAMED: dict[str, tuple[str, dict[str, str]]] = {
    "densenet121d": ("densenet121", {"stem_type": "deep"}),
    "densenet264": ("densenet264d", {"stem_type": ""}),
    "regnety_040s_gn": ("regnety_040_sgn", {}),
    "resnetv2_50d_evob": ("resnetv2_50d_evos", {"norm_layer": "EvoNorm2dB0"}),
    "vit_base_patch16_224_sam": ("vit_base_patch16_224", {}),
    "vit_base_patch32_224_sam": ("vit_base_patch32_224", {}),
}

Job = tuple[str, Any]  # file name without suffix, and a function that makes the trace


def timm_jobs(data: Path, mode: str) -> Iterator[Job]:
    """One job a model and image size."""
    file = {"train": "timm_train_rtx3090.csv", "inference": "timm_infer_rtx3090.csv"}[mode]
    with (data / "e2e" / file).open() as stream:
        rows = {(row["model"], int(row["img_size"])) for row in csv.DictReader(stream)}
    for name, size in sorted(rows):
        yield f"timm-{mode}--{name}--{size}", lambda name=name, size=size: capture_timm(name, size, mode)


def renamed_jobs(data: Path) -> Iterator[Job]:
    """The models of RENAMED that are in the table of training steps."""
    with (data / "e2e" / "timm_train_rtx3090.csv").open() as stream:
        rows = {(row["model"], int(row["img_size"])) for row in csv.DictReader(stream) if row["model"] in RENAMED}
    for name, size in sorted(rows):
        today, options = RENAMED[name]
        yield (
            f"timm-renamed--{name}--{size}",
            lambda today=today, size=size, options=options: capture_timm(today, size, "train", **options),
        )


def capture_timm(name: str, size: int, mode: str, **settings: Any) -> Any:
    import timm
    import timm.layers
    import torch

    import traincast as tc

    if "norm_layer" in settings:
        settings["norm_layer"] = getattr(timm.layers, settings["norm_layer"])
    options: list[dict[str, Any]] = [settings, {**settings, "img_size": size}]
    error: Exception | None = None
    for option in options:
        try:
            with torch.device("meta"):
                model = timm.create_model(name, **option)
            example = lambda batch: torch.zeros(batch, 3, size, size)  # noqa: E731
            return tc.capture(model, example, optimizer="momentum", precision="amp-fp16", mode=mode)
        except Exception as problem:  # noqa: BLE001 - a model that cannot be built is reported and left out
            error = error or problem
    assert error is not None
    raise error


def transformer_jobs(data: Path) -> Iterator[Job]:
    """Every (model, mode, sequence length) of neusight.csv, and BERT as in the NVIDIA examples."""
    with (data / "e2e" / "neusight.csv").open() as stream:
        rows = {(r["model"], r["hf_class"], r["mode"], int(r["seqlen"])) for r in csv.DictReader(stream)}
    for model, hf_class, mode, seqlen in sorted(rows):
        config = json.loads((data / "e2e" / "neusight_models" / f"{model}.json").read_text())
        yield (
            f"neusight-{mode}--{model}--{seqlen}",
            lambda c=config, h=hf_class, m=mode, s=seqlen: capture_transformer(h, c, s, m),
        )

    for size, width, heads, layers in (("base", 768, 12, 12), ("large", 1024, 16, 24)):
        config = {
            "hidden_size": width,
            "num_attention_heads": heads,
            "num_hidden_layers": layers,
            "intermediate_size": 4 * width,
        }
        yield (
            f"lambda-train--bert_{size}_squad--384",
            lambda c=config: capture_transformer("BertForQuestionAnswering", c, 384, "train"),
        )


def capture_transformer(hf_class: str, config: dict[str, Any], seqlen: int, mode: str) -> Any:
    import torch
    import transformers

    import traincast as tc

    if hf_class.startswith("Switch"):
        _route_to_one_expert(seqlen)
    cls = getattr(transformers, hf_class)
    settings = cls.config_class(**{k: v for k, v in config.items() if k not in ("architectures", "torch_dtype")})
    settings._attn_implementation = "eager"
    if mode == "train":
        settings.layerdrop = 0.0
    with torch.device("meta"):
        model = cls(settings)

    def example(batch: int) -> dict[str, Any]:
        ids = torch.ones(batch, seqlen, dtype=torch.long)
        return (
            {"input_ids": ids, "decoder_input_ids": ids}
            if hasattr(settings, "num_decoder_layers")
            else {"input_ids": ids}
        )

    def loss(output: Any, inputs: Any) -> Any:
        if hasattr(output, "start_logits"):
            return (output.start_logits + output.end_logits).float().logsumexp(-1).mean()
        logits = output.prediction_logits if hasattr(output, "prediction_logits") else output.logits
        labels = torch.zeros(logits.shape[0] * logits.shape[1], dtype=torch.long, device=logits.device)
        return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)

    return tc.capture(model, example, loss=loss, optimizer="none", mode=mode)


def _route_to_one_expert(seqlen: int) -> None:
    """Equal tokens choose the same expert, which takes its capacity of each sequence; the others stay idle.

    The library finds this out from the router's values, which a capture does not have.
    """
    import torch
    from transformers.models.switch_transformers import modeling_switch_transformers as library

    def forward(experts: Any, hidden: Any, selected: Any, weights: Any) -> Any:
        result = torch.zeros_like(hidden).view(-1, seqlen, hidden.shape[-1])
        routed = hidden.view(-1, seqlen, hidden.shape[-1])[:, :64]
        result[:, :64] = experts["expert_0"](routed) * weights.view(-1, seqlen, 1)[:, :64]
        return result.view(hidden.shape)

    library.SwitchTransformersExperts.forward = forward


def distributed_jobs() -> Iterator[Job]:
    """What runs on many devices and is not in the zoo."""
    import gavel_models as models
    import traincast as tc

    yield "gavel--lm", lambda: tc.capture(models.WordModel().to("meta"), models.word_example)
    yield "gavel--transformer", lambda: tc.capture(models.Translator().to("meta"), models.sentence_example)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--timm", type=Path, help="folder that holds the timm package")
    parser.add_argument("--shim", type=Path, help="file to run before timm is imported")
    parser.add_argument("--set", choices=SETS, required=True)
    parser.add_argument("--part", default="0/1", help="i/n: every n-th model from the i-th")
    arguments = parser.parse_args()
    if arguments.set.startswith("timm"):
        os.environ["TIMM_FUSED_ATTN"] = "1" if arguments.set == "timm-inference" else "0"
        # Its names must live as long as timm: they hold the declared operators.
        _declared = runpy.run_path(str(arguments.shim)) if arguments.shim else {}
        if arguments.timm:
            sys.path.insert(0, str(arguments.timm))
        mode = arguments.set.removeprefix("timm-")
        jobs = renamed_jobs(arguments.data) if mode == "renamed" else timm_jobs(arguments.data, mode)
    elif arguments.set == "transformers":
        jobs = transformer_jobs(arguments.data)
    else:
        jobs = distributed_jobs()
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    arguments.traces.mkdir(parents=True, exist_ok=True)
    part, n_parts = map(int, arguments.part.split("/"))
    for number, (name, make) in enumerate(jobs):
        path = arguments.traces / f"{name}.trace"
        if number % n_parts != part or path.exists():
            continue
        start = time.perf_counter()
        with contextlib.suppress(KeyboardInterrupt):
            try:
                make().save(path)
                print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
            except Exception as error:  # noqa: BLE001 - one model must not stop the others
                print(f"{name}: FAILED {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main()
