"""`traincast watch`: when will the run that is going on be done, and will it be good enough?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli import converge_options as of_log
from traincast.cli.options import AsJson, HtmlFile, PngFile

_INTERRUPTED = 130

if TYPE_CHECKING:
    from traincast.cli.watch_loop import Watch


def watch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The log that a run is writing.")],
    target: of_log.Target = None,
    metric: of_log.MetricName = None,
    relation_from: of_log.RelationFrom = None,
    like: of_log.Like = None,
    split: of_log.Split = None,
    total_steps: of_log.TotalSteps = None,
    epochs: of_log.RunEpochs = None,
    steps_per_epoch: of_log.StepsPerEpoch = None,
    lr: of_log.Rates = None,
    family: of_log.Family = "auto",
    usd_per_hour: of_log.UsdPerHour = None,
    step_s: Annotated[
        float | None,
        typer.Option("--step-s", help="Expected seconds of a step: warns if it is slower.", show_default=False),
    ] = None,
    interval_s: Annotated[float, typer.Option("--interval", metavar="S", help="Seconds between two looks.")] = 2.0,
    stop_if: Annotated[
        str | None,
        typer.Option(
            "--stop-if",
            metavar="RULE",
            help="End with exit code 3 if p(target), loss, eta_s or slower is < or > a number.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="End with exit code 2 where the watch could only wait: the log is gone or damaged."
        ),
    ] = False,
    pattern: of_log.Pattern = None,
    format: of_log.Format = None,
    column: of_log.Columns = None,
    run: of_log.OneRun = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """When will a run be done that is going on, and will it reach its target?

    Follows a log that grows until the run is over: a screen on a terminal, a line for each update elsewhere. What it
    saw last is the page or image, also after Ctrl-C. Examples:
    traincast watch metrics.csv --total-steps 10000 --target 3.0; traincast watch metrics.csv --epochs 90 --target 0.76
    --metric accuracy --stop-if "p(target) < 0.05"

    Exit codes: 0 the run is over; 3 --stop-if holds, and no other code means that the training should be stopped; 2 a
    mistake in the command line (with --strict or --once also a log that cannot be watched); 130 Ctrl-C; 1 nobody reads
    the output any more.
    """
    from traincast.api.converging import other_logs
    from traincast.cli.watch_loop import Watch
    from traincast.cli.watch_screen import display_for
    from traincast.convergence import given
    from traincast.convergence.asked import Asked
    from traincast.convergence.logs.follow import LogFollower
    from traincast.convergence.logs.reading import Reading
    from traincast.convergence.stopping import read_rule
    from traincast.errors import InputError

    if not 0 < interval_s < float("inf"):
        raise InputError(f"--interval should be above 0 seconds, not {interval_s:g}.")
    given.path("A log", file)
    columns = of_log.columns_of(column)
    reading = Reading(format=format, pattern=pattern, columns=columns, steps_per_epoch=steps_per_epoch, metric=metric)
    asked = Asked(
        metric=metric,
        split=split,
        target=target,
        total_steps=total_steps,
        n_epochs=epochs,
        learning_rate=lr,
        step_s=step_s,
        usd_per_hour=usd_per_hour,
        family=family,
        like=other_logs(like or (), file, reading, run),
        relation_from=other_logs(relation_from or (), file, reading, run),
    )
    rule = None if stop_if is None else read_rule(stop_if)
    with display_for(as_json=as_json, once=once) as display:
        own = Watch(
            file,
            LogFollower(file, reading, run=run),
            asked,
            rule,
            display,
            strict,
        )
        try:
            code = own.once() if once else own.follow(interval_s)
        except KeyboardInterrupt:
            code = _INTERRUPTED
    if html is not None or png is not None:
        code = _written(own, html, png, code)
    raise typer.Exit(code)


def _written(seen: "Watch", html: Path | None, png: Path | None, code: int) -> int:
    """The page of `converge`, of the last look. Without one the exit code says so, unless it says more already."""
    from traincast.cli.show import write_files
    from traincast.errors import InputError, TraincastError
    from traincast.views.converge import document_of

    try:
        if seen.status is None or seen.status.curve is None:
            raise InputError(f"'{seen.path}' has too little yet for a forecast, so there is no page of it.")
        write_files(document_of([seen.status]), html=html, png=png)
    except TraincastError as error:
        if not code:
            raise
        typer.echo(str(error), err=True)
    return code
