"""How fast is traincast itself?  python benchmarks/speed.py [--repeat N] [--write]

Whatever a user waits for after a cold start runs in a fresh process. Times are those of the machine at hand: they are
printed and, with --write, kept in docs/speed.md. No test asserts them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import traincast as tc
from traincast.frontend.models.registry import ZOO
from traincast.hardware.catalog import all_devices
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace
from traincast.trace.traffic import op_bytes
from traincast.units import show_bytes, show_duration

PAGE = Path(__file__).parents[1] / "docs" / "speed.md"
PACKAGES = ("traincast", "numpy", "typer", "torch", "transformers")
N_BATCH_SIZES = 1_000
MANY = ("K80", "P100-PCIe-16GB", "T4", "V100-SXM2-16GB", "RTX-3090", "A10", "A100-SXM4-80GB", "H100-SXM5-80GB")
STRATEGIES = ("ddp", "mirrored", "ps:2", "fsdp")
GPT2_LARGE = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "n_embd": 1280,
    "n_layer": 36,
    "n_head": 20,
    "n_positions": 1024,
}

# A child prints the seconds of its parts and the most memory that it ever held. VmHWM belongs to this process alone;
# the figure of getrusage would include what the parent held when it started the child.
_REPORT = """
import json
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
held_bytes = int(status["VmHWM"].split()[0]) * 1024
print(json.dumps({"import_s": imported - start, "work_s": done - imported, "held_bytes": held_bytes}))
"""
_CAPTURE_ZOO = """
import sys, time
start = time.perf_counter()
import torch
imported = time.perf_counter()
from traincast.frontend.zoo import capture_zoo_model
capture_zoo_model(sys.argv[1])
done = time.perf_counter()
"""
_CAPTURE_CONFIG = """
import sys, time
start = time.perf_counter()
import torch, transformers
imported = time.perf_counter()
import traincast
traincast.load_model(sys.argv[1], seqlen=1024)
done = time.perf_counter()
"""
_IMPORT = """
import time
start = time.perf_counter()
import traincast
imported = time.perf_counter()
traincast.load_model, traincast.capture, traincast.estimate_memory
done = time.perf_counter()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question, what was hoped for, and every measurement. `judged` is the one that the target is held against."""

    what: str
    target: float | None
    samples: tuple[float, ...]
    show: Callable[[float], str] = show_duration
    judged: Callable[[tuple[float, ...]], float] = statistics.median

    def cells(self) -> tuple[str, ...]:
        target = "-" if self.target is None else f"< {self.show(self.target)}"
        met = "-" if self.target is None else ("yes" if self.judged(self.samples) < self.target else "NO")
        low, middle, high = min(self.samples), statistics.median(self.samples), max(self.samples)
        return (self.what, target, self.show(low), self.show(middle), self.show(high), str(len(self.samples)), met)


HEADER = ("what", "target", "min", "median", "max", "n", "met")


def main() -> None:
    """Measures, prints, and writes the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each measurement (default 5)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    rows = []
    print(_line(HEADER))
    for row in all_rows(max(1, options.repeat)):
        print(_line(row.cells()), flush=True)
        rows.append(row)
    if options.write:
        PAGE.write_text(page(rows), encoding="utf-8")
        print(f"Wrote {PAGE}")


def all_rows(repeat: int) -> Iterator[Row]:
    yield from cold_starts(max(7, repeat))
    yield from captures(repeat)
    yield zoo_loads(repeat)
    yield from questions(repeat)
    yield from forecasts(repeat)


def forecasts(repeat: int) -> Iterator[Row]:
    """Forecasts from a trace that is loaded and lowered."""
    from traincast.api.forecasts import forecast_many, scale_many

    trace = tc.load_model("resnet50")
    for precision in ("fp32", "amp-fp16"):
        yield one_forecast(trace, precision, 100 * repeat)
    names = [device.name for device in all_devices() if device.kind == "gpu" and device.fp32_flop_per_s is not None]
    batch_sizes = list(range(1, 10_000 // len(names) + 2))
    yield Row(
        what=f"sweep of ResNet-50 over {len(names)} GPUs x {len(batch_sizes)} batch sizes",
        target=2.0,
        samples=repeated(lambda: forecast_many(trace, names, batch_sizes).step_s, repeat),
    )
    counts, sizes = (1, 2, 4, 8, 16, 32, 48, 64), range(64, 64 * 17, 64)
    places = [f"1x64x{name}" for name in MANY]  # of some, nobody says what joins several nodes
    yield Row(
        what=f"scaling of ResNet-50 on {len(MANY)} GPUs x {len(counts)} counts x {len(sizes)} batches x 4 strategies",
        target=2.0,
        samples=repeated(lambda: scale_many(trace, places, counts, sizes, strategies=STRATEGIES).step_s, repeat),
    )


def one_forecast(trace: Trace, precision: str, repeat: int) -> Row:
    tc.forecast(trace, "T4", 128, precision=precision)
    sizes = iter(range(1, repeat + 1))
    return Row(
        what=f"one forecast of ResNet-50 ({precision}), each at another batch size",
        target=1e-3,
        samples=repeated(lambda: tc.forecast(trace, "T4", next(sizes), precision=precision).step_s, repeat),
    )


def cold_starts(repeat: int) -> Iterator[Row]:
    """What a user of the command line waits for."""
    command = [sys.executable, "-m", "traincast", "layers", "resnet50"]
    yield Row(
        what="`traincast layers resnet50`, from start to exit",
        target=0.6,
        samples=repeated(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), repeat),
    )
    forecast = [*command[:-2], "forecast", "resnet50", "--on", "V100-PCIe-32GB", "--batch", "128"]
    yield Row(
        what="`traincast forecast resnet50 --on V100-PCIe-32GB --batch 128`, from start to exit",
        target=0.6,
        samples=repeated(lambda: subprocess.run(forecast, check=True, stdout=subprocess.DEVNULL), repeat),
    )
    parts = [child(_IMPORT) for _ in range(repeat)]
    yield Row(what="`import traincast`", target=0.3, samples=tuple(part["import_s"] for part in parts))
    yield Row(what="first use of its public names", target=None, samples=tuple(part["work_s"] for part in parts))


def captures(repeat: int) -> Iterator[Row]:
    """Building a model on meta and capturing it, each time in a fresh process."""
    if importlib.util.find_spec("torch") is None:
        print("(no torch here: captures are left out)")
        return
    yield from _capture_rows("capture ResNet-50", [child(_CAPTURE_ZOO, "resnet50") for _ in range(repeat)], 3.0, None)
    parts = [child(_CAPTURE_ZOO, "gpt2-large") for _ in range(repeat)]
    yield from _capture_rows("capture GPT-2 large (zoo)", parts, 10.0, 1e9)
    if importlib.util.find_spec("transformers") is None:
        print("(no transformers here: captures of a config.json are left out)")
        return
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(GPT2_LARGE), encoding="utf-8")
        parts = [child(_CAPTURE_CONFIG, str(config)) for _ in range(repeat)]
    yield from _capture_rows("capture GPT-2 large (config.json)", parts, 10.0, 1e9)


def _capture_rows(what: str, parts: list[dict[str, float]], target_s: float, most_bytes: float | None) -> Iterator[Row]:
    alone = tuple(part["work_s"] for part in parts)
    libraries = "torch and transformers" if "config" in what else "torch"
    yield Row(what=f"{what}, {libraries} imported before", target=target_s, samples=alone)
    whole = tuple(part["import_s"] + part["work_s"] for part in parts)
    yield Row(what=f"{what}, that import included", target=target_s, samples=whole)
    held = tuple(part["held_bytes"] for part in parts)
    yield Row(what=f"{what}, most memory held", target=most_bytes, samples=held, show=_megabytes, judged=max)


def zoo_loads(repeat: int) -> Row:
    """One sample a model: the median of its loads. All of them must be quick, so the slowest is judged."""
    tc.load_model("mnist_cnn")  # imports
    samples = [statistics.median(repeated(lambda name=name: tc.load_model(name), repeat)) for name in ZOO]
    slowest = list(ZOO)[int(np.argmax(samples))]
    return Row(
        what=f"load of a zoo trace, each of {len(ZOO)} (slowest: {slowest})",
        target=0.05,
        samples=tuple(samples),
        judged=max,
    )


def questions(repeat: int) -> Iterator[Row]:
    """Questions about a trace that is already there. Each run gets a trace of its own: answers are kept with it."""
    batch_sizes = np.arange(1, N_BATCH_SIZES + 1)

    def sweep(trace: Trace) -> None:
        trace.graph.dims(batch_sizes)
        trace.flop(batch_sizes)
        op_bytes(trace.graph, batch_sizes)

    yield Row(
        what=f"shapes, flop and bytes of ResNet-50 at {N_BATCH_SIZES:,} batch sizes",
        target=1.0,
        samples=on_fresh_traces(sweep, "resnet50", repeat),
    )
    settings = Settings("amp-fp16", "adam")
    for name in ("resnet50", "gpt2-large"):
        yield Row(
            what=f"lowering of {name} (CUDA, amp-fp16, adam)",
            target=None,
            samples=on_fresh_traces(lambda trace: lower(trace, target="cuda", settings=settings), name, repeat),
        )
        yield Row(
            what=f"memory of {name} on a T4 with the largest batch, lowering included",
            target=None,
            samples=on_fresh_traces(
                lambda trace: tc.estimate_memory(trace, 8, on="T4", optimizer="adam"), name, repeat
            ),
        )


def repeated(work: Callable[[], object], repeat: int) -> tuple[float, ...]:
    """Seconds of each run."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return tuple(seconds)


def on_fresh_traces(work: Callable[[Trace], object], name: str, repeat: int) -> tuple[float, ...]:
    traces = iter([tc.load_model(name) for _ in range(repeat)])
    return repeated(lambda: work(next(traces)), repeat)


def child(program: str, *arguments: str) -> dict[str, float]:
    """What a fresh process reports about itself."""
    command = [sys.executable, "-c", program + _REPORT, *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def page(rows: list[Row]) -> str:
    """docs/speed.md."""
    lines = [
        "# Speed",
        "",
        "Written by `python benchmarks/speed.py --write`. These are times of one machine and no promise for another:",
        "",
        *(f"- {fact}" for fact in machine()),
        "",
        "The median is held against the target; for the memory of a capture and the load of the zoo it is the maximum.",
        "Captures, commands and imports run in a fresh process each time, with warm file caches. For the load of the",
        "zoo, n counts models, and each sample is the median of several loads.",
        "",
        f"| {' | '.join(HEADER)} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
        *(f"| {' | '.join(row.cells())} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def machine() -> list[str]:
    installed = [f"{name} {version}" for name in PACKAGES if (version := _version(name))]
    memory = show_bytes(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return [
        f"{_cpu_model()}, {os.cpu_count()} cores, {memory} of memory, {platform.system()}",
        f"Python {platform.python_version()}; {', '.join(installed)}",
        f"load average over one minute when the measurements ended: {os.getloadavg()[0]:.1f}",
    ]


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown CPU"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _megabytes(value: float) -> str:
    """Decimal, as the target of 1 GB is."""
    return f"{value / 1e6:,.0f} MB"


def _line(cells: tuple[str, ...]) -> str:
    what, *figures = cells
    return f"{what:72s}" + "".join(f"{figure:>11s}" for figure in figures)


if __name__ == "__main__":
    main()
