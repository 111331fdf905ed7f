"""The shipped traces are what a capture makes today."""

from dataclasses import fields

import numpy as np
import pytest

import traincast as tc
from traincast.frontend.models.registry import ZOO
from traincast.frontend.zoo import capture_zoo_model
from traincast.trace.graph import Graph, Ragged


def differing(one, other):
    """Names of the fields of two graphs that are not the same."""
    names = []
    for field in fields(Graph):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, Ragged):
            same = np.array_equal(left.start, right.start) and np.array_equal(left.values, right.values)
        else:
            same = left == right if isinstance(left, tuple) else np.array_equal(left, right)
        if not same:
            names.append(field.name)
    return names


@pytest.mark.parametrize("name", ZOO)
def test_a_new_capture_gives_the_shipped_trace(name):
    shipped, captured = tc.load_model(name), capture_zoo_model(name)
    assert differing(shipped.graph, captured.graph) == []
    assert np.array_equal(shipped.gradient_of, captured.gradient_of)
    assert np.array_equal(shipped.op_call, captured.op_call)
    assert shipped.call_functions == captured.call_functions
    assert [(m.path, m.kind, m.input, m.output, m.parameters) for m in shipped.modules] == [
        (m.path, m.kind, m.input, m.output, m.parameters) for m in captured.modules
    ]
    assert [(p.name, p.tensor, p.gradient, p.is_trainable) for p in shipped.parameters] == [
        (p.name, p.tensor, p.gradient, p.is_trainable) for p in captured.parameters
    ]
    assert (shipped.name, shipped.mode, shipped.defaults) == (captured.name, captured.mode, captured.defaults)


def test_other_options_are_captured_on_the_spot():
    trace = tc.load_model("resnet18", n_classes=10, image_size=32)
    assert trace.name == "resnet18 (n_classes=10, image_size=32)"
    assert tc.load_model("resnet18").n_parameters - trace.n_parameters == 990 * 513
