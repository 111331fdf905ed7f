"""ONNX recurrent nodes as torch's own: the same arithmetic, with the gates in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from traincast.errors import CaptureError

if TYPE_CHECKING:
    from traincast.frontend.onnx_model.graph import Node
    from traincast.frontend.onnx_model.layers import Parameters

# Where torch's gates are found among ONNX's: i o f c for i f g o, and z r h for r z n.
GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
CLASSES = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
DEFAULT_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


class Recurrent(nn.Module):
    """An LSTM, GRU or RNN that takes and gives the shapes of ONNX: (steps, directions, batch, width)."""

    def __init__(self, rnn: Any) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, x: Any, _lengths: Any = None, hidden: Any = None, cell: Any = None) -> tuple[Any, ...]:
        state = None
        if isinstance(hidden, torch.Tensor):
            state = (hidden, cell) if isinstance(self.rnn, nn.LSTM) else hidden
        out, last = self.rnn(x, state)
        n_directions = 2 if self.rnn.bidirectional else 1
        if n_directions == 1:
            out = out.unsqueeze(1)
        else:
            out = out.unflatten(-1, (n_directions, self.rnn.hidden_size)).transpose(1, 2)
        return (out, *last) if isinstance(last, tuple) else (out, last)


def recurrent(node: Node, parameters: Parameters) -> Any:
    """The module of a recurrent node whose weights are stored."""
    _refuse_unusual(node)
    weight, again, bias = (parameters.source(node, index) for index in (1, 2, 3))
    if weight is None or again is None:
        raise CaptureError(f"The weights of the ONNX node '{node.name}' ({node.op}) are computed, not stored.")
    n_directions, n_rows, n_inputs = parameters.weights.shape(weight)
    width = n_rows // len(GATES[node.op])
    rnn = CLASSES[node.op](
        n_inputs,
        width,
        bias=bias is not None,
        bidirectional=n_directions == 2,
        device="meta",
        **_options(node),
    )
    if parameters.weights.with_values:
        rnn = rnn.to_empty(device="cpu")
        for direction in range(n_directions):
            suffix = "_l0_reverse" if direction else "_l0"
            _fill(rnn, f"weight_ih{suffix}", parameters.values(weight)[direction], node)
            _fill(rnn, f"weight_hh{suffix}", parameters.values(again)[direction], node)
            if bias is not None:
                first, second = parameters.values(bias)[direction].chunk(2)
                _fill(rnn, f"bias_ih{suffix}", first, node)
                _fill(rnn, f"bias_hh{suffix}", second, node)
    return Recurrent(rnn)


def _options(node: Node) -> dict[str, Any]:
    relu = node.op == "RNN" and (node.get("activations") or ["Tanh"])[0] == "Relu"
    return {"nonlinearity": "relu"} if relu else {}


def _fill(rnn: Any, name: str, values: Any, node: Node) -> None:
    gates = values.chunk(len(GATES[node.op]))
    with torch.no_grad():
        getattr(rnn, name).copy_(torch.cat([gates[index] for index in GATES[node.op]]))


def _refuse_unusual(node: Node) -> None:
    activations = node.get("activations") or []
    usual = [str(name) if isinstance(name, str) else name.decode() for name in activations]
    expected = DEFAULT_ACTIVATIONS[node.op]
    ok = all(name in expected or node.op == "RNN" for name in usual)
    reasons = {
        "other activations": not ok,
        "a clipped cell": bool(node.get("clip")),
        "peepholes": len(node.inputs) > 7 and bool(node.inputs[7]),
        "the batch first": bool(node.get("layout", 0)),
        "a reverse direction alone": node.get("direction", "forward") == "reverse",
        "a reset before the product": node.op == "GRU" and not node.get("linear_before_reset", 0),
    }
    if found := [reason for reason, present in reasons.items() if present]:
        raise CaptureError(
            f"The ONNX node '{node.name}' ({node.op}) uses {found[0]}, which torch's {node.op} does not support."
        )
