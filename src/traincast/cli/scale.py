"""`traincast scale`: what do more GPUs bring?"""

from typing import TYPE_CHECKING, Any

from traincast.api.forecasts import scale as question
from traincast.api.measured_scaling import measured_scaling, optimus_scaling
from traincast.cli.command import CommandLine, command
from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.option import declared

if TYPE_CHECKING:
    from traincast.report.document import Document

_MAYBE = {"model": None, "on": None, "measured": None, "optimus": None}  # each question needs some of them


def _own(*, compare: o.CompareFile = None) -> None:
    """Options of the command alone."""


@command(question, measured_scaling, optimus_scaling, own=_own, defaults=_MAYBE, assumes=True)
def scale(line: CommandLine) -> None:
    """What do more GPUs bring: strong and weak scaling, communication, runtime, cost?

    Examples: traincast scale resnet50 --on V100-SXM2-16GB --gpus 1,2,4,8; traincast scale resnet50 --on 2x4xT4@50Gb/s
    --batch 256 --samples 1281167 --price 0.53 --compare runs.csv; traincast scale --measured epochs.csv --samples 50000
    --parameters 11173962; traincast scale --optimus paper-async --steps 100000 --servers 2,4
    """
    _refuse_unused(line)
    if line.options["optimus"] is not None:
        from traincast.views.optimus_speeds import document_of as told_times

        times = optimus_scaling(**line.options_of(optimus_scaling))
        line.show(told_times(times), times.to_dict())
    elif line.options["measured"] is not None:
        from traincast.views.measured_scaling import document_of as told_epochs

        epochs = measured_scaling(**line.options_of(measured_scaling))
        line.show(told_epochs(epochs), epochs.to_dict())
    else:
        line.show(*_forecast(line))


def _forecast(line: CommandLine) -> "tuple[Document, dict[str, Any]]":
    from traincast.forecasting.scale_compare import compare
    from traincast.views.scale import document_of

    options = line.options_of(question)
    for name, what in (("model", "a model"), ("on", "--on, such as --on V100-SXM2-16GB")):
        if options[name] is None:
            raise InputError(f"Scaling needs {what}; or measured epochs (--measured), or speeds (--optimus).")
    scaling = question(**options)
    is_weak = options["batch_size"] is None and options["batch_size_per_gpu"] is not None
    file = line.own["compare"]
    comparison = None if file is None else compare(scaling, file, is_weak=is_weak)
    data = scaling.to_dict() | {"measured": None if comparison is None else comparison.to_dict()}
    return document_of(scaling, comparison), data


def _refuse_unused(line: CommandLine) -> None:
    """One question at a time; and a flag that changes nothing was meant for something: say so."""
    others = {"--measured": measured_scaling, "--optimus": optimus_scaling}
    asked = [flag for flag in others if line.options[flag.removeprefix("--")] is not None]
    if len(asked) > 1:
        raise InputError("--measured and --optimus are two questions: ask one at a time.")
    used = {one.name for one in declared(others[asked[0]] if asked else question)}
    used |= set() if asked else {"compare"}
    for name in line.typed - used:
        if name in line.outputs:
            continue
        flag = f"The model '{line.options['model']}'" if name == "model" else line.flags[name]
        if asked:
            raise InputError(f"{flag} has no effect with {asked[0]}: leave it out.")
        home = next(flag for flag, other in others.items() if name in {one.name for one in declared(other)})
        raise InputError(f"{flag} belongs to {home}: leave it out, or ask that.")
