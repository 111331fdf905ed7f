"""A recorder that keeps a run on meta tensors, whatever the model's own code does."""

from __future__ import annotations

from typing import Any

import torch

from traincast.frontend.capturing.meta_cache import MetaCache
from traincast.frontend.capturing.recorder import Recorder, tensors_in

_VALUE_OPS = {"aten._local_scalar_dense", "aten.is_nonzero", "aten.equal"}
_VALUE_SHAPED = {
    "aten.nonzero",
    "aten.masked_select",
    "aten._unique2",
    "aten.unique_dim",
    "aten.unique_consecutive",
    "aten.repeat_interleave",
    "aten.bincount",
    "aten.histc",
}
_INDEXED = {"aten.index", "aten.index_put", "aten.index_put_", "aten._unsafe_index"}


class MetaRecorder(Recorder):
    """Keeps everything on meta tensors and answers yes-or-no questions about values with a recorded assumption."""

    def __init__(self, module_names: list[str]) -> None:
        super().__init__(module_names)
        self._cache = MetaCache()
        self._twins: list[Any] = []

    def run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in _VALUE_OPS:
            return self._answer(name, args)
        if any(tensor.device.type != "meta" for tensor in tensors_in((args, kwargs))):
            args, kwargs = self._to_meta(args), self._to_meta(kwargs)
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": torch.device("meta")}
        if name in _VALUE_SHAPED and not (name == "aten.repeat_interleave" and "output_size" in kwargs):
            raise self.unanswerable(name)
        if name in _INDEXED and any(index is not None and index.dtype == torch.bool for index in args[1]):
            raise self.unanswerable("indexing with a mask")
        return self._cache.run(func, args, kwargs)

    def _answer(self, name: str, args: tuple[Any, ...]) -> bool:
        if name != "aten.equal" and args[0].dtype != torch.bool:
            raise self.unanswerable(".item()")
        place = self.where or "the model"
        assumption = f"a yes-or-no test on tensor values in '{place}' was taken as no"
        if assumption not in self.recording.assumptions:
            self.recording.assumptions.append(assumption)
        return False

    def _to_meta(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type == "meta":
                return value
            twin = torch.empty_like(value, device="meta")
            self.identify(twin, self.tensor_id(value))
            self._twins.append(value)  # a freed tensor's address must not be taken for this one
            return twin
        if isinstance(value, (tuple, list)):
            return type(value)(self._to_meta(item) for item in value)
        if isinstance(value, dict):
            return {key: self._to_meta(item) for key, item in value.items()}
        return value
