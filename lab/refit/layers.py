"""Fits what TensorFlow's libraries do differently to layers timed alone, and writes the file that the package ships.

    python -m lab.refit.layers --data ../shared/data [--write]

Of every GPU 700 convolutions and 400 fully connected layers, none of them among the rows that `traincast compare`
scores. Beside the fit to all GPUs it makes one without each of them, and one without each pair: the deviations that
judge a GPU come from errors on others, by fits that saw neither. Takes about five minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from lab.paths import PACKAGE
from traincast.errors import InputError
from traincast.kernels.coefficients import shipped
from traincast.kernels.layerwise.rows import DEVICES, read_layers
from traincast.kernels.library_factors import NAMES, SPREAD_GROUPS, Factors
from traincast.kernels.refit.layer_calls import build_calls
from traincast.kernels.refit.layer_fit import Missed, Timed, fit_factors, missed, spread_of
from traincast.kernels.refit.layer_rows import fit_sample
from traincast.report.files import write_file
from traincast.trace.graph import Floats

_N_FITTED = {"conv": 700, "dense": 400}  # rows a GPU
_N_ROUNDS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="replace the file of the package")
    arguments = parser.parse_args()
    try:
        timed = [read_timed(arguments.data / "layers", kind) for kind in _N_FITTED]
    except InputError as error:
        parser.error(str(error))
    result = refit(timed)
    if arguments.write:
        text = json.dumps(result, indent=1) + "\n"
        write_file(PACKAGE / "data" / "kernels" / "tensorflow_layers.json", text)
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


def read_timed(layers: Path, kind: str) -> Timed:
    rows = fit_sample(read_layers(layers, kind), _N_FITTED[kind])
    return Timed.of(build_calls(rows, DEVICES, name=f"layers {kind}"), shipped().coefficients)


def refit(timed: Sequence[Timed]) -> dict[str, Any]:
    """The contents of the shipped file: factors and deviations, with all GPUs and without each, and provenance."""
    devices = sorted({str(name) for each in timed for name in each.calls.block.tags["device"]})
    fitted = fit_factors(timed, n_rounds=_N_ROUNDS)
    without = {name: fit_factors(timed, left_out=[name], start=fitted) for name in devices}
    own = {name: _misses(timed, without[name], name) for name in devices}
    seen_by_none = _pair_misses(timed, devices, fitted)
    return {
        **_stored(fitted, spread_of(Missed.join([each for name in devices for each in own[name]]))),
        "without": {name: _stored(without[name], spread_of(Missed.join(seen_by_none[name]))) for name in devices},
        "provenance": {
            "refit": "python -m lab.refit.layers --data DIR --write",
            "date": datetime.now(UTC).date().isoformat(),
            "rows": {each.calls.block.name: int(each.fitted_rows(()).sum()) for each in timed},
            "devices": devices,
            "held_out_percent": {
                each.calls.block.name: _score(np.concatenate([own[name][place].errors for name in devices]))
                for place, each in enumerate(timed)
            },
        },
    }


def _pair_misses(timed: Sequence[Timed], devices: Sequence[str], start: Factors) -> dict[str, list[Missed]]:
    """For each GPU the errors on every other one, by the fit that saw neither of the two."""
    found: dict[str, list[Missed]] = {name: [] for name in devices}
    for one, other in combinations(devices, 2):
        factors = fit_factors(timed, left_out=[one, other], start=start)
        found[one] += _misses(timed, factors, other)
        found[other] += _misses(timed, factors, one)
    return found


def _misses(timed: Sequence[Timed], factors: Factors, device: str) -> list[Missed]:
    by_set = [missed(each, factors) for each in timed]
    return [each.take(each.device == device) for each in by_set]


def _stored(factors: Factors, log_sd: Floats) -> dict[str, dict[str, float]]:
    return {
        "values": {name: round(factors[name], 4) for name in NAMES},
        "log_sd": {group: round(float(value), 4) for group, value in zip(SPREAD_GROUPS, log_sd, strict=True)},
    }


def _score(errors: Floats) -> dict[str, float]:
    relative = 100 * np.expm1(errors)
    return {
        "n": len(errors),
        "median_absolute": round(float(np.median(np.abs(relative))), 2),
        "mean_absolute": round(float(np.mean(np.abs(relative))), 2),
        "bias": round(float(np.median(relative)), 2),
    }


if __name__ == "__main__":
    main()
