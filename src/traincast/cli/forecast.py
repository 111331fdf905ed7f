"""`traincast forecast`: what will this run take?"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import typer

from traincast.api.forecasts import forecasts
from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o

if TYPE_CHECKING:
    from traincast.cli.forecast_job import ForecastRun
    from traincast.forecasting.forecast import Forecast
    from traincast.planning.difference import Difference
    from traincast.planning.gates import Gates
    from traincast.report.document import Document

_BROKEN_LIMIT = 3


def _found(run: "ForecastRun", typed: Collection[str]) -> "tuple[Forecast, ...]":
    """What a job file asks for wrongly is told with its name."""
    from traincast.cli.forecast_job import models_of

    if run.job is None:
        names = models_of(run.options["model"])
        return tuple(each for name in names for each in forecasts(**{**run.options, "model": name}))
    from traincast.api.job import of_job

    with of_job(run.job, [name for name in typed if name in run.options and name != "model"]):
        return forecasts(**run.options)


def _own(*, fail_over: o.FailOver = None, compare: o.CompareWith = None, against: o.Against = None) -> None:
    """Options of the command alone: limits, and an earlier forecast to compare with."""


@command(forecasts, own=_own, defaults={"on": None, "batch_sizes": None}, assumes=True)
def forecast(line: CommandLine) -> None:
    """What will this run take: time, memory, money, energy? MODEL may be a job file (.toml), too, or
    several names with commas.

    Examples: traincast forecast resnet50 --on V100-PCIe-32GB --batch 128; traincast forecast bert-base --on T4 --on A10
    --batch 8,16,32 --precision amp-fp16 --samples 100000 --epochs 3; traincast forecast job.toml --fail-over
    budget=200; traincast forecast vgg16,googlenet,resnet50 --on K80 --batch 1 --mode inference
    """
    from traincast.cli.forecast_job import run_of

    run = run_of(line)
    found = _found(run, line.typed)
    earlier = run.earlier()
    difference = None if earlier is None else _difference(earlier[1], found, earlier[0])
    from traincast.views.forecast import document_of

    broken = () if run.gates is None else _broken(run.gates, found)
    document = document_of(found, has_charts=line.has_charts)
    if earlier is not None and difference is not None:
        document = _compared(document, difference, earlier[0])
    line.show(document, lambda: _data(found, difference, broken))
    for sentence in broken:
        typer.echo(f"Over the limit: {sentence}", err=True)
    if broken:
        raise typer.Exit(_BROKEN_LIMIT)


def _compared(document: "Document", difference: "Difference", source: str) -> "Document":
    from dataclasses import replace

    from traincast.views.difference import difference_table

    return replace(document, tables=(difference_table(difference, source), *document.tables))


def _data(found: "tuple[Forecast, ...]", difference: "Difference | None", broken: tuple[str, ...]) -> dict[str, Any]:
    answers = [forecast.to_dict() for forecast in found]
    data: dict[str, Any] = answers[0] if len(answers) == 1 else {"forecasts": answers}
    if difference is not None:
        data["difference"] = difference.to_dict()
    return {**data, **_ways_out(found), "broken_limits": list(broken)}


def _ways_out(found: "tuple[Forecast, ...]") -> dict[str, Any]:
    """Of one answer that does not fit, as its table has them."""
    if len(found) > 1 or found[0].fits:
        return {}
    from traincast.planning.ways_out import needs_way_out, ways_out

    return {"ways_out": [way.to_dict() for way in ways_out(found[0])]} if needs_way_out(found[0]) else {}


def _difference(earlier: dict[str, Any], found: "tuple[Forecast, ...]", source: str) -> "Difference":
    from traincast.planning.difference import difference_of
    from traincast.report.json_ import plain

    return difference_of(earlier, plain(found[0].to_dict()), source=source)


def _broken(gates: "Gates", found: "tuple[Forecast, ...]") -> tuple[str, ...]:
    """Sentences about several choices name theirs."""
    sentences = []
    for own in found:
        prefix = f"{own.place}, batch {own.batch_size:,}: " if len(found) > 1 else ""
        sentences += [f"{prefix}{sentence}" for sentence in gates.broken(own)]
    return tuple(sentences)
