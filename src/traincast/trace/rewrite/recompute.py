"""Activation recomputation: parts of a block run again at the start of its backward, instead of being kept.

What a backward op reads of such a part is what the second run made. The lives of all storages follow from that: the
first run's are freed in the forward pass, and what stays is what the part reads from outside, and what it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from traincast.errors import InputError
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.rewrite.blocks import Block, attention_ops, blocks_of
from traincast.trace.rewrite.draft import Draft, DraftOp
from traincast.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Region:
    """Forward ops that run again, but those whose outputs are kept.

    PyTorch's non-reentrant checkpointing stops once it has all that backward needs; the older way and Megatron's run
    the whole part.
    """

    ops: tuple[int, ...]
    kept: frozenset[int] = frozenset()
    stops_early: bool = True


def recomputed(trace: Trace, how: str, *, stack: str) -> Trace:
    """The trace with the blocks run again as `how` says ("none": as it is)."""
    if how == "none" or trace.mode != "train":
        return trace
    if trace.graph.op_recomputed.any():
        raise InputError(f"{trace.name} was captured with activation checkpointing: leave recompute at none.")
    regions = regions_of(trace, how, stack=stack)
    if not regions:
        raise InputError(
            f"recompute '{how}' runs the blocks of a model again, and {trace.name} has no blocks that repeat: leave it "
            "at none."
        )
    rewriting = _Rewriting(trace)
    for region in regions:
        rewriting.run_again(region)
    rewriting.draft.insert(rewriting.places)
    return rewriting.draft.finish()


def regions_of(trace: Trace, how: str, *, stack: str) -> list[Region]:
    """What runs again: whole blocks, or of each what the stack chooses."""
    blocks = blocks_of(trace)
    name, _, every = how.partition(":")
    if name == "selective":
        return _core_attention(trace, blocks) if stack == "megatron" else _all_but_dear_ops(trace, blocks)
    step = int(every or 1)
    stops_early = name == "full" and stack != "megatron"
    return [Region(block.ops, stops_early=stops_early) for block in blocks[step - 1 :: step]]


def _all_but_dear_ops(trace: Trace, blocks: tuple[Block, ...]) -> list[Region]:
    """torchtitan's op policy: outputs of attention and of every second matrix product are kept, the first of each two.

    That is its option "op" of 2024 and 2025. Newer versions keep what a model names (`activation_checkpoint.py` at
    01db32e, read 2026-11-19), which no trace tells.
    """
    kinds = op_kinds(trace.graph)
    found = []
    for block in blocks:
        products = [op for op in block.ops if kinds[op] == OpKind.GEMM]
        kept = {op for op in block.ops if kinds[op] == OpKind.ATTENTION} | set(products[::2])
        found.append(Region(block.ops, frozenset(kept)))
    return found


def _core_attention(trace: Trace, blocks: tuple[Block, ...]) -> list[Region]:
    """Megatron's default: from query, key and value to the output of attention (`recompute_modules=["core_attn"]`)."""
    kinds = op_kinds(trace.graph)
    attends = set(attention_ops(trace.graph))
    found = []
    for block in blocks:
        for place, op in enumerate(block.ops):
            if op not in attends:
                continue
            first = last = place
            if kinds[op] == OpKind.SOFTMAX:
                first = max(at for at in range(place) if kinds[block.ops[at]] == OpKind.BATCHED_GEMM)
                last = next(at for at in range(place, len(block.ops)) if kinds[block.ops[at]] == OpKind.BATCHED_GEMM)
            found.append(Region(block.ops[first : last + 1], stops_early=False))
    return found


class _Rewriting:
    """A draft, and who reads what in it."""

    def __init__(self, trace: Trace) -> None:
        self.draft = Draft(trace)
        self.places: dict[int, list[int]] = {}  # op -> what runs again just before it
        self.backward_of: dict[int, list[int]] = {}
        self.forward_readers: dict[int, list[int]] = {}
        self.gradients = {gradient for gradient, _ in self.draft.gradient_of}
        for key, op in self.draft.ops.items():
            if op.phase == Phase.BACKWARD:
                self.backward_of.setdefault(op.forward, []).append(key)
                continue
            for tensor in op.inputs:
                self.forward_readers.setdefault(tensor, []).append(key)

    def run_again(self, region: Region) -> None:
        """Adds the second run before the first backward op that needs it, and lets backward read from it."""
        ops = self.draft.ops
        again = [key for key in region.ops if key not in region.kept]
        made_by = {tensor: key for key in again for tensor in ops[key].outputs}
        backward = sorted(key for op in region.ops for key in self.backward_of.get(op, ()))
        needing = [key for key in backward if any(tensor in made_by for tensor in ops[key].inputs)]
        if not needing:
            return
        if region.stops_early:
            last = max(made_by[tensor] for key in needing for tensor in ops[key].inputs if tensor in made_by)
            again = [key for key in again if key <= last]
        renamed: dict[int, int] = {}
        keys = _second_run(self.draft, again, renamed)
        for key in backward:
            ops[key].inputs = [renamed.get(tensor, tensor) for tensor in ops[key].inputs]
        if not region.stops_early:
            self._hold_ends(region, backward, renamed)
        self.places.setdefault((needing if region.stops_early else backward)[0], []).extend(keys)

    def _hold_ends(self, region: Region, backward: list[int], renamed: dict[int, int]) -> None:
        """The older way is one function: it holds what the second run gave and the gradient of it until its own end."""
        ops, inside = self.draft.ops, set(region.ops)
        made = [tensor for key in region.ops for tensor in ops[key].outputs]
        held = [
            renamed.get(tensor, tensor)
            for tensor in made
            if any(reader not in inside for reader in self.forward_readers.get(tensor, ()))
        ]
        held += [tensor for tensor in ops[backward[0]].inputs if tensor in self.gradients]
        for tensor in held:
            self.draft.held_until[self.draft.tensor_storage[tensor]] = backward[-1]


def _second_run(draft: Draft, again: list[int], renamed: dict[int, int]) -> list[int]:
    """The ops once more, on tensors and storages of their own; `renamed` says which these are."""
    is_own: dict[int, bool] = {}  # whether a storage is made here, not written in place of what was there
    for key in again:
        op = draft.ops[key]
        known = {draft.tensor_storage[tensor] for tensor in op.inputs}
        for tensor in op.outputs:
            storage = draft.tensor_storage[tensor]
            is_own.setdefault(storage, storage not in known)
    storages = {storage: draft.storage() for storage, is_made in is_own.items() if is_made}
    calls: dict[int, int] = {}
    keys = []
    for key in again:
        op = draft.ops[key]
        outputs = []
        for tensor in op.outputs:
            storage = draft.tensor_storage[tensor]
            renamed[tensor] = draft.tensor_as(tensor, storage=storages.get(storage, storage))
            outputs.append(renamed[tensor])
        keys.append(draft.add(_again(draft, op, outputs, renamed, calls)))
    return keys


def _again(draft: Draft, op: DraftOp, outputs: list[int], renamed: dict[int, int], calls: dict[int, int]) -> DraftOp:
    if op.call >= 0 and op.call not in calls:
        calls[op.call] = len(draft.call_functions)
        draft.call_functions.append(draft.call_functions[op.call])
    return replace(
        op,
        phase=int(Phase.BACKWARD),
        inputs=[renamed.get(tensor, tensor) for tensor in op.inputs],
        outputs=outputs,
        is_recomputed=True,
        call=calls.get(op.call, -1),
    )
