"""What a forecast takes for granted, in sentences that a reader can disagree with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.forecasting.energy import POWER_LOG_SD, WAITING_FRACTION, WORKING_FRACTION
from traincast.forecasting.question import Question
from traincast.kernels.coefficients import NEW_GENERATION, SAME_GENERATION, SAME_GPU
from traincast.kernels.domain import situation_of
from traincast.lognormal import p90_factor
from traincast.trace.settings import HALF_WEIGHTS
from traincast.units import TERA, show_bytes_per_s, show_usd

if TYPE_CHECKING:
    from traincast.forecasting.energy import Energy
    from traincast.forecasting.forecast import Forecast


def assumptions_of(forecast: Forecast) -> tuple[str, ...]:
    """In the order of the numbers that rest on them."""
    question, energy, to_target = forecast.question, forecast.energy, forecast.to_target
    found = list(step_assumptions_of(question))
    if question.tokens_per_batch is not None:
        found.append(_mfu(question))
    if question.n_devices > 1 and not question.is_inference:
        found.append(_links(forecast))
    if question.n_samples is not None:
        found.append(
            "The run is steps only, without startup, evaluation or checkpoints; a partial last batch counts as full."
        )
    if question.run_price_usd_per_hour is not None:
        found.append(_price(forecast))
    found.append("Memory is that of the tensors plus an allowance for context, workspaces and allocator.")
    found.append(_power(forecast, energy))
    if energy is not None and question.n_samples is not None:
        found.append(_grid(energy))
    if to_target is not None:
        until = "that of reaching it by the end of that run" if to_target.has_end else "for a run without an end"
        found.append(
            f"Progress to {to_target.target:g} follows '{to_target.log}': {to_target.assumption}, with the same "
            f"data, model and settings; its probability is {until}."
        )
    return tuple(found)


def step_assumptions_of(question: Question) -> tuple[str, ...]:
    """What the time of a step rests on, on one device or many."""
    captured = [f"{assumption}." for assumption in question.trained_trace.assumptions]
    if question.settings.precision in HALF_WEIGHTS and question.settings.master_weights is None:
        captured.append(_masters(question))
    return (*captured, _spread(question), _host(question), _loader(question))


def _masters(question: Question) -> str:
    """Which of two usual ways was taken, as nobody said."""
    if question.run_settings.keeps_masters:
        of = question.strategy.name if question.strategy.kind == "sharded" else question.settings.stack
        return f"Weights of 16 bits have fp32 masters, gradients and states behind them, as is usual with {of}."
    return "Weights, gradients and the optimizer's state are bf16 alone, without fp32 masters, as in plain PyTorch."


def _spread(question: Question) -> str:
    if question.device.prices:
        return "p10-p90 covers the errors of the calibration; this machine is the one that was measured."
    if question.method.name != "traincast" or question.device.kind != "gpu":
        return "p10-p90 covers model error and variation between machines of the same type."
    return (
        f"p10-p90 covers {_NEARNESS[situation_of(question.device)]}, and variation between machines of the same type."
    )


_NEARNESS = {
    SAME_GPU: "model error as measured on this GPU with other models",
    SAME_GENERATION: "model error on unmeasured GPUs of a measured generation",
    NEW_GENERATION: "model error on GPUs of unmeasured generations",
}


def _host(question: Question) -> str:
    if question.device.prices:
        return "Dispatch takes as long as when this machine was calibrated."
    return f"Ops are dispatched one at a time at the pace of host '{question.host.name}', and steps do not overlap."


def _loader(question: Question) -> str:
    rate = question.input_samples_per_s
    if rate is None:
        return "The data loader keeps up with the step."
    return f"The data loader delivers {rate:,.0f} samples per second throughout."


def _mfu(question: Question) -> str:
    """Its convention, without which the figure cannot be compared."""
    peak = question.device.peak_flop_per_s(question.settings.precision)
    return (
        "MFU is the model's flop (attention in full, causal or not; recomputation not counted) over "
        f"{peak / TERA:,.0f} TFLOP/s a device, the peak in {question.settings.precision}."
    )


def _links(forecast: Forecast) -> str:
    cluster = forecast.question.cluster
    assert cluster is not None  # several devices are always one
    links = [("inside a node", cluster.inside)]
    if cluster.n_nodes > 1 and cluster.between is not None:
        links.append(("between nodes", cluster.between))
    told = [f"{where} {link.name} sustains {show_bytes_per_s(link.sustained_bytes_per_s)}" for where, link in links]
    return f"Links sustain their typical fraction of nominal bandwidth, with no competing traffic: {', '.join(told)}."


def _price(forecast: Forecast) -> str:
    question, cluster = forecast.question, forecast.question.cluster
    price = show_usd(question.run_price_usd_per_hour or 0.0)
    if question.price_usd_per_hour is not None or cluster is None:
        return f"Price: {price} per hour for all devices, as given."
    told = [part for part in (cluster.region, cluster.price_date) if part]
    return f"Price: {price} per hour for all machines, on demand ({', '.join(told) or 'date unknown'}); prices change."


def _power(forecast: Forecast, energy: Energy | None) -> str:
    device = forecast.question.device
    if energy is None:
        return f"No energy estimate: the power limit of {device.name} is unknown."
    more = "not counting hosts, network and cooling" if energy.pue == 1 else f"times {energy.pue:g} for the whole site"
    low, high = (round(100 * (p90_factor(log_sd) - 1)) for log_sd in (-POWER_LOG_SD, POWER_LOG_SD))
    return (
        f"A device draws {100 * WORKING_FRACTION:.0f} % of its {device.tdp_w:,.0f} W while busy and "
        f"{100 * WAITING_FRACTION:.0f} % while waiting ({low} to +{high} % at p10 and p90), {more}."
    )


def _grid(energy: Energy) -> str:
    grid = energy.grid
    if grid is None:
        return "No CO2 estimate: the grid is unknown; it needs a region or the grid's emissions."
    told = f" ({grid.location}, {grid.year}, {grid.source})" if grid.source else ""
    return f"The grid of {grid.name}{told} emits {grid.g_per_kwh:g} g of CO2 per kWh at all hours."
