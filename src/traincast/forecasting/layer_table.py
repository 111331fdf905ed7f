"""What each layer of a model asks for, in the order and the grouping that somebody wants to read."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from traincast.errors import ParameterError
from traincast.hardware.device import Device
from traincast.trace.layers import Layer, by_kind, layers_of
from traincast.trace.trace import Trace

_LARGEST_FIRST = {"flop": "flop", "bytes": "moved_bytes", "parameters": "n_parameters"}


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerTable:
    """Layers of a trace at a batch size. `by` is "module", "kind", or "tree": modules inside modules, with totals."""

    trace: Trace
    batch_size: int
    by: str
    layers: tuple[Layer, ...]
    device: Device | None  # whose peak tells an ideal time
    precision: str
    n_known: int  # rows before `top` left some out

    @property
    def is_cut(self) -> bool:
        return len(self.layers) < self.n_known

    @property
    def peak_flop_per_s(self) -> float | None:
        return None if self.device is None else self.device.peak_flop_per_s(self.precision)

    def ideal_s(self, layer: Layer) -> float | None:
        """At the peak of the device, which no real one reaches."""
        peak = self.peak_flop_per_s
        return None if peak is None else layer.flop / peak

    def sorted(self, order: str, *, top: int | None = None) -> LayerTable:
        """In the order of the model, or the largest first; `top` keeps so many rows."""
        rows = self.layers
        if order != "model":
            rows = tuple(sorted(rows, key=lambda layer: -getattr(layer, _LARGEST_FIRST[order])))
        return replace(self, layers=rows[:top])

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_bytes, show_flop, show_integer

        rows = [
            (
                layer.path or layer.kind,
                show_integer(layer.n_parameters),
                show_flop(layer.flop),
                show_bytes(int(layer.moved_bytes)),
            )
            for layer in self.layers
        ]
        title = f"Layers of {self.trace.name}, batch {self.batch_size:,}"
        return to_notebook(title, rows, header=("layer", "parameters", "flop", "bytes moved"))

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        trace, names = self.trace, [field.name for field in fields(Layer)]
        return {
            "model": trace.name,
            "batch_size": self.batch_size,
            "n_parameters": trace.n_parameters,
            "forward_flop": trace.forward_flop(self.batch_size),
            "backward_flop": trace.backward_flop(self.batch_size),
            "covered_flop_fraction": trace.covered_flop_fraction,
            "uncosted_ops": trace.uncosted_ops,
            "assumptions": trace.assumptions,
            "device": None if self.device is None else self.device.name,
            "layers": [
                {name: getattr(layer, name) for name in names}
                | {
                    "flop": layer.flop,
                    "moved_bytes": layer.moved_bytes,
                    "flop_per_byte": layer.flop_per_byte,
                    "ideal_s": self.ideal_s(layer),
                }
                for layer in self.layers
            ],
        }


def layer_table(
    trace: Trace, batch_size: int, *, by: str, device: Device | None = None, precision: str = "fp32"
) -> LayerTable:
    """In the order of the model."""
    rows = layers_of(trace, batch_size, tree=True) if by == "tree" else trace.layers(batch_size)
    if by == "kind":
        rows = by_kind(rows)
    return LayerTable(
        trace=trace,
        batch_size=batch_size,
        by=by,
        layers=rows,
        device=device,
        precision=precision,
        n_known=len(rows),
    )


def check_grouping(by: str, *, is_tree: bool) -> str:
    """Which of the three groupings two options mean together."""
    if is_tree and by == "kind":
        raise ParameterError("tree", is_tree, "kinds of modules have no modules inside, so group by module")
    return "tree" if is_tree else by
