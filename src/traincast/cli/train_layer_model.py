"""`traincast train layer-model`: networks that predict layers, from one's own benchmarks."""

from traincast.api.layer_model import train_layer_model
from traincast.cli.command import CommandLine, command


@command(train_layer_model)
def layer_model(line: CommandLine) -> None:
    """Learn from the layers that 'traincast bench layers' timed: weights for --method layerwise.

    Example: traincast bench layers --store mine.db --n-rows 2000; traincast train layer-model --from mine.db --out
    mine.npz; traincast forecast resnet50 --on T4 --batch 32 --method layerwise --weights mine.npz
    """
    from traincast.views.layer_model import document_of

    found = train_layer_model(**line.options)
    line.show(document_of(found), found.to_dict)
