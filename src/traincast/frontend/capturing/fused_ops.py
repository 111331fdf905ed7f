"""Attention, recurrent layers and RMS norm as single ops, with the shapes that a fused backend would give them.

On meta and CPU tensors PyTorch takes these apart (2,500 ops for a small LSTM), on CUDA it does not. The capture
redirects the calls to the ops below; lowering then says which kernel a target really runs. They have shapes and a
derivative, but no kernel: nothing is ever computed with them.
"""

from __future__ import annotations

from typing import Any

import torch

NAMESPACE = "traincast"
_library = torch.library.Library(NAMESPACE, "DEF")
_library.define(
    "attention(Tensor query, Tensor key, Tensor value, Tensor? bias, float dropout_p, bool is_causal, int window=0)"
    " -> (Tensor, Tensor)"
)
_library.define(
    "attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor output,"
    " Tensor logsumexp, float dropout_p, bool is_causal, bool bias_gradient, int window=0)"
    " -> (Tensor, Tensor, Tensor, Tensor?)"
)
_library.define("rms_norm(Tensor input, Tensor? weight, int n_dims) -> (Tensor, Tensor)")
_library.define(
    "rms_norm_backward(Tensor grad, Tensor input, Tensor root, Tensor? weight, bool input_gradient,"
    " bool weight_gradient) -> (Tensor?, Tensor?)"
)
_library.define(
    "rnn(Tensor input, Tensor[] hidden, Tensor[] weights, str mode, int n_layers, int n_directions, bool train,"
    " bool batch_first) -> (Tensor, Tensor, Tensor, Tensor)"
)
_library.define(
    "rnn_backward(Tensor grad, Tensor input, Tensor[] hidden, Tensor[] weights, Tensor output, Tensor reserve,"
    " str mode, int n_layers, int n_directions, bool batch_first, bool input_gradient, bool hidden_gradient)"
    " -> (Tensor?, Tensor[], Tensor[])"
)


def attend(query: Any, key: Any, value: Any, *, window: int = 0) -> Any:
    """Causal attention, of the last `window` tokens alone where one is given; heads may share keys."""
    return torch.ops.traincast.attention(query, key, value, None, 0.0, True, window)[0]


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Per step, layer and direction a fused RNN keeps its gate activations, plus the cell or candidate state.
_RESERVE = {"lstm": 6, "gru": 5, "rnn_tanh": 1, "rnn_relu": 1}


@torch.library.register_fake(f"{NAMESPACE}::attention", lib=_library)
def _attention(  # noqa: PLR0913  (the signature of the op)
    query: Any, key: Any, value: Any, bias: Any, dropout_p: float, is_causal: bool, window: int = 0
) -> tuple[Any, Any]:
    same_width = query.shape[-1] == value.shape[-1]
    output = (
        torch.empty_like(query) if same_width else _heads_beside_features((*query.shape[:-1], value.shape[-1]), query)
    )
    return output, query.new_empty(query.shape[:-1], dtype=torch.float32)


def _heads_beside_features(shape: tuple[int, ...], like: Any) -> Any:
    """Memory in the order (batch, position, head, feature): merging the heads afterwards is a view."""
    *batch, heads, n_positions, width = shape
    return like.new_empty((*batch, n_positions, heads, width)).transpose(-2, -3)


@torch.library.register_fake(f"{NAMESPACE}::attention_backward", lib=_library)
def _attention_backward(  # noqa: PLR0913  (the signature of the op)
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    output: Any,
    logsumexp: Any,
    dropout_p: float,
    is_causal: bool,
    bias_gradient: bool,
    window: int = 0,
) -> tuple[Any, ...]:
    gradients = [_heads_beside_features(tuple(tensor.shape), tensor) for tensor in (query, key, value)]
    return (*gradients, torch.empty_like(bias) if bias_gradient else None)


def _attention_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, Any]) -> None:
    query, key, value, bias, ctx.dropout_p, ctx.is_causal, ctx.window = inputs
    ctx.set_materialize_grads(False)
    ctx.bias_gradient = bias is not None and ctx.needs_input_grad[3]
    ctx.save_for_backward(query, key, value, bias, *output)


def _attention_derivative(ctx: Any, grad: Any, _: Any) -> tuple[Any, ...]:
    saved = ctx.saved_tensors
    arguments = (grad, *saved, ctx.dropout_p, ctx.is_causal, ctx.bias_gradient)
    window = (ctx.window,) if ctx.window else ()
    return (*torch.ops.traincast.attention_backward(*arguments, *window), None, None, None)


torch.library.register_autograd(
    f"{NAMESPACE}::attention", _attention_derivative, setup_context=_attention_context, lib=_library
)


@torch.library.register_fake(f"{NAMESPACE}::rms_norm", lib=_library)
def _rms_norm(input: Any, weight: Any, n_dims: int) -> tuple[Any, Any]:
    """The output, and one over the root of each row's mean square."""
    row = (*input.shape[: input.dim() - n_dims], *(1 for _ in range(n_dims)))
    return torch.empty_like(input), input.new_empty(row, dtype=torch.float32)


@torch.library.register_fake(f"{NAMESPACE}::rms_norm_backward", lib=_library)
def _rms_norm_backward(
    grad: Any, input: Any, root: Any, weight: Any, input_gradient: bool, weight_gradient: bool
) -> tuple[Any, Any]:
    return torch.empty_like(input) if input_gradient else None, torch.empty_like(weight) if weight_gradient else None


def _rms_norm_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, Any]) -> None:
    input, weight, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.input_gradient, ctx.weight_gradient = ctx.needs_input_grad[:2]
    ctx.save_for_backward(input, output[1], weight)


def _rms_norm_derivative(ctx: Any, grad: Any, _: Any) -> tuple[Any, ...]:
    wanted = (ctx.input_gradient, ctx.weight_gradient)
    return (*torch.ops.traincast.rms_norm_backward(grad, *ctx.saved_tensors, *wanted), None)


torch.library.register_autograd(
    f"{NAMESPACE}::rms_norm", _rms_norm_derivative, setup_context=_rms_norm_context, lib=_library
)


def _rnn_sizes(input: Any, hidden: list[Any], weights: list[Any], mode: str) -> tuple[int, int]:
    """Width of the state and of the output of one direction (they differ where an LSTM projects)."""
    width = weights[0].shape[0] // GATES[mode]
    return width, hidden[0].shape[-1]


@torch.library.register_fake(f"{NAMESPACE}::rnn", lib=_library)
def _rnn(  # noqa: PLR0913  (the signature of the op)
    input: Any,
    hidden: list[Any],
    weights: list[Any],
    mode: str,
    n_layers: int,
    n_directions: int,
    train: bool,
    batch_first: bool,
) -> tuple[Any, Any, Any, Any]:
    width, output_width = _rnn_sizes(input, hidden, weights, mode)
    output = input.new_empty((*input.shape[:-1], n_directions * output_width))
    if batch_first and input.dim() == 3:  # kernels work on one time step after another, and transpose at the end
        n_batch, n_steps, width_out = output.shape
        output = input.new_empty((n_steps, n_batch, width_out)).transpose(0, 1)
    cell = torch.empty_like(hidden[-1]) if mode == "lstm" else input.new_empty((0,))
    n_saved = _RESERVE[mode] * width * n_layers * n_directions if train else 0
    reserve = input.new_empty((*input.shape[:-1], n_saved))
    return output, torch.empty_like(hidden[0]), cell, reserve


@torch.library.register_fake(f"{NAMESPACE}::rnn_backward", lib=_library)
def _rnn_backward(  # noqa: PLR0913  (the signature of the op)
    grad: Any,
    input: Any,
    hidden: list[Any],
    weights: list[Any],
    output: Any,
    reserve: Any,
    mode: str,
    n_layers: int,
    n_directions: int,
    batch_first: bool,
    input_gradient: bool,
    hidden_gradient: bool,
) -> tuple[Any, list[Any], list[Any]]:
    return (
        torch.empty_like(input) if input_gradient else None,
        [torch.empty_like(state) for state in hidden] if hidden_gradient else [],
        [torch.empty_like(weight) for weight in weights],
    )


def _rnn_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    input, hidden, weights, ctx.mode, ctx.n_layers, ctx.n_directions, _, ctx.batch_first = inputs
    ctx.set_materialize_grads(False)
    ctx.input_gradient = input.requires_grad
    ctx.hidden_gradient = any(state.requires_grad for state in hidden)
    ctx.n_hidden = len(hidden)
    ctx.save_for_backward(input, *hidden, *weights, output[0], output[3])


def _rnn_derivative(ctx: Any, grad: Any, *_: Any) -> tuple[Any, ...]:
    input, *rest, output, reserve = ctx.saved_tensors
    hidden, weights = rest[: ctx.n_hidden], rest[ctx.n_hidden :]
    if grad is None:  # only the final state was used
        grad = torch.zeros_like(output)
    settings = (
        ctx.mode,
        ctx.n_layers,
        ctx.n_directions,
        ctx.batch_first,
        ctx.input_gradient,
        ctx.hidden_gradient,
    )
    grads = torch.ops.traincast.rnn_backward(grad, input, hidden, weights, output, reserve, *settings)
    return (grads[0], grads[1] or [None] * ctx.n_hidden, grads[2], None, None, None, None, None)


torch.library.register_autograd(f"{NAMESPACE}::rnn", _rnn_derivative, setup_context=_rnn_context, lib=_library)
