"""Our fusion beside Inductor's own decisions, without a GPU: kernels that are generated, and the bytes they move.

    python benchmarks/inductor_kernels.py [--show NAME]

Inductor plans its kernels before it writes them. With `cpu_backend = "triton"` it plans CPU tensors by the rules of
its GPU code, and the plan is read here, by internals of PyTorch 2.13, before anything would have to be compiled. What
differs on a real GPU: convolutions keep their bias here, and images are always turned to channels-last (copies of
inputs into that layout are left out of the count).
"""

from __future__ import annotations

import argparse
import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch._inductor.config
from functorch.compile import make_boxed_func
from torch import nn
from torch._inductor import compile_fx, scheduler
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch.nn import functional

import traincast as tc
from traincast.trace.graph import Phase
from traincast.trace.lowering.fuse import FUSED, FUSED_REDUCTION, fuse
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes

BATCH = 32


@dataclass(frozen=True)
class Plan:
    """What one graph, forward or backward, runs."""

    n_library: int
    n_generated: int
    generated_bytes: int
    kernels: tuple[str, ...] = ()


class Mlp(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(256) for _ in range(2))
        self.wide = nn.ModuleList(nn.Linear(256, 1024) for _ in range(2))
        self.narrow = nn.ModuleList(nn.Linear(1024, 256) for _ in range(2))

    def forward(self, x: Any) -> Any:
        for norm, wide, narrow in zip(self.norms, self.wide, self.narrow, strict=True):
            x = x + self.dropout(narrow(functional.gelu(wide(norm(x)))))
        return x.square().mean()


class RmsNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(256))

    def forward(self, x: Any) -> Any:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = RmsNorm(), RmsNorm()
        self.q, self.k, self.v, self.o = (nn.Linear(256, 256, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(256, 704, bias=False), nn.Linear(256, 704, bias=False)
        self.down = nn.Linear(704, 256, bias=False)
        self.register_buffer("cos", torch.ones(16, 64))
        self.register_buffer("sin", torch.ones(16, 64))

    def turned(self, x: Any) -> Any:
        left, right = x.chunk(2, -1)
        return x * self.cos + torch.cat((-right, left), -1) * self.sin

    def forward(self, x: Any) -> Any:
        h = self.first(x)
        q, k, v = (part(h).view(-1, 16, 4, 64).transpose(1, 2) for part in (self.q, self.k, self.v))
        a = functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(-1, 16, 256))
        h = self.second(x)
        return (x + self.down(functional.silu(self.gate(h)) * self.up(h))).mean()


class Basic(nn.Module):
    def __init__(self, *, excite: bool = False) -> None:
        super().__init__()
        self.one, self.two = (nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.second_norm = nn.BatchNorm2d(64), nn.BatchNorm2d(64)
        self.squeeze = nn.Conv2d(64, 64, 1, bias=False) if excite else None

    def forward(self, x: Any) -> Any:
        x = self.one(x)
        y = self.second_norm(self.two(functional.relu(self.norm(x))))
        if self.squeeze is not None:
            y = y * torch.sigmoid(self.squeeze(y.mean((2, 3), keepdim=True)))
        return functional.relu(x + y).mean()


class Dense(nn.Module):
    """Concatenations, as in DenseNet, with group norm."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(32 * n, 32, 3, padding=1, bias=False) for n in (1, 2, 3))
        self.norms = nn.ModuleList(nn.GroupNorm(8, 32 * n) for n in (1, 2, 3))

    def forward(self, x: Any) -> Any:
        parts = [x]
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            parts.append(convolution(functional.silu(norm(torch.cat(parts, 1)))))
        return torch.cat(parts, 1).mean()


class Head(nn.Module):
    """Attention by hand, and a loss over many classes."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.classes = nn.Linear(256, 768), nn.Linear(256, 5000)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).chunk(3, -1)
        x = torch.softmax(q @ k.transpose(1, 2) * 0.1, -1) @ v
        logits = self.classes(x).flatten(0, 1)
        return functional.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long, device=x.device))


CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "mlp": (Mlp, (16, 256)),
    "dropout": (lambda: Mlp(0.1), (16, 256)),
    "llama": (Llama, (16, 256)),
    "basic": (Basic, (64, 28, 28)),
    "squeeze-excite": (lambda: Basic(excite=True), (64, 28, 28)),
    "dense": (Dense, (32, 28, 28)),
    "head": (Head, (16, 256)),
}


def planned_by_inductor(model: nn.Module, example: torch.Tensor, *, trains: bool) -> list[Plan]:
    """Forward, and backward after it. On GPUs a concatenation that only loops read is one of them, here on request."""
    joins = isinstance(model, Llama)
    plans: list[Plan] = []

    def plan(gm: Any, inputs: Any, **options: Any) -> Any:
        eager, fake = copy.deepcopy(gm), torch._guards.detect_fake_mode(inputs)
        is_inference = bool(options.get("is_inference"))
        with torch.no_grad(), V.set_fake_mode(fake):
            compile_fx.record_original_output_strides(gm)
            compile_fx.view_to_reshape(gm)
            compile_fx.fake_tensor_prop(gm, inputs)
            compile_fx._recursive_post_grad_passes(gm, is_inference=is_inference)
            is_backward = bool(options.get("is_backward"))
            graph = GraphLowering(gm, inputs, fake.shape_env, is_inference=is_inference, is_backward=is_backward)
            with V.set_debug_handler(DebugContext()), V.set_graph_handler(graph), V.set_extern_kernel_nodes([]):
                graph.run(*inputs)
                graph.init_wrapper_code()
                graph._update_scheduler()
                plans.append(_read(graph.scheduler.nodes))
        return make_boxed_func(eager.forward)

    torch._dynamo.reset()
    with torch._inductor.config.patch(cpu_backend="triton", force_pointwise_cat=joins), torch.set_grad_enabled(trains):
        found = torch.compile(model, backend=lambda gm, inputs: compile_fx.compile_fx(gm, inputs, plan))(example)
        if trains:
            found.backward()
    return plans


def _read(nodes: list[Any]) -> Plan:
    n_library, sizes, kernels = 0, [], []
    for node in nodes:
        if isinstance(node, scheduler.NopKernelSchedulerNode):
            continue
        if isinstance(node, scheduler.ExternKernelSchedulerNode):
            n_library += 1
            kernels.append(f"library {node.node.get_origin_node()}")
            continue
        if _is_turning(node):
            continue
        origins = {str(origin) for part in node.get_nodes() for origin in part.node.get_origins()}
        sizes.append(int(node.get_read_write_buffers_sizes()))
        kernels.append(f"{'reduction' if node.is_reduction() else 'pointwise'} {sizes[-1]:,} {sorted(origins)}")
    return Plan(n_library, len(sizes), sum(sizes), tuple(kernels))


def _is_turning(node: Any) -> bool:
    """A copy of an input or of weights into channels-last; a group of nodes is none."""
    if node.node is None or node.is_reduction():
        return False
    return all(str(origin).startswith(("primals", "arg", "convolution")) for origin in node.node.get_origins())


def planned_by_us(model: nn.Module, shape: tuple[int, ...], *, trains: bool) -> list[Plan]:
    trace = tc.capture(
        model,
        lambda batch: torch.zeros(batch, *shape),
        loss=lambda output, _: output,
        mode="train" if trains else "inference",
    )
    graph = fuse(lower(trace, settings=Settings("fp32", "none")))
    moved = op_bytes(graph, np.array([BATCH]))[0]
    is_generated = np.array([graph.name_of(op) in (FUSED, FUSED_REDUCTION) for op in range(graph.n_ops)])
    plans = []
    for phases in ((Phase.FORWARD, Phase.LOSS), (Phase.BACKWARD,))[: 2 if trains else 1]:
        chosen = np.isin(graph.op_phase, phases)
        kernels = tuple(
            f"{graph.name_of(op)} {moved[op]:,.0f} {[graph.shape_of(t, BATCH) for t in graph.op_inputs.rows()[op]]} -> "
            f"{[graph.shape_of(t, BATCH) for t in graph.op_outputs.rows()[op]]}"
            for op in np.flatnonzero(chosen).tolist()
        )
        ours = chosen & is_generated
        plans.append(Plan(int((chosen & ~ours).sum()), int(ours.sum()), int(moved[ours].sum()), kernels))
    return plans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", default="", help="list the kernels of this case")
    asked = parser.parse_args()
    print(f"{'case':24}{'generated kernels':>20}{'bytes moved by them':>28}{'ours/theirs':>13}")
    for name, (make, shape) in CASES.items():
        if asked.show not in ("", name):
            continue
        for trains in (False, True):
            model = make().train(trains)
            theirs = planned_by_inductor(model, torch.zeros(BATCH, *shape), trains=trains)
            ours = planned_by_us(make().train(trains), shape, trains=trains)
            parts = ("forward", "backward") if trains else ("inference",)
            for part, their, our in zip(parts, theirs, ours, strict=True):
                counts = f"{our.n_generated} of {their.n_generated}"
                moved = f"{our.generated_bytes:,} of {their.generated_bytes:,}"
                print(
                    f"{name + ' ' + part:24}{counts:>20}{moved:>28}{our.generated_bytes / their.generated_bytes:13.2f}"
                )
                if asked.show:
                    print("  Inductor:", *their.kernels, "  ours:", *our.kernels, sep="\n    ")


if __name__ == "__main__":
    main()
