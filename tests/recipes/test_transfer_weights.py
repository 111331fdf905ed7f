"""Weights from files of several kinds, and from files that are none."""

import os
import pickle
import re
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from traincast.errors import FileFormatError, InputError
from traincast.frontend.models.registry import find
from traincast.recipes.engine.checkpoint import load_checkpoint
from traincast.recipes.transfer_learning.fit import load_trunk
from traincast.recipes.transfer_learning.head import freeze_all_but_last
from traincast.recipes.transfer_learning.weights import read_weights


def resnet20(n_classes=10, *, seed=0):
    torch.manual_seed(seed)
    return find("cifar_resnet20").build(n_classes=n_classes)


def trunk_of(module):
    return {name: value for name, value in module.state_dict().items() if not name.startswith("fc.")}


def are_equal(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def batch_norm(name):
    return [f"{name}.{part}" for part in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]


def torchvision_resnet50_names():
    """As torchvision 0.28's resnet50().state_dict() lists them: 320 names."""
    names = ["conv1.weight", *batch_norm("bn1"), "fc.weight", "fc.bias"]
    for stage, n_blocks in enumerate((3, 4, 6, 3), start=1):
        for block in range(n_blocks):
            for place in (1, 2, 3):
                names.append(f"layer{stage}.{block}.conv{place}.weight")
                names += batch_norm(f"layer{stage}.{block}.bn{place}")
        names += [f"layer{stage}.0.downsample.0.weight", *batch_norm(f"layer{stage}.0.downsample.1")]
    return names


def test_resnet50_has_the_names_of_torchvision():
    with torch.device("meta"):
        module = find("resnet50").build(n_classes=1000)
    assert len(torchvision_resnet50_names()) == 320
    assert set(module.state_dict()) == set(torchvision_resnet50_names())


@pytest.mark.parametrize("kind", ["state dict", "checkpoint", "wrapped", "frozen run", "lightning", "safetensors"])
def test_weights_come_back_from_every_kind_of_file(tmp_path, kind):
    module = resnet20()
    path = tmp_path / ("weights.safetensors" if kind == "safetensors" else "weights.pt")
    state = module.state_dict()
    if kind == "safetensors":
        save_file(state, path)
    elif kind == "wrapped":
        torch.save({f"module.{name}": value for name, value in state.items()}, path)
    elif kind == "frozen run":
        torch.save({"module": freeze_all_but_last(module).state_dict(), "step": 3}, path)
    else:
        key = {"checkpoint": "module", "lightning": "state_dict"}.get(kind)
        torch.save({key: state, "epoch": 7, "optimizer": {"state": {}}} if key else state, path)
    assert are_equal(read_weights(path), dict(state))


def test_all_but_the_last_layer_is_loaded_whatever_its_classes():
    source, target = resnet20(10, seed=1), resnet20(5, seed=2)
    last_before = target.fc.weight.clone()
    load_trunk(target, source.state_dict(), model="cifar_resnet20", where="source.pt")
    assert are_equal(trunk_of(target), trunk_of(source))
    assert torch.equal(target.fc.weight, last_before)


def test_old_files_without_counters_of_batches_still_fit():
    source, target = resnet20(seed=1), resnet20(seed=2)
    old = {name: value for name, value in source.state_dict().items() if "num_batches_tracked" not in name}
    load_trunk(target, old, model="cifar_resnet20", where="old.pth")
    assert torch.equal(target.layer3[2].bn2.weight, source.layer3[2].bn2.weight)


def test_weights_of_another_architecture_are_named_with_the_likely_one():
    with torch.device("meta"):
        deeper = find("cifar_resnet32").build(n_classes=100)
    with pytest.raises(InputError, match="look like those of cifar_resnet32") as caught:
        load_trunk(resnet20(), deeper.state_dict(), model="cifar_resnet20", where="deep.pt")
    message = str(caught.value)
    assert "'deep.pt' do not fit cifar_resnet20: layer1.3.conv1.weight is not in the model" in message
    assert re.search(r"and \d+ more", message)
    assert "\n" not in message


def test_shapes_that_differ_and_layers_that_are_missing_are_named():
    state = dict(resnet20().state_dict())
    state["conv1.weight"] = torch.zeros(8, 3, 3, 3)
    del state["bn1.weight"]
    told = "conv1.weight is 8x3x3x3 instead of 16x3x3x3, bn1.weight is missing; no ResNet"
    with pytest.raises(InputError, match=re.escape(told)):
        load_trunk(resnet20(), state, model="cifar_resnet20", where="mine.pt")


class Trap:
    """Unpickled blindly, it would make a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_code_in_a_file_is_never_run(tmp_path, how):
    sprung, path = tmp_path / "sprung", tmp_path / "trap.pt"
    if how == "torch":
        torch.save({"module": Trap(sprung)}, path)
    else:
        path.write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(FileFormatError, match="not a file of plain weights, and none of its code was run"):
        read_weights(path)
    assert not sprung.exists()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"epoch,loss\n1,2\n", b"\x80", b"PK\x03\x04 no archive", bytes(64)])
def test_a_foreign_file_is_told_in_one_sentence(tmp_path, suffix, content):
    path = tmp_path / f"foreign{suffix}"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=f"foreign{suffix}") as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_torn_file_is_told_in_one_sentence(tmp_path, suffix):
    path = tmp_path / f"torn{suffix}"
    state = resnet20().state_dict()
    if suffix == ".pt":
        torch.save(state, path)
    else:
        save_file(state, path)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(FileFormatError, match=f"torn{suffix}"):
        read_weights(path)


@pytest.mark.parametrize("content", [[1, 2], {"loss": 0.5}, {"module": {"a": 1}}, {}])
def test_a_torch_file_without_weights_says_so(tmp_path, content):
    path = tmp_path / "other.pt"
    torch.save(content, path)
    with pytest.raises(FileFormatError, match="has no named weights"):
        read_weights(path)


def test_a_path_that_leads_nowhere_says_what_would_be_right(tmp_path):
    with pytest.raises(InputError, match=r"does not exist; give a checkpoint.pt of traincast.* \.safetensors"):
        read_weights(tmp_path / "none.pt")
    with pytest.raises(InputError, match="is a folder"):
        read_weights(tmp_path)


@pytest.mark.parametrize("read", [read_weights, load_checkpoint])
def test_a_length_that_ends_in_its_middle_is_told(tmp_path, read):
    whole, torn = tmp_path / "whole.pt", tmp_path / "torn.pt"
    torch.save({"fc.weight": torch.ones(4)}, whole)
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(torn, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            copy.writestr(
                name, b"\x80\x02X\x01" if name.endswith("data.pkl") else content
            )  # a text's length has 4 bytes
    with pytest.raises(FileFormatError, match=r"torn\.pt"):
        read(torn)
