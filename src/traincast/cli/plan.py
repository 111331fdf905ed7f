"""`traincast plan`: what should I rent?"""

import typer

from traincast.api.planning import plan as question
from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o


def _own(*, as_job: o.AsJob = None) -> None:
    """Options of the command alone."""


@command(question, own=_own, assumes=True)
def plan(line: CommandLine) -> None:
    """What should I rent: the cheapest under a deadline, the fastest under a budget?

    Examples: traincast plan resnet50 --samples 1281167 --epochs 90 --deadline 24h --batch 256; traincast plan gpt2
    --samples 9765625 --budget 500 --spot --as sky > job.yaml
    """
    from traincast.cli.show import write_files
    from traincast.errors import InputError
    from traincast.planning.outputs import check_kind, job_text
    from traincast.views.plan import document_of

    kind = line.own["as_job"]
    if kind is not None:
        check_kind(kind)
        if line.as_json:
            raise InputError("--as prints a job and --json the plan: leave one of them out.")
    found = question(**line.options)
    if kind is not None:
        typer.echo(job_text(found.job(), kind), nl=False)
        write_files(document_of(found), html=line.html, png=line.png)
        return
    line.show(document_of(found), found.to_dict)
