"""Frozen weights in four bits: NF4 with double quantisation, made whole each time they are used.

Dettmers et al. 2023, "QLoRA": half a byte a weight, one byte of scale for every 64 of them, and four bytes for every
256 scales: 0.516 bytes a weight. The whole weights live for one product; backward makes them again.
"""

from __future__ import annotations

import math

from traincast.trace.dtypes import CODE
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.rewrite.draft import Draft, DraftOp

DEQUANTIZE = "traincast.dequantize"
_WEIGHTS_PER_SCALE, _SCALES_PER_OUTER = 64, 256


def quantize(draft: Draft, weights: list[int]) -> None:
    """Replaces each weight by its four-bit form and what is made of that."""
    touching: dict[int, list[int]] = {}
    for key in draft.order:
        op = draft.ops[key]
        for storage in {draft.tensor_storage[tensor] for tensor in op.inputs}:
            touching.setdefault(storage, []).append(key)
    places: dict[int, list[int]] = {}
    for weight in weights:
        _quantize_one(draft, weight, touching[draft.tensor_storage[weight]], places)
    draft.insert(places)


def _quantize_one(draft: Draft, weight: int, readers: list[int], places: dict[int, list[int]]) -> None:
    own, packed = draft.tensor_storage[weight], _packed(draft, weight)
    forward = [key for key in readers if draft.ops[key].phase != Phase.BACKWARD]
    backward = [key for key in readers if draft.ops[key].phase == Phase.BACKWARD]
    whole = draft.tensor_as(weight)
    first = draft.ops[forward[0]]
    made = draft.add(DraftOp(DEQUANTIZE, "{}", first.phase, first.module, list(packed), [whole]))
    places.setdefault(forward[0], []).append(made)
    views = {weight: (whole, made)}  # tensors on the weight, and the op that makes each
    for key in forward:
        op = draft.ops[key]
        op.inputs = [whole if tensor == weight else tensor for tensor in op.inputs]
        for tensor in op.outputs:
            if draft.tensor_storage[tensor] == own:
                draft.tensor_storage[tensor] = draft.tensor_storage[whole]
                views[tensor] = (tensor, key)
    draft.replaced[weight] = whole
    if backward:
        _again(draft, backward, (own, weight, whole), views, packed, places)


def _again(
    draft: Draft,
    backward: list[int],
    known: tuple[int, int, int],
    views: dict[int, tuple[int, int]],
    packed: tuple[int, ...],
    places: dict[int, list[int]],
) -> None:
    """Backward makes weights of its own, and looks at these as forward did."""
    own, weight, whole = known
    first = draft.ops[backward[0]]
    fresh = draft.tensor_as(weight)
    made = draft.add(
        DraftOp(DEQUANTIZE, "{}", int(Phase.BACKWARD), first.module, list(packed), [fresh], forward=first.forward)
    )
    keys, renamed = [made], {weight: fresh, whole: fresh}
    for tensor, (_, key) in views.items():
        if tensor == weight or not any(tensor in draft.ops[reader].inputs for reader in backward):
            continue
        seen = draft.tensor_as(tensor, storage=draft.tensor_storage[fresh])
        view = draft.ops[key]
        inputs = [renamed.get(each, each) for each in view.inputs]
        again = DraftOp(view.name, view.attributes, int(Phase.BACKWARD), view.module, inputs, [seen])
        again.forward = first.forward
        keys.append(draft.add(again))
        renamed[tensor] = seen
    for key in backward:
        op = draft.ops[key]
        op.inputs = [renamed.get(tensor, tensor) for tensor in op.inputs]
        for tensor in op.outputs:
            if draft.tensor_storage[tensor] == own:
                draft.tensor_storage[tensor] = draft.tensor_storage[fresh]
    places.setdefault(backward[0], []).extend(keys)


def _packed(draft: Draft, weight: int) -> tuple[int, ...]:
    """The four-bit numbers, the scales of blocks, and the scales of these, whose type no precision changes."""
    graph = draft.trace.graph
    n_weights = math.prod(graph.shape_of(weight, 1))
    n_scales = -(-n_weights // _WEIGHTS_PER_SCALE)
    sizes = ((-(-n_weights // 2), "uint8"), (n_scales, "uint8"), (-(-n_scales // _SCALES_PER_OUTER), "int32"))
    return tuple(draft.tensor([size], CODE[dtype], storage=draft.storage(StorageKind.WEIGHT)) for size, dtype in sizes)
