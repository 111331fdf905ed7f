"""`traincast layers`: what does each layer ask for?"""

from traincast.api.models import layers as question
from traincast.cli.command import CommandLine, command


@command(question, assumes=True)
def layers(line: CommandLine) -> None:
    """What does each layer ask for: shapes, parameters, flop, bytes?

    Examples: traincast layers resnet50 --on T4; traincast layers vgg19 --by kind
    """
    from traincast.views.layers import document_of

    answer = question(**line.options)
    line.show(document_of(answer), answer.to_dict)
