"""`traincast transfer`: what will the learning curve of another size be, before it runs?"""

from traincast.api.size_transfer import transfer as question
from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o


def _own(*, predict: o.Predict) -> None:
    """Options of the command alone: the size, and the column that it is of, in one."""


@command(question, own=_own, without=("size", "by"))
def transfer(line: CommandLine) -> None:
    """What will the learning curve of another size be, and how many epochs does it need?

    Learns from runs of other sizes; runs of the size itself, if the table has any, are compared with the prediction.
    Examples: traincast transfer runs.csv --predict depth=50 --epochs 350 --steps-per-epoch 391; the same with
    --workers 1-32 --servers 2,4 --optimus paper-sync --batch 128
    """
    from traincast.views.size_transfer import document_of

    by, size = line.own["predict"]
    found = question(size=size, by=by, **line.options)
    has_charts = line.html is not None or line.png is not None
    line.show(document_of(found, has_charts=has_charts), found.to_dict)
