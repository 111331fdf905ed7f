"""LoRA: two thin matrices beside each linear layer of the blocks, which alone are trained; the rest is frozen.

As peft runs it, without dropout: y + scale * B(A(x)). Backward is what autograd would still run: gradients of the thin
matrices, and of inputs only where an adapter lies before. QLoRA keeps the frozen linear layers of the blocks in four
bits and makes 16-bit weights of them each time they are used, forward and backward.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from traincast.errors import InputError
from traincast.trace.adapter_text import Adapter, fits_name
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.rewrite.blocks import blocks_of
from traincast.trace.rewrite.draft import Dim, Draft, DraftOp
from traincast.trace.rewrite.four_bit import quantize
from traincast.trace.rewrite.prune import prune_backward
from traincast.trace.trace import Parameter, Trace


@dataclass(frozen=True, slots=True)
class Linear:
    """A product of the forward pass with a weight of its own: its op, its module's path, and the weight."""

    op: int
    path: str
    weight: int

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def adapted(trace: Trace, adapter: Adapter) -> Trace:
    """The trace of fine-tuning with adapters."""
    if trace.mode != "train":
        raise InputError(f"adapter '{adapter.text}' is for training, and {trace.name} was captured for inference.")
    layers = linear_layers(trace)
    chosen = _chosen(trace, layers, adapter)
    draft = Draft(trace)
    draft.parameters = [replace(each, gradient=-1, is_trainable=False) for each in draft.parameters]
    if adapter.is_quantized:
        quantize(draft, sorted({layer.weight for layer in layers}))
    writer = _Writer(draft, adapter.rank)
    for layer in chosen:
        writer.add(layer)
    draft.insert(writer.after, after=True)
    draft.insert(writer.before)
    prune_backward(draft)
    told = f"{adapter.text}: adapters of rank {adapter.rank} beside {_named(chosen)} of every block, all else frozen"
    return draft.finish(assumptions=(*trace.assumptions, told))


def linear_layers(trace: Trace) -> tuple[Linear, ...]:
    """Those of the blocks, in the order in which they run."""
    graph, kinds = trace.graph, op_kinds(trace.graph)
    inputs, storage = graph.op_inputs.rows(), graph.tensor_storage
    weights = {int(storage[each.tensor]): each.tensor for each in trace.parameters}
    found = []
    for block in blocks_of(trace):
        for op in block.ops:
            if kinds[op] != OpKind.GEMM:
                continue
            weight = weights.get(int(storage[inputs[op][-1]]))
            if weight is not None:
                found.append(Linear(op, trace.modules[graph.op_module[op]].path, weight))
    return tuple(found)


def _chosen(trace: Trace, layers: tuple[Linear, ...], adapter: Adapter) -> tuple[Linear, ...]:
    """The layers that the adapter names, or all of them."""
    if not layers:
        raise InputError(
            f"adapter '{adapter.text}' goes beside linear layers of repeated blocks, and {trace.name} has none: leave "
            "it out."
        )
    if not adapter.layers:
        return layers
    for name in adapter.layers:
        if not any(fits_name(layer.name, name) for layer in layers):
            raise InputError(
                f"adapter '{adapter.text}': no linear layer in the blocks of {trace.name} is called '{name}'. They are "
                f"{_named(layers)}."
            )
    return tuple(layer for layer in layers if any(fits_name(layer.name, name) for name in adapter.layers))


def _named(layers: tuple[Linear, ...]) -> str:
    return ", ".join(dict.fromkeys(layer.name for layer in layers))


class _Writer:
    """Adds the ops of adapters; `after` and `before` say where they go."""

    def __init__(self, draft: Draft, rank: int) -> None:
        self.draft, self.rank = draft, rank
        self.after: dict[int, list[int]] = {}
        self.before: dict[int, list[int]] = {}
        self.readers: dict[int, list[int]] = {}
        self.backward_of: dict[int, list[int]] = {}
        for key, op in draft.ops.items():
            for tensor in set(op.inputs):
                self.readers.setdefault(tensor, []).append(key)
            if op.phase == Phase.BACKWARD:
                self.backward_of.setdefault(op.forward, []).append(key)
        self.on_storage: dict[int, list[int]] = {}
        for tensor, storage in enumerate(draft.tensor_storage):
            self.on_storage.setdefault(storage, []).append(tensor)
        self.gradients: dict[int, set[int]] = {}
        for gradient, forward in draft.gradient_of:
            self.gradients.setdefault(forward, set()).add(gradient)

    def add(self, layer: Linear) -> None:
        """Forward beside the layer, backward before that of the layer."""
        draft, base = self.draft, self.draft.ops[layer.op]
        x, (y,) = base.inputs[-2], base.outputs
        rows, n_in = draft.dims(x)
        n_out = draft.dims(y)[-1]
        down = self._weight(f"{layer.path}.lora_A.weight", [self.rank, n_in], y)
        up = self._weight(f"{layer.path}.lora_B.weight", [n_out, self.rank], y)
        write = _Steps(draft, base)
        thin = write.linear(x, down, [rows, self.rank])
        wide = write.linear(thin.output, up, [rows, n_out])
        scaled = write.op("aten.mul", [wide.output], [rows, n_out])
        total = write.op("aten.add", [y, scaled.output], [rows, n_out])
        self.after.setdefault(layer.op, []).extend(write.keys)
        self._replace(y, total.output, but={total.key, *self.backward_of.get(layer.op, ())})
        self._backward(layer, (x, y, total.output), (down, up), (thin, wide, scaled))

    def _weight(self, name: str, dims: list[Dim], like: int) -> int:
        draft = self.draft
        tensor = draft.tensor(dims, draft.tensor_dtype[like], storage=draft.storage(StorageKind.WEIGHT))
        draft.parameters.append(Parameter(name, tensor, -1, True))
        return tensor

    def _replace(self, old: int, new: int, *, but: set[int]) -> None:
        """Whoever read one tensor reads the other, and what was a view of it is one of the other."""
        storage = self.draft.tensor_storage
        for tensor in self.on_storage.get(storage[old], []):
            if tensor != old:
                storage[tensor] = storage[new]
        for key in self.readers.get(old, []):
            if key not in but:
                op = self.draft.ops[key]
                op.inputs = [new if tensor == old else tensor for tensor in op.inputs]
                self.readers.setdefault(new, []).append(key)

    def _backward(
        self, layer: Linear, around: tuple[int, int, int], weights: tuple[int, int], forward: tuple[_Made, _Made, _Made]
    ) -> None:
        draft, (x, y, total) = self.draft, around
        own = self.backward_of.get(layer.op, [])
        read = {tensor for key in own for tensor in draft.ops[key].inputs}
        gradient = next(iter(self.gradients.get(y, set()) & read), None)
        if gradient is None:
            return
        (down, up), (thin, wide, scaled) = weights, forward
        rows, n_in = draft.dims(x)
        n_out = draft.dims(y)[-1]
        write = _Steps(draft, draft.ops[layer.op], phase=Phase.BACKWARD)
        of_scaled = write.op("aten.mul", [gradient], [rows, n_out], forward=scaled.key)
        flipped = write.view(of_scaled.output, [n_out, rows], forward=wide.key)
        of_up = write.op("aten.mm", [flipped, thin.output], [n_out, self.rank], forward=wide.key)
        of_thin = write.op("aten.mm", [of_scaled.output, up], [rows, self.rank], forward=wide.key)
        flipped = write.view(of_thin.output, [self.rank, rows], forward=thin.key)
        of_down = write.op("aten.mm", [flipped, x], [self.rank, n_in], forward=thin.key)
        of_x = write.op("aten.mm", [of_thin.output, down], [rows, n_in], forward=thin.key)
        self.before.setdefault(own[0], []).extend(write.keys)
        pairs = [(gradient, total), (of_scaled.output, wide.output), (of_up.output, up), (of_thin.output, thin.output)]
        draft.gradient_of += [*pairs, (gradient, scaled.output), (of_down.output, down), (of_x.output, x)]
        self._learns(up, of_up.output)
        self._learns(down, of_down.output)
        self._add_up(layer, x, of_x.output, own)

    def _learns(self, weight: int, gradient: int) -> None:
        parameters = self.draft.parameters
        place = next(place for place in range(len(parameters) - 1, -1, -1) if parameters[place].tensor == weight)
        parameters[place] = replace(parameters[place], gradient=gradient)

    def _add_up(self, layer: Linear, x: int, of_x: int, own: list[int]) -> None:
        """The gradient of the layer's input is that through the layer and that through the adapter."""
        draft = self.draft
        through = next((key for key in own if set(draft.ops[key].outputs) & self.gradients.get(x, set())), None)
        if through is None:
            return
        (direct,) = set(draft.ops[through].outputs) & self.gradients[x]
        write = _Steps(draft, draft.ops[layer.op], phase=Phase.BACKWARD)
        total = write.op("aten.add", [direct, of_x], draft.dims(x), forward=-1)
        self.after.setdefault(through, []).extend(write.keys)
        draft.gradient_of.append((total.output, x))
        self._replace(direct, total.output, but={total.key})


@dataclass(frozen=True, slots=True)
class _Made:
    key: int
    output: int


class _Steps:
    """Ops in a row, in the module of another one."""

    def __init__(self, draft: Draft, beside: DraftOp, *, phase: Phase | None = None) -> None:
        self.draft, self.beside = draft, beside
        self.phase = beside.phase if phase is None else int(phase)
        self.dtype = draft.tensor_dtype[beside.outputs[0]]
        self.keys: list[int] = []

    def op(self, name: str, inputs: list[int], dims: list[Dim], *, forward: int = -1, call: int = -1) -> _Made:
        return self._add(name, inputs, self.draft.tensor(dims, self.dtype), forward, call)

    def view(self, tensor: int, dims: list[Dim], *, forward: int = -1, call: int = -1) -> int:
        seen = self.draft.tensor(dims, self.draft.tensor_dtype[tensor], storage=self.draft.tensor_storage[tensor])
        return self._add("aten.t", [tensor], seen, forward, call).output

    def linear(self, x: int, weight: int, dims: list[Dim]) -> _Made:
        """A call of the function `linear`, which autocast sees as one."""
        call = len(self.draft.call_functions)
        self.draft.call_functions.append("linear")
        turned = self.view(weight, self.draft.dims(weight)[::-1], call=call)
        return self.op("aten.mm", [x, turned], dims, call=call)

    def _add(self, name: str, inputs: list[int], output: int, forward: int, call: int) -> _Made:
        op = DraftOp(name, "{}", self.phase, self.beside.module, inputs, [output], forward=forward, call=call)
        self.keys.append(self.draft.add(op))
        return _Made(self.keys[-1], output)
