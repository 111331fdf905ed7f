"""What `traincast plan` shows: what to rent, the front of time and cost, and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.document import Document
from traincast.report.table import Column, Row, Table, columns_of
from traincast.units import show_bytes, show_duration, show_integer, show_usd
from traincast.views.verdicts import bound_words, fit_of

if TYPE_CHECKING:
    from traincast.planning.plan import Choice, Plan

_COLUMNS = columns_of(
    "rent as name, provider as name, devices as name, batch as integer, per_pass: passes as name, precision as name, "
    "strategy as name, total_s: time, total_p10_s: p10, total_p90_s: p90, cost_usd: cost, "
    "cost_p90_usd: p90, kept_fraction: limits kept, price_date: price date as name"
)
_MOST_POINTS = 400


def document_of(plan: Plan) -> Document:
    """Verdict, recommended plans, the front, and a chart of time and cost."""
    length = plan.length
    epochs = "1 epoch" if length.n_epochs == 1 else f"{length.n_epochs:,.4g} epochs"
    offers = _counted(len(plan.space.offers), "offer")
    return Document(
        title=f"{plan.model}: {epochs} of {length.n_samples:,} samples",
        subtitle=f"{_limits(plan)}; {len(plan.candidates):,} candidates of {offers} compared",
        verdict=_verdict(plan),
        tables=(_recommended(plan), _front(plan)),
        charts=(_chart(plan),),
        warnings=_warnings(plan),
        notes=_notes(plan),
        assumptions=_assumptions(plan),
    )


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


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
    for name, choice in (("cheapest", plan.cheapest), ("fastest", plan.fastest), ("nearest", plan.nearest)):
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
        title="Pareto front: no other plan is both faster and cheaper",
        columns=_COLUMNS,
        rows=tuple(_row(choice) for choice in plan.pareto),
    )


def _row(choice: Choice) -> Row:
    question = choice.question
    low_s, high_s = choice.interval("total_s")
    passes = f"{question.accumulation_steps} x {question.micro_batch_size:,}"
    return (
        _named_choice(choice),
        choice.offer.provider,
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


def _verdict(plan: Plan) -> str:
    """What to rent, what it takes and costs, how sure that is, and what bounds it."""
    choice = plan.recommended
    if choice is None:
        near = plan.nearest
        if near is None:
            return "No candidate can finish."
        keeps = f"keeps the limits with {_share(near.probability)}"
        return f"No plan keeps the limits. The nearest, {_named_choice(near)}, {keeps}: {_time_and_cost(near)}."
    forecast = choice.forecast
    limits = plan.limits
    has_limits = limits.deadline_s is not None or limits.budget_usd is not None
    keeps = f" Keeps the limits with {_share(choice.probability)}." if has_limits else ""
    bound = f"{forecast.samples_per_s:,.0f} samples/s, {bound_words(forecast)}"
    return f"Rent {_named_choice(choice)}: {_time_and_cost(choice)}.{keeps} {fit_of(forecast)} {bound}."


def _share(probability: float) -> str:
    return f"a probability of {100 * probability:.0f} %"


def _named_choice(choice: Choice) -> str:
    return f"{choice.place}{' (spot)' if choice.is_spot else ''}"


def _time_and_cost(choice: Choice) -> str:
    low_s, high_s = choice.interval("total_s")
    spread = f"p10-p90: {show_duration(low_s)} to {show_duration(high_s)}"
    return f"{show_duration(choice.total_s)} ({spread}) for {show_usd(choice.cost_usd)}"


def _warnings(plan: Plan) -> tuple[str, ...]:
    precision = (
        () if plan.space.precisions else ("Precisions other than that of the captured model may learn differently.",)
    )
    return (*precision, *plan.warnings, *_forecast_warnings(plan))


def _notes(plan: Plan) -> tuple[str, ...]:
    """What the recommended plan asks for, and what its neighbours on the front would change."""
    notes = [] if plan.recommended is None else _demands(plan.recommended) + _neighbours(plan, plan.recommended)
    if plan.steps.n_too_large:
        notes.append(
            f"{show_integer(plan.steps.n_too_large)} choices are left out: they do not fit the devices' memory."
        )
    notes += plan.remarks
    notes.append("Passes: how often a device computes before an update, times the samples per pass.")
    return tuple(notes)


def _demands(choice: Choice) -> list[str]:
    notes = []
    if choice.offer.n_cpus is not None:
        n_cpus = choice.n_nodes * choice.offer.n_cpus
        notes.append(
            f"Each of its {n_cpus:,} CPUs has to load {choice.forecast.samples_per_s / n_cpus:,.0f} samples per second."
        )
    if choice.checkpoint_interval_s is not None:
        notes.append(
            f"Save every {show_duration(choice.checkpoint_interval_s)}; expect {choice.n_interruptions:.2g} "
            "interruptions."
        )
    return notes


def _neighbours(plan: Plan, choice: Choice) -> list[str]:
    faster = [one for one in plan.pareto if one.total_s < choice.total_s]
    cheaper = [one for one in plan.pareto if one.cost_usd < choice.cost_usd]
    return [
        f"The next {word} is {_named_choice(one)}: {show_duration(one.total_s)} for {show_usd(one.cost_usd)}."
        for word, neighbours in (("faster", faster[-1:]), ("cheaper", cheaper[:1]))
        for one in neighbours
    ]


def _assumptions(plan: Plan) -> tuple[str, ...]:
    terms, length = plan.terms, plan.length
    days = " to ".join(dict.fromkeys(plan.price_dates))
    found = [
        f"Prices are from {days}, for whole machines in one region each; they change.",
        f"Time and cost cover the steps and a start of {show_duration(terms.setup_s)}; p10 and p90 are those of the "
        "forecast.",
    ]
    if terms.with_spot:
        rates = ", ".join(f"{name} {rate:g}" for name, rate in plan.interruptions_per_day.items())
        found.append(
            f"Spot: interruptions per machine and day {rates}; a checkpoint of {show_bytes(terms.checkpoint_bytes)} "
            f"takes {show_duration(terms.checkpoint_s)}, a restart {show_duration(terms.setup_s)}; checkpoints are "
            "saved at Daly's interval. Waiting for a machine is not counted."
        )
    if length.noise_scale is not None:
        found.append(
            f"The number of epochs is for a batch of {length.at_batch:,}; other batches follow a noise scale of "
            f"{length.noise_scale:g}."
        )
    return tuple(found)


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
    """The cheapest choice per offer and number of machines; at most 400, evenly spread."""
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
