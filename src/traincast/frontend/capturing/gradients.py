"""Which forward tensor each gradient belongs to: seen as backward runs, and needed to know its dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traincast.errors import InputError
from traincast.frontend.capturing.recorder import Recorder
from traincast.trace.graph import StorageKind


def watch_gradients(root: Any, recorder: Recorder) -> None:
    """Notes, as backward runs, which forward tensor each gradient belongs to."""
    if root is None:
        raise InputError(
            "the loss does not depend on any trainable parameter: unfreeze at least one, or use mode='inference'."
        )
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        targets = [_gradient_target(follower, output, recorder) for follower, output in node.next_functions]
        node.register_hook(_gradient_hook(targets, recorder, node._sequence_nr()))
        own = [_gradient_target(node, output, recorder) for output in range(len(node._input_metadata))]
        if any(target is not None for target in own) and not hasattr(node, "variable"):
            node.register_prehook(_summed_gradient_hook(own, recorder))
        for follower, _ in node.next_functions:
            if follower is not None and follower not in seen:
                seen.add(follower)
                stack.append(follower)


def _gradient_target(node: Any, output: int, recorder: Recorder) -> int | None:
    if node is None:
        return None
    if hasattr(node, "variable"):
        return recorder.tensor_id(node.variable)
    if node.name() == "CheckpointFunctionBackward":  # a whole block: its backward pass is watched when it runs
        return None
    op = recorder.forward_op_of_node.get(node._sequence_nr())
    if op is None or output >= len(recorder.recording.op_outputs[op]):
        return None
    return recorder.recording.op_outputs[op][output]


def _gradient_hook(targets: list[int | None], recorder: Recorder, node: int) -> Callable[[Any, Any], None]:
    def hook(gradients: Any, _: Any) -> None:
        recorder.finished_node = node
        recording = recorder.recording
        for gradient, target in zip(gradients, targets, strict=False):
            if gradient is None or target is None or tuple(gradient.shape) != recording.shapes[target]:
                continue
            recorder.add_gradient(recorder.tensor_id(gradient), target)

    return hook


def _summed_gradient_hook(targets: list[int | None], recorder: Recorder) -> Callable[[Any], None]:
    """Where several gradients of one tensor were added up, only the node that takes the sum sees it."""
    hook = _gradient_hook(targets, recorder, -1)
    return lambda gradients: hook(gradients, None)


def mark_gradients(module: Any, recorder: Recorder) -> None:
    recording = recorder.recording
    for parameter in module.parameters():
        if parameter.grad is not None:
            tensor = recorder.tensor_id(parameter.grad)
            recording.storage_kind[recording.tensor_storage[tensor]] = int(StorageKind.GRADIENT)
            recorder.add_gradient(tensor, recorder.tensor_id(parameter))
