"""Why a predicted step takes what it takes, op by op, and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from traincast.forecasting.forecast import Forecast
from traincast.planning.op_groups import BOUNDS, ModuleGroup, OpGroup, Work, module_groups, op_groups
from traincast.planning.roofline import Roofline, roofline_of
from traincast.planning.what_if import LeftOut, WhatIf, what_ifs


@dataclass(frozen=True, eq=False)
class Advice:
    """Of one forecast; each part is worked out when it is first asked for."""

    forecast: Forecast

    @cached_property
    def ops(self) -> tuple[OpGroup, ...]:
        """All work of a step on one device, longest first."""
        return op_groups(self.forecast.question)

    @cached_property
    def modules(self) -> tuple[ModuleGroup, ...]:
        return module_groups(self.ops)

    @cached_property
    def roofline(self) -> Roofline:
        return roofline_of(self.forecast.question, self.ops)

    @property
    def what_ifs(self) -> tuple[WhatIf, ...]:
        """Those that help, best first."""
        return self._tried[0]

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return self._tried[1]

    @cached_property
    def _tried(self) -> tuple[tuple[WhatIf, ...], tuple[LeftOut, ...]]:
        return what_ifs(self.forecast.question)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            "ops": [
                {"op": one.name, "kind": one.kind, "phase": one.phase, "module": one.module, **_work(one.work)}
                for one in self.ops
            ],
            "modules": [{"module": one.module, **_work(one.work)} for one in self.modules],
            "roofline": self.roofline.to_dict(),
            "what_ifs": [one.to_dict() for one in self.what_ifs],
            "left_out": {one.name: one.reason for one in self.left_out},
        }

    def _repr_html_(self) -> str:
        """What would help; the forecast that it is about above."""
        from traincast.report.notebook import to_notebook
        from traincast.units import show_duration

        rows = [
            (one.change, f"{one.gain.speedup:.2f} x", show_duration(one.forecast.step_s), one.catch)
            for one in self.what_ifs
        ]
        notes = [f"Not {one.name}: {one.reason}" for one in self.left_out]
        helps = to_notebook("What would help", rows, header=("", "faster", "step", "but"), notes=notes)
        return f"{self.forecast._repr_html_()}{helps}"


def _work(work: Work) -> dict[str, Any]:
    return {
        "n_ops": work.n_ops,
        "seconds_s": work.seconds,
        "by_bound_s": dict(zip(BOUNDS, work.by_bound_s, strict=True)),
        "bound_by": work.bound_by,
        "n_flop": work.n_flop,
        "n_bytes": work.n_bytes,
    }
