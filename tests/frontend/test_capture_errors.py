"""What cannot be captured is refused in words that name the place and the way out."""

import threading

import pytest
import torch
from torch import nn

import traincast as tc
from traincast.errors import BatchDependentError, CaptureError, DataDependentError, InputError


class Computes(nn.Module):
    """A linear layer and a function of what comes out."""

    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(4, 4), function

    def forward(self, x):
        return self.function(self.linear(x))


def fails(module, example=None, **options):
    with pytest.raises(tc.TraincastError) as caught:
        tc.capture(module, torch.zeros(2, 4) if example is None else example, **options)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("module", [len, "resnet50", None, {"a": 1}, torch.zeros(3)])
def test_what_is_no_module_is_refused_by_its_type(module):
    error = fails(module)
    assert str(error) == f"capture needs a torch.nn.Module, but was given a {type(module).__name__}."


def test_inputs_of_another_number_are_refused():
    error = fails(nn.Linear(4, 4), (torch.zeros(2, 4), torch.zeros(2, 4)))
    assert isinstance(error, InputError)
    assert str(error).startswith("The forward of Linear cannot be run with the example's inputs (")
    assert "positional arguments" in str(error)


def test_inputs_of_another_shape_are_refused_with_pytorchs_reason():
    error = fails(nn.Sequential(nn.Linear(4, 4), nn.Linear(5, 4)))
    assert isinstance(error, CaptureError)
    assert str(error).startswith("The forward of Sequential failed in module '1': ")
    assert "shape" in str(error)


@pytest.mark.parametrize("example", [lambda: torch.zeros(2, 4), lambda n: torch.zeros(n, -1), lambda n: int("four")])
def test_an_example_that_fails_is_quoted(example):
    assert str(fails(nn.Linear(4, 4), example)).startswith("example(2) failed: ")


@pytest.mark.parametrize("example", [torch.tensor(1.0), (), {}, (3, "x")])
def test_an_example_without_a_batch_dimension_is_refused(example):
    assert "example holds no tensor with a batch dimension" in str(fails(nn.Linear(4, 4), example))


def test_a_branch_on_a_number_in_a_tensor_is_refused_with_op_and_module():
    error = fails(nn.Sequential(nn.Linear(4, 4), Computes(lambda x: x if x.mean().item() > 0 else -x)))
    assert isinstance(error, DataDependentError)
    assert str(error).startswith(".item() in module '1' needs the values of a tensor")


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: x[x.nonzero()[:, 0]], "aten.nonzero"),
        (lambda x: x.masked_select(x > 0), "aten.masked_select"),
        (lambda x: torch.unique(x), "aten._unique2"),
        (lambda x: x * float(x.sum()), ".item()"),
        (lambda x: x[x > 0], "indexing with a mask"),
    ],
)
def test_sizes_that_depend_on_values_are_refused_with_the_op(function, op):
    error = fails(Computes(function))
    assert isinstance(error, DataDependentError)
    assert str(error).startswith(f"{op} in the model's forward or loss needs the values of a tensor")


def test_a_loop_over_the_samples_is_refused():
    error = fails(Computes(lambda x: torch.stack([sample * 2 for sample in x])))
    assert isinstance(error, BatchDependentError)
    assert "the list of ops must not depend on the batch (a loop over samples does that)" in str(error)


def test_a_dimension_that_is_not_linear_in_the_batch_is_refused():
    error = fails(Computes(lambda x: (x[:, :1] @ x[:, :1].T).flatten()))
    assert isinstance(error, BatchDependentError)
    assert str(error).startswith("A dimension of the output of aten.")
    assert "in 'the model' does not grow linearly with the batch (traced at [2, 3, 5])" in str(error)


@pytest.mark.parametrize(
    ("loss", "shown"),
    [
        (lambda output, _: output, "a tensor of shape (2, 4)"),
        (lambda output, _: 1.0, "a float"),
        (lambda output, _: None, "a NoneType"),
    ],
)
def test_a_loss_that_is_no_scalar_is_refused(loss, shown):
    error = fails(nn.Linear(4, 4), loss=loss)
    assert str(error) == f"loss must return a scalar tensor, but returned {shown}."


def test_a_loss_that_fails_is_told_from_a_forward_that_fails():
    error = fails(nn.Linear(4, 4), loss=lambda output, _: (output @ torch.zeros(3, 3)).sum())
    assert str(error).startswith("The loss of Linear failed in Linear: ")


def test_a_model_that_returns_no_floating_tensor_needs_a_loss():
    error = fails(Computes(lambda x: x.argmax(-1)))
    assert str(error) == "the model returned a tensor of shape (2,) without a floating tensor: give loss=."


def test_training_a_module_without_trainable_parameters_is_refused():
    error = fails(nn.Linear(4, 4).requires_grad_(False))
    assert isinstance(error, InputError)
    assert "does not depend on any trainable parameter: unfreeze at least one, or use mode='inference'" in str(error)


def test_a_module_that_cannot_be_copied_is_refused():
    module = nn.Linear(4, 4)
    module.lock = threading.Lock()
    assert str(fails(module)).startswith("Linear cannot be copied (")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("mode", "training", "mode 'training' is not known. Close names: train. Choose from: train, inference."),
        ("optimizer", "adam-w", "optimizer 'adam-w' is not known. Close names: adamw, adam"),
        ("precision", "fp16", "precision 'fp16' is not known. Close names: "),
    ],
)
def test_an_unknown_option_is_refused_with_the_known_ones(option, value, words):
    assert str(fails(nn.Linear(4, 4), **{option: value})).startswith(words)
