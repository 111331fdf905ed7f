"""What TensorFlow's libraries of 2018 to 2020 do differently from those that our coefficients were fitted to.

A handful of factors on the seconds of the kernels of a layer timed alone (`lone_layer.py`): fitted to such layers on
six GPUs by `refit/layers.py`, stored with the fits that leave out each of the GPUs. Forecasts of models use none of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf, log
from typing import Any

import numpy as np

from traincast.hardware.device import Device
from traincast.kernels.library_traits import Role, Traits
from traincast.trace.graph import Floats

Column = Any  # a number, or an array with one entry a kernel when many devices are evaluated at once

# Natural logarithms: where each number is expected before a measurement is seen. What has no reason to differ: 0.
PRIORS = {
    "convolution_input": 0.0,
    "convolution_weight": 0.0,  # with stride 1, where FFT and Winograd serve it
    "convolution_weight.strided": 0.0,  # beside that
    # Libraries have ways whose tiles are not wasted on few channels: a gradient takes at most so many forward times.
    "input_over_forward": 0.0,
    "weight_over_forward": 0.0,
    "large_window": 0.0,  # exponent of a window's size over 3 x 3: FFT and Winograd save products; stride 1
    "layout": 0.0,
    "layout.few_channels": 0.0,  # each halving below 32 channels: transposes in tiles of 32
    "filter": log(4.5),  # one side is read in words from sectors of eight, the other in order
    "padding": 0.0,
    "update": 0.0,
    "kepler.products": log(1.5),  # 192 lanes whose schedulers feed 128 without dual issue
    "kepler.bytes": 0.0,
    "maxwell.products": 0.0,
}
NAMES = tuple(PRIORS)

# Of the boost clock that our table counts with: a K40 stays at its base clock of 745 MHz until its user raises it.
_CLOCK_AS_DELIVERED = {"K40": 745 / 875}
_SHARPNESS = 4.0  # how suddenly one way gives way to another


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What the factors read of a device; `log_clock` is how much longer products take at the clock as delivered."""

    is_kepler: Column
    is_maxwell: Column
    log_clock: Column

    @staticmethod
    def of(device: Device) -> Chip:
        return Chip(
            is_kepler=float(device.arch == "Kepler"),
            is_maxwell=float(device.arch == "Maxwell"),
            log_clock=-log(_CLOCK_AS_DELIVERED.get(device.name, 1.0)),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Factors:
    """The numbers by name."""

    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]


def no_factors() -> Factors:
    """Nothing differs and no way gives way to another."""
    return Factors(dict.fromkeys(NAMES, 0.0) | {"input_over_forward": inf, "weight_over_forward": inf})


def library_seconds(seconds: Floats, traits: Traits, chip: Chip, factors: Factors, *, launch_s: float) -> Floats:
    """Seconds of kernels, one along the last axis, with these libraries. Launches stay what they are."""
    body_s = np.maximum(seconds - launch_s, 0.0)
    forward_s = body_s[..., traits.forward]
    for role, name in ((Role.INPUT, "input_over_forward"), (Role.WEIGHT, "weight_over_forward")):
        other_s = np.where(traits.role == role, np.exp(factors[name]) * forward_s, np.inf)
        body_s = _sooner(body_s, other_s)
    found: Floats = np.minimum(seconds, launch_s) + body_s * np.exp(_log_factor(traits, chip, factors))
    return found


def _sooner(one_s: Floats, other_s: Floats) -> Floats:
    """The shorter of two times, with a smooth turn."""
    least_s, most_s = np.minimum(one_s, other_s), np.maximum(one_s, other_s)
    ratio = np.divide(least_s, most_s, out=np.zeros_like(least_s), where=most_s > 0.0)
    found: Floats = least_s * (1.0 + ratio**_SHARPNESS) ** (-1.0 / _SHARPNESS)
    return found


def _log_factor(traits: Traits, chip: Chip, factors: Factors) -> Floats:
    role = traits.role
    is_product = (role >= Role.PRODUCT) & (role <= Role.WEIGHT)
    is_convolution = (role >= Role.FORWARD) & (role <= Role.WEIGHT)
    by_role = np.zeros(len(Role))
    for each, name in _BY_ROLE.items():
        by_role[each] = factors[name]
    found: Floats = (
        by_role[role]
        + (role == Role.WEIGHT) * traits.is_strided * factors["convolution_weight.strided"]
        + is_convolution * traits.log_window * factors["large_window"]
        + (role == Role.LAYOUT) * traits.halvings * factors["layout.few_channels"]
        + traits.log_passes
        + is_product * (chip.is_kepler * factors["kepler.products"] + chip.is_maxwell * factors["maxwell.products"])
        + is_product * chip.log_clock
        + ~is_product * chip.is_kepler * factors["kepler.bytes"]
    )
    return found


_BY_ROLE = {
    Role.INPUT: "convolution_input",
    Role.WEIGHT: "convolution_weight",
    Role.LAYOUT: "layout",
    Role.FILTER: "filter",
    Role.PADDING: "padding",
    Role.UPDATE: "update",
}


# What errs on its own in a lone call, by its share of the time.
SPREAD_GROUPS = ("matrix products", "convolutions", "other bytes", "host")
SPREAD_GROUP = np.full(len(Role), SPREAD_GROUPS.index("other bytes"))
SPREAD_GROUP[Role.PRODUCT] = 0
SPREAD_GROUP[Role.FORWARD : Role.WEIGHT + 1] = 1


@dataclass(frozen=True, eq=False, slots=True)
class Library:
    """Factors, and how far layers on GPUs that the fit had not seen were off, by group of SPREAD_GROUPS."""

    factors: Factors
    log_sd: Floats


@dataclass(frozen=True, eq=False, slots=True)
class ShippedLibrary:
    """The fit to all GPUs, the fits without each of them by the GPU's name, and what was fitted on what."""

    library: Library
    without: Mapping[str, Library]
    provenance: Mapping[str, Any]


@cache
def shipped_library() -> ShippedLibrary:
    """The file of the package."""
    stored = json.loads((files("traincast") / "data" / "kernels" / "tensorflow_layers.json").read_text())
    return ShippedLibrary(
        library=_library(stored),
        without={name: _library(each) for name, each in stored["without"].items()},
        provenance=stored["provenance"],
    )


def _library(stored: Mapping[str, Any]) -> Library:
    factors = Factors({name: float(stored["values"][name]) for name in NAMES})
    return Library(factors, np.array([float(stored["log_sd"][group]) for group in SPREAD_GROUPS]))
