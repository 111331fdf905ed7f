"""From a question to the bytes of its reply. Pure functions of question and model, so replies can be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from traincast.web.cards import cards_of
from traincast.web.places import device_of, place_of, place_to_scale
from traincast.web.presenting import Presenters, shown

if TYPE_CHECKING:
    from traincast.trace.trace import Trace
    from traincast.web.questions import (
        ExplainQuestion,
        ForecastQuestion,
        LayersQuestion,
        MemoryQuestion,
        PlanQuestion,
        ScaleQuestion,
    )


def answer_forecast(asked: ForecastQuestion, trace: Trace, present: Presenters) -> bytes:
    from traincast.api.answering import answers

    found = answers(
        trace,
        list(dict.fromkeys(place_of(on) for on in asked.on)),
        [asked.batch_size],
        accumulation_steps=asked.accumulation_steps,
        strategy=asked.strategy,
        price_usd_per_hour=asked.price_usd_per_hour,
        **asked.length,
        **asked.settings,
    )
    return shown(present.forecast(found), {"forecasts": [one.to_dict() for one in found]}, cards_of(found))


def answer_memory(asked: MemoryQuestion, trace: Trace, present: Presenters) -> bytes:
    from traincast.api.models import estimate_memory

    on = None if asked.on is None else device_of(asked.on)
    found = estimate_memory(trace, asked.batch_size, on=on, **asked.settings)
    return shown(present.memory(found, trace.assumptions), found.to_dict())


def answer_layers(asked: LayersQuestion, trace: Trace, present: Presenters) -> bytes:
    from traincast.hardware.catalog import find_device

    device = None if asked.on is None else find_device(device_of(asked.on))
    precision = trace.defaults.override(asked.precision, asked.optimizer).precision
    rows, peak = trace.layers(asked.batch_size), device.peak_flop_per_s(precision) if device else None
    document = present.layers(trace, asked.batch_size, rows, shape="module", device=device, precision=precision)
    return shown(document, present.layers_data(trace, asked.batch_size, rows, peak, device))


def answer_explain(asked: ExplainQuestion, trace: Trace, present: Presenters) -> bytes:
    from traincast.api.explaining import advise, explain

    gap = explain(trace, place_of(asked.on), asked.batch_size, **asked.settings)
    advice = advise(gap.forecast)
    return shown(present.explain(gap, advice), present.explain_data(gap, advice))


def answer_scale(asked: ScaleQuestion, trace: Trace, present: Presenters) -> bytes:
    from traincast.api.forecasts import scale

    found = scale(
        trace,
        place_to_scale(asked.on),
        None if asked.n_devices is None else sorted(set(asked.n_devices)),
        batch_size=asked.batch_size,
        strategy=asked.strategy,
        price_usd_per_hour=asked.price_usd_per_hour,
        **asked.length,
        **asked.settings,
    )
    return shown(present.scale(found), found.to_dict())


def answer_plan(asked: PlanQuestion, trace: Trace, present: Presenters) -> bytes:
    from traincast.api.planning import plan

    found = plan(trace, **asked.model_dump(exclude={"model"}))
    return shown(present.plan(found), found.to_dict())


ANSWERS: dict[str, Callable[[Any, Trace, Presenters], bytes]] = {
    "forecast": answer_forecast,
    "memory": answer_memory,
    "layers": answer_layers,
    "explain": answer_explain,
    "scale": answer_scale,
    "plan": answer_plan,
}
