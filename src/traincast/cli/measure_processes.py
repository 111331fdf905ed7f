"""`traincast measure` with several processes: their step, and the link between them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.cli.measure_question import Outputs, Question
    from traincast.measurement.processes.link_result import AllReduceMeasurement
    from traincast.measurement.processes.result import ProcessesMeasurement


def is_several(n_processes: int | None, *, all_reduce: bool) -> bool:
    """Whether the question is about several processes: asked so, or asked inside the user's own torchrun."""
    return n_processes is not None or all_reduce or _is_under_torchrun()


def _is_under_torchrun() -> bool:
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()


def refuse(others: Mapping[str, bool]) -> None:
    """No flag is left out quietly: these are not of several processes; the value says whether one was given."""
    for flag, is_given in others.items():
        if is_given:
            raise InputError(f"{flag} is of one process and does not go with several: leave one of them out.")


def refuse_of_step(question: Question) -> None:
    """The link alone trains nothing: what says how to train is not left out quietly."""
    usual = type(question)()
    names = {"batch_size": "--batch", "optimizer": "--optimizer", "precision": "--precision", "n_steps": "--steps"}
    given = [flag for name, flag in names.items() if getattr(question, name) != getattr(usual, name)]
    given += [f"--{name.replace('_', '-')}" for name in question.options]
    if given:
        raise InputError(f"{given[0]} is of a step, and --all-reduce alone trains nothing: name a model too.")


def run_processes(question: Question, outputs: Outputs, *, n_processes: int | None, all_reduce: bool) -> None:
    """Steps of the model beside their forecast, the link between the processes, or both.

    Under torchrun all processes measure and the first one shows.
    """
    is_inside = _is_under_torchrun()
    _check(question, n_processes, all_reduce=all_reduce, is_inside=is_inside)
    is_shown = not is_inside or os.environ["RANK"] == "0"
    if is_shown:
        outputs.check()
    with outputs.measuring():
        link = _measured_link(question, n_processes) if all_reduce else None
        was_stopped = link is not None and link.is_partial
        steps = None
        if question.model is not None and not was_stopped:
            try:
                steps = _measured_steps(question, n_processes)
            except KeyboardInterrupt:
                if link is None:
                    raise
                was_stopped = True  # the link is known all the same
    if is_shown and steps is not None:
        _show_steps(steps, link, question, outputs)
    elif is_shown and link is not None:
        _show_link(link, question, outputs)
    outputs.end(was_stopped=was_stopped or (steps is not None and steps.is_partial))


def _measured_link(question: Question, n_processes: int | None) -> AllReduceMeasurement:
    from traincast.api.processes import measure_all_reduce
    from traincast.cli.progress import ProgressBar

    with ProgressBar("The link between the processes") as bar:
        return measure_all_reduce(n_processes=n_processes, device=question.device, on_progress=bar)


def _measured_steps(question: Question, n_processes: int | None) -> ProcessesMeasurement:
    from traincast.api.processes import measure_processes
    from traincast.cli.progress import ProgressBar

    model = question.need_model()
    with ProgressBar(f"Training {model} together") as bar:
        return measure_processes(
            model,
            question.need_batch_size(),
            n_processes=n_processes,
            n_steps=question.n_steps,
            options=question.options,
            on_progress=bar,
            **question.how,
        )


def _show_steps(
    steps: ProcessesMeasurement, link: AllReduceMeasurement | None, question: Question, outputs: Outputs
) -> None:
    from traincast.api.measuring import forecast_of
    from traincast.measurement.identity import PROCESSES
    from traincast.views.processes import steps_document, with_link

    with outputs.measuring():
        forecast, why_not = forecast_of(steps, question.need_model(), **question.options)
    values = steps.to_dict() if link is None else {**steps.to_dict(), "link": link.to_dict()}
    document = steps_document(steps, forecast, why_not)
    if link is not None:
        document = with_link(document, link)
    outputs.show(document, {**values, "forecast": None if forecast is None else forecast.to_dict()})
    outputs.keep(PROCESSES, values, steps.environment)


def _show_link(link: AllReduceMeasurement, question: Question, outputs: Outputs) -> None:
    from traincast.views.processes import link_document

    outputs.show(link_document(link), link.to_dict())
    asked = {"n_processes": link.n_processes, "device": question.device}
    outputs.keep("all-reduce", link.to_dict(), link.environment, asked)


def _check(question: Question, n_processes: int | None, *, all_reduce: bool, is_inside: bool) -> None:
    if question.model is None and not all_reduce:
        raise InputError("Nothing to measure: name a model, or ask for the link with --all-reduce.")
    if question.model is None:
        refuse_of_step(question)
    elif question.batch_size is None:
        raise InputError("A step has a batch: give the samples of all processes together with --batch.")
    if is_inside and n_processes is not None:
        raise InputError("torchrun has started the processes already: leave out --processes.")
    if not is_inside and n_processes is None:
        raise InputError("--all-reduce is between several processes: say how many with --processes, such as 2.")
