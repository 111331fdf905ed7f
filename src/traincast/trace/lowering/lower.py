"""Lowering: the only path from the neutral trace to what a backend runs.

The neutral ops are walked once. Each takes its inputs in the dtype that the precision gives them, casts are written
where PyTorch would make them, and gradients come back in the dtype of what they are the gradient of. Attention,
recurrent layers and dropout become the kernels of the target; the optimizer's ops are appended.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

import numpy as np

from traincast.trace.dtypes import CODE, FLOAT16, FLOAT32, FLOAT64, FLOATS, promote
from traincast.trace.folding.folded import fold_of
from traincast.trace.graph import Graph, Phase, StorageKind
from traincast.trace.kept import Kept
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.eight_bit import Narrowing, eight_bit_products
from traincast.trace.lowering.fuse import fuse_update
from traincast.trace.lowering.kernels import emit_kernel
from traincast.trace.lowering.policy import POLICIES, PRECISION, TARGETS
from traincast.trace.lowering.program import Program
from traincast.trace.lowering.update import Roles, add_update
from traincast.trace.rewrite.blocks import block_paths
from traincast.trace.rewrite.four_bit import DEQUANTIZE
from traincast.trace.rewrite.training import as_trained
from traincast.trace.settings import Settings, check_choice
from traincast.trace.trace import Trace
from traincast.units import MIB

# Twice the zoo in all precisions. What others work out about a graph hangs on it: about as much again.
LOWERED: Kept[Trace, Graph] = Kept(128 * MIB, lambda graph: graph.n_bytes)

# The first output has the dtype of the first input, whatever the others are; further outputs are fp32 statistics.
_FOLLOWS_FIRST_INPUT = {
    "aten.batch_norm",
    "aten.native_layer_norm",
    "aten.native_group_norm",
    "aten.native_dropout",
    "traincast.attention",
    "traincast.rms_norm",
}


def lower(trace: Trace, *, target: str = "cuda", settings: Settings | None = None) -> Graph:
    """What `target` ("cuda" or "cpu") runs for this trace with these settings (default: the trace's own)."""
    check_choice("target", target, TARGETS)
    chosen = settings or trace.defaults
    precision = "fp32" if chosen.precision == "tf32" else chosen.precision  # they have the same tensors
    how = (target, replace(chosen, precision=precision))

    def make(whole: Trace) -> Graph:
        return _lowered(whole, target, chosen)

    return LOWERED.get(trace, how, lambda: _lowered_by_fold(trace, how, make) or make(trace))


def _lowered(trace: Trace, target: str, settings: Settings) -> Graph:
    graph = _Lowering(as_trained(trace, settings), target, settings).run()
    return fuse_update(graph) if settings.fuses_update and target == "cuda" else graph


def _lowered_by_fold(trace: Trace, how: Hashable, make: Callable[[Trace], Graph]) -> Graph | None:
    """By way of the short trace, if the trace was made of one."""
    fold = fold_of(trace)
    return None if fold is None else fold[0].lowered(fold[1], how, make)


class _Lowering:
    """One walk over a trace. `current` maps a neutral tensor to its lowered form."""

    def __init__(self, trace: Trace, target: str, settings: Settings) -> None:
        self.trace, self.target, self.settings = trace, target, settings
        self.graph = trace.graph
        self.program = Program(self.graph)
        self.precision = PRECISION[settings.precision]
        self.policy = POLICIES[target]
        self.kinds = op_kinds(self.graph)
        self.current: dict[int, int] = {}
        self.cast_inputs: dict[int, dict[int, int]] = {}  # forward op -> neutral tensor -> what the op really read
        self.cast_again: dict[tuple[str, int], int] = {}  # (name, neutral tensor) -> what the op read when run again
        self.cached_weights: dict[tuple[int, int, int], int] = {}  # (neutral storage, dtype, region) -> cast storage
        # Gradient checkpointing enters autocast anew for every block that it runs again: nothing is cached between.
        starts = np.diff(self.graph.op_recomputed, prepend=0) == 1
        self.recomputed_region = (np.cumsum(starts) * self.graph.op_recomputed).tolist()
        self.is_backward = ((self.graph.op_phase == Phase.BACKWARD) & (self.graph.op_recomputed == 0)).tolist()
        self.call_of = trace.op_call.tolist()
        self.versions: dict[int, dict[int, int]] = {}  # gradient -> dtype -> its lowered form in that dtype
        self.storages: dict[int, int] = {}  # neutral storage -> lowered storage
        self.is_weight = {int(self.graph.tensor_storage[parameter.tensor]) for parameter in trace.parameters}
        self.targets: dict[int, list[int]] = {}
        for gradient, forward in trace.gradient_of.tolist():
            self.targets.setdefault(gradient, []).append(forward)
        self.inputs_of, self.outputs_of = self.graph.op_inputs.rows(), self.graph.op_outputs.rows()
        self.storage_of = self.graph.tensor_storage.tolist()
        self.neutral_dtype = self.graph.tensor_dtype.tolist()
        self.narrowing = Narrowing(self.program, once=settings.stack == "megatron")
        self.gradient_storages = {self.storage_of[gradient] for gradient in self.targets}
        self.own_dtype = _own_dtype(trace)
        self.eight_bit = eight_bit_products(trace) if settings.precision == "fp8" else frozenset()
        # Gradients for fp32 masters are widened as soon as they are whole.
        self.widened = {each.gradient for each in trace.parameters} if settings.keeps_masters else set()
        calls = np.repeat(trace.op_call, self.graph.op_outputs.lengths).tolist()
        self.made_in_call = dict(zip(self.graph.op_outputs.values.tolist(), calls, strict=True))

    def run(self) -> Graph:
        self._add_existing()
        for op, (inputs, outputs) in enumerate(zip(self.inputs_of, self.outputs_of, strict=True)):
            if self.kinds[op] == OpKind.VIEW:
                self._lower_view(op, inputs, outputs)
            else:
                self._lower_op(op, inputs, outputs)
        self._finish_gradients()
        return self.program.finish()

    def _add_existing(self) -> None:
        """Parameters, buffers and inputs: there before the step, in the dtype of the precision."""
        made = set(self.graph.op_outputs.values.tolist())
        for tensor, storage in enumerate(self.storage_of):
            if tensor in made:
                continue
            dtype = self.neutral_dtype[tensor]
            if dtype == self.own_dtype:
                dtype = self.precision.parameter_dtype
            if storage not in self.storages:
                kind = StorageKind(self.graph.storage_kind[storage])
                self.storages[storage] = self.program.storage(kind, neutral=storage)
            self.current[tensor] = self.program.tensor(tensor, dtype, self.storages[storage])

    def _dtype(self, lowered: int) -> int:
        return self.program.tensor_dtype[lowered]

    def _read(self, op: int, tensor: int) -> int:
        """What an op reads: a backward op reads what its forward op had read, and gradients in the dtype it expects."""
        if not self.is_backward[op]:
            return self.current[tensor]
        cast = self._cast_for(self.program.neutral_forward[op], tensor)
        if cast is not None:
            return cast
        versions = self.versions.get(tensor)
        if versions is not None:
            wanted = self._gradient_dtype(op)
            if wanted in versions:
                return versions[wanted]
        return self.current[tensor]

    def _cast_for(self, forward: int, tensor: int) -> int | None:
        """The copy that a forward op had read of a tensor: of a checkpointed block, the copy of the second run."""
        again = self.cast_again.get((self.program.neutral_name[forward], tensor)) if forward >= 0 else None
        return self.cast_inputs.get(forward, {}).get(tensor) if again is None else again

    def _gradient_dtype(self, op: int) -> int | None:
        """The dtype in which a backward op expects gradients: that of what its forward op wrote."""
        written = self._accumulated_for(op)
        if written is None:
            forward = self.program.neutral_forward[op]
            outputs = self.outputs_of[forward] if forward >= 0 else []
            written = outputs[0] if outputs and self.neutral_dtype[outputs[0]] in FLOATS else None
        return None if written is None else self._dtype(self.current[written])

    def _accumulated_for(self, op: int) -> int | None:
        """The forward tensor whose gradients this op adds up, if that is what it does."""
        if self.program.neutral_name[op] != "aten.add":
            return None
        output, summands = self.outputs_of[op][0], self.inputs_of[op]
        common = set(self.targets.get(output, ())).intersection(*(self.targets.get(tensor, ()) for tensor in summands))
        return min(common) if common and len(summands) == 2 else None

    def _lower_view(self, op: int, inputs: list[int], outputs: list[int]) -> None:
        source = next(tensor for tensor in inputs if self.storage_of[tensor] == self.storage_of[outputs[0]])
        lowered = self._read(op, source)
        if self.is_backward[op]:
            (lowered,) = self._match_gradients(op, [source], [lowered])
        elif self._is_autocast(op):
            (lowered,) = self._autocast(op, [source], [lowered])
        if self.program.neutral_name[op] == "traincast.request_dtype":
            wanted = self._requested_dtype(op, lowered)
            if wanted != self._dtype(lowered):
                lowered = self._cast(op, lowered, wanted)
            self.current[outputs[0]] = lowered
            return
        made = [
            self.program.tensor(output, self._dtype(lowered), self.program.tensor_storage[lowered])
            for output in outputs
        ]
        self.current.update(zip(outputs, made, strict=True))
        self._emit(op, [lowered], made)
        self._return_gradients(op, outputs)

    def _requested_dtype(self, op: int, source: int) -> int:
        """A literal request gives that dtype. One that follows the model goes back to what matrix products give."""
        attributes = self.graph.attributes_of(op)
        literal = CODE[attributes["dtype"]]
        if not attributes.get("follows_model"):
            return literal if self._dtype(source) in FLOATS else self._dtype(source)
        if self.precision.autocast_dtype is None:
            return self.precision.parameter_dtype
        return self._dtype(source)

    def _lower_op(self, op: int, inputs: list[int], outputs: list[int]) -> None:
        read = [self._read(op, tensor) for tensor in inputs]
        is_backward = self.is_backward[op]
        if is_backward:
            read = self._match_gradients(op, inputs, read)
        elif self._is_autocast(op):
            read = self._autocast(op, inputs, read)
        made = [self._output(op, position, tensor, inputs, read) for position, tensor in enumerate(outputs)]
        if op in self.eight_bit:
            of_gradient = [self.storage_of[tensor] in self.gradient_storages for tensor in inputs[-2:]]
            read[-2:] = [
                self.narrowing.of(op, tensor, is_gradient=is_one)
                for tensor, is_one in zip(read[-2:], of_gradient, strict=True)
            ]
        self.current.update(zip(outputs, made, strict=True))
        self._emit(op, read, made)
        if is_backward:
            self._return_gradients(op, outputs)

    def _is_autocast(self, op: int) -> bool:
        return self.precision.autocast_dtype is not None and not self.is_backward[op]

    def _emit(self, op: int, inputs: list[int], outputs: list[int]) -> None:
        emit_kernel(self.program, op, inputs, outputs, target=self.target)

    def _cast(self, op: int, lowered: int, dtype: int, *, of_gradient: bool = False) -> int:
        """A copy in another dtype. That of a gradient is an autograd node of its own, after the op's has ended."""
        made = self.program.like(lowered, dtype=dtype)
        phase, module = self.program.neutral_phase[op], self.program.neutral_module[op]
        origin = -1 if of_gradient else op
        self.program.emit("aten._to_copy", [lowered], [made], phase=phase, module=module, origin=origin)
        return made

    def _autocast(self, op: int, inputs: list[int], read: list[int]) -> list[int]:
        """The op's inputs in the dtype that autocast asks for. Within a call, only what comes from outside is cast."""
        call = self.call_of[op]
        name = self.trace.call_functions[call] if call >= 0 else self.program.neutral_name[op]
        if call >= 0 and not (name in self.policy.lower or name in self.policy.fp32):
            call, name = -1, self.program.neutral_name[op]
        wanted = self._wanted_dtype(name, [self._dtype(tensor) for tensor in read])
        if wanted is None:
            return read
        changed = {}
        for tensor, lowered in zip(inputs, read, strict=True):
            dtype = self._dtype(lowered)
            is_inside = call >= 0 and self.made_in_call.get(tensor) == call
            if dtype in FLOATS and dtype != wanted and dtype != FLOAT64 and not is_inside:
                changed[tensor] = self._cast_input(op, tensor, lowered, wanted)
        self.cast_inputs[op] = changed
        if self.recomputed_region[op]:
            self.cast_again.update({(self.program.neutral_name[op], tensor): cast for tensor, cast in changed.items()})
        return [changed.get(tensor, lowered) for tensor, lowered in zip(inputs, read, strict=True)]

    def _wanted_dtype(self, name: str, dtypes: list[int]) -> int | None:
        lowest = self.precision.autocast_dtype
        if name in self.policy.lower:
            return lowest
        if name in self.policy.fp32:
            return FLOAT32
        if name in self.policy.widest:
            return FLOAT32 if FLOAT32 in dtypes else None
        if name in self.policy.fp32_output and lowest != FLOAT16 and "softmax" in name:
            return FLOAT32  # only fp16 has softmax kernels that read it and write fp32
        return None

    def _cast_input(self, op: int, tensor: int, lowered: int, dtype: int) -> int:
        """Weights are cast once and kept until the forward pass ends; other inputs anew for every op."""
        storage = self.storage_of[tensor]
        if storage not in self.is_weight:
            return self._cast(op, lowered, dtype)
        region = self.recomputed_region[op]
        known = self.cached_weights.get((storage, dtype, region))
        if known is None:
            made = self._cast(op, lowered, dtype)
            known = self.program.tensor_storage[made]
            self.cached_weights[storage, dtype, region] = known
            if region == 0:
                self.program.kept_through_forward.add(known)
            return made
        return self.program.tensor(self.program.tensor_shape[lowered], dtype, known)

    def _output(self, op: int, position: int, tensor: int, inputs: list[int], read: list[int]) -> int:
        """An output: in place on an input's storage, or on a new one of the dtype that comes out."""
        storage = self.storage_of[tensor]
        for source, lowered in zip(inputs, read, strict=True):
            if self.storage_of[source] == storage:
                return self.program.tensor(tensor, self._dtype(lowered), self.program.tensor_storage[lowered])
        made = self.program.storage(neutral=storage)
        return self.program.tensor(tensor, self._output_dtype(op, position, tensor, read), made)

    def _output_dtype(self, op: int, position: int, tensor: int, read: list[int]) -> int:
        neutral = self.neutral_dtype[tensor]
        if neutral not in FLOATS:
            return neutral
        name = self.program.neutral_name[op]
        if name in _FOLLOWS_FIRST_INPUT:
            return self._dtype(read[0]) if position == 0 else neutral
        if name == DEQUANTIZE:
            return self.precision.autocast_dtype or self.precision.parameter_dtype
        explicit = self.graph.attributes_of(op).get("dtype")
        if explicit is not None and self.kinds[op] in (OpKind.FACTORY, OpKind.COPY):
            return CODE[explicit]
        forward, targets = self.program.neutral_forward[op], self.targets.get(tensor, ())
        for target in targets:
            if forward >= 0 and target in self.inputs_of[forward]:
                return self._dtype(self.cast_inputs.get(forward, {}).get(target, self.current[target]))
        if self.precision.autocast_dtype is not None and forward < 0 and name in self.policy.fp32_output:
            return FLOAT32
        floats = [self._dtype(lowered) for lowered in read if self._dtype(lowered) in FLOATS]
        ranked = [
            self._dtype(lowered) for lowered in read if self._dtype(lowered) in FLOATS and self._has_dims(lowered)
        ]
        chosen = ranked or floats
        if not chosen:
            return neutral
        result = chosen[0]
        for dtype in chosen[1:]:
            result = promote(result, dtype)
        return result

    def _has_dims(self, lowered: int) -> bool:
        return self.program.rank_of(self.program.tensor_shape[lowered]) > 0

    def _match_gradients(self, op: int, inputs: list[int], read: list[int]) -> list[int]:
        """Casts the gradients that are not there in the dtype that a backward op expects."""
        wanted = self._gradient_dtype(op)
        if wanted is None:
            return read
        matched = []
        for tensor, lowered in zip(inputs, read, strict=True):
            if tensor in self.targets and self._dtype(lowered) in FLOATS and self._dtype(lowered) != wanted:
                lowered = self._gradient_as(op, tensor, wanted)
            matched.append(lowered)
        return matched

    def _gradient_as(self, op: int, tensor: int, dtype: int) -> int:
        versions = self.versions.setdefault(tensor, {self._dtype(self.current[tensor]): self.current[tensor]})
        if dtype not in versions:
            versions[dtype] = self._cast(op, self.current[tensor], dtype, of_gradient=True)
        return versions[dtype]

    def _return_gradients(self, op: int, outputs: list[int]) -> None:
        """Casts a gradient back where its forward tensor had been cast. One that is yet to be recomputed has not."""
        for tensor in outputs:
            for target in self.targets.get(tensor, ()):
                if target in self.current and self._dtype(self.current[tensor]) in FLOATS:
                    wanted = FLOAT32 if tensor in self.widened else self._dtype(self.current[target])
                    self._gradient_as(op, tensor, wanted)

    def _roles(self) -> Roles:
        """Which parameters are matrices of blocks (of the whole model, where nothing repeats), and which are tables."""
        blocks = block_paths(self.trace)
        tables = {
            int(self.graph.tensor_storage[self.inputs_of[op][0]])
            for op in range(self.graph.n_ops)
            if self.program.neutral_name[op] == "aten.embedding"
        }
        is_table = {each.tensor: self.storage_of[each.tensor] in tables for each in self.trace.parameters}
        hidden = [
            each.tensor
            for each in self.trace.parameters
            if self.program.neutral_rank[each.tensor] == 2
            and not is_table[each.tensor]
            and (not blocks or any(each.name.startswith(f"{path}.") for path in blocks))
        ]
        found = [tensor for tensor, is_one in is_table.items() if is_one]
        return Roles(*(frozenset(self.current[tensor] for tensor in part) for part in (hidden, found)))

    def _finish_gradients(self) -> None:
        """Marks the gradients of the parameters and appends the optimizer."""
        pairs = []
        for parameter in self.trace.parameters:
            if parameter.gradient < 0 or not parameter.is_trainable:
                continue
            weight = self.current[parameter.tensor]
            wanted = FLOAT32 if self.widened else self._dtype(weight)
            gradient = self.versions.get(parameter.gradient, {}).get(wanted, self.current[parameter.gradient])
            storage = self.program.tensor_storage[gradient]
            self.program.storage_kind[storage] = int(StorageKind.GRADIENT)
            self.program.outlives_step.add(storage)
            pairs.append((weight, gradient))
        if self.trace.mode == "train":
            add_update(self.program, self.settings, pairs, self._roles(), foreach=self.target == "cuda")


def _own_dtype(trace: Trace) -> int:
    """The dtype of most of the parameters: what the precision replaces."""
    weights: dict[int, int] = {}
    for parameter in trace.parameters:
        dtype = int(trace.graph.tensor_dtype[parameter.tensor])
        if dtype in FLOATS:
            weights[dtype] = weights.get(dtype, 0) + 1
    return max(weights, key=weights.__getitem__) if weights else FLOAT32
