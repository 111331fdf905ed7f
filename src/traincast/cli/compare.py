"""`traincast compare`: how wrong are we?"""

from traincast.cli.command import CommandLine, command
from traincast.validation.comparing import compare as question


@command(question)
def compare(line: CommandLine) -> None:
    """How wrong are we, and how wrong are others, on what was measured?

    The first call takes over ten minutes: it lowers every captured model and fits without each GPU and family. The
    results are kept beside the traces. Example: traincast compare --data DIR --set gemm --by device
    """
    from traincast.validation.document import document_of

    accuracy = question(**line.options)
    line.show(document_of(accuracy.sets, by=accuracy.by), accuracy.to_dict)
