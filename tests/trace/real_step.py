"""Real training steps on CPU tensors, written down by the same recorder: what a lowered trace is compared with."""

from collections import Counter
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from traincast.frontend.capturing.recorder import Recorder, tensors_in
from traincast.frontend.capturing.run_step import run_step
from traincast.frontend.capturing.symbolic import join
from traincast.frontend.models import bert, gpt2, llama, training_step, vit
from traincast.frontend.models.training_step import build_for_training
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.traffic import op_bytes, tensor_bytes

OPTIMIZERS = {
    "sgd": lambda weights, foreach: torch.optim.SGD(weights, lr=0.1, foreach=foreach),
    "momentum": lambda weights, foreach: torch.optim.SGD(weights, lr=0.1, momentum=0.9, foreach=foreach),
    "nesterov": lambda weights, foreach: torch.optim.SGD(weights, lr=0.1, momentum=0.9, nesterov=True, foreach=foreach),
    "adagrad": lambda weights, foreach: torch.optim.Adagrad(weights, foreach=foreach),
    "adadelta": lambda weights, foreach: torch.optim.Adadelta(weights, foreach=foreach),
    "rmsprop": lambda weights, foreach: torch.optim.RMSprop(weights, foreach=foreach),
    "adam": lambda weights, foreach: torch.optim.Adam(weights, foreach=foreach),
    "adamw": lambda weights, foreach: torch.optim.AdamW(weights, foreach=foreach),
}
# Two test processes with two threads each would spend their time waiting for one another.
torch.set_num_threads(1)
# Host work of the optimizer's Python code: no device sees it.
_HOST_ONLY = ("aten.lift_fresh", "aten._local_scalar_dense", "profiler.")


def record_real(module, inputs, loss, *, optimizer=None, autocast=None):
    """The graph of one real step at the batch of the inputs; an optimizer has made a step before."""
    module.train()
    if optimizer is not None:
        for weight in module.parameters():
            weight.grad = torch.zeros_like(weight)
        optimizer.step()
    module.zero_grad(set_to_none=True)
    recorder = Recorder([path for path, _ in module.named_modules()])
    lower_precision = torch.autocast("cpu", dtype=autocast) if autocast else None
    run_step(module, inputs, recorder, loss=loss, train=True, autocast=lower_precision, optimizer=optimizer)
    module.zero_grad(set_to_none=True)
    batch_size = next(tensors_in((inputs,))).shape[0]
    return join({batch_size: recorder.recording}, recorder.module_names, [])


def products(graph, batch_size):
    """Matrix products and convolutions with the shapes and dtypes that they read, and how often each runs."""
    found = Counter()
    for op, inputs in enumerate(graph.op_inputs.rows()):
        if "mm" in graph.name_of(op) or "convolution" in graph.name_of(op):
            read = tuple((graph.shape_of(tensor, batch_size), int(graph.tensor_dtype[tensor])) for tensor in inputs)
            found[graph.name_of(op), read] += 1
    return found


def optimizer_ops(graph):
    """Names of the optimizer's device ops, in order."""
    kinds = op_kinds(graph)
    return [
        graph.name_of(op)
        for op in np.flatnonzero(graph.op_phase == Phase.OPTIMIZER)
        if not graph.name_of(op).startswith(_HOST_ONLY) and kinds[op] != OpKind.VIEW
    ]


def moved_bytes(graph, batch_size, *, phase=None):
    moved = op_bytes(graph, np.array([batch_size]))[0]
    chosen = slice(None) if phase is None else graph.op_phase == phase
    return float(moved[chosen].sum())


def read_bytes(graph, batch_size, *, phase):
    """What the ops of a phase read, each tensor once an op.

    Real multi-tensor ops return nothing, so what they write is not recorded.
    """
    sizes = tensor_bytes(graph, np.array([batch_size]))[0]
    rows = graph.op_inputs.rows()
    return float(sum(sizes[sorted(set(rows[op]))].sum() for op in np.flatnonzero(graph.op_phase == phase)))


def small_model(name):
    """A module of the zoo's own classes that steps in a blink, with its example and loss."""
    torch.manual_seed(0)
    if name == "bert":
        sizes = bert.BertSizes(hidden=64, n_layers=2, n_heads=4, feed_forward=256, vocabulary=500)
        return bert.BertForQuestionAnswering(sizes), _tokens(32), training_step.span_loss
    if name == "gpt2":
        sizes = gpt2.Gpt2Sizes(hidden=64, n_layers=2, n_heads=4, vocabulary=500, n_positions=32)
        return gpt2.Gpt2(sizes), _tokens(32), training_step.next_token_loss
    if name == "llama":
        sizes = llama.LlamaSizes(hidden=64, n_layers=2, n_heads=4, n_kv_heads=2, feed_forward=128, vocabulary=500)
        return llama.Llama(sizes), _tokens(32), training_step.next_token_loss
    if name == "vit_b_16":
        with mock.patch.multiple(vit, HIDDEN=64, N_HEADS=4, N_LAYERS=2, FEED_FORWARD=256):
            return build_for_training(name, image_size=64, n_classes=10)
    options = {"mobilenet_v2": {"image_size": 64, "n_classes": 10}, "lstm_lm": {"seqlen": 8}}
    return build_for_training(name, **options.get(name, {}))


def _tokens(seqlen):
    return lambda batch_size: (torch.zeros(batch_size, seqlen, dtype=torch.long),)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Stack(nn.Module):
    """Eight blocks, which forget their insides until backward if asked to."""

    def __init__(self, use_reentrant):
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.blocks = nn.ModuleList(Block() for _ in range(8))
        self.use_reentrant = use_reentrant

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x) if self.use_reentrant is None else checkpoint(block, x, use_reentrant=self.use_reentrant)
        return x
