"""From a question to the bytes of its reply. Pure functions of question and model, so replies can be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError, TraincastError
from traincast.web.cards import cards_of
from traincast.web.places import device_of, place_of, place_to_scale
from traincast.web.presenting import shown
from traincast.web.targets import NO_AIM, Aim

if TYPE_CHECKING:
    from traincast.curves.status.status import Status
    from traincast.forecasting.forecast import Forecast
    from traincast.logs.log import Log
    from traincast.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the names of a question stand for. `end` is where the log of its target will end, `aim` what that is of."""

    trace: Trace
    log: Log | None = None
    aim: Aim = NO_AIM
    end: Status | None = None


def answer_forecast(asked: Any, given: Given) -> bytes:
    from traincast.api.forecasts import forecasts
    from traincast.views.forecast import document_of

    options = asked.options

    def at(places: list[str]) -> tuple[Forecast, ...]:
        found = forecasts(
            given.trace,
            list(dict.fromkeys(place_of(on) for on in places)),
            [options["batch_size"]],
            **{name: value for name, value in options.items() if name != "batch_size"},
        )
        return tuple(_with_target(one, given.end) for one in found)

    found, problems = _where_it_can_be(at, asked.on)
    return shown(
        document_of(found),
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


def answer_memory(asked: Any, given: Given) -> bytes:
    from traincast.api.models import estimate_memory
    from traincast.views.memory import document_of

    on = None if asked.on is None else device_of(asked.on)
    found = estimate_memory(given.trace, on=on, **asked.options)
    return shown(document_of(found), found.to_dict(), told=_of_one(asked))


def _of_one(asked: Any) -> tuple[str, ...]:
    """Several devices share what is reckoned here for one: the forecast may fit where this does not."""
    from traincast.hardware.run_place import find_place

    cluster = None if asked.on is None else find_place(place_of(asked.on)).cluster
    if cluster is None or cluster.n_devices == 1:
        return ()
    return (
        f"Warning: this is one {cluster.device.name} alone with the whole batch of {asked.batch_size:,}. The forecast "
        f"has the memory of each of the {cluster.n_devices:,} devices, which share the batch and what the strategy "
        "shards.",
    )


def answer_layers(asked: Any, given: Given) -> bytes:
    from traincast.api.models import layers
    from traincast.views.layers import document_of

    on = None if asked.on is None else device_of(asked.on)
    options = {name: value for name, value in asked.options.items() if name != "optimizer"}
    found = layers(given.trace, on=on, **options)
    return shown(document_of(found), found.to_dict())


def answer_explain(asked: Any, given: Given) -> bytes:
    from traincast.api.explaining import explain
    from traincast.views.explain import document_of

    gap = explain(given.trace, place_of(asked.on), **asked.options)
    return shown(document_of(gap), gap.to_dict())


def answer_scale(asked: Any, given: Given) -> bytes:
    from traincast.api.forecasts import scale
    from traincast.views.scale import document_of

    options = asked.options
    counts = options.pop("n_devices")
    place = place_to_scale(asked.on)
    counts = _counts_with_samples(place, options) if counts is None else sorted(set(counts))
    found = scale(given.trace, place, counts, **options)
    return shown(document_of(found), found.to_dict())


def _counts_with_samples(place: str, options: dict[str, Any]) -> list[int] | None:
    """No more devices than the batch has samples; None where it has enough for all."""
    from traincast.forecasting.scale_places import find_places

    counts = find_places(place).counts
    fed = [n for n in counts if n * options["accumulation_steps"] <= options["batch_size"]]
    return None if len(fed) == len(counts) else fed or None


def answer_plan(asked: Any, given: Given) -> bytes:
    from traincast.api.planning import plan
    from traincast.views.plan import document_of

    target, told = asked.target, given.aim.told
    if target is not None and given.aim.metric != "accuracy":
        target, told = None, (_not_to(asked, given.aim),)
    options = asked.options
    if target is not None:  # takes the place of the epochs, which a form has all the same
        accuracy = target.value if target.value <= 1 else target.value / 100
        n_epochs = options.pop("n_epochs")
        options |= {"curve": given.log, "target_accuracy": accuracy}
        if n_epochs != 1:
            told = (*told, f"The target replaces the {n_epochs:,} epochs.")
    found = plan(given.trace, **options)
    return shown(document_of(found), found.to_dict(), told=told)


def _not_to(asked: Any, aim: Aim) -> str:
    length = "1 epoch" if asked.n_epochs == 1 else f"{asked.n_epochs:,} epochs"
    return (
        f"Warning: plans are made for accuracies, and the target is of {aim.metric or 'a loss'}: this plan is "
        f"for {length}."
    )


ANSWERS: dict[str, Callable[[Any, Given], bytes]] = {
    "forecast": answer_forecast,
    "memory": answer_memory,
    "layers": answer_layers,
    "explain": answer_explain,
    "scale": answer_scale,
    "plan": answer_plan,
}
