"""Fits the host profiles that ship:  python benchmarks/fit_hosts.py --data DIR [--write]

DIR holds `layers/` (lone layers, TensorFlow 1) and `seeds/` (Keras on P100). With --write the figures go to
src/traincast/data/hosts.csv and to the tables of docs/forecast.md.
"""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path

import checkout  # noqa: F401 - finds lab
import keras_runs
import session_layers
from lab.markdown import refresh
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "forecast.md"
COMMAND = "python benchmarks/fit_hosts.py --data DIR --write"
TORCH_DISPATCH_US = 8.0  # backward ops are dispatched from C++ and views launch no kernel: both are cheaper
NOTES = {
    "torch-eager": "PyTorch without compilation: Python dispatches forward and optimizer ops and C++ the backward ones",
    "tf1-session": "TensorFlow 1 graph run by session.run; shapes are known to the executor and views cost nothing",
    "tf2-keras": "TensorFlow 2 function inside Keras fit; a call has callbacks and metrics around it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A row of hosts.csv in microseconds."""

    name: str
    forward_us: float
    backward_us: float
    optimizer_us: float
    view_us: float
    call_us: float
    source: str

    def seconds(self) -> list[str]:
        figures = (self.forward_us, self.backward_us, self.optimizer_us, self.view_us, self.call_us)
        return [f"{figure * 1e-6:.3g}" for figure in figures]


def main() -> None:
    """Fits, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with layers/ and seeds/")
    parser.add_argument("--write", action="store_true", help="write hosts.csv and docs/forecast.md")
    options = parser.parse_args()
    found = session_layers.machines(options.data / "layers")
    profiles = [torch_eager(), tf1_session(found), tf2_keras(options.data / "seeds")]
    tables = {"hosts": hosts_table(profiles), "sessions": sessions_table(found)}
    print("\n\n".join(tables.values()))
    print("\n" + "\n".join(f"{profile.name}: {profile.source}" for profile in profiles))
    if options.write:
        path = Path(str(files("traincast") / "data" / "hosts.csv"))
        write_file(path, hosts_file(profiles))
        write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), tables))
        print(f"Wrote {path} and {PAGE}")


def torch_eager() -> Profile:
    """No row that we have is bound by the host of an eager framework: all of it is a guess."""
    return Profile(
        name="torch-eager",
        forward_us=TORCH_DISPATCH_US,
        backward_us=0.75 * TORCH_DISPATCH_US,
        optimizer_us=TORCH_DISPATCH_US,
        view_us=0.25 * TORCH_DISPATCH_US,
        call_us=0.0,
        source="a guess: none of the whole-model rows is bound by its host (the fastest takes 35 us an op)",
    )


def tf1_session(found: list[session_layers.Machine]) -> Profile:
    host = session_layers.middle_host(found)
    calls = sorted(machine.host.call_s * 1e6 for machine in found)
    dispatch_us = host.forward_dispatch_s * 1e6
    return Profile(
        name="tf1-session",
        forward_us=dispatch_us,
        backward_us=dispatch_us,
        optimizer_us=dispatch_us,
        view_us=0.0,
        call_us=host.call_s * 1e6,
        source=(
            "medians over six machines of Justus et al. 2018, from the smallest 2 % of their fully connected layers "
            f"(calls {calls[0]:.0f} to {calls[-1]:.0f} us); {COMMAND}"
        ),
    )


def tf2_keras(seeds: Path) -> Profile:
    host = keras_runs.fit(seeds).host
    dispatch_us = host.forward_dispatch_s * 1e6
    return Profile(
        name="tf2-keras",
        forward_us=dispatch_us,
        backward_us=dispatch_us,
        optimizer_us=dispatch_us,
        view_us=0.0,
        call_us=host.call_s * 1e6,
        source=(
            "one machine: MNIST and CIFAR-10 networks at batch 8 in Keras on P100 (course project of 2020), "
            f"after the cost of feeding input; {COMMAND}"
        ),
    )


def hosts_file(profiles: list[Profile]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    times = ("forward_dispatch_s", "backward_dispatch_s", "optimizer_dispatch_s", "view_dispatch_s", "call_s")
    writer.writerow(("name", *times, "source", "accessed", "notes"))
    for profile in profiles:
        today = date.today().isoformat()
        writer.writerow((profile.name, *profile.seconds(), profile.source, today, NOTES[profile.name]))
    return text.getvalue()


def hosts_table(profiles: list[Profile]) -> str:
    lines = ["| profile | forward | backward | optimizer | view | call |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for profile in profiles:
        default = " (default)" if profile.name == "torch-eager" else ""
        times = (profile.forward_us, profile.backward_us, profile.optimizer_us, profile.view_us, profile.call_us)
        lines.append(f"| `{profile.name}`{default} | {' | '.join(_us(time) for time in times)} |")
    return "\n".join(lines)


def sessions_table(found: list[session_layers.Machine]) -> str:
    lines = [
        "| machine of the | call | dispatch | smallest forward call | smallest call with SGD | with Adam |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for machine in found:
        floors = [machine.floor_s(optimizer) * 1e6 for optimizer in ("none", "SGD", "Adam")]
        times = (machine.host.call_s * 1e6, machine.host.forward_dispatch_s * 1e6, *floors)
        lines.append(f"| {machine.gpu} | {' | '.join(_us(time) for time in times)} |")
    return "\n".join(lines)


def _us(time_us: float) -> str:
    return "0" if time_us == 0 else f"{time_us:.0f} us" if time_us >= 100 else f"{time_us:.1f} us"


if __name__ == "__main__":
    main()
