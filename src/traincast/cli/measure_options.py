"""The flags of `traincast measure`, those of sweeps aside."""

from pathlib import Path
from typing import Annotated

import typer

MaybeModel = Annotated[
    str | None,
    typer.Argument(
        help="A zoo name, an .onnx, .keras or config.json file, or file.py:factory; none for --all-reduce alone.",
        show_default=False,
    ),
]
MaybeBatch = Annotated[int | None, typer.Option("--batch", help="Samples in one step.", show_default=False)]
UsedOptimizer = Annotated[str, typer.Option(help="none, sgd, momentum, adam, adamw, ...")]
UsedPrecision = Annotated[str, typer.Option(help="fp32, tf32, amp-fp16, amp-bf16 or bf16.")]
TorchDevice = Annotated[str, typer.Option(help="cpu, cuda or cuda:1.")]
Steps = Annotated[
    int | None, typer.Option(help="Steps to time. Default: 5 to 100, about two seconds.", show_default=False)
]
RunCompiled = Annotated[bool, typer.Option("--compiled", help="Run the model under torch.compile.")]
DefaultMalloc = Annotated[
    bool, typer.Option("--default-malloc", help="Let the C library give memory back to the system between steps.")
]
Repeat = Annotated[int, typer.Option(help="Fresh processes to measure in, one after the other.")]
EpochSamples = Annotated[
    int | None,
    typer.Option(help="Measure an epoch of so many samples, made up or of --data, over a loader.", show_default=False),
]
LoaderWorkers = Annotated[
    int | None, typer.Option(help="Processes of that loader. Default: none of its own.", show_default=False)
]
Processes = Annotated[
    int | None,
    typer.Option(help="Train in so many processes at once, which share the batch (DDP).", show_default=False),
]
AllReduce = Annotated[
    bool, typer.Option("--all-reduce", help="Measure the link between the processes, by message size.")
]
StoreFile = Annotated[
    Path | None, typer.Option("--store", metavar="FILE.db", help="Keep the result in a store of records.")
]
