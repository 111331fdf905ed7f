"""`traincast watch`: when will the run that is going on be done, and will it be good enough?"""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.options import AsJson


def watch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The log that a run is writing.")],
    target: Annotated[float | None, typer.Option(help="The loss or accuracy to reach.", show_default=False)] = None,
    metric: Annotated[
        str | None, typer.Option(help="loss, accuracy or a column's name. Default: a loss.", show_default=False)
    ] = None,
    split: Annotated[str | None, typer.Option(help="train, validation or test.", show_default=False)] = None,
    total_steps: Annotated[
        float | None, typer.Option("--total-steps", help="Length of the run. Default: as logged.", show_default=False)
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Length of the run in epochs.", show_default=False)] = None,
    lr: Annotated[
        str | None,
        typer.Option(
            "--lr",
            metavar="SCHEDULE",
            help="constant, linear, cosine, linear:0.4 (last 40 %), or 0.1,0.01@32000. Default: as logged.",
            show_default=False,
        ),
    ] = None,
    usd_per_hour: Annotated[
        float | None, typer.Option("--price", metavar="USD", help="Of all devices, an hour.", show_default=False)
    ] = None,
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
    pattern: Annotated[
        str | None, typer.Option(help="Regular expression with named groups, for text logs.", show_default=False)
    ] = None,
    run: Annotated[str | None, typer.Option(help="Of a file with several runs: which.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """When will a run be done that is going on, and will it reach its target?

    Follows a log that grows until the run is over: a screen on a terminal, a line for each update elsewhere. Examples:
    traincast watch metrics.csv --total-steps 10000 --target 3.0; traincast watch metrics.csv --epochs 90 --target 0.76
    --metric accuracy --stop-if "p(target) < 0.05"
    """
    from traincast.cli.watch_loop import Watch
    from traincast.cli.watch_screen import display_for
    from traincast.convergence.asked import Asked
    from traincast.convergence.logs.follow import LogFollower
    from traincast.convergence.logs.reading import Reading
    from traincast.convergence.stopping import read_rule
    from traincast.errors import InputError

    if not 0 < interval_s < float("inf"):
        raise InputError(f"--interval should be above 0 seconds, not {interval_s:g}.")
    asked = Asked(
        metric=metric,
        split=split,
        target=target,
        total_steps=total_steps,
        n_epochs=epochs,
        learning_rate=lr,
        step_s=step_s,
        usd_per_hour=usd_per_hour,
    )
    rule = None if stop_if is None else read_rule(stop_if, asked)
    with display_for(as_json=as_json, once=once) as display:
        own = Watch(file, LogFollower(file, Reading(pattern=pattern), run=run), asked, rule, display)
        code = own.once() if once else own.follow(interval_s)
    raise typer.Exit(code)
