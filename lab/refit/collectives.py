"""Fits what `scaling.nvlink` adds to NCCL's own tables, and writes how wrong it is into docs/collectives.md.

    python -m lab.refit.collectives --data ../shared/data [--write]

Rows are all-reduces, all-gathers, reduce-scatters and all-to-alls inside one domain of NVLink, each set (source, GPU
and collective) counting alike. Left out whole: a generation of GPUs. The timing loops' own start is fitted beside and
not shipped. `--write` refreshes the page; the coefficients are printed, to be put into `scaling/nvlink.py` by hand.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from lab.markdown import refresh, table
from lab.paths import DOCS
from traincast.hardware.cluster_text import find_cluster
from traincast.report.files import write_file
from traincast.scaling import collectives as flat
from traincast.scaling.hierarchy import Network, all_reduce
from traincast.scaling.nvlink import Fitted, fabric_wire
from traincast.trace.graph import Floats
from traincast.units import MIB

PAGE = DOCS / "collectives.md"
FILES = ("collectives_stas", "collectives_vtrain", "collectives_xla")
_DEVICES = {
    "A100-SXM4": ("A100-SXM4-80GB", "Ampere"),
    "A100-SXM4 (NVLink 3 node)": ("A100-SXM4-80GB", "Ampere"),
    "H100-SXM5-80GB": ("H100-SXM5-80GB", "Hopper"),
    "H200-SXM5-141GB": ("H200-SXM", "Hopper"),
    "GB200": ("GB200", "Blackwell"),
}
_CALLS: dict[str, Callable[[Floats, int, flat.Wire], flat.Cost]] = {
    "all_gather": flat.ring_all_gather,
    "reduce_scatter": flat.ring_reduce_scatter,
    "all_to_all": flat.all_to_all,
}
_NAMES = ("hop", "simple", "ll", "switch_s", "switch", "copy", "peer_s")
# Priors: NCCL's tables hold, sums in the switch move N bytes at somewhat over half the rate, a copy reads and writes.
_PRIOR = np.log([1.0, 1.0, 1 / 3, 25e-6, 0.65, 1 / 3, 0.3e-6, 10e-6])
_SD = np.array([0.5, 0.15, 0.5, 0.5, 0.2, 0.5, 0.7, 0.5])
_OUTLIER = 0.15  # of a time: beyond it an error counts linearly


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Measured collectives of one kind on one number of devices."""

    source: str
    device: str
    generation: str
    collective: str
    n_devices: int
    without_switch: bool  # it was switched off
    n_bytes: Floats
    measured_s: Floats

    def forecast_s(self, fitted: Fitted) -> Floats:
        """By the code that ships."""
        cluster = find_cluster(f"{self.n_devices}x{self.device}")
        wire = fabric_wire(cluster.inside, cluster.device, fitted)
        if self.collective == "all_reduce":
            network = Network(wire, None, (self.n_devices,))
            return all_reduce(self.n_bytes, network, "ring" if self.without_switch else "nccl").seconds
        return _CALLS[self.collective](self.n_bytes, self.n_devices, wire).seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="refresh the table of docs/collectives.md")
    arguments = parser.parse_args()
    rows = measured(arguments.data)
    whole = fit(rows)
    print({name: float(f"{value:.3g}") for name, value in zip((*_NAMES, "timing_s"), np.exp(whole), strict=True)})
    generations = sorted({each.generation for each in rows})
    left_out = {name: fit([each for each in rows if each.generation != name]) for name in generations}
    text = _table(rows, left_out)
    print(text)
    if arguments.write:
        write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), {"collectives": text}))


def measured(data: Path) -> list[Rows]:
    """All rows that can be asked: inside one domain, of a GPU of the table."""
    groups: dict[tuple[str, str, str, int, bool], list[tuple[float, float]]] = {}
    for name in FILES:
        with gzip.open(data / "modern" / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row["device"] not in _DEVICES or row["collective"] == "collective_permute":
                    continue
                key = (name, row["device"], row["collective"], int(row["n_gpus"]), "Ring" in row["algo"])
                groups.setdefault(key, []).append((float(row["bytes"]), float(row["time_us"]) / 1e6))
    return [
        Rows(source, *_DEVICES[device], collective, n, ring, *np.array(sorted(values)).T)
        for (source, device, collective, n, ring), values in sorted(groups.items())
    ]


def fit(rows: Sequence[Rows]) -> Floats:
    """Logarithms of the numbers of `Fitted` and of the start of the timing loops."""
    sets = [(each.source, each.generation, each.collective) for each in rows]
    n_rows = {name: sum(len(r.n_bytes) for r, s in zip(rows, sets, strict=True) if s == name) for name in set(sets)}
    weights = np.concatenate(
        [np.full(len(each.n_bytes), 5 / np.sqrt(n_rows[name])) for each, name in zip(rows, sets, strict=True)]
    )

    def residuals(logs: Floats) -> Floats:
        errors = weights * np.concatenate([np.log(_with_start(each, logs) / each.measured_s) for each in rows])
        robust = np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + (errors / _OUTLIER) ** 2) - 1))
        return np.concatenate([robust, (logs - _PRIOR) / _SD])

    return np.asarray(least_squares(residuals, _PRIOR).x)


def _with_start(rows: Rows, logs: Floats) -> Floats:
    values = np.exp(logs)
    return values[-1] + rows.forecast_s(Fitted(**dict(zip(_NAMES, values[:-1].tolist(), strict=True))))


def _table(rows: Sequence[Rows], left_out: dict[str, Floats]) -> str:
    shipped = np.log([*astuple(Fitted()), np.exp(_PRIOR[-1])])
    lines = []
    for source, device, collective in sorted({(r.source, r.device, r.collective) for r in rows}):
        own = [r for r in rows if (r.source, r.device, r.collective) == (source, device, collective)]
        measured_s = np.concatenate([r.measured_s for r in own])
        is_large = np.concatenate([r.n_bytes for r in own]) >= MIB
        fold_s = np.concatenate([_with_start(r, left_out[r.generation]) for r in own])
        shipped_s = np.concatenate([_with_start(r, shipped) for r in own])
        lines.append(
            (
                f"{source}: {collective.replace('_', '-')}, {device}",
                str(int(is_large.sum())),
                _median(fold_s / measured_s, is_large),
                _bias(fold_s / measured_s, is_large),
                _median(shipped_s / measured_s, is_large),
                str(int((~is_large).sum())),
                _middle(measured_s / fold_s, ~is_large),
            )
        )
    header = ("set", "n from 1 MiB", "median %", "bias %", "in sample", "n below", "measured / forecast")
    return table(header, lines)


def _median(ratio: Floats, of: NDArray[np.bool_]) -> str:
    return f"{100 * np.median(np.abs(ratio[of] - 1)):.1f}" if of.any() else "-"


def _bias(ratio: Floats, of: NDArray[np.bool_]) -> str:
    return f"{100 * np.median(ratio[of] - 1):+.1f}" if of.any() else "-"


def _middle(ratio: Floats, of: NDArray[np.bool_]) -> str:
    return f"{np.median(ratio[of]):.2f}" if of.any() else "-"


if __name__ == "__main__":
    main()
