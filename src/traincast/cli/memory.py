"""`traincast memory`: does it fit?"""

from traincast.api.models import estimate_memory
from traincast.cli.command import CommandLine, command


@command(estimate_memory, assumes=True)
def memory(line: CommandLine) -> None:
    """Does one training step fit, and which batch is the largest that does?

    Example: traincast memory resnet50 --batch 64 --optimizer adam --on T4
    """
    from traincast.views.memory import document_of

    answer = estimate_memory(**line.options)
    line.show(document_of(answer), answer.to_dict())
