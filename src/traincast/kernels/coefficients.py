"""The fitted numbers of our predictor: what they are called, where they start, and how they are stored.

Every one is the natural logarithm of a dimensionless factor unless its name ends in a unit. The prior is physics or
a plain guess with its standard deviation; data move it (see `refit`), and where data are silent it stays.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from math import log
from typing import Any

import numpy as np

from traincast.kernels.work import (
    ATTENTION_WORKS,
    CONVOLUTION_WORKS,
    DEPTHWISE_WORKS,
    ELEMENT_WORKS,
    FIRST_BYTES,
    GROUPED_WORKS,
    Work,
)
from traincast.trace.graph import Floats

LAYOUT_WORKS = (*DEPTHWISE_WORKS, *GROUPED_WORKS)  # what layouts, more than units, make fast or slow
UNITS = ("simt", "matrix")  # scalar units; tensor cores and their like
LAYOUTS = ("nchw", "nhwc")
# How near a step is to what was measured: on this very GPU, on others of its generation, or on older ones alone.
SAME_GPU, SAME_GENERATION, NEW_GENERATION = SITUATIONS = ("same GPU", "same generation", "new generation")


@dataclass(frozen=True, slots=True)
class Prior:
    """Where a coefficient is expected before any measurement is seen."""

    mean: float
    sd: float


def _priors() -> dict[str, Prior]:
    priors = {
        # What a device sustains: energy of a flop at full clock and voltage, at 12 nm.
        "energy_pj.simt": Prior(log(16.0), 0.15),
        "energy_pj.matrix": Prior(log(2.5), 0.3),
        "energy_per_process": Prior(0.5, 0.2),  # exponent of the process in nm
        "power_per_rate": Prior(log(1.8), 0.2),  # exponent: at the limit voltage falls with the clock
        "matrix_width": Prior(log(0.06), 0.5),  # loss for each doubling of the flop a clock and processor
        # Of matrix units before Ampere, whose operands pass through registers on their way to shared memory.
        "matrix_volta": Prior(log(0.85), 0.2),
        "amd": Prior(log(0.8), 0.2),  # of the rate of matrix units that NVIDIA's libraries would reach
        "pascal": Prior(-0.15, 0.1),  # before Volta integers and floats share units; batched products do not show it
        "pascal_unaligned": Prior(-0.2, 0.2),
        "dram": Prior(log(0.88), 0.05),
        "dram.old_or_ecc": Prior(-0.15, 0.05),  # Pascal or older, or error correction inside GDDR memory
        "dram.amd": Prior(-0.1, 0.1),
        "l2_rate.bytes": Prior(log(0.8), 0.3),  # of 64 bytes a clock and SM
        "l2_rate.tiles": Prior(log(0.35), 0.2),
        "l2_rate.matrix_tiles": Prior(log(0.6), 0.3),
        "l2_reach": Prior(0.0, 0.5),  # how many times its size a cache still helps
        "launch_s": Prior(log(2.5e-6), 0.3),  # from one kernel's end to the next one's start
        "recurrent_step_s": Prior(log(15e-6), 0.5),
        # Norms run one block of threads a row: clocks of a processor that a row takes, however short it is. A launch of
        # a block, two reductions through shared memory and a few dependent loads are hundreds of clocks.
        "norm_row_clocks": Prior(log(200.0), 0.5),
        "norm_row_clocks.backward": Prior(log(700.0), 0.5),
        # Elements that are taken one at a time: clocks of a processor each. Its place in each operand, the load, the
        # conversion and the store are some sixty instructions, of which a processor starts 128 a clock or fewer.
        "element_clocks": Prior(log(0.6), 0.5),
        # Clocks of a processor for each element: four random numbers are ten rounds of multiplications. Batch norm of
        # images in nchw has a block of threads a channel, which takes one element a thread and waits for it.
        "dropout_clocks": Prior(log(0.7), 0.5),
        "batch_norm_clocks": Prior(log(1.0), 0.5),
        "batch_norm_clocks.backward": Prior(log(2.5), 0.5),
        # Ops over lists of tensors, hundreds of blocks a launch: what each tensor takes beside its bytes. A block of a
        # small tensor waits some microseconds for its loads, beside a dozen others that a processor holds.
        "list_tensor_s": Prior(log(3e-7), 0.3),
        # One block of threads takes the labels of all rows, a few at a time: two dependent loads that miss all caches.
        "label_wait_s": Prior(log(1.1e-6), 0.3),
        # Fused attention on matrix units. Tuned kernels: share of the peak; work of a query-key pair beside its
        # products, in flop: 16 exponentials a clock are 256 flop of Hopper's matrix units and 512 of Blackwell's, and
        # backward converts two matrices and adds up a third in fp32. All: a tile's first loads and its store, a
        # microsecond each; seconds to start.
        "attention.tuned": Prior(log(0.85), 0.1),
        "attention.pair_flop": Prior(log(400.0), 0.5),
        "attention.pair_flop_backward": Prior(log(1200.0), 0.5),
        "attention.tile_s": Prior(log(2e-6), 0.7),
        "attention.start_s": Prior(log(5e-6), 0.5),
        # PyTorch's own kernels, which are written for Ampere: share of the peak forward, further loss backward, and
        # share of the peak of Hopper that their instructions reach. FlashAttention's first version had 25 to 40 % of
        # an A100 (so a review of "FlashAttention-2", zhongzhuzhou.org, read 2026-11-18), 30 to 50 % forward and 25 to
        # 35 % backward (from memory of that paper's introduction, not looked up); that the instructions have about
        # 63 % is from memory of Luo et al., arXiv 2402.13499, whose figure was not looked up.
        "attention.eager": Prior(log(0.4), 0.2),
        "attention.eager_backward": Prior(log(0.75), 0.2),
        "old_instructions": Prior(log(0.63), 0.08),
        "tile_loss.batched": Prior(-0.2, 0.15),  # further loss in batched products where their tiles are not known
        "tile_loss.convolution": Prior(-0.1, 0.15),  # the same in convolutions on scalar units
        "lone.convolution": Prior(log(0.15), 1.0),  # extra waves in convolutions on scalar units
        "k_overhead.convolution": Prior(0.5, 1.0),  # longer start-up on scalar units
        # Winograd in one kernel: of the rate, counting the products that are left; energy of one; start-up as a
        # length of k; extra waves.
        "winograd.fused": Prior(log(0.8), 0.3),
        "winograd.energy": Prior(0.0, 0.3),
        "winograd.fused_start_up": Prior(log(200.0), 1.0),
        "winograd.fused_lone": Prior(log(0.25), 1.0),
        # Winograd with transforms as kernels of their own: of the rate; loss each halving of the tile; passes over the
        # transformed patches; seconds that three small kernels take at least.
        "winograd.apart": Prior(log(0.75), 0.3),
        "winograd.apart_loss": Prior(-0.2, 0.15),
        "winograd.transform": Prior(log(1.5), 0.5),
        "winograd.transform_s": Prior(log(30e-6), 0.7),
        "winograd.weight": Prior(log(1.3), 0.7),  # speed-up of weight gradients
        "layout.change": Prior(log(0.7), 2.0),  # passes over the image where matrix units meet nchw
        "batch_norm.nhwc": Prior(0.0, 1.0),
        "pooling.nhwc": Prior(0.0, 1.0),
        # Each doubling of the channels of a group beyond 16.
        # Widths other than 4, 8, 16 and 32.
        "group_odd.nchw": Prior(0.0, 1.0),
        "group_odd.nhwc": Prior(-0.5, 1.0),
        "group_width.nchw": Prior(0.0, 1.0),
        "group_width.nhwc": Prior(0.0, 1.0),
        "split_k.matrices": Prior(log(1024), 0.5),  # least depth of a part when a product is cut along k
        "split_k.convolution": Prior(log(16384), 0.7),
        "split_k.weight": Prior(log(512), 1.5),
    }
    for unit in UNITS:
        priors |= {
            f"tile_loss.{unit}": Prior(-0.1, 0.1 if unit == "simt" else 0.3),  # each halving of the tile
            f"lone.{unit}": Prior(log(0.1), 1.0),  # extra waves: the first ones hide no latencies
            f"k_overhead.{unit}": Prior(log(16.0), 1.0),
            f"unaligned.{unit}": Prior(-0.1, 0.15 if unit == "simt" else 0.5),
        }
    for work in Work:
        if work in LAYOUT_WORKS:
            guess = log(0.1) if work in DEPTHWISE_WORKS else log(0.4)
            priors |= {f"efficiency.{work.name.lower()}.{layout}": Prior(guess, 3.0) for layout in LAYOUTS}
        elif work < FIRST_BYTES and work not in ATTENTION_WORKS:
            priors |= {f"efficiency.{work.name.lower()}.{unit}": Prior(*_EFFICIENCY[work, unit]) for unit in UNITS}
        elif work >= FIRST_BYTES and work not in (Work.ELEMENTWISE, *ELEMENT_WORKS):
            priors[f"passes.{work.name.lower()}"] = Prior(*_PASSES.get(work, (0.0, 0.7)))
    return priors


_TIGHT, _LOOSE = 0.15, 1.0
_EFFICIENCY = {
    (work, unit): (
        log((0.96 if work in (Work.LINEAR, Work.BATCHED) else 0.85) * (1.0 if unit == "simt" else 0.8)),
        _TIGHT if unit == "simt" else _LOOSE,
    )
    for work in Work
    for unit in UNITS
} | {(Work.RECURRENT, unit): (log(0.4), 2.0) for unit in UNITS}
_PASSES = {
    Work.BATCH_NORM: (log(1.5), 0.1),  # reads for the mean and variance, again to normalise, and writes
    Work.BATCH_NORM_BACKWARD: (log(5.0 / 3.0), 0.1),  # image and gradient, twice
    Work.DROPOUT: (0.0, 0.1),
    Work.SOFTMAX_LONG: (log(1.4), 0.7),
    Work.STRIDED_COPY: (log(1.3), 0.7),
    # AdamW's eight list ops over 8 billion bf16 weights take 46.6 ms on a B200, 86 % of its bandwidth (Bekman, "Machine
    # Learning Engineering", training/performance, table of torch.compile; read 2026-11-18).
    Work.OPTIMIZER: (0.0, 0.1),
    Work.SOFTMAX_HUGE: (log(2.0), 0.2),  # three reads and a write of what is counted as a read and a write
    Work.RMS_NORM: (log(1.2), 0.3),
    Work.RMS_NORM_BACKWARD: (log(2.0), 0.3),  # the weight's gradient is a second pass over input and gradient
    Work.TUNED_ELEMENTWISE: (0.0, 0.2),
    Work.TUNED_NORM: (0.0, 0.2),
    Work.TUNED_NORM_BACKWARD: (log(1.2), 0.3),
    Work.TUNED_LOSS: (0.0, 0.3),
    Work.TUNED_EMBEDDING: (0.0, 0.2),
    Work.COMPILED_NORM_BACKWARD: (log(2.0), 0.3),
    Work.EMBEDDING: (0.0, 0.3),  # beside the waits of its lookups
    Work.EMBEDDING_BACKWARD: (log(5.0), 0.5),  # indices are sorted, rows summed in parts, sums put in place
}

PRIORS = _priors()
NAMES = tuple(PRIORS)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The numbers by name, and the tables that prediction reads."""

    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def by_unit(self, name: str) -> Floats:
        return np.array([self.values[f"{name}.{unit}"] for unit in UNITS])

    @cached_property
    def efficiency(self) -> dict[str, Floats]:
        """By layout: one row a unit, one column a kind of work; 0 (all of the peak) for work that is made of bytes."""
        return {layout: self._efficiency(layout) for layout in LAYOUTS}

    @cached_property
    def passes(self) -> dict[str, Floats]:
        """By layout: how often each kind of work moves the least that it must, relative to elementwise ops."""
        return {layout: self._passes(layout) for layout in LAYOUTS}

    def _efficiency(self, layout: str) -> Floats:
        table = np.zeros((len(UNITS), len(Work)))
        for work in Work:
            if work >= FIRST_BYTES or work in ATTENTION_WORKS:
                continue
            name = f"efficiency.{work.name.lower()}"
            for row, unit in enumerate(UNITS):
                table[row, work] = self.values[f"{name}.{layout if work in LAYOUT_WORKS else unit}"]
        return table

    def _passes(self, layout: str) -> Floats:
        table = np.zeros(len(Work))
        for work in Work:
            table[work] = self.values.get(f"passes.{work.name.lower()}", 0.0)
        if layout == "nhwc":
            table[[Work.BATCH_NORM, Work.BATCH_NORM_BACKWARD]] += self.values["batch_norm.nhwc"]
            table[[Work.POOLING, Work.POOLING_BACKWARD]] += self.values["pooling.nhwc"]
        return np.exp(table)


def prior_coefficients() -> Coefficients:
    return Coefficients({name: prior.mean for name, prior in PRIORS.items()})


@dataclass(frozen=True, eq=False)
class Fitted:
    """What the package ships: coefficients, how far held-out rows were off, and what was fitted on what."""

    coefficients: Coefficients
    step_log_sd: dict[str, Floats]  # by situation, one entry a group of ERROR_GROUPS: in a step kernels average out
    kernel_log_sd: Floats  # the same for one lone kernel
    provenance: dict[str, Any]


@cache
def shipped() -> Fitted:
    """The file of the package."""
    stored = json.loads((files("traincast") / "data" / "kernels" / "coefficients.json").read_text())
    return Fitted(
        coefficients=Coefficients({name: float(stored["values"][name]) for name in NAMES}),
        step_log_sd={
            name: np.array([stored["log_sd"]["step"][name][group] for group in ERROR_GROUPS]) for name in SITUATIONS
        },
        kernel_log_sd=np.array([stored["log_sd"]["kernel"][group] for group in ERROR_GROUPS]),
        provenance=stored["provenance"],
    )


# Kinds of work that are off together, because one set of coefficients and one set of measurements stands behind them.
ERROR_GROUPS = ("matrix products", "convolutions", "grouped convolutions", "normalisation", "other bytes")
ERROR_GROUP = np.full(len(Work), ERROR_GROUPS.index("other bytes"))
ERROR_GROUP[[Work.LINEAR, Work.BATCHED, Work.ATTENTION, Work.ATTENTION_BACKWARD, Work.RECURRENT]] = 0
ERROR_GROUP[Work.CONVOLUTION : Work.GROUPED] = 1
ERROR_GROUP[Work.GROUPED : Work.ATTENTION] = 2
ERROR_GROUP[Work.BATCH_NORM : Work.REDUCTION] = 3
ERROR_GROUP[[Work.SOFTMAX_HUGE, Work.RMS_NORM, Work.RMS_NORM_BACKWARD]] = 3
ERROR_GROUP[[Work.TUNED_NORM, Work.TUNED_NORM_BACKWARD, Work.COMPILED_NORM_BACKWARD]] = 3

IS_WEIGHT_GRADIENT = np.isin(np.arange(len(Work)), (Work.CONVOLUTION_WEIGHT, Work.GROUPED_WEIGHT))
IS_CONVOLUTION = np.isin(np.arange(len(Work)), CONVOLUTION_WORKS)
IS_GROUPED = np.isin(np.arange(len(Work)), GROUPED_WORKS)
IS_DEPTHWISE = np.isin(np.arange(len(Work)), DEPTHWISE_WORKS)
