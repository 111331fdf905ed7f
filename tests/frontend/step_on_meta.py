"""Run a training step without values, as the capture does, and count its flop with PyTorch's own counter."""

import copy
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode


@dataclass(frozen=True)
class Ran:
    forward_flop: int
    flop: int
    without_gradient: tuple[str, ...]
    output: object
    loss: torch.Tensor


def meta_copy(module):
    memo = {}
    for tensor in module.parameters():
        empty = torch.empty_like(tensor, device="meta", requires_grad=False)
        memo[id(tensor)] = torch.nn.Parameter(empty, requires_grad=tensor.requires_grad)
    for tensor in module.buffers():
        memo[id(tensor)] = torch.empty_like(tensor, device="meta")
    return copy.deepcopy(module, memo).train()


def run_on_meta(step, batch_size):
    """Forward, loss and backward of a step (or of anything with `module`, `example` and `loss`)."""
    module = meta_copy(step.module)
    inputs = pytree.tree_map(_to_meta, step.example(batch_size))
    with FlopCounterMode(display=False) as counter:
        output = _call(module, inputs)
        loss = step.loss(output, inputs) if step.loss is not None else own_loss(output)
        forward_flop = counter.get_total_flops()
        loss.backward()
    missing = tuple(n for n, p in module.named_parameters() if p.requires_grad and p.grad is None)
    return Ran(forward_flop, counter.get_total_flops(), missing, output, loss)


def own_loss(output):
    loss = getattr(output, "loss", None)
    if loss is not None:
        return loss
    return next(
        leaf for leaf in pytree.tree_leaves(output) if torch.is_tensor(leaf) and leaf.is_floating_point()
    ).mean()


def _to_meta(value):
    return torch.empty_like(value, device="meta") if torch.is_tensor(value) else value


def _call(module, inputs):
    if isinstance(inputs, dict):
        return module(**inputs)
    return module(*inputs) if isinstance(inputs, tuple) else module(inputs)
