"""A Keras model (torch backend) as an ordinary torch module, with its layers for submodules.

A Keras model is an nn.Module, but not one that can be captured as it is: copying it builds it anew from its
config, with weights of its own; its layers bypass torch's hooks; all its weights hang on the root, among them
what torch keeps in buffers; and on the device "meta" Keras leaves out the ops that once did not work there.
Here the weights belong to one torch module a layer, and Keras' own code runs on whatever tensors these hold.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import keras
import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator


class Shared:
    """Something of Keras' that all copies of a module use, because it holds no tensors that matter."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __deepcopy__(self, memo: dict[int, Any]) -> Shared:
        return self


class DeviceName(str):
    """The name of a device that equals torch's own device, but not the plain word "meta".

    Keras compares the one to find out whether a tensor must be moved, which would cut it off from its
    gradient, and the other to skip pooling and repetition.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def lower(self) -> DeviceName:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, torch.device) and other.type == str(self)

    def __ne__(self, other: object) -> bool:
        return not self == other


class KerasLayer(nn.Module):
    """One layer: its variables, and a call that torch's hooks can see."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self._layer = Shared(layer)
        self._names: dict[int, str] = {}
        for variable in layer._trainable_variables:
            self.register_parameter(self._name(variable), _parameter(variable))
        states = [generator.state for generator in layer._seed_generators]
        for variable in (*layer._non_trainable_variables, *states):
            self.register_buffer(self._name(variable), variable.value.detach())

    def _name(self, variable: Any) -> str:
        name, count = variable.name.replace(".", "_"), 1
        while hasattr(self, name):
            count += 1
            name = f"{variable.name}_{count}"
        self._names[id(variable)] = name
        return name

    def pairs(self) -> list[tuple[Any, Any]]:
        """Each Keras variable of the layer with the tensor that stands for it."""
        layer = self._layer.value
        states = [generator.state for generator in layer._seed_generators]
        variables = (*layer._trainable_variables, *layer._non_trainable_variables, *states)
        return [(variable, getattr(self, self._names[id(variable)])) for variable in variables]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        layer = self._layer.value
        return type(layer).call(layer, *args, **kwargs)


class KerasModule(nn.Module):
    """Runs the model on the tensors of its layers. The inputs come in the order of `model.inputs`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = Shared(model)
        layers = [layer for layer in model._flatten_layers(include_self=False) if _has_call(layer)]
        self._layers = [(Shared(layer), KerasLayer(layer)) for layer in layers]
        for shared, module in self._layers:
            _attach(self, module, _path(shared.value, model))

    def forward(self, inputs: Any, targets: Any = None) -> Any:
        """The outputs, or a dict of them and of the penalties of regularised weights."""
        model = self._model.value
        structure = getattr(model, "_inputs_struct", None)  # a Sequential has none: it takes one tensor
        given = inputs[0] if structure is None else keras.tree.pack_sequence_as(structure, list(inputs))
        pairs = [pair for _, module in self._layers for pair in module.pairs()]
        with on_device(inputs[0].device), keras.StatelessScope(state_mapping=pairs) as scope, self._routed():
            before = [scope.get_current_value(variable) for variable, _ in pairs]
            outputs = model(given, training=self.training)
            penalties = model.losses
        with torch.no_grad():
            for (variable, tensor), value in zip(pairs, before, strict=True):
                if (changed := scope.get_current_value(variable)) is not value:  # running means, say
                    tensor.copy_(changed)
        return {"outputs": outputs, "penalty": sum(penalties)} if penalties else outputs

    @contextmanager
    def _routed(self) -> Iterator[None]:
        """Each layer is called through its torch module, so that ops are seen to belong to it.

        Recurrent layers are unrolled: with a mask, Keras' own loop counts its steps in a tensor.
        """
        recurrent = [shared.value for shared, _ in self._layers if isinstance(shared.value, keras.layers.RNN)]
        unrolled = [layer.unroll for layer in recurrent]
        for shared, module in self._layers:
            shared.value.__dict__["call"] = module
        for layer in recurrent:
            layer.unroll = True
        try:
            yield
        finally:
            for shared, _ in self._layers:
                del shared.value.__dict__["call"]
            for layer, was in zip(recurrent, unrolled, strict=True):
                layer.unroll = was


@contextmanager
def on_device(device: Any) -> Iterator[None]:
    """Keras works on this device, and draws no seeds on meta, where there is nothing to draw."""
    from keras.src.backend.torch import random
    from keras.src.backend.torch.core import device_scope

    seeded = random.torch_seed_generator
    if device.type == "meta":
        random.torch_seed_generator = lambda seed: None
    try:
        with device_scope(DeviceName(device.type)):
            yield
    finally:
        random.torch_seed_generator = seeded


def _has_call(layer: Any) -> bool:
    return not isinstance(layer, (keras.Model, keras.layers.InputLayer))


def _parameter(variable: Any) -> Any:
    value = variable.value
    return value if isinstance(value, nn.Parameter) else nn.Parameter(value, requires_grad=variable.trainable)


def _path(layer: Any, model: Any) -> list[str]:
    """Where the layer is in the model: a cell is below its recurrent layer."""
    parts = (layer.path or layer.name).replace(".", "_").split("/")
    return parts[1:] if len(parts) > 1 and parts[0] == model.name else parts


def _attach(root: Any, module: Any, path: list[str]) -> None:
    *above, last = path
    for part in above:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root._modules[part]
    name, count = last, 1
    while hasattr(root, name):
        count += 1
        name = f"{last}_{count}"
    root.add_module(name, module)
