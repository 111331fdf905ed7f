"""Op times of a machine whose prices were measured: amounts of work times prices."""

from __future__ import annotations

import numpy as np

from traincast.hardware.device import Device
from traincast.kernels.cpu.memory_work import fresh_bytes
from traincast.kernels.cpu.work import cpu_work
from traincast.kernels.method import OpTimes
from traincast.trace.graph import Graph, Ints
from traincast.trace.kinds import OpKind, op_kinds
from traincast.units import show_duration

# What the host spends around the work of an op. The rest is work, and of that products are what more FLOP/s would
# shrink.
_DISPATCH = ("phase.", "call.", "steps.")
_WORTH_TELLING_S = 5e-3
MEMORY_IS_KEPT = "The process is taken to keep memory that a step frees."
_UNMEASURED = 3.0  # factor on the spread: calibration runs in fp32


def priced_times(graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
    """Times of all ops of a graph that was lowered for a CPU."""
    price_s, terms = dict(device.prices), cpu_work(graph, batch_sizes)
    of_host = {name: price for name, price in price_s.items() if name.startswith(_DISPATCH)}
    of_device = {name: price for name, price in price_s.items() if name not in of_host}
    products = {name: price for name, price in of_device.items() if name.startswith("flop.")}
    n_ops = graph.n_ops
    has_price = np.array([name in price_s for name in terms.prices], dtype=bool)
    is_covered = np.array([kind != OpKind.UNCOSTED for kind in op_kinds(graph)])
    is_covered[terms.op[~has_price[terms.price]]] = False
    log_sd, warnings = device.price_log_sd or 0.0, []
    unknown = sorted(name for name, known in zip(terms.prices, has_price, strict=True) if not known)
    if unknown:
        warnings.append(f"The profile of {device.name} has no price for {', '.join(unknown)}: calibrate again.")
    fresh_s = price_s.get("bytes.fresh", 0.0) * float(fresh_bytes(graph, batch_sizes).max(initial=0.0))
    if fresh_s > _WORTH_TELLING_S:
        warnings.append(
            f"{MEMORY_IS_KEPT} By glibc's defaults it may give it back, which "
            f"adds up to {show_duration(fresh_s)} of page faults to a step: set MALLOC_TRIM_THRESHOLD_ and "
            "MALLOC_MMAP_MAX_."
        )
    if precision != "fp32":
        log_sd *= _UNMEASURED
        warnings.append(f"{device.name} was calibrated in fp32, and {precision} is taken to run like it.")
    return OpTimes(
        seconds=terms.seconds(of_device, n_ops),
        compute_s=terms.seconds(products, n_ops),
        log_sd=np.full(n_ops, log_sd),
        error_group=np.zeros(n_ops, dtype=np.int64),
        is_covered=is_covered,
        dispatch_s=terms.seconds(of_host, n_ops)[0],
        warnings=tuple(warnings),
    )
