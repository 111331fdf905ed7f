"""Equal layers of blocks that repeat as one row: `layers.0-15.mlp x 16` instead of sixteen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traincast.trace.layers import Layer

_LEAST = 4  # of a kind: two or three rows read faster than a sum
_WORK = ("forward_flop", "backward_flop", "forward_bytes", "backward_bytes", "flop_fraction")
_SUMMED = ("n_parameters", "n_tied_parameters", "n_layers", *_WORK)


@dataclass(frozen=True, slots=True)
class Row:
    """A layer, or several equal ones added up; `path` has the numbers of all of them."""

    path: str
    layer: Layer
    n_equal: int = 1


def folded(layers: Sequence[Layer]) -> tuple[Row, ...]:
    """Rows in the order of their first layers."""
    groups = [_groups(layers, place) for place in (0, 1)]
    rows, done = [], set[str]()
    for layer in layers:
        if layer.path in done:
            continue
        members = max((group.get(layer.path, [layer]) for group in groups), key=len)
        members = [member for member in members if member.path not in done]
        if len(members) < _LEAST:
            members = [layer]
        done.update(member.path for member in members)
        rows.append(_row(members))
    return tuple(rows)


def _groups(layers: Sequence[Layer], place: int) -> dict[str, list[Layer]]:
    """For each layer all that differ from it in one number of the path alone."""
    found: dict[object, list[Layer]] = {}
    for layer in layers:
        parts = layer.path.split(".")
        numbers = [at for at, part in enumerate(parts) if part.isdigit()]
        if len(numbers) > place:
            parts[numbers[place]] = "*"
            figures = tuple(getattr(layer, name) for name in ("kind", "input_shape", "output_shape", *_SUMMED))
            found.setdefault((tuple(parts), layer.is_container, figures), []).append(layer)
    return {layer.path: members for members in found.values() for layer in members}


def _row(members: list[Layer]) -> Row:
    first = members[0]
    if len(members) == 1:
        return Row(first.path, first)
    parts, other = first.path.split("."), members[1].path.split(".")
    at = next(place for place, (one, two) in enumerate(zip(parts, other, strict=True)) if one != two)
    numbers = [int(member.path.split(".")[at]) for member in members]
    is_run = numbers == list(range(numbers[0], numbers[-1] + 1))
    parts[at] = f"{min(numbers)}{'-' if is_run else '..'}{max(numbers)}"
    totals = {name: sum(getattr(member, name) for member in members) for name in _SUMMED}
    values = {name: getattr(first, name) for name in Layer.__dataclass_fields__}
    return Row(".".join(parts), Layer(**{**values, **totals}), len(members))
