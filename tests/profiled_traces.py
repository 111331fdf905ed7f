"""Traces for tests: real ones of small CPU steps, and a GPU's written by hand as Kineto writes it."""

import json
import os
import time
import warnings

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

N_STEPS = 3


class Samples(torch.utils.data.Dataset):
    """Images that each take a known time to load."""

    def __init__(self, sleep_s=0.0):
        self.sleep_s = sleep_s

    def __len__(self):
        return 4 * (N_STEPS + 1)

    def __getitem__(self, index):
        time.sleep(self.sleep_s)
        return torch.zeros(3, 16, 16), 0


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 8 * 8, 10),
    )


def write_cpu_trace(path, *, sleep_s=0.0, with_marks=True):
    """A loop as people write it, profiled as PyTorch's tutorial does. Gives the seconds of each step by our clock."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    model = small_cnn()
    optimizer = torch.optim.Adam(model.parameters())
    loader = torch.utils.data.DataLoader(Samples(sleep_s), batch_size=4)
    plan = schedule(wait=0, warmup=1, active=N_STEPS, repeat=1) if with_marks else None
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(
            activities=[ProfilerActivity.CPU],
            record_shapes=True,
            schedule=plan,
            on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
        ) as profiler:
            start = time.perf_counter()
            for images, labels in loader:
                nn.functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
                optimizer.zero_grad()
                seconds.append(time.perf_counter() - start)
                if with_marks:
                    profiler.step()
                start = time.perf_counter()
    return seconds


def event(category, name, start_us, duration_us, *, tid=1, pid=100, **arguments):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": 1_000_000.0 + start_us,
        "dur": float(duration_us),
        "args": arguments,
    }


def launch(at_us, correlation, *, tid=1):
    # Some versions of Kineto write the kernel's own correlation id as its external id: it must not be trusted.
    return event("cuda_runtime", "cudaLaunchKernel", at_us, 3, tid=tid, correlation=correlation)


def kernel(name, start_us, duration_us, correlation, *, stream=7, category="kernel"):
    return event(
        category, name, start_us, duration_us, pid=0, tid=stream, device=0, correlation=correlation,
        **{"External id": correlation},
    )  # fmt: skip


def gpu_step(step, *, at_us, load_us=0):
    """One step of 1,000 us, and `load_us` more: 20 copy, 100 convolution, 200 its backward, 100 of an all-reduce.

    Of the all-reduce, half runs beside the backward. The update takes 30; the GPU waits for the rest.
    """
    begin, base = at_us + load_us, 100 * step
    backward = "autograd::engine::evaluate_function: ConvolutionBackward0"
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    return [
        event("user_annotation", f"ProfilerStep#{step}", at_us, 1000 + load_us),
        event("user_annotation", loader, at_us, load_us),
        event("cpu_op", "aten::to", begin + 10, 30),
        event("cpu_op", "aten::copy_", begin + 12, 25),
        launch(begin + 15, base + 1),
        event("cpu_op", "aten::conv2d", begin + 50, 50),
        event(
            "cpu_op", "aten::cudnn_convolution", begin + 60, 30, **{"Input Dims": [[8, 3, 32, 32], [16, 3, 3, 3], []]}
        ),
        launch(begin + 70, base + 2),
        event("cpu_op", backward, begin + 150, 100, tid=2),
        event("cpu_op", "ConvolutionBackward0", begin + 155, 90, tid=2),
        event("cpu_op", "aten::convolution_backward", begin + 160, 80, tid=2),
        launch(begin + 170, base + 3, tid=2),
        event("cpu_op", "c10d::allreduce_", begin + 240, 5, tid=2),
        launch(begin + 242, base + 4, tid=2),
        event("user_annotation", "Optimizer.step#SGD.step", begin + 300, 50),
        event("cpu_op", "aten::_foreach_add_", begin + 310, 30),
        launch(begin + 320, base + 5),
        kernel("Memcpy HtoD (Pinned -> Device)", begin + 20, 20, base + 1, category="gpu_memcpy"),
        kernel("implicit_convolve_sgemm", begin + 100, 100, base + 2),
        kernel("cudnn::dgrad_engine", begin + 200, 200, base + 3),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin + 350, 100, base + 4, stream=20),
        kernel("multi_tensor_apply_kernel", begin + 450, 30, base + 5),
    ]


def gpu_events(n_steps=3, load_us=0):
    return [one for step in range(n_steps) for one in gpu_step(step, at_us=step * (1000 + load_us), load_us=load_us)]


def write_json(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return path
