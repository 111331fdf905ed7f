"""`traincast memory`: does it fit?"""

from traincast.api.fitting import largest_that_fits, smallest_gpu
from traincast.api.models import estimate_memory
from traincast.cli.command import CommandLine, command
from traincast.errors import InputError
from traincast.options import catalog as o


def _own(
    *,
    counts: o.Counts = False,
    largest: o.MaybeLargest = None,
    smallest_gpu: o.SmallestGpu = False,
    strategy: o.Strategy = "ddp",
) -> None:
    """Options of the command alone."""


@command(estimate_memory, own=_own, assumes=True)
def memory(line: CommandLine) -> None:
    """Does one training step fit, which batch or sequence is the largest that does, and which GPU holds it?

    Examples: traincast memory resnet50 --batch 64 --optimizer adam --on T4; traincast memory cifar_resnet18 --batch 128
    --optimizer adam --counts; traincast memory llama-3.1-8b --on RTX-4090 --adapter qlora:16 --largest seqlen;
    traincast memory llama-3.1-8b --seqlen 4096 --adapter lora:16 --smallest-gpu
    """
    if line.own["largest"] is not None:
        _show_largest(line)
        return
    if line.own["strategy"] != "ddp":
        raise InputError("--strategy goes with --largest here; 'traincast forecast' has the memory of several devices.")
    if line.own["smallest_gpu"]:
        _show_smallest(line)
        return
    from traincast.views.memory import document_of

    answer = estimate_memory(**line.options)
    line.show(document_of(answer, has_counts=line.own["counts"]), answer.to_dict())


def _show_largest(line: CommandLine) -> None:
    from traincast.views.fitting import largest_document

    if line.own["smallest_gpu"]:
        raise InputError("--largest and --smallest-gpu are two questions: ask them one after the other.")
    options = dict(line.options)
    if options["on"] is None:
        raise InputError(f"--largest {line.own['largest']} needs a place: give --on, such as --on A100-SXM4-80GB.")
    if "batch_size" not in line.typed:
        options["batch_size"] = None
    found = largest_that_fits(what=line.own["largest"], strategy=line.own["strategy"], **options)
    line.show(largest_document(found), found.to_dict)


def _show_smallest(line: CommandLine) -> None:
    from traincast.views.fitting import smallest_document

    if line.options["on"] is not None:
        raise InputError("--smallest-gpu looks at every GPU of the table: leave --on out.")
    found = smallest_gpu(**{name: value for name, value in line.options.items() if name != "on"})
    line.show(smallest_document(found), found.to_dict)
