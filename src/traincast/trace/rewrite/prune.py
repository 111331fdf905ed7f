"""What autograd leaves out where most parameters are frozen: every backward op that no trained parameter waits for."""

from __future__ import annotations

import json

from traincast.trace.graph import Phase
from traincast.trace.rewrite.draft import Draft, DraftOp

# Ops that say in an attribute which of their gradients are asked for.
_MASK = "output_mask"
_FLAGS = ("input_gradient", "weight_gradient")


def prune_backward(draft: Draft) -> None:
    """Takes the ops out of the order, and unneeded outputs from ops that can do without them."""
    needed = {each.gradient for each in draft.parameters if each.gradient >= 0}
    kept: list[int] = []
    for key in reversed(draft.order):
        op = draft.ops[key]
        if op.phase == Phase.BACKWARD and not op.is_recomputed:
            if not any(tensor in needed for tensor in op.outputs):
                continue
            _leave_out(op, needed)
            needed.update(op.inputs)
        kept.append(key)
    draft.order = kept[::-1]


def _leave_out(op: DraftOp, needed: set[int]) -> None:
    attributes = json.loads(op.attributes)
    if _MASK in attributes:
        places = [place for place, is_asked in enumerate(attributes[_MASK]) if is_asked]
        wanted = dict(zip(places, (tensor in needed for tensor in op.outputs), strict=True))
        attributes[_MASK] = [wanted.get(place, False) for place in range(len(attributes[_MASK]))]
    elif set(_FLAGS) <= set(attributes) and op.name == "traincast.rms_norm_backward":
        names = [name for name in _FLAGS if attributes[name]]
        attributes |= dict(zip(names, (tensor in needed for tensor in op.outputs), strict=True))
    else:
        return
    op.outputs = [tensor for tensor in op.outputs if tensor in needed]
    op.attributes = json.dumps(attributes, sort_keys=True)
