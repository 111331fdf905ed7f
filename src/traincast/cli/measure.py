"""`traincast measure`: what does a step really take on this machine?"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from traincast.api.measuring_together import is_first_process, is_under_torchrun, measure_together
from traincast.api.model_measuring import measure_model, measure_model_epoch
from traincast.api.model_sweep import sweep_model
from traincast.cli.command import CommandLine, command
from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.option import declared

if TYPE_CHECKING:
    from traincast.report.document import Document

_INTERRUPTED = 130
# The questions, and how to ask each of them.
_HOW_TO_ASK: Mapping[Callable[..., Any], str] = {
    measure_together: "--processes",
    sweep_model: "--sweep",
    measure_model_epoch: "--epoch-samples",
    measure_model: "a single step",
}
_TASK = ("model", "batch_size", *o.HowToRun.__annotations__)  # of a sweep, as a store knows it
_NOT_ASKED = {"model": None, "batch_size": None, "n_samples": None, "what": None}


def _own(*, store: o.StoreFile = None) -> None:
    """Options of the command alone."""


@command(measure_model, measure_model_epoch, measure_together, sweep_model, own=_own, defaults=_NOT_ASKED)
def measure(line: CommandLine) -> None:
    """What does a step really take on this machine, and what did we forecast?

    Examples: traincast measure cifar_resnet20 --batch 64 --optimizer adam; traincast measure mnist_cnn --batch 32
    --repeat 3 --store runs.db; traincast measure mnist_cnn --batch 32 --epoch-samples 2000 --workers 2;
    traincast measure cifar_resnet20 --sweep batch; traincast measure mnist_cnn --batch 32 --sweep optimizers --epochs
    5; traincast measure cifar_resnet20 --batch 64 --processes 2; traincast measure --processes 2 --all-reduce
    """
    question = _question(line.options)
    _refuse_unused(line, question)
    _need(line.options, question)
    if line.own["store"] is not None and is_first_process():
        from traincast.api.kept import check_store

        check_store(line.own["store"])
    if question is sweep_model:
        _sweep(line)
    elif question is measure_together:
        _together(line)
    else:
        _alone(line, question)


def _question(asked: Mapping[str, Any]) -> Callable[..., Any]:
    if asked["n_processes"] is not None or asked["all_reduce"] or is_under_torchrun():
        return measure_together
    if asked["what"] is not None:
        return sweep_model
    return measure_model if asked["n_samples"] is None else measure_model_epoch


def _refuse_unused(line: CommandLine, question: Callable[..., Any]) -> None:
    """No option is left out quietly: it was meant for something."""
    used = {one.name for one in declared(question)} | {"store"} | line.outputs
    for name in sorted(line.typed - used):
        homes = [how for other, how in _HOW_TO_ASK.items() if name in {one.name for one in declared(other)}]
        raise InputError(
            f"{line.flags[name]} does not go with {_HOW_TO_ASK[question]}: it is for {' or '.join(homes)}."
        )


def _need(asked: Mapping[str, Any], question: Callable[..., Any]) -> None:
    if question is measure_together:  # the link needs neither
        return
    if asked["model"] is None:
        raise InputError("The model is missing: name one, such as mnist_cnn or file.py:factory.")
    if asked["batch_size"] is None and question is not sweep_model:
        raise InputError("The batch is missing: give --batch, the samples of one step.")


def _alone(line: CommandLine, question: Callable[..., Any]) -> None:
    from traincast.views.measure import document_of

    asked = line.options_of(question)
    told = f"Measuring {asked['model']}" if question is measure_model else f"An epoch of {asked['model']}"
    with _measuring(line, told) as bar:
        answer = question(**asked, on_progress=bar)
    _end(line, document_of(answer), answer, asked={})


def _together(line: CommandLine) -> None:
    """Under torchrun all processes measure and the first one shows."""
    from traincast.views.processes import document_of

    asked = line.options_of(measure_together)
    told = "The link between the processes" if asked["model"] is None else f"Training {asked['model']} together"
    with _measuring(line, told) as bar:
        answer = measure_together(**asked, on_progress=bar)
    own = {"n_processes": answer.link.n_processes, "device": asked["device"]} if answer.link else {}
    if is_first_process():
        _end(line, document_of(answer), answer, asked=own if answer.steps is None else {})
    elif answer.was_stopped:
        raise typer.Exit(_INTERRUPTED)


def _sweep(line: CommandLine) -> None:
    from traincast.cli.sweep_rows import SweepRows
    from traincast.views.sweep import document_of

    asked = line.options_of(sweep_model)
    given = {name: asked[name] for name in o.ModelOptions.__annotations__ if asked[name] is not None}
    task = {"sweep": asked["what"], **{name: asked[name] for name in _TASK}, **given}
    rows = SweepRows(task, line.own["store"])
    with _measuring(line, f"{asked['what'].capitalize()} of {asked['model']}") as bar:
        answer = sweep_model(**asked, on_row=rows.add, on_progress=bar)
    line.show(document_of(answer), answer.to_dict)
    rows.end()
    if answer.was_stopped:
        raise typer.Exit(_INTERRUPTED)


@contextlib.contextmanager
def _measuring(line: CommandLine, told: str) -> Iterator[Callable[[int, int], None]]:
    """Where JSON is the answer, what the user's own code prints meanwhile goes to stderr."""
    from traincast.cli.progress import ProgressBar

    with contextlib.redirect_stdout(sys.stderr) if line.as_json else contextlib.nullcontext(), ProgressBar(told) as bar:
        yield bar


def _end(line: CommandLine, document: Document, answer: Any, *, asked: Mapping[str, Any]) -> None:
    """Shown first: what cannot be kept is known all the same. Where Ctrl-C ended it, the exit code says so."""
    line.show(document, answer.to_dict)
    if line.own["store"] is not None:
        from traincast.api.kept import keep

        keep(line.own["store"], answer, asked)
        typer.echo(f"Kept in {line.own['store']}", err=True)
    if answer.was_stopped:
        raise typer.Exit(_INTERRUPTED)
