"""What is stored with every record about where it was measured."""

import json
import platform
import sys
from types import SimpleNamespace

import torch

import traincast
from traincast.records.environment import Environment, cpu_mhz, cpu_name, read_environment, sm_mhz

CPU_INFO = "\n\n".join(
    f"processor\t: {core}\nmodel name\t: Some CPU   v5 @ 2.0GHz\ncpu MHz\t\t: {mhz}"
    for core, mhz in enumerate((2000.0, 3000.0))
)


def test_this_machine_has_a_name_threads_and_versions():
    environment = read_environment("cpu")
    assert environment.device
    assert environment.device_kind == "cpu"
    assert environment.n_threads == torch.get_num_threads()
    assert environment.n_cores >= 1
    assert environment.versions == {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "traincast": traincast.__version__,
    }


def test_it_goes_through_json_and_back():
    environment = read_environment("cpu")
    assert Environment.from_dict(json.loads(json.dumps(environment.to_dict()))) == environment


def test_the_name_and_mean_clock_of_the_cores_are_read():
    assert cpu_name(CPU_INFO) == "Some CPU v5 @ 2.0GHz"
    assert cpu_mhz(CPU_INFO) == 2500.0


def test_a_system_that_says_nothing_leaves_the_clock_open_and_still_has_a_name():
    assert cpu_mhz("") is None
    assert cpu_name("")


def test_a_gpu_whose_driver_tells_no_clock_is_measured_without(monkeypatch):
    """NVIDIA's library raises a plain Exception of its own where a part of a GPU (MIG) has no clock."""

    class NVMLError(Exception):
        pass

    class Cuda:
        def clock_rate(self, device):
            raise NVMLError("Not Supported")

    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=NVMLError))
    assert sm_mhz(Cuda(), "cuda") is None
    monkeypatch.setattr(Cuda, "clock_rate", lambda self, device: 1500)
    assert sm_mhz(Cuda(), "cuda") == 1500.0
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert sm_mhz(Cuda(), "cuda") is None


def test_the_limit_of_threads_in_the_environment_is_kept(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert read_environment("cpu").omp_num_threads == "3"
