"""Whether a measured row can be asked about, which its device decides where its settings do not."""

from __future__ import annotations

from traincast.kernels.refit.modern.devices import known_device
from traincast.kernels.refit.modern.kernel_row import NO_DEVICE


def reason_of(not_asked: str, device: str) -> str:
    """Why no forecast can be asked for; empty where it can."""
    return not_asked or ("" if known_device(device) else f"{NO_DEVICE}: {device}")
