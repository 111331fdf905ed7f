"""`traincast train weak`: pretraining on noisy tags."""

from traincast.api.recipes import plan_weak
from traincast.cli.command import CommandLine, command
from traincast.cli.train_flow import planned, train, train_own


@command(plan_weak, own=train_own)
def weak(line: CommandLine) -> None:
    """How much noise in its tags can pretraining tolerate, and does square-root resampling help?

    Examples: traincast train weak; traincast train weak --noise 0 --noise 25% --imbalance 50 --seeds 3
    """
    from traincast.views.train_weak import weak_document

    train(line, planned(line, plan_weak), weak_document)
