"""`traincast measure` in one process: a step with its forecast beside it, or an epoch over a data loader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traincast.errors import InputError, MeasurementError

if TYPE_CHECKING:
    from traincast.cli.measure_question import Outputs, Question
    from traincast.measurement.epoch import EpochMeasurement
    from traincast.measurement.measured import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFlags:
    """The flags that only one process has."""

    compiled: bool = False
    default_malloc: bool = False
    repeat: int = 1
    epoch_samples: int | None = None
    workers: int | None = None
    data: str | None = None

    def given(self) -> dict[str, bool]:
        """Which of them were, so that others can refuse them."""
        return {
            "--compiled": self.compiled,
            "--default-malloc": self.default_malloc,
            "--repeat": self.repeat != 1,
            "--epoch-samples": self.epoch_samples is not None,
            "--workers": self.workers is not None,
        }

    def check(self, n_steps: int | None) -> None:
        """No option is left out quietly."""
        if self.epoch_samples is None:
            if self.workers is not None:
                raise InputError("--workers are those of a data loader: give --epoch-samples too.")
            return
        not_for_epochs = {
            "--steps": n_steps is not None,
            "--compiled": self.compiled,
            "--default-malloc": self.default_malloc,
            "--repeat": self.repeat != 1,
        }
        for flag, is_given in not_for_epochs.items():
            if is_given:
                raise InputError(
                    f"{flag} is of a single step and does not go with --epoch-samples: leave one of them out."
                )


def run_step(question: Question, flags: StepFlags, outputs: Outputs) -> None:
    """Measures, shows and keeps; Ctrl-C shows what there is."""
    from traincast.api.measuring import forecast_of
    from traincast.measurement.identity import EPOCH, STEP
    from traincast.views.measure import epoch_document, step_document

    model = question.need_model()
    question.need_batch_size()
    flags.check(question.n_steps)
    outputs.check()
    measured: Measurement | EpochMeasurement
    with outputs.measuring():
        if flags.epoch_samples is not None:
            kind, measured = EPOCH, _epoch(question, flags)
            forecast, why_not = forecast_of(measured, model, **question.options)
            document = epoch_document(measured, forecast, why_not)
        else:
            kind, measured = STEP, _step(question, flags)
            forecast, why_not = forecast_of(measured, model, **question.options)
            document = step_document(measured, forecast, why_not)
    data = {**measured.to_dict(), "forecast": None if forecast is None else forecast.to_dict()}
    outputs.show(document, data)
    outputs.keep(kind, measured.to_dict(), measured.environment)
    outputs.end(was_stopped=measured.is_partial)


def _step(question: Question, flags: StepFlags) -> Measurement:
    from traincast.api.measuring import measure_named
    from traincast.cli.progress import ProgressBar
    from traincast.measurement.fresh_processes import measure_repeatedly

    model = question.need_model()
    with ProgressBar(f"Measuring {model}") as bar:
        try:
            if flags.repeat == 1:
                return measure_named(
                    model,
                    question.options,
                    batch_size=question.need_batch_size(),
                    n_steps=question.n_steps,
                    compiled=flags.compiled,
                    keeps_memory=not flags.default_malloc,
                    on_progress=bar,
                    **question.how,
                )
            return measure_repeatedly([model, *_command_line(question, flags)], flags.repeat, on_progress=bar)
        except MeasurementError as error:
            raise _with_partial(error) from error


def _epoch(question: Question, flags: StepFlags) -> EpochMeasurement:
    from traincast.api.measuring import measure_named_epoch
    from traincast.cli.progress import ProgressBar

    model = question.need_model()
    with ProgressBar(f"An epoch of {model}") as bar:
        try:
            return measure_named_epoch(
                model,
                batch_size=question.need_batch_size(),
                n_samples=flags.epoch_samples or 0,
                n_workers=flags.workers or 0,
                data=flags.data,
                on_progress=bar,
                **question.how,
                **question.options,
            )
        except MeasurementError as error:
            raise _with_partial(error) from error


def _command_line(question: Question, flags: StepFlags) -> list[str]:
    """The same question as a command line of its own."""
    words = ["--compiled"] if flags.compiled else []
    words += ["--default-malloc"] if flags.default_malloc else []
    asked = {"batch": question.batch_size, "steps": question.n_steps, **question.how, **question.options}
    for name, value in asked.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def _with_partial(error: MeasurementError) -> MeasurementError:
    """What was measured before it failed, in the same line."""
    from traincast.units import show_duration

    summary = getattr(error.partial, "step", None) or getattr(error.partial, "batch", None)
    if summary is None:
        return error
    took = show_duration(summary.median)
    before = f"The step before it took {took}." if summary.n == 1 else f"The {summary.n} before it took {took} each."
    return type(error)(f"{error} {before}", partial=error.partial)
