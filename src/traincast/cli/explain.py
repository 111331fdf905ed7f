"""`traincast explain`: why does a step take what it takes, what would help, and why not what was predicted?"""

from traincast.api.explaining import explain as question
from traincast.api.explaining import lone_layers, mirrored
from traincast.cli.command import CommandLine, command
from traincast.errors import InputError
from traincast.options import catalog as o


def _own(*, layer_sum: o.LayerSum = False) -> None:
    """Options of the command alone."""


@command(question, own=_own, defaults={"on": "this-machine"}, assumes=True)
def explain(line: CommandLine) -> None:
    """Why does a step take so long, what would help, and where is the difference to the forecast?

    Examples: traincast explain resnet50 --on T4 --batch 32; traincast explain resnet50 --on T4 --batch 32 --measured
    trace.json.gz; traincast explain cifar_resnet20 --batch 32 --measured here; traincast explain mnist_cnn --on
    P100-PCIe-16GB --batch 64 --layer-sum
    """
    if line.own["layer_sum"]:
        _show_layer_sum(line)
        return
    from traincast.views.explain import document_of

    gap = question(**line.options)
    line.show(document_of(gap), gap.to_dict)


def _show_layer_sum(line: CommandLine) -> None:
    """The practicum's question: what does a sum of layers say of the whole?"""
    if line.options["strategy"] == "mirrored":
        from traincast.views.mirrored_methods import document_of as mirrored_document

        methods = mirrored(**line.options)
        line.show(mirrored_document(methods), methods.to_dict)
        return
    from traincast.views.layer_sum import document_of

    if line.options["measured"] is not None:
        raise InputError("--layer-sum compares two predictions on one GPU: leave --measured out.")
    found = lone_layers(**line.options_of(lone_layers))
    line.show(document_of(found), found.to_dict)
