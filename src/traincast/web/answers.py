"""From a question to the bytes of its reply. Pure functions of question and model, so replies can be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError, TraincastError
from traincast.web.cards import cards_of
from traincast.web.places import device_of, place_of, place_to_scale
from traincast.web.presenting import Presenters, shown
from traincast.web.targets import NO_AIM, Aim

if TYPE_CHECKING:
    from traincast.convergence.logs.log import Log
    from traincast.convergence.watching import Status
    from traincast.forecasting.forecast import Forecast
    from traincast.trace.trace import Trace
    from traincast.web.questions import (
        ExplainQuestion,
        ForecastQuestion,
        LayersQuestion,
        MemoryQuestion,
        PlanQuestion,
        ScaleQuestion,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the names of a question stand for. `end` is where the log of its target will end, `aim` what that is of."""

    trace: Trace
    present: Presenters
    log: Log | None = None
    aim: Aim = NO_AIM
    end: Status | None = None


def answer_forecast(asked: ForecastQuestion, given: Given) -> bytes:
    from traincast.api.forecasts import forecasts

    def at(places: list[str]) -> tuple[Forecast, ...]:
        found = forecasts(
            given.trace,
            list(dict.fromkeys(place_of(on) for on in places)),
            [asked.batch_size],
            accumulation_steps=asked.accumulation_steps,
            strategy=asked.strategy,
            price_usd_per_hour=asked.price_usd_per_hour,
            **asked.length,
            **asked.settings,
        )
        return tuple(_with_target(one, given.end) for one in found)

    found, problems = _where_it_can_be(at, asked.on)
    return shown(
        given.present.forecast(found),
        {"forecasts": [one.to_dict() for one in found]},
        cards=cards_of(found),
        problems=problems,
        told=given.aim.told,
    )


def _where_it_can_be(
    at: Callable[[list[str]], tuple[Forecast, ...]], places: list[str]
) -> tuple[tuple[Forecast, ...], list[dict[str, str]]]:
    """Answers, and what is wrong with the other places. Raises where there is no answer at all."""
    try:
        return at(places), []
    except TraincastError:
        if len(places) == 1:
            raise
    good, problems = [], []
    for place in places:
        try:
            at([place])
        except TraincastError as error:
            problems.append({"on": place, "error": str(error)})
        else:
            good.append(place)
    if not good:
        raise InputError(" ".join(dict.fromkeys(one["error"] for one in problems)))
    return at(good), problems


def _with_target(found: Forecast, end: Status | None) -> Forecast:
    from traincast.forecasting.to_target import time_to_target

    return found if end is None else replace(found, to_target=time_to_target(found, end))


def answer_memory(asked: MemoryQuestion, given: Given) -> bytes:
    from traincast.api.models import estimate_memory
    from traincast.views.memory import document_of

    on = None if asked.on is None else device_of(asked.on)
    found = estimate_memory(given.trace, asked.batch_size, on=on, **asked.settings)
    return shown(document_of(found), found.to_dict())


def answer_layers(asked: LayersQuestion, given: Given) -> bytes:
    from traincast.api.models import layers
    from traincast.views.layers import document_of

    on = None if asked.on is None else device_of(asked.on)
    found = layers(given.trace, asked.batch_size, on=on, precision=asked.precision)
    return shown(document_of(found), found.to_dict())


def answer_explain(asked: ExplainQuestion, given: Given) -> bytes:
    from traincast.api.explaining import explain
    from traincast.views.explain import document_of

    gap = explain(given.trace, place_of(asked.on), asked.batch_size, **asked.settings)
    return shown(document_of(gap), gap.to_dict())


def answer_scale(asked: ScaleQuestion, given: Given) -> bytes:
    from traincast.api.forecasts import scale

    found = scale(
        given.trace,
        place_to_scale(asked.on),
        None if asked.n_devices is None else sorted(set(asked.n_devices)),
        batch_size=asked.batch_size,
        strategy=asked.strategy,
        price_usd_per_hour=asked.price_usd_per_hour,
        **asked.length,
        **asked.settings,
    )
    return shown(given.present.scale(found), found.to_dict())


def answer_plan(asked: PlanQuestion, given: Given) -> bytes:
    from traincast.api.planning import plan

    target, told = asked.target, given.aim.told
    if target is not None and given.aim.metric != "accuracy":
        target, told = None, (_not_to(asked, given.aim),)
    length: dict[str, Any] = {"n_epochs": asked.n_epochs}
    if target is not None:  # takes the place of the epochs, which a form has all the same
        accuracy = target.value if target.value <= 1 else target.value / 100
        length = {"curve": given.log, "target_accuracy": accuracy}
        if asked.n_epochs != 1:
            told = (*told, f"The target takes the place of the {asked.n_epochs:,} epochs.")
    found = plan(given.trace, **length, **asked.model_dump(exclude={"model", "target", "n_epochs"}))
    return shown(given.present.plan(found), found.to_dict(), told=told)


def _not_to(asked: PlanQuestion, aim: Aim) -> str:
    length = "1 epoch" if asked.n_epochs == 1 else f"{asked.n_epochs:,} epochs"
    return (
        f"Warning: plans are made for accuracies, and the target is of {aim.metric or 'a loss'}: this is for {length}."
    )


ANSWERS: dict[str, Callable[[Any, Given], bytes]] = {
    "forecast": answer_forecast,
    "memory": answer_memory,
    "layers": answer_layers,
    "explain": answer_explain,
    "scale": answer_scale,
    "plan": answer_plan,
}
