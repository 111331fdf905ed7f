"""`traincast measure` with several processes: their step, and the link between them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.cli.measure_question import Outputs, Question


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


def run_processes(question: Question, outputs: Outputs, *, n_processes: int | None, all_reduce: bool) -> None:
    """Steps of the model, the link, or with both a forecast of the steps from the link; then shows them.

    Under torchrun all processes measure and the first one shows.
    """
    from traincast.api.processes import measure_all_reduce, measure_processes
    from traincast.cli.measure_processes_document import link_document, steps_document

    is_inside = _is_under_torchrun()
    model, batch_size = question.model, question.batch_size
    _check(model, n_processes, batch_size, all_reduce=all_reduce, is_inside=is_inside)
    link = measure_all_reduce(n_processes=n_processes, device=question.device) if all_reduce else None
    steps = None
    if model is not None and batch_size is not None:
        steps = measure_processes(
            model,
            batch_size,
            n_processes=n_processes,
            n_steps=question.n_steps,
            options=question.options,
            **question.how,
        )
    if is_inside and os.environ["RANK"] != "0":
        return
    data: dict[str, Any]
    task: dict[str, Any]
    if steps is None:
        assert link is not None  # one of the two was asked for
        document, data = link_document(link), link.to_dict()
        task, environment = {"n_processes": link.n_processes, "device": question.device}, link.environment
    else:
        document, data = steps_document(steps, link), steps.to_dict()
        if link is not None:
            data["link"] = link.to_dict()
        task = {"model": model, "batch_size": batch_size, "n_processes": steps.n_processes}
        task |= {**question.how, **question.options}
        environment = steps.environment
    outputs.keep("all-reduce" if steps is None else "processes", task, data, environment)
    outputs.show(document, data)


def _check(
    model: str | None, n_processes: int | None, batch_size: int | None, *, all_reduce: bool, is_inside: bool
) -> None:
    if model is None and not all_reduce:
        raise InputError("Nothing to measure: name a model, or ask for the link with --all-reduce.")
    if model is not None and batch_size is None:
        raise InputError("A step has a batch: give the samples of all processes together with --batch.")
    if is_inside and n_processes is not None:
        raise InputError("torchrun has started the processes already: leave out --processes.")
    if not is_inside and n_processes is None:
        raise InputError("--all-reduce is between several processes: say how many with --processes, such as 2.")
