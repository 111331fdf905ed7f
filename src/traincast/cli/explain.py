"""`traincast explain`: why does a step take what it takes, what would help, and why not what was predicted?"""

from traincast.api.explaining import explain as question
from traincast.cli.command import CommandLine, command


@command(question, defaults={"on": "this-machine"}, assumes=True)
def explain(line: CommandLine) -> None:
    """Why does a step take so long, what would help, and where is the difference to the forecast?

    Examples: traincast explain resnet50 --on T4 --batch 32; traincast explain resnet50 --on T4 --batch 32 --measured
    trace.json.gz; traincast explain cifar_resnet20 --batch 32 --measured here
    """
    from traincast.views.explain import document_of

    gap = question(**line.options)
    line.show(document_of(gap), gap.to_dict)
