"""Single ops to be timed, with the columns of the public op timings that our predictor learns from.

A matrix product gives `b` x (`m` x `n`) with reduction length `k`; `add` to `pow` take two tensors, `addu` to `powu`
a tensor and a number; `ln` is a layer norm over the columns with weight and bias.
"""

from __future__ import annotations

import random

from traincast.microbenchmarks.random_tasks import FLOAT_BYTES, Population, size
from traincast.records.record import Scalar, Settings
from traincast.records.work_list import Task

KIND = "op"
TWO_TENSORS = ("add", "mul", "div", "pow")
WITH_NUMBER = ("addu", "mulu", "divu", "powu")
ONE_TENSOR = ("relu", "gelu", "tanh")
ELEMENTWISE = (*TWO_TENSORS, *WITH_NUMBER, *ONE_TENSOR)
ROW_WISE = ("softmax", "ln")


def op_tasks(n: int, seed: int = 0, *, device: str = "cpu") -> list[Task]:
    """`n` different ops, the kinds in turn; the same for the same seed and kind of device."""
    return _OPS.tasks(n, seed, device)


def op_work(op: Settings) -> tuple[float, float]:
    """Flop (of products only; a multiply-add is 2) and bytes of all tensors, once each, in fp32."""
    name, value = op["op"], {key: entry for key, entry in op.items() if isinstance(entry, int)}
    if name in ("linear", "bmm"):
        b, m, n, k = (value[key] for key in ("b", "m", "n", "k"))
        return 2.0 * b * m * n * k, FLOAT_BYTES * b * (m * k + k * n + m * n)
    if name == "conv":
        out = conv_output_size(op)
        weights = value["c_in"] * value["c_out"] * value["ksize"] ** 2
        images = value["n"] * (value["c_in"] * value["hw_in"] ** 2 + value["c_out"] * out**2)
        return 2.0 * value["n"] * out**2 * weights, FLOAT_BYTES * (images + weights)
    return 0.0, FLOAT_BYTES * (3 if name in TWO_TENSORS else 2) * value["rows"] * value["cols"]


def conv_output_size(op: Settings) -> int:
    """Side of the output image."""
    side, pad, kernel, stride = (int(op[name] or 0) for name in ("hw_in", "pad", "ksize", "stride"))
    return (side + 2 * pad - kernel) // stride + 1


def _linear(source: random.Random) -> dict[str, Scalar]:
    return {"op": "linear", "b": 1, **{name: size(source, 1, 8192) for name in "mnk"}}


def _bmm(source: random.Random) -> dict[str, Scalar]:
    return {"op": "bmm", "b": size(source, 1, 512), **{name: size(source, 1, 1024) for name in "mnk"}}


def _conv(source: random.Random) -> dict[str, Scalar]:
    kernel = source.choice((1, 3, 3, 3, 5, 7))
    return {
        "op": "conv",
        "n": size(source, 1, 128),
        "c_in": size(source, 1, 1024),
        "c_out": size(source, 1, 1024),
        "ksize": kernel,
        "hw_in": max(size(source, 1, 256), kernel),
        "stride": source.choice((1, 1, 2)),
        "pad": kernel // 2,
    }


def _elementwise(source: random.Random) -> dict[str, Scalar]:
    return {"op": source.choice(ELEMENTWISE), "rows": size(source, 1, 16_384), "cols": size(source, 1, 16_384)}


def _row_wise(source: random.Random) -> dict[str, Scalar]:
    return {"op": source.choice(ROW_WISE), "rows": size(source, 1, 16_384), "cols": size(source, 2, 8192)}


_OPS = Population(
    kind=KIND,
    draws=(_linear, _elementwise, _bmm, _row_wise, _conv),
    work=op_work,
    most_flop={"cpu": 2e10, "cuda": 2e12},
    same_in_all={"dtype": "fp32"},
)
