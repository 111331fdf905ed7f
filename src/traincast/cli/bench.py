"""`traincast bench`: how long do layers and single ops take here?"""

from typing import TYPE_CHECKING

import typer

from traincast.api.benchmarks import bench as question
from traincast.cli.command import CommandLine, command

if TYPE_CHECKING:
    from traincast.records.campaign import Progress

_INTERRUPTED = 130


@command(question)
def bench(line: CommandLine) -> None:
    """How long do random layers, or single ops, take here? Resumable: run the same line again to do what is missing.

    Example: traincast bench layers --rows 2000 --store measured.db
    """
    from traincast.cli.counted import counted
    from traincast.views.bench import document_of

    with counted(f"Timing {line.options['what']}") as tell:

        def on_progress(progress: "Progress") -> None:
            tell(progress.n_done, progress.n_tasks)

        run = question(**line.options, on_progress=on_progress)
    line.show(document_of(run, with_charts=line.has_charts), run.to_dict)
    if run.was_stopped:
        typer.echo(f"Stopped. What is done is in '{run.store}'; the same command again does the rest.", err=True)
        raise typer.Exit(_INTERRUPTED)
