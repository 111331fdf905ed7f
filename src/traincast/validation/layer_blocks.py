"""Layers timed alone as blocks that are kept in a folder, with what other methods say of them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from traincast import __version__
from traincast.hardware.catalog import find_device
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.layerwise.fit import features_of, fit_short
from traincast.kernels.layerwise.network import Network, network_bytes, shipped_network
from traincast.kernels.layerwise.rows import DEVICES, LayerRows
from traincast.kernels.library_traits import Traits
from traincast.kernels.paleo import Paleo
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.layer_calls import LayerCalls, build_calls
from traincast.kernels.refit.layer_rows import layer_of, sample
from traincast.trace.graph import Floats, Graph, Phase
from traincast.validation.block_file import read_block, write_block
from traincast.validation.fingerprint import fingerprint
from traincast.validation.layer_rows import LAYER_SETS, LayerSet, layer_name, window_of
from traincast.validation.progress import tracked

_N_CHECKED = 2  # rows of a stored block that are built again: the code may be newer than the file
_TRAITS = "traits."
_LAYERWISE = ("layerwise_s", "layerwise_seen_s")


def load_layer_blocks(data: Path, folder: Path) -> list[LayerCalls]:
    """From the files, or from what an earlier call kept in the folder."""
    networks = cache(lambda kind: _networks(kind, data / "layers"))
    return [_load(each, data / "layers", folder, networks) for each in LAYER_SETS]


Networks = dict[str, Network | None]  # by what the files call a GPU: the network that never saw it, if it can be fitted


def _load(which: LayerSet, layers: Path, folder: Path, networks: Callable[[str], Networks]) -> LayerCalls:
    rows = sample(which.read(layers))
    path = folder / f"block-{which.name.replace(' ', '-')}.npz"
    key = _key(which, rows)
    known = read_block(path, key=key)
    if known is not None:
        stored = _restored(*known)
        if _is_still_so(stored, which, rows):
            return stored
    made = build(which, rows)
    if known is None:
        others = _layerwise_columns(which, rows, networks(which.kind))
    else:  # what the networks say depends on rows and networks alone, and those are in the key
        others = {name: known[1][name] for name in _LAYERWISE}
    made = replace(made, extra=made.extra | others)
    traits = {f"{_TRAITS}{field.name}": getattr(made.traits, field.name) for field in fields(Traits)}
    write_block(path, made.block, made.extra | traits | {"op": made.op}, key=key)
    return made


def _restored(block: Block, columns: dict[str, Floats]) -> LayerCalls:
    traits: dict[str, Any] = {field.name: columns.pop(f"{_TRAITS}{field.name}") for field in fields(Traits)}
    return LayerCalls(block, columns.pop("op").astype(np.int64), Traits(**traits), columns)


def _key(which: LayerSet, rows: LayerRows) -> str:
    """Of the rows, the shipped network and the version of the package; and of whether networks can be fitted here."""
    columns = [np.ascontiguousarray(features_of(rows, which.devices)).tobytes(), rows.median_s.tobytes()]
    shipped = network_bytes(shipped_network(which.kind))
    form = repr((SIZES, [field.name for field in fields(Traits)]))
    return fingerprint(__version__, repr(which), form, str(_can_fit()), shipped, *columns)


def _can_fit() -> bool:
    return importlib.util.find_spec("sklearn") is not None


def _is_still_so(stored: LayerCalls, which: LayerSet, rows: LayerRows) -> bool:
    """Whether a few rows, built again, are what was stored."""
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[np.linspace(0, len(rows) - 1, min(_N_CHECKED, len(rows))).astype(int)] = True
    fresh, old = build(which, rows.take(chosen)), stored.block.take(chosen)
    if len(fresh.block.row) != len(old.row) or fresh.block.tags["model"].tolist() != old.tags["model"].tolist():
        return False
    pairs: list[tuple[Any, Any]] = [(fresh.block.kernels.sizes[size], old.kernels.sizes[size]) for size in SIZES]
    kept = chosen[stored.block.row]
    pairs += [(fresh.block.kernels.work, old.kernels.work), (fresh.op, stored.op[kept])]
    traits = stored.traits.select(kept)
    pairs += [(getattr(fresh.traits, field.name), getattr(traits, field.name)) for field in fields(Traits)]
    pairs += [(values, stored.extra[name][chosen]) for name, values in fresh.extra.items()]
    return all(np.allclose(new, kept, rtol=1e-9, equal_nan=True) for new, kept in pairs)


def build(which: LayerSet, rows: LayerRows) -> LayerCalls:
    """Some milliseconds a row."""
    numbers = list(range(len(rows)))
    shown = tracked(numbers, f"Building calls of {which.name}") if len(rows) > _N_CHECKED else numbers

    def paleo(graph: Graph, number: int) -> dict[str, float]:
        return _paleo(graph, which.devices[str(rows.gpu[number])], int(rows.layers.batch[number]))

    calls = build_calls(rows, which.devices, name=which.name, numbers=shown, of_call=paleo)
    layers = [layer_of(rows, number) for number in numbers]
    tags = {
        "model": np.array([layer_name(layer, which.kind, optimizer) for layer, optimizer in layers]),
        "window": np.array([window_of(layer, which.kind) for layer, _ in layers]),
        "batch": rows.layers.batch.astype(int).astype(str),
        "spread": rows.std_s / rows.median_s,
        "range": rows.max_s / rows.min_s - 1.0,
    }
    return replace(calls, block=replace(calls.block, tags=calls.block.tags | tags))


def _paleo(graph: Graph, device: str, batch_size: int) -> dict[str, float]:
    """Paleo's seconds at the full peaks: what PPP scales, and the update."""
    seconds = Paleo(1.0).op_times(graph, find_device(device), np.array([batch_size]), precision="fp32").seconds[0]
    is_update = graph.op_phase == Phase.OPTIMIZER
    return {"paleo_scaled_s": float(seconds[~is_update].sum()), "paleo_update_s": float(seconds[is_update].sum())}


def _networks(kind: str, layers: Path) -> Networks:
    """One short fit a GPU; none without scikit-learn."""
    if not _can_fit():
        return dict.fromkeys(DEVICES)
    threads = importlib.import_module("threadpoolctl")  # comes with scikit-learn, without types
    rows = next(each for each in LAYER_SETS if each.kind == kind).read(layers)
    with threads.threadpool_limits(
        1
    ):  # products this small take twenty times as long where threads fight over the cores
        return {
            gpu: fit_short(rows.take(rows.gpu != gpu), kind)
            for gpu in tracked(list(DEVICES), f"Fitting {kind} layers without each GPU")
        }


def _layerwise_columns(which: LayerSet, rows: LayerRows, networks: Networks) -> dict[str, Floats]:
    """Seconds by the network that never saw the GPU, and by the one that ships, which may have seen the row."""
    features = features_of(rows, which.devices)
    shipped = shipped_network(which.kind)
    unseen_s = np.full(len(rows), np.nan)
    for gpu in which.devices:
        own = rows.gpu == gpu
        network = networks.get(gpu.split("-")[0], shipped)  # what no network saw, the shipped one did not see either
        if network is not None:
            unseen_s[own] = network.predict_s(features[own])
    return dict(zip(_LAYERWISE, (unseen_s, shipped.predict_s(features)), strict=True))
