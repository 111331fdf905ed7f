"""What a forecast takes for granted, in sentences that a reader can disagree with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.forecasting.energy import POWER_LOG_SD, WAITING_FRACTION, WORKING_FRACTION
from traincast.forecasting.question import Question
from traincast.kernels.coefficients import NEW_GENERATION, SAME_GENERATION, SAME_GPU
from traincast.kernels.domain import situation_of
from traincast.lognormal import p90_factor
from traincast.units import show_bytes_per_s, show_usd

if TYPE_CHECKING:
    from traincast.forecasting.energy import Energy
    from traincast.forecasting.forecast import Forecast


def assumptions_of(forecast: Forecast) -> tuple[str, ...]:
    """In the order of the numbers that rest on them."""
    question, energy, to_target = forecast.question, forecast.energy, forecast.to_target
    found = list(step_assumptions_of(question))
    if question.n_devices > 1:
        found.append(_links(forecast))
    if question.n_samples is not None:
        found.append("A run is its steps: no start, no evaluation, no checkpoints; a last batch counts as a full one.")
    if question.run_price_usd_per_hour is not None:
        found.append(_price(forecast))
    found.append(
        "Memory is what tensors take, and an allowance for context, workspaces and allocator (traincast memory)."
    )
    found.append(_power(forecast, energy))
    if energy is not None and question.n_samples is not None:
        found.append(_grid(energy))
    if to_target is not None:
        until = "by the end of that run" if to_target.has_end else "without an end"
        found.append(
            f"The way to {to_target.target:g} is that of '{to_target.log}': {to_target.assumption}, with the same "
            f"data, model and settings; its chance is {until}."
        )
    return tuple(found)


def step_assumptions_of(question: Question) -> tuple[str, ...]:
    """What the time of a step rests on, on one device or many."""
    captured = [f"{assumption}." for assumption in question.trace.assumptions]
    return (*captured, _spread(question), _host(question), _loader(question))


def _spread(question: Question) -> str:
    if question.device.prices:
        return "p10 to p90 hold the errors of the calibration; this machine is the one that was measured."
    if question.method.name != "traincast" or question.device.kind != "gpu":
        return "p10 to p90 cover the errors of the method and the spread between machines of one type."
    return f"p10 to p90 cover {_NEARNESS[situation_of(question.device)]} and the spread between machines of one type."


_NEARNESS = {
    SAME_GPU: "the errors on other models that were measured on this GPU",
    SAME_GENERATION: "the errors on GPUs that were not measured themselves but others of their generation were",
    NEW_GENERATION: "the errors on GPUs of generations that were not measured",
}


def _host(question: Question) -> str:
    if question.device.prices:
        return "Dispatch takes what it took when this machine was calibrated."
    return f"Ops are dispatched at the pace of '{question.host.name}', one after the other, and steps do not overlap."


def _loader(question: Question) -> str:
    rate = question.input_samples_per_s
    if rate is None:
        return "The data loader keeps up with the step."
    return f"The data loader delivers {rate:,.0f} samples a second, always."


def _links(forecast: Forecast) -> str:
    cluster = forecast.question.cluster
    assert cluster is not None  # several devices are always one
    links = [("inside a node", cluster.inside)]
    if cluster.n_nodes > 1 and cluster.between is not None:
        links.append(("between nodes", cluster.between))
    told = [f"{where} {link.name} sustains {show_bytes_per_s(link.sustained_bytes_per_s)}" for where, link in links]
    return f"Links have their usual share of the nominal rate and nobody else's traffic: {', '.join(told)}."


def _price(forecast: Forecast) -> str:
    question, cluster = forecast.question, forecast.question.cluster
    price = show_usd(question.run_price_usd_per_hour or 0.0)
    if question.price_usd_per_hour is not None or cluster is None:
        return f"An hour of all devices costs {price}, as given."
    told = [part for part in (cluster.region, cluster.price_date) if part]
    return f"An hour of all machines costs {price}, on demand ({', '.join(told) or 'date not known'}); prices change."


def _power(forecast: Forecast, energy: Energy | None) -> str:
    device = forecast.question.device
    if energy is None:
        return f"No energy is told: the power limit of {device.name} is not in the table."
    more = "nothing for hosts, network and cooling" if energy.pue == 1 else f"{energy.pue:g} times that for the site"
    low, high = (round(100 * (p90_factor(log_sd) - 1)) for log_sd in (-POWER_LOG_SD, POWER_LOG_SD))
    return (
        f"A device draws {100 * WORKING_FRACTION:.0f} % of its {device.tdp_w:,.0f} W while it works and "
        f"{100 * WAITING_FRACTION:.0f} % while it waits ({low} to +{high} % at p10 and p90), {more}."
    )


def _grid(energy: Energy) -> str:
    grid = energy.grid
    if grid is None:
        return "No CO2 is told: name a region, or what its grid emits."
    told = f" ({grid.location}, {grid.year}, {grid.source})" if grid.source else ""
    return f"The grid of {grid.name}{told} emits {grid.g_per_kwh:g} g of CO2 a kWh, the same at all hours."
