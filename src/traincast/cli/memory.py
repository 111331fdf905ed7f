"""`traincast memory`: does it fit?"""

from traincast.api.models import estimate_memory
from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o


def _own(*, counts: o.Counts = False) -> None:
    """Options of the command alone."""


@command(estimate_memory, own=_own, assumes=True)
def memory(line: CommandLine) -> None:
    """Does one training step fit, and which batch is the largest that does?

    Examples: traincast memory resnet50 --batch 64 --optimizer adam --on T4; traincast memory cifar_resnet18 --batch 128
    --optimizer adam --counts
    """
    from traincast.views.memory import document_of

    answer = estimate_memory(**line.options)
    line.show(document_of(answer, has_counts=line.own["counts"]), answer.to_dict())
