"""Arithmetic on shapes and constants, in numpy on the host, by ONNX's own reference implementation.

Exporters compute the shape of a reshape from the shape of a tensor, in a dozen nodes. These never reach the
device, and their values (the batch size among them) are known while the step runs, on meta tensors too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.errors import CaptureError

if TYPE_CHECKING:
    from traincast.frontend.onnx_model.graph import Node

RANDOM = {
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
}


def is_deterministic(op: str) -> bool:
    return op not in RANDOM and "." not in op


class HostOp:
    """One node, evaluated in numpy."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._evaluator: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> HostOp:
        return self  # it has no state that a copy could change

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        node = self._node
        feeds = {name: np.asarray(value) for name, value in zip(node.inputs, values, strict=True) if name}
        try:
            outputs = iter(self._evaluate(feeds))
            return tuple(np.asarray(next(outputs)) if name else None for name in node.outputs)
        except (
            TypeError,
            ValueError,
            IndexError,
            RuntimeError,
            NotImplementedError,
            AttributeError,
        ) as error:
            reason = str(error).strip().split("\n")[0]
            raise CaptureError(
                f"The ONNX node '{node.name}' ({node.op}) works on shapes, and cannot be evaluated: {reason}."
            ) from error

    def _evaluate(self, feeds: dict[str, Any]) -> list[Any]:
        if self._evaluator is None:
            from onnx import TensorProto, helper
            from onnx.reference import ReferenceEvaluator

            def declare(name: str) -> Any:
                return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)

            outputs = [declare(name) for name in self._node.outputs if name]
            graph = helper.make_graph([self._node.proto], "host", [declare(name) for name in feeds], outputs)
            opset = helper.make_opsetid("", self._node.opset)
            self._evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[opset]))
        return list(self._evaluator.run(None, feeds))
