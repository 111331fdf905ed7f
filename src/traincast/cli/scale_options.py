"""The flags of `traincast scale`, and which of them each of its three questions has a use for."""

from pathlib import Path
from typing import Annotated

import typer

from traincast.errors import InputError

MaybeModel = Annotated[
    str | None,
    typer.Argument(
        help="A zoo name, a .trace, .onnx, .keras or config.json file, or file.py:factory.", show_default=False
    ),
]
Place = Annotated[
    str | None,
    typer.Option("--on", metavar="PLACE", help="T4, 2x4xT4@50Gb/s, p3.16xlarge, a cluster's TOML file."),
]
Gpus = Annotated[
    str | None,
    typer.Option("--gpus", metavar="N[,N...]", help="Numbers of GPUs. Default: 1,2,4,... up to 8 or all."),
]
BatchOfAll = Annotated[int | None, typer.Option("--batch", help="Strong scaling: samples of one update of all GPUs.")]
BatchPerGpu = Annotated[
    int | None, typer.Option("--batch-per-gpu", help="Weak scaling: samples of one update of each GPU.")
]
GpuPrice = Annotated[float | None, typer.Option("--price", metavar="USD", help="Price of a GPU and hour.")]
CompareFile = Annotated[
    Path | None,
    typer.Option("--compare", metavar="FILE", help="CSV of measured runs: gpus and epoch_s or total_s."),
]
Strategy = Annotated[str, typer.Option(help="ddp, dp, mirrored, ps:P, ps-async:P, fsdp, zero1, zero2 or zero3.")]
Algorithm = Annotated[
    str,
    typer.Option(
        help="All-reduce: nccl, best, ring, double-tree, hierarchical; in one node also tree, butterfly, "
        "recursive-doubling, master."
    ),
]
InsideLink = Annotated[
    str | None, typer.Option("--link", metavar="LINK", help="Replaces the link inside a node: PCIe3 x8, 10GB/s.")
]
MeasuredFile = Annotated[
    Path | None,
    typer.Option("--measured", metavar="FILE", help="Instead of a forecast: CSV with batch, gpus, epoch_s."),
]
NParameters = Annotated[int | None, typer.Option("--parameters", help="Of the model of --measured, instead of MODEL.")]
OptimusSpeeds = Annotated[
    str | None,
    typer.Option(
        "--optimus",
        metavar="SPEEDS",
        help="Instead: Optimus' model. paper-sync, paper-async or CSV with servers, workers, steps_per_s.",
    ),
]
NSteps = Annotated[int, typer.Option("--steps", help="With --optimus: steps to be done.")]
Workers = Annotated[str, typer.Option("--workers", metavar="N[,N...]", help="With --optimus.")]
Servers = Annotated[str, typer.Option("--servers", metavar="N[,N...]", help="With --optimus.")]

# What the two questions that are no forecast have a use for, besides the outputs; anything else is refused.
_OUTPUTS = {"as_json", "html", "png"}
_MODEL = {"model", "n_classes", "image_size", "seqlen", "head"}
_USED = {
    "--measured": {"measured", "n_parameters", "n_samples", "link"} | _MODEL | _OUTPUTS,
    "--optimus": {"optimus", "batch", "n_steps", "workers", "servers"} | _OUTPUTS,
}
_ONLY_ELSEWHERE = {"n_parameters": "--measured", "n_steps": "--optimus", "workers": "--optimus", "servers": "--optimus"}


def refuse_unused(context: typer.Context) -> None:
    """One question at a time; and a flag that changes nothing was meant for something: say so."""
    asked = [flag for flag in _USED if context.params[flag.removeprefix("--")] is not None]
    if len(asked) > 1:
        raise InputError("--measured and --optimus are two questions: ask one at a time.")
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        flag = parameter.opts[0] if parameter.opts[0].startswith("-") else f"The model '{context.params[name]}'"
        if asked and name not in _USED[asked[0]]:
            raise InputError(f"{flag} means nothing to {asked[0]}: leave it out.")
        if not asked and name in _ONLY_ELSEWHERE:
            raise InputError(f"{flag} belongs to {_ONLY_ELSEWHERE[name]}: leave it out, or ask that.")
