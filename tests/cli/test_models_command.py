"""`traincast models`, and the flags of every command: adding one is a decision."""

import json

import typer.main

from traincast.__main__ import run
from traincast.cli.app import make_app
from traincast.frontend.models.named import named_models
from traincast.frontend.models.registry import ZOO

MODEL_FLAGS = {"--n-classes", "--image-size", "--seqlen", "--head"}
OUTPUT_FLAGS = {"--json", "--html", "--png"}
ANSWER_FLAGS = OUTPUT_FLAGS | {"--verbose"}
FLAGS = {
    "forecast": {
        "--on",
        "--batch",
        "--samples",
        "--tokens",
        "--epochs",
        "--precision",
        "--optimizer",
        "--layout",
        "--compiled",
    }
    | {"--strategy", "--tensor-parallel", "--pipeline-parallel"}
    | {"--accumulate", "--method", "--ppp", "--host", "--input-samples-per-s", "--price", "--devices"}
    | {"--region", "--grid-g-per-kwh", "--pue", "--curve", "--target", "--metric", "--fail-over", "--compare"}
    | {"--against"}
    | MODEL_FLAGS
    | ANSWER_FLAGS,
    "scale": {
        "--on",
        "--gpus",
        "--batch",
        "--batch-per-gpu",
        "--samples",
        "--tokens",
        "--epochs",
        "--price",
        "--compare",
    }
    | {"--strategy", "--algorithm", "--link", "--precision", "--optimizer", "--layout", "--compiled", "--accumulate"}
    | {"--method", "--ppp", "--host", "--input-samples-per-s", "--devices"}
    | {"--measured", "--parameters", "--optimus", "--steps", "--workers", "--servers"}
    | MODEL_FLAGS
    | ANSWER_FLAGS,
    "layers": {"--batch", "--by", "--tree", "--sort", "--top", "--on", "--precision", "--devices"}
    | MODEL_FLAGS
    | ANSWER_FLAGS,
    "memory": {"--batch", "--on", "--precision", "--optimizer", "--devices"} | MODEL_FLAGS | ANSWER_FLAGS,
    "explain": {
        "--batch",
        "--on",
        "--measured",
        "--precision",
        "--optimizer",
        "--layout",
        "--compiled",
        "--method",
        "--host",
    }
    | {"--devices", "--input-samples-per-s", "--strategy", "--accumulate", "--ppp"}
    | MODEL_FLAGS
    | ANSWER_FLAGS,
    "measure": {
        "--batch",
        "--optimizer",
        "--precision",
        "--device",
        "--steps",
        "--compiled",
        "--default-malloc",
        "--repeat",
    }
    | {"--epoch-samples", "--workers", "--store", "--processes", "--all-reduce"}
    | {"--sweep", "--max-step-s", "--data", "--sample-ms", "--sample-waits", "--epochs"}
    | MODEL_FLAGS
    | OUTPUT_FLAGS,
    "calibrate": {"--device", "--processes", "--export"} | OUTPUT_FLAGS,
    "bench": {
        "--rows",
        "--store",
        "--seed",
        "--device",
        "--campaign",
        "--retry-failed",
        "--on-ray",
        "--cpus-per-task",
    }
    | OUTPUT_FLAGS,
    "records": {"--kind", "--export", "--tables", "--import"} | OUTPUT_FLAGS,
    "converge": {
        "--target",
        "--metric",
        "--split",
        "--total-steps",
        "--epochs",
        "--lr",
        "--family",
        "--price",
        "--step-s",
        "--pattern",
        "--format",
        "--column",
        "--run",
        "--like",
        "--relation-from",
        "--steps-per-epoch",
        "--batch-to",
        "--noise-scale",
        "--batch",
    }
    | OUTPUT_FLAGS,
    "watch": {
        "--strict",
        "--steps-per-epoch",
        "--target",
        "--metric",
        "--split",
        "--total-steps",
        "--epochs",
        "--lr",
        "--price",
        "--step-s",
        "--interval",
        "--stop-if",
        "--once",
        "--like",
        "--relation-from",
        "--family",
        "--pattern",
        "--format",
        "--column",
        "--run",
    }
    | OUTPUT_FLAGS,
    "transfer": {
        "--predict",
        "--family",
        "--rows",
        "--split",
        "--target",
        "--metric",
        "--total-steps",
        "--epochs",
        "--steps-per-epoch",
        "--workers",
        "--servers",
        "--optimus",
        "--batch",
    }
    | OUTPUT_FLAGS,
    "plan": {
        "--as",
        "--batch",
        "--batch-size",
        "--batch-sizes",
        "--budget",
        "--checkpoint-mb-per-s",
        "--compiled",
        "--confidence",
        "--curve",
        "--deadline",
        "--devices",
        "--epochs",
        "--head",
        "--host",
        "--image-size",
        "--input-samples-per-s",
        "--interruptions-per-day",
        "--layout",
        "--max-gpus",
        "--max-nodes",
        "--method",
        "--n-classes",
        "--noise-scale",
        "--optimizer",
        "--ppp",
        "--precision",
        "--prices",
        "--provider",
        "--samples",
        "--seqlen",
        "--setup",
        "--spot",
        "--strategy",
        "--target-accuracy",
    }
    | ANSWER_FLAGS,
    "train": set(),  # a group; its commands have tests of their own
    "schedule": {"--out", "--policy", "--interval", "--restart", "--on-ray", "--cpus"} | OUTPUT_FLAGS,
    "simulate": {
        "--cluster",
        "--policy",
        "--tables",
        "--workload",
        "--interval",
        "--restart",
        "--work-error",
        "--speed-error",
        "--failure",
        "--repair",
        "--checkpoint",
        "--seed",
        "--seeds",
    }
    | OUTPUT_FLAGS,
    "serve": {"--host", "--port", "--max-upload", "--open"},
    "models": OUTPUT_FLAGS,
    "compare": {"--data", "--traces", "--set", "--method", "--by"} | OUTPUT_FLAGS,
    "devices": {"--vendor", "--arch", "--min-memory", "--machines", "--devices"} | OUTPUT_FLAGS,
}

TRAINED_AS = {"--adapter", "--clip-gradients", "--master-weights", "--recompute", "--stack"}
RUN_AS = {"--compile-mode", "--mode", "--weights"}
FLAGS["forecast"] |= TRAINED_AS | RUN_AS | {"--context-parallel", "--context-kind", "--pipeline-schedule"}
FLAGS["scale"] |= TRAINED_AS | RUN_AS
FLAGS["plan"] |= TRAINED_AS | RUN_AS | {"--on"}
FLAGS["explain"] |= TRAINED_AS | RUN_AS | {"--layer-sum"}
FLAGS["memory"] |= TRAINED_AS | {"--counts", "--largest", "--smallest-gpu", "--strategy"}
FLAGS["calibrate"] |= {"--ppp"}
FLAGS["converge"] |= {"--export", "--fits"}
FLAGS["records"] |= {"--spread"}
FLAGS["course"] = OUTPUT_FLAGS | {"--out"}


def test_every_command_has_just_these_flags():
    commands = typer.main.get_command(make_app()).commands
    found = {
        name: {flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")}
        for name, command in commands.items()
    }
    assert found == FLAGS


def test_models_are_listed_with_their_parameters(capsys):
    assert run(["models", "vgg"]) == 0
    out = capsys.readouterr().out
    assert f"3 of {len(ZOO) + len(named_models())}" in out
    assert "138,357,544" in out


def test_json_has_the_published_figures_with_their_source(capsys):
    assert run(["models", "resnet50", "--json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert (model["n_parameters"], model["multiply_adds"]) == (25_557_032, 4.089e9)
    assert model["multiply_adds_source"]
    assert model["options"] == {"n_classes": 1000, "image_size": 224}
