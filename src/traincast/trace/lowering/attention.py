"""Attention that a backend does not fuse: on CPU, PyTorch takes it apart whenever it has dropout.

The ops are those that PyTorch 2.13 dispatches (most views left out): scaled query and key, their product, bias or
causal mask, softmax, dropout, product with the values, always in fp32; all of it is kept for backward.
"""

from __future__ import annotations

from traincast.trace.dtypes import CODE, FLOAT32
from traincast.trace.lowering.emitter import Dims, Emitter
from traincast.trace.lowering.program import SCALAR, Program


def emit_attention(program: Program, op: int, inputs: list[int], output: int, *, is_causal: bool) -> None:
    """The forward pass; what backward needs is remembered under the op's number."""
    write = Emitter(program, op)
    query, key, value, *bias = (write.cast(tensor, FLOAT32) for tensor in inputs)
    dtype = FLOAT32
    flat_query, flat_key, flat_value = (_heads_merged(write.dims(tensor)) for tensor in (query, key, value))
    weights = [flat_query[0], flat_query[1], flat_key[1]]
    scaled_query = write.op("mul", [query], program.like(query))
    mask = bias[0] if bias else None
    if is_causal:
        mask = _causal_mask(write, weights[1:], dtype)
    scaled_key = write.op("mul", [key], program.like(key))
    left = write.op("clone", [scaled_query], write.new(flat_query, dtype))
    right = write.op("clone", [scaled_key], write.new([flat_key[0], flat_key[2], flat_key[1]], dtype))
    scores = write.op("bmm", [left, right], write.new(weights, dtype))
    if mask is not None:
        scores = write.op("add", [scores, mask], write.new(weights, dtype))
    chances = write.op("_safe_softmax", [scores], write.new(weights, dtype))
    kept = write.op("bernoulli_", [drawn := write.new(weights, dtype)], drawn)
    kept = write.op("div_", [kept], kept)
    dropped = write.op("mul", [chances, kept], write.new(weights, dtype))
    values = write.op("clone", [value], write.new(flat_value, dtype))
    product = write.op("bmm", [dropped, values], write.new([weights[0], weights[1], flat_value[2]], dtype))
    program.main_op[op] = len(program.op_name) - 1
    write.op("clone" if program.tensor_dtype[output] == dtype else "_to_copy", [product], output)
    if program.tensor_dtype[output] != dtype:  # PyTorch's function also returns the weights, which nobody takes
        write.op("_to_copy", [dropped], write.new(weights, program.tensor_dtype[output]))
    last = len(program.op_name) - 1
    for tensor in (query, key, value, scaled_query):  # local variables of PyTorch's function
        program.held_until[program.tensor_storage[tensor]] = last
    program.saved[op] = [left, right, values, chances, kept, dropped]


def emit_attention_backward(program: Program, op: int, gradient: int, outputs: list[int]) -> None:
    """The backward pass of an attention that `emit_attention` took apart."""
    write = Emitter(program, op)
    left, right, values, chances, kept, dropped = program.saved[int(program.neutral.op_forward[op])]
    like, dtype = program.like, FLOAT32
    gradient = write.cast(gradient, dtype)
    flat = write.op("clone", [gradient], write.new(_heads_merged(write.dims(gradient)), dtype))
    of_value = write.op("bmm", [write.transposed(dropped), flat], like(values))
    of_dropped = write.op("bmm", [flat, write.transposed(values)], like(dropped))
    of_chances = write.op("mul", [of_dropped, kept], like(chances))
    of_scores = write.op("_softmax_backward_data", [of_chances, chances], like(chances))
    of_right = write.op("bmm", [write.transposed(left), of_scores], like(right))
    of_left = write.op("bmm", [of_scores, write.transposed(right)], like(left))
    program.main_op[op] = len(program.op_name) - 1
    of_key = write.op("mul", [of_right], like(right))
    of_query = write.op("mul", [of_left], like(left))
    for source, output in zip((of_query, of_key, of_value), outputs, strict=False):
        write.op("clone" if program.tensor_dtype[output] == dtype else "_to_copy", [source], output)


def _heads_merged(dims: Dims) -> Dims:
    """(batch, head, position, feature) as the (batch * head, position, feature) of a batched product."""
    *outer, positions, features = dims
    base, slope = 1, 0
    for outer_base, outer_slope in outer:  # only one of them can grow with the batch
        base, slope = base * outer_base, base * outer_slope + slope * outer_base
    return [(base, slope), positions, features]


def _causal_mask(write: Emitter, dims: Dims, dtype: int) -> int:
    program = write.program
    allowed = write.op("ones", [], write.new(dims, CODE["bool"]))
    lower = write.op("tril", [allowed], write.new(dims, CODE["bool"]))
    zero, infinity = (write.op("scalar_tensor", [], program.tensor(SCALAR, dtype, program.storage())) for _ in range(2))
    return write.op("where", [lower, zero, infinity], write.new(dims, dtype))
