"""What was promised, what was reached, and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.accuracy.subsets import TRANSFORMERS, named, transformer_views
from traincast.validation.errors import ErrorSummary, Rows, summarise
from traincast.validation.measured_set import MeasuredSet

_OPS = {"gemm": 0.12, "elementwise": 0.08, "softmax and layer norm": 0.15, "convolution": 0.15}
_EXAMPLES = {"fp32 and tf32": ("fp32", "tf32"), "amp-fp16": ("amp-fp16",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One promise, in words that a table prints."""

    what: str
    left_out: str
    n: int
    wanted: str
    reached: str
    slack_fraction: float  # by how much an error is below what it may be
    is_met: bool | None  # None: reported, nothing was promised


def targets_of(sets: Sequence[MeasuredSet]) -> list[Target]:
    return [*_transformers(sets), *_image_models(sets), *_examples(sets), *_ops(sets), *_coverage(sets)]


def _target(what: str, left_out: str, summary: ErrorSummary, limits: dict[str, float]) -> Target:
    """`limits` names a figure of the summary and what it may be at most."""
    reached = {name: getattr(summary, f"{name}_absolute_fraction") for name in limits}
    return Target(
        what=what,
        left_out=left_out,
        n=summary.n,
        wanted=", ".join(f"{name} ≤ {100 * limit:.1f} %" for name, limit in limits.items()),
        reached=", ".join(f"{name} {100 * value:.1f} %" for name, value in reached.items()),
        slack_fraction=min(limit - reached[name] for name, limit in limits.items()),
        is_met=all(reached[name] <= limit for name, limit in limits.items()),
    )


def _transformers(sets: Sequence[MeasuredSet]) -> Iterator[Target]:
    views = {view.name: view for view in transformer_views(named(sets, TRANSFORMERS))}
    view = views["NVIDIA inference"]
    rival = view.summary(view.prediction("published neusight")).mean_absolute_fraction
    yield _target("transformer inference, NVIDIA (NeuSight's mean)", "GPU", view.summary(), {"mean": rival})
    for part in ("forward", "backward", "both"):
        view = views[f"NVIDIA training, {part}"]
        rival = view.summary(view.prediction("published neusight")).mean_absolute_fraction
        what = f"transformer training, {part}, V100 (NeuSight's mean)"
        yield replace(_target(what, "GPU", view.summary(), {"mean": rival}), is_met=None)


def _image_models(sets: Sequence[MeasuredSet]) -> Iterator[Target]:
    limits = {"median": 0.10, "mean": 0.15}
    chosen = [each for each in sets if each.name.startswith("timm")]
    everything = [np.ones(each.n_rows, dtype=bool) for each in chosen]
    yield _target("image models, all", "family", _together(chosen, everything), limits)
    for each in chosen:
        yield _target(f"image models, {each.name}", "family", each.summary(), limits)


def _together(sets: Sequence[MeasuredSet], rows: Sequence[Rows]) -> ErrorSummary:
    """Errors of some rows of several sets."""
    pairs = list(zip(sets, rows, strict=True))
    predicted_s = np.concatenate([each.prediction().seconds[chosen] for each, chosen in pairs])
    return summarise(predicted_s, np.concatenate([each.observed_s[chosen] for each, chosen in pairs]))


def _examples(sets: Sequence[MeasuredSet]) -> Iterator[Target]:
    for title, precisions in _EXAMPLES.items():
        chosen = [named(sets, f"nvidia examples {precision}") for precision in precisions]
        for family in ("resnet50", "bert"):
            rows = [np.char.startswith(each.tags["family"].astype(str), family) for each in chosen]
            yield _target(f"NVIDIA examples, {family}, {title}", "GPU", _together(chosen, rows), {"median": 0.15})


def _ops(sets: Sequence[MeasuredSet]) -> Iterator[Target]:
    for name, limit in _OPS.items():
        yield _target(f"ops, {name}", "GPU", named(sets, name).summary(), {"median": limit})


def _coverage(sets: Sequence[MeasuredSet]) -> Iterator[Target]:
    for each in sets:
        summary = each.summary()
        covered = summary.coverage_fraction
        assert covered is not None, f"our predictions of '{each.name}' have no interval"
        yield Target(
            what=f"p10 to p90, {each.name}",
            left_out=each.prediction().left_out,
            n=summary.n,
            wanted="75 to 85 %" if summary.n >= 200 else "80 % not rejected",
            reached=f"{100 * covered:.1f} %",
            slack_fraction=float("inf"),
            is_met=bool(summary.is_coverage_right),
        )
