"""What `traincast plan` shows: what to rent, the front of time and cost, and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.document import Document
from traincast.report.table import Column, Row, Table
from traincast.units import show_bytes, show_duration, show_integer, show_usd

if TYPE_CHECKING:
    from traincast.planning.plan import Choice, Plan

_COLUMNS = (
    Column(key="rent", header="rent", show="name"),
    Column(key="devices", header="devices", show="name"),
    Column(key="batch", header="batch", show="integer"),
    Column(key="per_pass", header="passes", show="name"),
    Column(key="precision", header="precision", show="name"),
    Column(key="strategy", header="strategy", show="name"),
    Column(key="total_s", header="time", show="duration"),
    Column(key="total_p10_s", header="p10", show="duration"),
    Column(key="total_p90_s", header="p90", show="duration"),
    Column(key="cost_usd", header="cost", show="usd"),
    Column(key="cost_p90_usd", header="p90", show="usd"),
    Column(key="kept_fraction", header="kept", show="percent"),
    Column(key="price_date", header="price of", show="name"),
)
_MOST_POINTS = 400


def document_of(plan: Plan) -> Document:
    """One plan in full."""
    length = plan.length
    epochs = "1 epoch" if length.n_epochs == 1 else f"{length.n_epochs:,.4g} epochs"
    return Document(
        title=f"{plan.model}: {epochs} of {length.n_samples:,} samples",
        subtitle=f"{_limits(plan)}; {len(plan.candidates):,} candidates of {len(plan.space.offers)} offers compared",
        tables=(_recommended(plan), _front(plan)),
        charts=(_chart(plan),),
        notes=_notes(plan),
    )


def _limits(plan: Plan) -> str:
    limits = plan.limits
    parts = []
    if limits.deadline_s is not None:
        parts.append(f"within {show_duration(limits.deadline_s)}")
    if limits.budget_usd is not None:
        parts.append(f"for at most {show_usd(limits.budget_usd)}")
    if not parts:
        return "no deadline, no budget"
    return f"{' and '.join(parts)}, with a probability of at least {100 * limits.confidence:.0f} %"


def _recommended(plan: Plan) -> Table:
    named: list[tuple[str, Choice]] = []
    for name, choice in (("cheapest", plan.cheapest), ("fastest", plan.fastest), ("none: nearest is", plan.nearest)):
        if choice is not None:
            named.append((name, choice))
    title = "What to rent" if plan.cheapest is not None else "No plan keeps the limits"
    return Table(
        title=title,
        columns=(Column(key="what", header=""), *_COLUMNS),
        rows=tuple((name, *_row(choice)) for name, choice in named),
    )


def _front(plan: Plan) -> Table:
    return Table(
        title="The front: nothing is both faster and cheaper than these",
        columns=_COLUMNS,
        rows=tuple(_row(choice) for choice in plan.pareto),
    )


def _row(choice: Choice) -> Row:
    question = choice.question
    low_s, high_s = choice.interval("total_s")
    passes = f"{question.accumulation_steps} x {question.micro_batch_size:,}"
    return (
        f"{choice.place}{' (spot)' if choice.is_spot else ''}",
        f"{choice.n_devices} x {question.device.name}",
        question.batch_size,
        passes,
        question.settings.precision,
        choice.strategy,
        choice.total_s,
        low_s,
        high_s,
        choice.cost_usd,
        choice.interval("cost_usd")[1],
        choice.probability,
        choice.offer.price_date,
    )


def _notes(plan: Plan) -> tuple[str, ...]:
    terms, length = plan.terms, plan.length
    days = " to ".join(dict.fromkeys(plan.price_dates))
    told = [
        *_reasons(plan),
        f"Prices are of {days}, of whole machines in one region each; they change.",
        f"Time and cost are of the steps and a start of {show_duration(terms.setup_s)}; p10 and p90 are of the "
        "forecast. Passes are how often a device computes before an update, times the samples of one.",
    ]
    if plan.steps.n_too_large:
        told.append(f"{show_integer(plan.steps.n_too_large)} choices do not fit the devices' memory and are left out.")
    if terms.with_spot:
        rates = ", ".join(f"{name} {rate:g}" for name, rate in plan.interruptions_per_day.items())
        told.append(
            f"Spot: interruptions of one machine a day {rates} (assumed); a checkpoint of "
            f"{show_bytes(terms.checkpoint_bytes)} takes {show_duration(terms.checkpoint_s)}, a restart "
            f"{show_duration(terms.setup_s)}; saved at Daly's interval. Waiting for a machine is not counted."
        )
    if length.noise_scale is not None:
        told.append(
            f"Epochs are those at a batch of {length.at_batch:,}; others by a noise scale of {length.noise_scale:g}."
        )
    if not plan.space.precisions:
        told.append("Precisions other than that of the captured model may learn differently: --precision keeps to one.")
    return (*told, *plan.remarks, *(f"Warning: {warning}" for warning in (*plan.warnings, *_forecast_warnings(plan))))


def _reasons(plan: Plan) -> list[str]:
    """Why the recommended plan, and what its neighbours on the front would change."""
    choice = plan.recommended
    if choice is None:
        near = plan.nearest
        if near is None:
            return ["No candidate can finish."]
        return [f"None: the nearest is {near.place}, {show_duration(near.total_s)} for {show_usd(near.cost_usd)}."]
    forecast = choice.forecast
    need, usable = forecast.peak_memory_bytes, choice.question.device.usable_memory_bytes
    found = [
        f"{choice.place}: {forecast.samples_per_s:,.0f} samples/s, bound by {forecast.bound_by}, "
        f"{show_bytes(need)} of {show_bytes(usable)} a device."
    ]
    if choice.offer.n_cpus is not None:
        n_cpus = choice.n_nodes * choice.offer.n_cpus
        found.append(
            f"Its {n_cpus:,} CPUs have to load {forecast.samples_per_s / n_cpus:,.0f} samples a second each: "
            "--input-samples-per-s says what they can."
        )
    if choice.checkpoint_interval_s is not None:
        found.append(
            f"Save every {show_duration(choice.checkpoint_interval_s)}; {choice.n_interruptions:.2g} interruptions are "
            "to be expected."
        )
    faster = [one for one in plan.pareto if one.total_s < choice.total_s]
    cheaper = [one for one in plan.pareto if one.cost_usd < choice.cost_usd]
    for word, neighbours in (("faster", faster[-1:]), ("cheaper", cheaper[:1])):
        for one in neighbours:
            found.append(
                f"The next {word} is {one.place}{' (spot)' if one.is_spot else ''}: {show_duration(one.total_s)} for "
                f"{show_usd(one.cost_usd)}."
            )
    return found


def _forecast_warnings(plan: Plan) -> list[str]:
    shown = [choice for choice in (plan.cheapest, plan.fastest, plan.nearest) if choice is not None]
    found = {f"{choice.place}: {warning}": None for choice in shown for warning in choice.forecast.warnings}
    return list(found)


def _chart(plan: Plan) -> Chart:
    """The front as a line, other candidates around it, and the limits."""
    limits = plan.limits
    series = [_others(plan), _line("front", plan.pareto)]
    for name, choice in (("cheapest", plan.cheapest), ("fastest", plan.fastest), ("nearest", plan.nearest)):
        if choice is not None:
            series.append(_line(f"{name}: {choice.place}", [choice], is_dots=True))
    lines = []
    if limits.deadline_s is not None:
        lines.append(ReferenceLine(value=limits.deadline_s, label="deadline", axis="x"))
    if limits.budget_usd is not None:
        lines.append(ReferenceLine(value=limits.budget_usd, label="budget"))
    return Chart(
        title=f"Time and cost of {plan.model}",
        kind="line",
        series=tuple(series),
        x_label="time",
        y_label="cost",
        x_show="duration",
        y_show="usd",
        log_x=True,
        log_y=True,
        reference_lines=tuple(lines),
    )


def _line(name: str, choices: Sequence[Choice], *, is_dots: bool = False) -> Series:
    return Series(
        name=name,
        x=[choice.total_s for choice in choices],
        y=[choice.cost_usd for choice in choices],
        text=[f"{one.place}: {show_duration(one.total_s)}, {show_usd(one.cost_usd)}" for one in choices],
        is_dots=is_dots,
    )


def _others(plan: Plan) -> Series:
    """Of every offer and number of machines the cheapest choice; at most so many, evenly drawn."""
    found, steps = plan.candidates, plan.steps
    order = np.argsort(found.cost_usd, kind="stable")
    order = order[np.isfinite(found.total_s[order])]
    key = found.offer[order] * 1_000_003 + steps.place[found.row[order]] * 2 + found.is_spot[order]
    best = order[np.sort(np.unique(key, return_index=True)[1])]
    if len(best) > _MOST_POINTS:
        best = best[np.linspace(0, len(best) - 1, _MOST_POINTS).astype(int)]
    return Series(
        name="other plans",
        x=found.total_s[best].tolist(),
        y=found.cost_usd[best].tolist(),
        text=[_named(plan, int(number)) for number in best],
        is_dots=True,
    )


def _named(plan: Plan, number: int) -> str:
    found, steps = plan.candidates, plan.steps
    place = steps.places[steps.place[found.row[number]]]
    name = plan.space.offers[int(found.offer[number])].name
    rent = name if place.n_nodes == 1 else f"{place.n_nodes}x{name}"
    total, cost = show_duration(float(found.total_s[number])), show_usd(float(found.cost_usd[number]))
    return f"{rent}{' (spot)' if found.is_spot[number] else ''}: {total}, {cost}"
