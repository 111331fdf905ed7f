"""`traincast converge`: where will this run end, and when is it good enough?"""

from traincast.api.converging import converge as question
from traincast.api.logs import read_log
from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o


def _own(files: o.LogFiles) -> None:
    """Options of the command alone: it may be asked about several logs."""


@command(question, read_log, own=_own)
def converge(line: CommandLine) -> None:
    """Where will a run end, when does it reach a target, and how sure is that?

    Examples: traincast converge metrics.csv --target 0.92 --metric accuracy --epochs 90; traincast converge
    trainer_state.json --target 3.0 --price 12.5
    """
    from traincast.views.converge import document_of

    options, reading = line.options_of(question), line.options_of(read_log)
    found = [question(file, **options, reading=reading) for file in line.own["files"]]
    line.show(document_of(found), lambda: {"runs": [one.to_dict() for one in found]})
