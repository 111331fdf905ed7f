"""Timing one op alone, forward and without grad, as in the public op timings.

The caches are as warm as the op's own tensors leave them. `fastest_s` is the mean of the fastest fifth, which is what
the public rows hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from traincast.errors import InputError
from traincast.measurement.failures import failure
from traincast.measurement.statistics import summarise
from traincast.measurement.stopwatch import stopwatch_for
from traincast.microbenchmarks.op_tasks import ELEMENTWISE, ROW_WISE, op_work
from traincast.microbenchmarks.repeat import N_WARM_UP, repeats
from traincast.records.record import Settings

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": torch.add, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "relu": torch.relu, "gelu": functional.gelu, "tanh": torch.tanh,
}  # fmt: skip
_NUMBER = 2.5  # neither a square nor a root, for which torch has short cuts


def run_op(settings: Settings) -> dict[str, Any]:
    """Seconds (median, least, mean of the fastest fifth, p10 to p90), flop and bytes."""
    device = str(settings.get("device", "cpu"))
    try:
        with torch.no_grad():
            seconds = _time(op_of(settings, device), device)
    except (RuntimeError, MemoryError) as error:  # one op that a backend cannot do must not stop thousands
        raise failure(f"Op {settings['op']} on '{device}'", error) from error
    summary, (flop, moved_bytes) = summarise(seconds), op_work(settings)
    fastest = sorted(seconds)[: max(len(seconds) // 5, 1)]
    return {
        "median_s": summary.median,
        "min_s": summary.minimum,
        "fastest_s": sum(fastest) / len(fastest),
        "p10_s": summary.p10,
        "p90_s": summary.p90,
        "n_runs": len(seconds),
        "flop": flop,
        "bytes": moved_bytes,
    }


def _time(op: Callable[[], Any], device: str) -> list[float]:
    stopwatch = stopwatch_for(device)
    for _ in range(N_WARM_UP):
        op()
    stopwatch.synchronize()
    seconds: list[float] = []
    for _ in repeats():
        stopwatch.mark()
        op()
        stopwatch.mark()
        seconds += stopwatch.read()
    return seconds


def op_of(settings: Settings, device: str) -> Callable[[], Any]:
    """The call to time, with its tensors on the device."""
    sizes: Any = settings
    name = str(settings["op"])

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, device=device)

    if name == "linear":
        inputs, weight = normal(sizes["b"], sizes["m"], sizes["k"]), normal(sizes["n"], sizes["k"])
        bias = normal(sizes["n"])
        return lambda: functional.linear(inputs, weight, bias)
    if name == "bmm":
        left, right = (normal(sizes["b"], sizes[rows], sizes[columns]) for rows, columns in ("mk", "kn"))
        return lambda: torch.bmm(left, right)
    if name == "conv":
        image = normal(sizes["n"], sizes["c_in"], sizes["hw_in"], sizes["hw_in"])
        kernel = normal(sizes["c_out"], sizes["c_in"], sizes["ksize"], sizes["ksize"])
        return lambda: functional.conv2d(image, kernel, stride=sizes["stride"], padding=sizes["pad"])
    if name in ROW_WISE or name in ELEMENTWISE:
        return _on_rows(name, normal, sizes["rows"], sizes["cols"])
    raise InputError(
        f"There is no op '{name}' to time. Choose from: linear, bmm, conv, {', '.join((*ELEMENTWISE, *ROW_WISE))}."
    )


def _on_rows(name: str, normal: Callable[..., Any], rows: int, columns: int) -> Callable[[], Any]:
    first = normal(rows, columns).abs()  # the power of a negative number is none
    if name == "softmax":
        return lambda: torch.softmax(first, dim=-1)
    if name == "ln":
        weight, bias = normal(columns), normal(columns)
        return lambda: functional.layer_norm(first, (columns,), weight, bias)
    if name.endswith("u") and name[:-1] in _FUNCTIONS:
        with_number = _FUNCTIONS[name[:-1]]
        return lambda: with_number(first, _NUMBER)
    function = _FUNCTIONS[name]
    if name in ("relu", "gelu", "tanh"):
        return lambda: function(first)
    second = normal(rows, columns)
    return lambda: function(first, second)
