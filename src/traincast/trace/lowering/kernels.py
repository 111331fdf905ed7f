"""Which kernels a target runs for the ops that PyTorch implements differently by backend."""

from __future__ import annotations

from typing import Any

from traincast.trace.dtypes import BFLOAT16, FLOAT16
from traincast.trace.lowering.attention import emit_attention, emit_attention_backward
from traincast.trace.lowering.program import Program
from traincast.trace.lowering.rms_norm import emit_rms_norm, emit_rms_norm_backward

_RENAMED = {
    ("cuda", "traincast.rnn"): "aten._cudnn_rnn",
    ("cuda", "traincast.rnn_backward"): "aten._cudnn_rnn_backward",
    ("cuda", "traincast.rms_norm"): "aten._fused_rms_norm",
    ("cuda", "traincast.rms_norm_backward"): "aten._fused_rms_norm_backward",
    ("cpu", "traincast.rnn"): "aten.mkldnn_rnn_layer",
    ("cpu", "traincast.rnn_backward"): "aten.mkldnn_rnn_layer_backward",
}

_APART_ON_CPU = {"traincast.rms_norm": emit_rms_norm, "traincast.rms_norm_backward": emit_rms_norm_backward}


def emit_kernel(program: Program, op: int, inputs: list[int], outputs: list[int], *, target: str) -> None:
    """Appends what the target runs for one neutral op whose lowered inputs and outputs are known."""
    graph, name = program.neutral, program.neutral_name[op]
    phase, module, text = program.neutral_phase[op], program.neutral_module[op], program.neutral_attributes[op]
    if name.startswith("traincast.attention") and target == "cpu" and graph.attributes_of(op)["dropout_p"] > 0:
        if name == "traincast.attention":
            emit_attention(program, op, inputs, outputs[0], is_causal=bool(graph.attributes_of(op)["is_causal"]))
        else:
            emit_attention_backward(program, op, inputs[0], outputs)
        return
    if name in _APART_ON_CPU and target == "cpu":
        _APART_ON_CPU[name](program, op, inputs, outputs)
        return
    if name.startswith("traincast.attention"):
        name = _attention_kernel(program, name, inputs, target)
    elif target == "cpu" and name == "aten.native_dropout":
        _dropout_on_cpu(program, op, inputs, outputs)
        return
    elif target == "cpu" and name == "aten.native_dropout_backward":
        name = "aten.mul"
    if target == "cpu" and name == "traincast.rnn" and graph.attributes_of(op)["mode"] == "lstm":
        _widen_workspace(program, outputs[-1])
    name = _RENAMED.get((target, name), name)
    program.main_op[op] = len(program.op_name)
    program.emit(name, inputs, outputs, phase=phase, module=module, origin=op, text=text)


def _attention_kernel(program: Program, name: str, inputs: list[int], target: str) -> str:
    """Flash attention where it can run (16 bit, no bias), else the memory-efficient kernel; CPUs have their own."""
    is_backward = name.endswith("_backward")
    n_tensors_without_bias = 6 if is_backward else 3
    query = inputs[1] if is_backward else inputs[0]
    if target == "cpu":
        kernel = "aten._scaled_dot_product_flash_attention_for_cpu"
    elif program.tensor_dtype[query] in (FLOAT16, BFLOAT16) and len(inputs) == n_tensors_without_bias:
        kernel = "aten._scaled_dot_product_flash_attention"
    else:
        kernel = "aten._scaled_dot_product_efficient_attention"
    return f"{kernel}_backward" if is_backward else kernel


def _widen_workspace(program: Program, workspace: int) -> None:
    """oneDNN's LSTM saves 15.4 numbers a unit and step (measured: 15.3 to 15.6), and one more between layers."""
    *outer, (width, _) = program.dims_of(program.tensor_shape[workspace])
    program.tensor_shape[workspace] = program.shape([*outer, (round(width * 16 / 6), 0)])


def _dropout_on_cpu(program: Program, op: int, inputs: list[int], outputs: list[int]) -> None:
    """A mask in the dtype of the input, drawn, scaled and multiplied."""
    graph = program.neutral
    where: dict[str, Any] = {
        "phase": int(graph.op_phase[op]),
        "module": int(graph.op_module[op]),
        "origin": op,
    }
    output, mask = outputs
    program.tensor_dtype[mask] = program.tensor_dtype[inputs[0]]
    program.emit("aten.bernoulli_", [mask], [mask], **where)
    program.emit("aten.div_", [mask], [mask], **where)
    program.main_op[op] = len(program.op_name)
    program.emit("aten.mul", [inputs[0], mask], [output], **where)
