"""The last layer: replaced, or the only one that learns."""

import pytest
import torch
from torch import nn

from traincast.errors import InputError
from traincast.frontend.capturing.capture import capture
from traincast.frontend.models.registry import find
from traincast.recipes.transfer_learning.head import Trunk, freeze_all_but_last, last_layer_name, replace_last_layer
from traincast.trace.graph import Phase


def resnet20(n_classes=10):
    torch.manual_seed(0)
    return find("cifar_resnet20").build(n_classes=n_classes)


def images(n=4):
    return torch.randn(n, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def backward_modules(module):
    """Paths of the modules that have ops in the backward pass of a captured step."""
    trace = capture(module, lambda batch: torch.empty(batch, 3, 16, 16, device="meta"))
    graph = trace.graph
    return {trace.modules[number].path for number in graph.op_module[graph.op_phase == Phase.BACKWARD].tolist()}


def test_the_last_linear_layer_is_replaced_by_one_of_other_classes():
    module = resnet20()
    before = module.conv1.weight
    replace_last_layer(module, 5)
    assert (module.fc.in_features, module.fc.out_features) == (64, 5)
    assert module.conv1.weight is before
    assert module(images()).shape == (4, 5)


def test_a_last_layer_inside_others_is_found():
    module = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 3, bias=False)))
    assert last_layer_name(module) == "1.2"
    replace_last_layer(module, 7)
    assert module(images()).shape == (4, 7)
    assert module[1][2].bias is None


def test_a_network_without_a_linear_layer_is_refused():
    with pytest.raises(InputError, match="Sequential has no linear layer"):
        replace_last_layer(nn.Sequential(nn.Conv2d(3, 4, 1)), 5)


def test_training_a_frozen_network_changes_its_last_layer_alone():
    module = resnet20()
    frozen = freeze_all_but_last(module).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    optimizer = torch.optim.SGD([p for p in frozen.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    for _ in range(2):
        nn.functional.cross_entropy(frozen(images()), torch.arange(4)).backward()
        optimizer.step()
    changed = {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"fc.weight", "fc.bias"}  # running means of batch norms among those that stay


def test_frozen_features_of_an_image_do_not_depend_on_the_rest_of_its_batch():
    frozen = freeze_all_but_last(resnet20()).train()
    torch.testing.assert_close(frozen(images())[:1], frozen(images()[:1]))


def test_the_trunk_and_the_last_layer_are_the_network():
    module = resnet20().eval()
    trunk = Trunk(module)
    features = trunk(images())
    assert features.shape == (4, trunk.n_features)
    assert not features.requires_grad
    torch.testing.assert_close(module.fc(features), module(images()))
    assert isinstance(module.fc, nn.Linear)  # the network itself is as before


def test_nothing_runs_backward_through_a_frozen_trunk():
    own = backward_modules(freeze_all_but_last(resnet20()))
    assert own <= {"", "module", "module.fc"}
    assert any("layer1" in path for path in backward_modules(resnet20()))
