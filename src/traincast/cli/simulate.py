"""`traincast simulate`: what does a scheduling policy make of many jobs on one cluster?"""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile


def simulate(
    jobs: Annotated[Path, typer.Argument(help="CSV file of jobs: plain, models, with servers, workload, or trace.")],
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NxDxTYPE", help="Nodes x devices x type: 16x4xT4, 8x4xT4+2x8xV100.")
    ],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME[,NAME...]",
            help="fifo, srtf, drf, tiresias, optimus, optimus-online (with parameter servers only), gavel, pollux, "
            "traincast, traincast-batch.",
        ),
    ] = "optimus",
    tables: Annotated[
        Path | None, typer.Option("--tables", metavar="FOLDER", help="Measured steps and gradients of applications.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", metavar="NAME", help="Which workload of the file: realistic/1.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between decisions; 0: at each submission and end.")] = 60.0,
    restart: Annotated[
        float | None,
        typer.Option(help="Seconds a job pauses when its devices change. Default: 30.", show_default=False),
    ] = None,
    work_error: Annotated[float, typer.Option(help="Error of forecast remaining work, as sigma of its log.")] = 0.0,
    speed_error: Annotated[float, typer.Option(help="Error of forecast speeds, as sigma of their log.")] = 0.0,
    failure: Annotated[
        float | None, typer.Option(help="Mean seconds between two failures of a node. Default: none fails.")
    ] = None,
    repair: Annotated[
        float | None, typer.Option(help="Seconds until a failed node is back. Default: 1800.", show_default=False)
    ] = None,
    checkpoint: Annotated[
        float | None, typer.Option(help="Seconds between a job's checkpoints. Default: 600.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of errors, failures and observations.")] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds, for intervals.")] = 1,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What does a scheduling policy make of many jobs on one cluster?

    Examples: traincast simulate jobs.csv --cluster 4x4xT4 --policy fifo,srtf,traincast --html jobs.html; traincast
    simulate pollux_workloads.csv --workload load-1.0/1 --tables distributed --cluster 16x4xT4 --policy optimus
    """
    from traincast.api.simulating import simulate_many
    from traincast.cli.show import show
    from traincast.views.simulate import document_of

    comparison = simulate_many(
        jobs,
        cluster,
        list(dict.fromkeys(name.strip() for name in policy.split(","))),
        tables=tables,
        workload=workload,
        interval_s=interval,
        restart_s=restart,
        work_error=work_error,
        speed_error=speed_error,
        failure_s=failure,
        repair_s=repair,
        checkpoint_s=checkpoint,
        seed=seed,
        n_seeds=seeds,
    )
    data = comparison.to_dict() if as_json else None
    show(
        document_of(comparison, with_charts=html is not None or png is not None),
        as_json=as_json,
        html=html,
        png=png,
        data=data,
    )
