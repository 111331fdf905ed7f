"""`traincast train scratch`: a network from its first weights."""

from traincast.api.recipes import plan_scratch
from traincast.cli.command import CommandLine, command
from traincast.cli.train_flow import planned, train, train_own


@command(plan_scratch, own=train_own)
def scratch(line: CommandLine) -> None:
    """Train a network from scratch. The same command again goes on where it was broken off.

    Examples: traincast train scratch; traincast train scratch --data cifar10 --download --model cifar_resnet56
    --epochs 100 --device cuda --on T4
    """
    from traincast.views.train_scratch import scratch_document

    train(line, planned(line, plan_scratch), scratch_document)
