"""Eager against torch.compile, with the time that compiling takes told apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from traincast.measurement.runnable import Runnable
from traincast.measurement.sweeps.variants import VariantRow, VariantSweep, fresh, sweep_variants, variant


def sweep_compile(
    runnable: Runnable, *, on_row: Callable[[VariantRow], None] | None = None, **settings: Any
) -> VariantSweep:
    """The step as it is, and under torch.compile; where that fails, a row says why."""
    attempts = {
        "eager": variant("eager", runnable, **settings),
        "compiled": lambda: _compiled(fresh(runnable), settings),
    }
    return sweep_variants("compile", runnable, settings["batch_size"], attempts, on_row)


def _compiled(runnable: Runnable, settings: dict[str, Any]) -> VariantRow:
    """The first step compiles; what it takes beyond a later one was compiling."""
    import torch
    import torch._inductor.config as inductor

    from traincast.measurement.measure import measure_step

    torch.compiler.reset()  # what was compiled before must not make this look quick, in memory or on disk
    with inductor.patch(force_disable_caches=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
        measurement = measure_step(runnable, **{**settings, "compiled": True})
    first_s = measurement.first_step_s or 0.0
    return VariantRow(label="compiled", measurement=measurement, compile_s=max(first_s - measurement.step_s, 0.0))
