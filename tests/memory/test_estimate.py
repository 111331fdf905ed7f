"""Peak memory of a step by kind, whether it fits, and the largest batch that does."""

import json

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.device import Device
from traincast.memory.estimate import KINDS, step_memory, timeline_samples
from traincast.memory.timeline import alive_bytes, alive_bytes_by_kind, peak_bytes
from traincast.trace.graph import StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.units import GIB, MIB


def device(memory_bytes, *, kind="gpu", arch="Turing"):
    return Device(
        name="D", fp32_flop_per_s=1e12, memory_bytes=memory_bytes, memory_bytes_per_s=1e11, kind=kind, arch=arch
    )


@pytest.mark.parametrize("name", ["resnet50", "bert-base", "gpt2"])
@pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
def test_the_kinds_add_up_to_the_peak(name, precision):
    memory = tc.estimate_memory(name, 4, precision=precision, optimizer="adam")
    assert sum(memory.bytes_by_kind.values()) == memory.peak_bytes
    together = sum(memory.timeline_bytes.values())
    assert memory.peak_bytes == together.max() == together[memory.peak_index]
    assert memory.total_bytes == memory.peak_bytes + memory.overhead.total_bytes


def test_every_kind_of_storage_is_shown_once():
    assert sorted(kind for kinds in KINDS.values() for kind in kinds) == sorted(StorageKind)


def test_weights_gradients_and_states_are_those_of_the_parameters():
    memory = tc.estimate_memory("vgg16", 1, optimizer="adam")
    weights = 4 * 138_357_544
    n_parameters = len(tc.load_model("vgg16").parameters)
    assert memory.bytes_by_kind["weights"] == weights
    assert memory.bytes_by_kind["optimizer state"] == 2 * weights + 4 * n_parameters
    assert memory.bytes_by_kind["inputs"] == 4 * 3 * 224 * 224
    # The peak comes when Adam has all gradients and one temporary of each.
    assert (memory.peak_phase, memory.bytes_by_kind["gradients"]) == ("optimizer", weights)
    assert memory.bytes_by_kind["temporary"] == weights + 4  # and the loss


def test_the_timeline_by_kind_adds_up_to_the_timeline():
    graph = lower(tc.load_model("resnet18"), target="cuda", settings=Settings("amp-fp16", "momentum"))
    assert np.array_equal(alive_bytes_by_kind(graph, 6).sum(axis=0), alive_bytes(graph, np.array([6]))[0])


def test_the_peak_is_what_adding_up_living_storages_op_by_op_gives():
    graph = lower(tc.load_model("mnist_cnn"), target="cpu", settings=Settings("fp32", "adam"))
    sizes = graph.storage_bytes(np.array([5]))[0]
    alive = [sizes[(graph.storage_alloc <= op) & (graph.storage_free > op)].sum() for op in range(graph.n_ops)]
    assert peak_bytes(graph, np.array([5]))[0] == max(alive)
    assert alive_bytes(graph, np.array([5]))[0].tolist() == alive


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(
    ("name", "on"), [("resnet50", "T4"), ("vgg16", "P100-PCIe-16GB"), ("bert-base", "A100-SXM4-80GB"), ("gpt2", "T4")]
)
def test_the_largest_batch_fits_and_one_more_does_not(name, on, optimizer):
    largest = tc.estimate_memory(name, 1, on=on, optimizer=optimizer).largest_batch_size
    assert largest > 0
    assert tc.estimate_memory(name, largest, on=on, optimizer=optimizer).fits is True
    assert tc.estimate_memory(name, largest + 1, on=on, optimizer=optimizer).fits is False


def test_on_a_device_that_is_too_small_the_largest_batch_is_zero():
    memory = step_memory(tc.load_model("vgg16"), 1, settings=Settings("fp32", "adam"), device=device(2 * GIB))
    assert (memory.fits, memory.largest_batch_size) == (False, 0)


def test_a_larger_device_never_holds_a_smaller_batch():
    trace, settings = tc.load_model("cifar_resnet20"), Settings()
    sizes = [
        step_memory(trace, 1, settings=settings, device=device(n * GIB)).largest_batch_size for n in (1, 2, 4, 8, 16)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_without_a_device_nothing_is_said_about_fitting():
    memory = tc.estimate_memory("mnist_cnn", 8)
    assert (memory.device, memory.fits, memory.largest_batch_size) == (None, None, None)
    assert memory.to_dict()["usable_bytes"] is None


@pytest.mark.parametrize("on", [None, "T4", "generic-cpu"])
def test_what_it_says_can_be_written_as_json(on):
    memory = tc.estimate_memory("mnist_cnn", 8, on=on)
    said = json.loads(json.dumps(memory.to_dict()))
    assert said["peak_bytes"] == sum(said["peak_bytes_by_kind"].values()) == memory.peak_bytes
    assert (said["model"], said["batch_size"], said["device"]) == ("mnist_cnn", 8, on)
    assert (said["precision"], said["optimizer"]) == ("fp32", "sgd")


def test_a_cpu_runs_what_cpus_run_and_has_no_gpu_allowances():
    cpu, gpu = (tc.estimate_memory("bert-base", 2, on=name, optimizer="adam") for name in ("generic-cpu", "T4"))
    assert (cpu.target, gpu.target) == ("cpu", "cuda")
    assert (cpu.overhead.workspace_bytes, cpu.overhead.allocator_bytes) == (0, 0)
    assert len(cpu.op_phases) > len(gpu.op_phases)  # one op a parameter, attention taken apart


def test_a_process_can_have_all_of_a_cpus_memory_and_95_percent_of_a_gpus():
    assert device(100 * MIB, kind="cpu").usable_memory_bytes == 100 * MIB
    assert device(100 * MIB).usable_memory_bytes == int(98.5 * MIB)
    assert find_device("T4").usable_memory_bytes == int(0.985 * 15 * GIB)  # 16 GiB, a sixteenth for error correction


def test_workspaces_are_larger_on_hopper_and_where_there_are_convolutions():
    old, new = (
        step_memory(tc.load_model("gpt2"), 1, settings=Settings(), device=device(64 * GIB, arch=arch)).overhead
        for arch in ("Ampere", "Hopper")
    )
    assert (old.workspace_bytes, new.workspace_bytes) == (8_519_680, 32 * MIB)
    vgg = step_memory(tc.load_model("vgg16"), 2, settings=Settings(), device=device(64 * GIB)).overhead
    assert vgg.workspace_bytes == 8_519_680 + 4 * 2 * 64 * 224 * 224


def test_the_peak_says_where_it_is():
    memory = tc.estimate_memory("vgg16", 64, optimizer="none")
    assert memory.peak_phase in ("forward", "backward")
    assert memory.peak_module.startswith("features.")
    assert memory.peak_op.startswith("aten.")


@pytest.mark.parametrize("batch_size", [0, -1, 10**9, 2.5, True])
def test_a_batch_size_that_cannot_be_is_refused(batch_size):
    with pytest.raises(InputError, match=r"batch.size"):
        tc.estimate_memory("mnist_cnn", batch_size)


def test_an_unknown_precision_or_optimizer_is_refused():
    with pytest.raises(InputError, match=r"^precision 'fp4' is not known\."):
        tc.estimate_memory("mnist_cnn", 1, precision="fp4")
    with pytest.raises(InputError, match=r"^optimizer 'lamb' is not known\."):
        tc.estimate_memory("mnist_cnn", 1, optimizer="lamb")


def test_an_inference_trace_has_neither_gradients_nor_optimizer_state():
    torch = pytest.importorskip("torch")
    trace = tc.capture(torch.nn.Linear(100, 100), torch.zeros(2, 100), mode="inference", optimizer="adam")
    kinds = tc.estimate_memory(trace, 4).bytes_by_kind
    assert (kinds["gradients"], kinds["optimizer state"], kinds["activations"]) == (0, 0, 0)
    assert kinds["weights"] == 4 * 10_100


def test_devices_of_the_users_own_file_are_known(tmp_path):
    assert find_device("T4").memory_bytes == 16 * GIB
    file = tmp_path / "mine.csv"
    file.write_text("name,fp32_tflop_per_s,memory_gib,memory_gb_per_s\nTiny,1,1,100\n")
    memory = tc.estimate_memory("mnist_cnn", 1, on="Tiny", devices=file)
    assert (memory.device.name, memory.fits) == ("Tiny", True)


@pytest.mark.parametrize(("n_ops", "most", "n_samples"), [(5, 10, 5), (1000, 10, 11), (1, 10, 1)])
def test_a_chart_gets_evenly_spread_samples_with_first_last_and_the_peak(n_ops, most, n_samples):
    peak = n_ops // 2
    samples = timeline_samples(n_ops, most, keep=peak)
    assert (len(samples), samples[0], samples[-1]) == (n_samples, 0, n_ops - 1)
    assert peak in samples
