"""`traincast bench`: how long do layers and single ops take here?"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile

if TYPE_CHECKING:
    from traincast.measurement.campaign import Progress


def bench(
    what: Annotated[Literal["layers", "ops"], typer.Argument(help="Whole layers with backward, or single ops.")],
    store: Annotated[Path, typer.Option("--store", metavar="FILE", help="Where records go: one SQLite file.")],
    rows: Annotated[int, typer.Option("--rows", help="Random layers or ops to time.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed draws the same rows.")] = 0,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:1.")] = "cpu",
    campaign: Annotated[
        str | None, typer.Option("--campaign", metavar="NAME", help="Its name in the store. Default: layers or ops.")
    ] = None,
    on_ray: Annotated[
        str | None,
        typer.Option(
            "--on-ray", metavar="ADDRESS", help="On this Ray cluster; 'local' starts one.", show_default=False
        ),
    ] = None,
    cpus_per_task: Annotated[
        int | None, typer.Option("--cpus-per-task", help="On Ray: of a node. Default: all.", show_default=False)
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do again what could not be done.")] = False,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """How long do random layers, or single ops, take here? Resumable: the same line again does what is missing.

    Example: traincast bench layers --rows 2000 --store measured.db
    """
    from traincast.api.benchmarks import bench as run_bench
    from traincast.cli.counted import counted
    from traincast.cli.show import show
    from traincast.views.bench import bench_document

    latest: list[Progress] = []
    with counted(f"Timing {what}") as tell:

        def on_progress(progress: "Progress") -> None:
            latest[:] = [progress]
            tell(progress.n_done, progress.n_tasks)

        try:
            run_bench(
                what,
                store,
                n_rows=rows,
                seed=seed,
                device=device,
                campaign=campaign,
                on_ray=on_ray,
                cpus_per_task=cpus_per_task,
                retry_failed=retry_failed,
                on_progress=on_progress,
            )
        except KeyboardInterrupt:
            is_stopped = True
        else:
            is_stopped = False
    if latest:
        name = campaign or what
        data = {"store": str(store), "campaign": name, **asdict(latest[0])}
        document = bench_document(what, store, name, latest[0], has_charts=html is not None or png is not None)
        show(document, as_json=as_json, html=html, png=png, data=data)
    if is_stopped:
        typer.echo(f"Stopped. What is done is in '{store}'; the same command again does the rest.", err=True)
        raise typer.Exit(130)
