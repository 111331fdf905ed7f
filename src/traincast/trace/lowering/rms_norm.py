"""RMS norm where no backend fuses it: on CPU, PyTorch takes it apart, in fp32 whatever its input is.

The ops are those that PyTorch 2.13 dispatches: square, mean, reciprocal root, two products, and their derivatives.
"""

from __future__ import annotations

from traincast.trace.dtypes import FLOAT32
from traincast.trace.lowering.emitter import Emitter
from traincast.trace.lowering.program import Program


def emit_rms_norm(program: Program, op: int, inputs: list[int], outputs: list[int]) -> None:
    """The forward pass; what backward needs is remembered under the op's number."""
    write, like = Emitter(program, op), program.like
    output, root = outputs
    wide = write.cast(inputs[0], FLOAT32)
    square = write.op("pow", [wide], like(wide))
    mean = write.op("mean", [square], like(root))
    mean = write.op("add_", [mean], program.again(mean))
    root = write.op("rsqrt", [mean], root)
    is_plain = program.tensor_dtype[output] == FLOAT32
    weights = inputs[1:]
    program.main_op[op] = len(program.op_name)
    normed = write.op("mul", [wide, root], output if is_plain and not weights else like(wide))
    scaled = normed
    if weights:
        scaled = write.op("mul", [normed, weights[0]], output if is_plain else like(wide))
    if not is_plain:
        write.op("_to_copy", [scaled], output)
    program.saved[op] = [wide, root, normed]


def emit_rms_norm_backward(program: Program, op: int, inputs: list[int], outputs: list[int]) -> None:
    """The backward pass of a norm that `emit_rms_norm` took apart."""
    write, like = Emitter(program, op), program.like
    attributes = program.neutral.attributes_of(op)
    wide, root, normed = program.saved[int(program.neutral.op_forward[op])]
    gradient, weights = write.cast(inputs[0], FLOAT32), inputs[3:]
    of_input, of_weight = _by_purpose(outputs, attributes)
    if of_weight is not None:
        product = write.op("mul", [gradient, normed], like(wide))
    if weights and of_input is not None:
        gradient = write.op("mul", [gradient, weights[0]], like(wide))
    if of_weight is not None:
        _into(write, "sum", [product], of_weight)
    program.main_op[op] = len(program.op_name) - 1
    if of_input is None:
        return
    of_root = write.op("mul", [gradient, wide], like(wide))
    direct = write.op("mul", [gradient, root], like(wide))
    of_root = write.op("sum", [of_root], like(root))
    cube = write.op("pow", [root], like(root))
    cube = write.op("mul", [cube], like(root))
    of_mean = write.op("mul", [of_root, cube], like(root))
    of_square = write.op("div", [of_mean], like(wide))
    doubled = write.op("pow", [wide], like(wide))
    doubled = write.op("mul", [doubled], like(wide))
    through = write.op("mul", [of_square, doubled], like(wide))
    _into(write, "add", [direct, through], of_input)


def _by_purpose(outputs: list[int], attributes: dict[str, object]) -> tuple[int | None, int | None]:
    """The gradients of input and weight; those that nobody asked for are not there."""
    left = iter(outputs)
    of_input = next(left) if attributes["input_gradient"] else None
    return of_input, next(left) if attributes["weight_gradient"] else None


def _into(write: Emitter, name: str, inputs: list[int], output: int) -> None:
    """The op in fp32, and a cast where the output is narrower."""
    if write.program.tensor_dtype[output] == FLOAT32:
        write.op(name, inputs, output)
    else:
        write.op("_to_copy", [write.op(name, inputs, write.program.like(output, dtype=FLOAT32))], output)
