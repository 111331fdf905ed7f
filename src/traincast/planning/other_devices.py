"""The same run on another GPU: the fastest that can be rented, and the one with the lowest price a sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traincast.errors import InputError
from traincast.forecasting.question import Question
from traincast.hardware.catalog import find_device
from traincast.hardware.machines import Machine, all_machines
from traincast.planning.gain import ForecastWithErrors, ask, gain_of
from traincast.planning.what_if import LeftOut, WhatIf
from traincast.units import show_usd

_NAME = "another GPU"


def another_gpu(before: ForecastWithErrors) -> Iterator[WhatIf | LeftOut]:
    """Of a run on one device; whole clusters are a plan's affair."""
    question = before.forecast.question
    if question.n_devices > 1:
        yield LeftOut(_NAME, "'traincast plan' compares whole machines")
        return
    if question.device.kind == "cpu" and question.device.prices:
        yield LeftOut(_NAME, "this machine is measured, and its host is not that of a rented GPU")
        return
    offers = cheapest_by_device()
    found = [(machine, asked) for machine in offers.values() if (asked := _asked(question, machine)) is not None]
    if not found:
        yield LeftOut(_NAME, "no other GPU that can be rented has the memory and known rates")
        return
    own_price = _price_a_sample(before, offers.get(question.device.name))
    fastest = max(found, key=lambda pair: pair[1].forecast.samples_per_s)
    cheapest = min(found, key=lambda pair: _price_a_sample(pair[1], pair[0]) or float("inf"))
    yield _what_if(before, *fastest, own_price, "the fastest")
    if cheapest != fastest:
        yield _what_if(before, *cheapest, own_price, "the cheapest per sample")


def cheapest_by_device() -> dict[str, Machine]:
    """For each device that can be rented, the machine with the lowest price for one of it."""
    found: dict[str, Machine] = {}
    for machine in all_machines():
        if machine.price_usd_per_hour is None or machine.is_retired:
            continue
        best = found.get(machine.device)
        if best is None or _per_device(machine) < _per_device(best):
            found[machine.device] = machine
    return found


def _per_device(machine: Machine) -> float:
    return (machine.price_usd_per_hour or 0.0) / machine.n_devices


def _asked(question: Question, machine: Machine) -> ForecastWithErrors | None:
    """None where it is the same device, lacks a figure or the memory."""
    device = find_device(machine.device)
    if device.name == question.device.name:
        return None
    try:
        asked = ask(replace(question, device=device, cluster=None))
    except InputError:  # a rate that is not known
        return None
    return asked if asked.forecast.fits else None


def _price_a_sample(asked: ForecastWithErrors, machine: Machine | None) -> float | None:
    return None if machine is None else _per_device(machine) / 3600 / asked.forecast.samples_per_s


def _what_if(
    before: ForecastWithErrors, machine: Machine, asked: ForecastWithErrors, own_price: float | None, what: str
) -> WhatIf:
    price = _price_a_sample(asked, machine) or 0.0
    ratio = "" if own_price is None else f", {price / own_price:.2f} times the price per sample"
    of = f"1 of {machine.n_devices} in {machine.name}" if machine.n_devices > 1 else machine.name
    return WhatIf(
        name=f"{_NAME}: {asked.forecast.device}",
        change=f"{asked.forecast.device}, {what} in the table of machines",
        catch=f"{show_usd(_per_device(machine))} per hour ({machine.provider}, {of}, {machine.price_date}){ratio}.",
        forecast=asked.forecast,
        gain=gain_of(before, asked, other_device=True),
        peak_memory_bytes=asked.forecast.peak_memory_bytes,
    )
