"""The tables of docs/layerwise.md: errors of the last fit. The prose around them is written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from lab.refit.layerwise.scores import PASSES, NetworkComparison, Result, Score
from lab.refit.layerwise.whole_models import PatchCamelyonStep, VggStep, patchcamelyon_steps, vgg_steps
from traincast.kernels.layerwise.fit import features_of
from traincast.kernels.layerwise.network import Network
from traincast.kernels.layerwise.rows import DEVICES, layer_rows, read_columns

_TITLES = {"conv": "convolutions", "dense": "fully connected layers"}
# TensorFlow 2 rows name the form factor, and one GPU that no network saw.
_TF2_DEVICES = {"K80": "K80-die", "M40": "M40", "P100-PCIe": "P100-PCIe-16GB", "P100-SXM2": "P100-SXM2-16GB"}


def report_tables(results: Mapping[str, Result], data: Path) -> dict[str, str]:
    """Markdown by the name of the place where it belongs on the page."""
    return {
        "headline": _headline(results),
        "test": "\n\n".join(_test_table(results[kind].test, kind, each) for kind in results for each in PASSES),
        "unseen": "\n\n".join(_unseen_table(results[kind].unseen, kind) for kind in results),
        "tf2": _tf2_table(results["conv"].network, data / "conv_tf2_K80_M40_P100.csv.gz"),
        "fits": _fits_table(results),
        "patchcamelyon": _patchcamelyon_tables(patchcamelyon_steps(data.parent / "seeds")),
        "vgg": _vgg_table(vgg_steps(data)),
    }


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}" if seconds < 1e-3 else f"{1e3 * seconds:.2f}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}"


def _score(score: Score) -> tuple[str, str, str]:
    return _ms(score.rmse_s), _percent(score.median_error_fraction), _percent(score.mean_error_fraction)


def _headline(results: Mapping[str, Result]) -> str:
    conv, dense = (_all_line(results[kind].test).network for kind in ("conv", "dense"))
    paper = results["conv"].paper_rows
    assert paper is not None
    return _table(
        ("test rows, forward and with backward", "n", "RMSE ms", "median %", "mean %"),
        [
            ("convolutions, batch below 33, learnt from such rows only", f"{paper.n:,}", *_score(paper)),
            ("convolutions, all batch sizes (ships)", f"{conv.n:,}", *_score(conv)),
            ("fully connected layers (ships)", f"{dense.n:,}", *_score(dense)),
        ],
    )


def _all_line(lines: Sequence[NetworkComparison]) -> NetworkComparison:
    return next(line for line in lines if line.gpu == line.layer_pass == "all")


def _test_table(lines: Sequence[NetworkComparison], kind: str, layer_pass: str) -> str:
    header = (
        f"{_TITLES[kind]}, {layer_pass}", "n", "RMSE ms", "median %", "mean %",
        "noise ms", "noise %", "baseline ms", "baseline median %",
    )  # fmt: skip
    rows = [
        (
            line.gpu, f"{line.network.n:,}", *_score(line.network), _ms(line.noise_rmse_s),
            _percent(line.noise_fraction), _ms(line.baseline_rmse_s), _percent(line.baseline_median_fraction),
        )
        for line in lines
        if line.layer_pass == layer_pass
    ]  # fmt: skip
    return _table(header, rows)


def _unseen_table(lines: Sequence[NetworkComparison], kind: str) -> str:
    header = [f"{_TITLES[kind]}, on"]
    for layer_pass in PASSES:
        header += [f"{layer_pass}: RMSE ms", "median %", "mean %", "baseline ms", "baseline median %"]
    rows = []
    for gpu in dict.fromkeys(line.gpu for line in lines):
        row = [gpu]
        for layer_pass in PASSES:
            line = next(each for each in lines if (each.gpu, each.layer_pass) == (gpu, layer_pass))
            row += [*_score(line.network), _ms(line.baseline_rmse_s), _percent(line.baseline_median_fraction)]
        rows.append(row)
    return _table(header, rows)


def _tf2_table(network: Network, path: Path) -> str:
    rows = layer_rows(read_columns(path), "conv")
    predicted_s = network.predict_s(features_of(rows, _TF2_DEVICES))
    lines = []
    for gpu, device in _TF2_DEVICES.items():
        chosen = rows.gpu == gpu
        ratio = float(np.median(predicted_s[chosen] / rows.median_s[chosen]))
        status = "seen" if device in DEVICES.values() else "never seen"
        score = Score.of(predicted_s[chosen], rows.median_s[chosen])
        lines.append((f"{device} ({status})", f"{score.n:,}", *_score(score), f"{ratio:.2f}"))
    return _table(("GPU", "n", "RMSE ms", "median %", "mean %", "median predicted / measured"), lines)


def _fits_table(results: Mapping[str, Result]) -> str:
    rows = []
    for kind, result in results.items():
        provenance = result.network.provenance
        split, log_sd = provenance["split"], provenance["log_sd"]
        hidden = ", ".join(map(str, provenance["hidden"]))
        rows.append(
            (
                _TITLES[kind], hidden, f"{split['n_train']:,}", f"{split['n_validation']:,}", f"{split['n_test']:,}",
                f"{log_sd['known_gpu']:.3f}", f"{log_sd['unseen_gpu']:.3f}", f"{log_sd['per_unit_outside']:.3f}",
            )
        )  # fmt: skip
    header = (
        "network",
        "hidden units",
        "train",
        "validation",
        "test",
        "`known_gpu`",
        "`unseen_gpu`",
        "`per_unit_outside`",
    )
    return _table(header, rows)


def _patchcamelyon_tables(steps: Sequence[PatchCamelyonStep]) -> str:
    header = ("ms a layer, Adam", *(f"batch {step.batch}: project" + " | ours" for step in steps))
    layers = [
        (name, *(" | ".join(_ms(seconds) for seconds in step.layers_s[name]) for step in steps))
        for name in steps[0].layers_s
    ]
    by_layer = _table([cell for each in header for cell in each.split(" | ")], layers)
    sums = _table(
        (
            "batch per GPU", "project sum", "our sum", "one GPU, measured", "our sum / measured",
            "project sum / 1.5", "our sum / 1.5",
        ),
        [
            (
                str(step.batch), _ms(step.project_sum_s), _ms(step.our_sum_s), _ms(step.single_gpu_step_s),
                f"{step.our_sum_s / step.single_gpu_step_s:.2f}",
                _ms(step.project_sum_s / 1.5), _ms(step.our_sum_corrected_s),
            )
            for step in steps
        ],
    )  # fmt: skip
    return f"{by_layer}\n\n{sums}\n\n{_mirrored_table(steps)}"


def _mirrored_table(steps: Sequence[PatchCamelyonStep]) -> str:
    rows = []
    for step in steps:
        whole_s = {
            "project": step.project_sum_s, "project, 1.5": step.project_sum_s / 1.5,
            "ours": step.our_sum_s, "ours, 1.5": step.our_sum_corrected_s,
        }  # fmt: skip
        cells = [str(step.batch), _ms(step.mirrored_step_s)]
        for sum_s in whole_s.values():
            predicted_s = sum_s + step.last_layer_s
            cells.append(f"{_ms(predicted_s)} ({100 * (predicted_s / step.mirrored_step_s - 1):+.0f} %)")
        rows.append(cells)
    header = ("batch per GPU", "two GPUs, measured", "project", "project, 1.5", "ours", "ours, 1.5")
    return _table(header, rows)


def _vgg_table(steps: Sequence[VggStep]) -> str:
    rows = [
        (
            f"{'forward only' if step.optimizer == 'none' else step.optimizer}, {step.batch}", _ms(step.measured_s),
            _ms(step.layer_sum_s), f"{step.layer_sum_s / step.measured_s:.2f}",
        )
        for step in steps
    ]  # fmt: skip
    return _table(("optimizer, batch", "measured ms", "sum of layers ms", "ratio"), rows)
