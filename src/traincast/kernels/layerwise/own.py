"""Weights of one's own: networks that learnt from benchmarks of one's own machine, in one file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.hardware.catalog import find_device
from traincast.hardware.device import Device
from traincast.kernels.layerwise.features import DEVICE_FEATURES, device_features
from traincast.kernels.layerwise.layer_tables import KINDS
from traincast.kernels.layerwise.network import Network, network_bytes, parse_network
from traincast.trace.graph import Floats

# Machines that are no GPU of our table have no figures that a network could learn from: it is told apart by none.
_NO_FIGURES = np.zeros(len(DEVICE_FEATURES))


def figures_of(names: Sequence[str]) -> dict[str, Floats] | None:
    """The features of these devices; None where one of them is no GPU of our table."""
    try:
        return {name: device_features(find_device(name)) for name in names}
    except TraincastError:
        return None


def network_device_features(network: Network, device: Device) -> Floats:
    """What a network is told of a device. One that learnt without figures of devices knows its own machine only."""
    return _NO_FIGURES if network.provenance.get("has_no_figures") else device_features(device)


def no_figures() -> Floats:
    return _NO_FIGURES


def networks_file(networks: Mapping[str, Network]) -> bytes:
    """The content of a weights file: one network a kind of layer."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for kind, network in networks.items():
            archive.writestr(zipfile.ZipInfo(f"{kind}.npz"), network_bytes(network))
    return content.getvalue()


def read_networks(path: str | Path) -> tuple[tuple[str, Network], ...]:
    """What `traincast train layer-model` wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            known = [kind for kind in KINDS if f"{kind}.npz" in archive.namelist()]
            found = tuple((kind, parse_network(archive.read(f"{kind}.npz"), where=f"{path}: {kind}")) for kind in known)
    except OSError as error:
        raise InputError(f"Weights '{path}' cannot be read: {error.strerror or error}.") from None
    except zipfile.BadZipFile:
        raise FileFormatError(f"'{path}' is not a file of weights: 'traincast train layer-model' writes one.") from None
    if not found or any("devices" not in network.provenance for _, network in found):
        raise FileFormatError(f"'{path}' holds no layer networks: 'traincast train layer-model' writes them.")
    return found
