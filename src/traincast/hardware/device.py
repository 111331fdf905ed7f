"""One device as sold, and the rate at which it multiplies matrices in each precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from traincast.errors import InputError

# An accelerator is what neither CUDA nor ROCm runs on (TPU, Trainium, Gaudi, Apple): nothing like it was measured.
Kind = Literal["gpu", "cpu", "accelerator"]
Units = Literal["fp32", "tf32", "fp16", "bf16", "fp8"]

# Which matrix units a precision asks for.
_UNITS: dict[str, Units] = {
    "fp32": "fp32",
    "tf32": "tf32",
    "amp-fp16": "fp16",
    "amp-bf16": "bf16",
    "bf16": "bf16",
    "fp8": "fp8",
}
PRECISIONS: tuple[str, ...] = tuple(_UNITS)

_LEFT_BY_DRIVER_FRACTION = 0.985
_POSITIVE = (
    "process_nm",
    "year",
    "n_sm",
    "boost_clock_hz",
    "peak_clock_hz",
    "fp32_flop_per_s",
    "fp32_matrix_flop_per_s",
    "memory_bytes",
    "memory_bytes_per_s",
    "l2_bytes",
    "tdp_w",
    "pcie_gen",
    "nvlink_generation",
    "nvlink_domain",
    "link_bytes_per_s",
)
MAY_BE_ZERO = (
    "inline_ecc",
    "tf32_flop_per_s",
    "fp16_flop_per_s",
    "bf16_flop_per_s",
    "fp8_flop_per_s",
    "fp4_flop_per_s",
    "nvlink_bytes_per_s",
    "price_log_sd",
    "link_latency_s",
    "waiting_fraction",
)


_LEAST, _MOST = 1e-24, 1e24  # of seconds, bytes, watts, flop a second: products of a few stay what a float holds


def is_in_range(value: float) -> bool:
    """Whether hardware can have it: 0, or neither vanishing nor beyond all that there will be."""
    return value == 0 or _LEAST <= value <= _MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """A matrix-product rate, and the units it comes from."""

    flop_per_s: float
    asked: Units
    used: Units

    @property
    def is_fallback(self) -> bool:
        """Whether the device lacks units for this precision and runs the products in fp32."""
        return self.used != self.asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator (or CPU) as sold: a form factor and a power limit, not a chip family.

    Peaks are dense and accumulate in fp32. Vendors also print sparse figures, twice as high, and a forecast built on
    those promises half the time. None means that the figure is not known; 0 for a tensor rate or NVLink means that
    there is none. The two differ: a device without bf16 units runs bf16 at the fp32 rate, one whose bf16 rate is not
    known need not.
    """

    name: str
    fp32_flop_per_s: float | None  # vector rate
    memory_bytes: int
    memory_bytes_per_s: float
    fp32_matrix_flop_per_s: float | None = None  # AMD matrix units run fp32 products faster than the vector units
    inline_ecc: int = 0  # 1: error correction is on as delivered and lives in the memory itself
    tf32_flop_per_s: float | None = None
    fp16_flop_per_s: float | None = None
    bf16_flop_per_s: float | None = None
    fp8_flop_per_s: float | None = None
    fp4_flop_per_s: float | None = None
    n_sm: int | None = None  # streaming multiprocessors, compute units or cores
    boost_clock_hz: float | None = None
    peak_clock_hz: float | None = None  # what the tensor rates hold at, where that is not the boost clock
    memory_kind: str = ""  # HBM3, GDDR6X, LPDDR5 ...
    l2_bytes: int | None = None
    tdp_w: float | None = None
    pcie_gen: int | None = None
    nvlink_bytes_per_s: float | None = None  # all links of one device, both directions together
    nvlink_generation: int | None = None
    nvlink_domain: int | None = None  # devices that these links join: 2 by a bridge, 8 on a board, 72 in a rack
    process_nm: float | None = None
    year: int | None = None
    kind: Kind = "gpu"
    vendor: str = ""
    arch: str = ""
    die: str = ""  # the chip: devices of one die differ by clock, processors, memory and power only
    aliases: tuple[str, ...] = ()
    prices: tuple[tuple[str, float], ...] = ()  # measured seconds for each unit of work, by its name
    link_bytes_per_s: float | None = None  # measured between processes of one machine, one direction
    link_latency_s: float | None = None
    waiting_fraction: float | None = None  # of a process's own seconds, lost to the others that it trains with
    price_log_sd: float | None = None  # how far steps are from the sum of prices: standard deviation of the logarithm
    source: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("A device needs a name.")
        if self.kind not in get_args(Kind):
            raise InputError(f"Device '{self.name}': kind is 'gpu', 'cpu' or 'accelerator', not {self.kind!r}.")
        if self.memory_bytes is None or self.memory_bytes_per_s is None:
            raise InputError(f"Device '{self.name}': memory_bytes and memory_bytes_per_s are needed.")
        for field in _POSITIVE + MAY_BE_ZERO:
            value = getattr(self, field)
            if value is None:
                continue
            if not is_in_range(value) or (value == 0 and field in _POSITIVE):
                raise InputError(f"Device '{self.name}': {field} cannot be {value}.")
        for work, price_s in self.prices:
            if not is_in_range(price_s):
                raise InputError(f"Device '{self.name}': the price of {work} cannot be {price_s}.")

    @property
    def usable_memory_bytes(self) -> int:
        """What programs can have. Error correction inside GDDR memory takes a sixteenth; drivers keep some more.

        1.5 % for the driver is a middle figure: it meets the totals that PyTorch reported on eight cards within 1.5 %
        (data/README.md lists them).
        """
        if self.kind == "cpu":
            return self.memory_bytes
        corrected = self.memory_bytes * (15 / 16 if self.inline_ecc else 1)
        return int(_LEFT_BY_DRIVER_FRACTION * corrected)

    def peak(self, precision: str) -> Peak:
        """The matrix-product rate of a precision, and whether it had to fall back to fp32.

        Without units for it a product runs on the fp32 units: tf32 is only a permission, fp16 up to Pascal
        keeps (at least) the fp32 rate, and bf16 is emulated up to Turing.
        """
        if precision not in _UNITS:
            raise InputError(f"Unknown precision {precision!r}; known are {', '.join(PRECISIONS)}.")
        asked = _UNITS[precision]
        rate = self._rate(asked)
        if rate > 0:
            return Peak(flop_per_s=rate, asked=asked, used=asked)
        if asked == "fp8":
            nearest = "bf16" if self.bf16_flop_per_s else "amp-fp16"
            raise InputError(f"{self.name} has no fp8 units: choose precision {nearest}, or a GPU of Ada or later.")
        return Peak(flop_per_s=self._rate("fp32"), asked=asked, used="fp32")

    def peak_flop_per_s(self, precision: str) -> float:
        """The matrix-product rate of a precision; `peak` also says which units give it."""
        return self.peak(precision).flop_per_s

    def ridge_flop_per_byte(self, precision: str) -> float:
        """Intensity above which a matrix product is bound by compute, not memory."""
        return self.peak_flop_per_s(precision) / self.memory_bytes_per_s

    def _rate(self, units: Units) -> float:
        """The figure of these units, 0 where there are none; an unknown figure raises."""
        rates = {
            "fp32": self.fp32_matrix_flop_per_s or self.fp32_flop_per_s,
            "tf32": self.tf32_flop_per_s,
            "fp16": self.fp16_flop_per_s,
            "bf16": self.bf16_flop_per_s,
            "fp8": self.fp8_flop_per_s,
        }
        rate = rates[units]
        if rate is None:
            raise InputError(
                f"The {units} rate of '{self.name}' is not known; give it in a device file of your own (columns "
                "as in the device table)."
            )
        return rate
