"""Capturing a module: it is left as it was, nothing is allocated, and examples come in every form."""

import copy
import resource

import numpy as np
import pytest
import torch
from torch import nn

import traincast as tc
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x, *, scale=1.0):
        return self.last(torch.relu(self.norm(self.first(x)))) * scale


def test_a_linear_layer_is_captured_with_numbers_that_can_be_checked():
    trace = tc.capture(nn.Linear(10, 5), torch.zeros(4, 10), loss=lambda output, _: output.sum())
    assert (trace.name, trace.mode, trace.n_parameters) == ("Linear", "train", 55)
    assert trace.forward_flop(3) == 2 * 3 * 10 * 5
    assert trace.backward_flop(3) == 2 * 3 * 10 * 5  # the weight's gradient; the input needs none
    (layer,) = trace.layers(3)
    assert (layer.kind, layer.input_shape, layer.output_shape, layer.n_parameters) == ("Linear", (3, 10), (3, 5), 55)
    assert trace.provenance["captured_with"] == f"traincast {tc.__version__}, torch {torch.__version__}"
    assert repr(trace).startswith("Trace('Linear', 55 parameters, ")


@pytest.mark.parametrize("training", [True, False])
def test_capture_leaves_the_module_as_it_was(training):
    module = Net().train(training)
    module.first.register_forward_hook(lambda *_: None)
    module.last.weight.grad = torch.ones(4, 16)
    module.norm.requires_grad_(False)
    state = copy.deepcopy(module.state_dict())
    weights = {name: (id(weight), weight.data_ptr()) for name, weight in module.named_parameters()}
    tc.capture(module, torch.zeros(2, 8))
    assert all(torch.equal(value, module.state_dict()[name]) for name, value in state.items())
    assert {name: (id(weight), weight.data_ptr()) for name, weight in module.named_parameters()} == weights
    assert {child.training for child in module.modules()} == {training}
    assert [len(child._forward_hooks) for child in module.modules()] == [0, 1, 0, 0]
    assert not any(child._forward_pre_hooks or child._backward_hooks for child in module.modules())
    assert torch.equal(module.last.weight.grad, torch.ones(4, 16))
    assert [weight.grad is None for weight in module.parameters()] == [True, True, True, True, False, True]
    assert [weight.requires_grad for weight in module.parameters()] == [True, True, False, False, True, True]


def test_capture_leaves_the_example_and_the_random_numbers_as_they_were():
    example = torch.arange(16.0).reshape(2, 8).requires_grad_(True)
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout())
    before = torch.get_rng_state()
    tc.capture(module, example)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(example, torch.arange(16.0).reshape(2, 8))
    assert example.grad is None


def test_a_module_on_meta_is_captured_without_memory():
    with torch.device("meta"):
        module = nn.Sequential(*(nn.Linear(30_000, 30_000) for _ in range(4)))  # 14 GB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trace = tc.capture(module, lambda n: torch.zeros(n, 30_000, device="meta"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB
    assert trace.n_parameters == 4 * (30_000**2 + 30_000)


def test_the_same_module_captured_on_meta_and_on_cpu_gives_the_same_trace():
    with torch.device("meta"):
        on_meta = Net()
    first, second = (tc.capture(module, torch.zeros(2, 8)) for module in (on_meta, Net()))
    assert first.layers(5) == second.layers(5)
    assert np.array_equal(first.graph.storage_free, second.graph.storage_free)


@pytest.mark.parametrize(
    "example",
    [
        torch.zeros(6, 8),
        (torch.zeros(6, 8),),
        {"x": torch.zeros(6, 8)},
        lambda n: torch.zeros(n, 8),
        lambda n: (torch.zeros(n, 8),),
        lambda n: {"x": torch.zeros(n, 8, device="meta"), "scale": 2.0},
    ],
    ids=["tensor", "tuple", "dict", "callable", "callable tuple", "callable dict"],
)
def test_an_example_is_a_tensor_a_tuple_a_dict_or_a_callable(example):
    trace = tc.capture(Net(), example)
    assert trace.forward_flop(7) == 2 * 7 * (8 * 16 + 16 * 4)
    assert trace.layers(7)[-1].output_shape == (7, 4)


def test_inputs_without_the_batch_in_front_stay_as_they_are():
    class Scaled(nn.Linear):
        def forward(self, x, scale):
            return super().forward(x) * scale

    trace = tc.capture(Scaled(8, 3), (torch.zeros(6, 8), torch.ones(3)))
    inputs = np.flatnonzero(trace.graph.storage_kind == StorageKind.INPUT)
    assert [trace.graph.shape_of(int(trace.graph.storage_owner[number]), 9) for number in inputs] == [(9, 8), (3,)]


def test_inference_records_no_backward_and_never_calls_the_loss():
    def loss(output, inputs):
        raise AssertionError("called")

    trace = tc.capture(Net(), torch.zeros(2, 8), loss=loss, mode="inference")
    assert trace.mode == "inference"
    assert set(trace.graph.op_phase.tolist()) == {Phase.FORWARD}
    assert (trace.backward_flop(4), trace.forward_flop(4)) == (0, 2 * 4 * (8 * 16 + 16 * 4))
    assert not (trace.graph.storage_kind == StorageKind.GRADIENT).any()


def test_an_all_frozen_module_can_be_captured_for_inference():
    trace = tc.capture(Net().requires_grad_(False), torch.zeros(2, 8), mode="inference")
    assert trace.n_trainable_parameters == 0


def test_inference_drops_nothing_out_and_training_does_whatever_the_flag_says():
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout())
    for training in (True, False):
        module.train(training)
        assert "aten.native_dropout" in tc.capture(module, torch.zeros(2, 8)).graph.names
        assert "aten.native_dropout" not in tc.capture(module, torch.zeros(2, 8), mode="inference").graph.names


def test_precision_and_optimizer_are_the_defaults_of_later_questions():
    trace = tc.capture(Net(), torch.zeros(2, 8), precision="bf16", optimizer="adamw")
    assert trace.defaults == Settings("bf16", "adamw")
    memory = tc.estimate_memory(trace, 4)
    assert memory.settings == Settings("bf16", "adamw")
    assert tc.estimate_memory(trace, 4, precision="fp32").settings == Settings("fp32", "adamw")


def test_a_module_that_is_kept_in_bf16_is_trained_in_bf16_unless_something_else_is_asked_for():
    module = nn.Linear(8, 8).bfloat16()
    example = torch.zeros(2, 8, dtype=torch.bfloat16)
    assert tc.capture(module, example).defaults.precision == "bf16"
    assert tc.capture(module, example, precision="amp-bf16").defaults.precision == "amp-bf16"
    trace = tc.capture(module, example)
    weights = [tc.estimate_memory(trace, 2, precision=name).bytes_by_kind["weights"] for name in ("bf16", "fp32")]
    assert weights == [2 * 72, 4 * 72]


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        (lambda y: y, "aten.mean"),
        (lambda y: (y.argmax(-1), y), "aten.mean"),
        (lambda y: {"logits": y}, "aten.mean"),
        (lambda y: {"loss": y.sum(), "logits": y}, "aten.sum"),
    ],
)
def test_without_a_loss_the_models_own_or_the_mean_of_its_logits_is_taken(answer, last):
    class Answering(nn.Linear):
        def forward(self, x):
            return answer(super().forward(x))

    trace = tc.capture(Answering(4, 4), torch.zeros(2, 4))
    assert trace.backward_flop(2) > 0
    assert last in trace.graph.names


def test_a_yes_or_no_test_on_values_is_answered_no_and_written_down():
    class Branching(nn.Linear):
        def forward(self, x):
            return super().forward(x) if not (x > 0).any() else x

    trace = tc.capture(nn.Sequential(nn.Linear(4, 4), Branching(4, 4)), torch.zeros(2, 4))
    assert trace.assumptions == ("a yes-or-no test on tensor values in '1' was taken as no",)
    assert trace.forward_flop(2) == 2 * 2 * 2 * 16


torch.library.define("traincast_test::blur", "(Tensor x) -> Tensor")


@torch.library.register_fake("traincast_test::blur")
def _blur(x):
    return torch.empty_like(x)


torch.library.register_autograd("traincast_test::blur", lambda ctx, gradient: torch.ops.traincast_test.blur(gradient))


def test_an_op_of_a_foreign_namespace_is_named_and_not_counted_as_covered():
    class Blurred(nn.Linear):
        def forward(self, x):
            return torch.ops.traincast_test.blur(super().forward(x))

    trace = tc.capture(Blurred(4, 4), torch.zeros(2, 4), loss=lambda output, _: output.sum())
    assert trace.uncosted_ops == ("traincast_test.blur",)
    assert 0 < trace.covered_flop_fraction < 1


def test_submodules_that_share_a_module_count_its_ops_each_time_and_its_weights_once():
    shared = nn.Linear(8, 8)
    trace = tc.capture(nn.Sequential(shared, nn.ReLU(), shared), torch.zeros(2, 8))
    assert trace.n_parameters == 72
    assert trace.forward_flop(1) == 2 * 2 * 64
    assert [parameter.gradient >= 0 for parameter in trace.parameters] == [True, True]


def test_an_alias_without_a_dtype_request_is_an_ordinary_view():
    class FullSlice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x)[:, :]

    trace = tc.capture(FullSlice().to("meta"), lambda batch: torch.zeros(batch, 4))
    graph = lower(trace, settings=Settings("amp-bf16", "sgd"))
    assert "traincast.request_dtype" not in graph.names


def test_a_capture_says_how_far_it_is():
    from traincast.frontend.capture_progress import shown_to

    seen = []
    with shown_to(lambda n_done, n_steps: seen.append((n_done, n_steps))):
        tc.capture(torch.nn.Linear(4, 2), lambda batch: torch.zeros(batch, 4))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    tc.capture(torch.nn.Linear(4, 2), lambda batch: torch.zeros(batch, 4))
    assert len(seen) == 5
