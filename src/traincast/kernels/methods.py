"""The methods by the names that users type. Each is imported when it is asked for."""

from __future__ import annotations

from pathlib import Path

from traincast.errors import ChoiceError, InputError
from traincast.kernels.method import Method

METHODS = ("traincast", "roofline", "paleo", "layerwise")


def make_method(
    name: str, *, layout: str = "nchw", ppp: float | None = None, weights: str | Path | None = None
) -> Method:
    """A method with its settings; a setting that the method has no use for is refused, not ignored."""
    if name not in METHODS:
        raise ChoiceError("method", name, METHODS)
    if ppp is not None and name != "paleo":
        raise InputError(f"PPP is a setting of the method paleo and has no effect with {name}: leave it out.")
    if weights is not None and name != "layerwise":
        raise InputError(f"Weights of layer networks have no effect with {name}: leave them out, or take layerwise.")
    if name != "traincast" and layout != "nchw":
        raise InputError(f"The method {name} does not distinguish layouts: leave {layout} out, or use traincast.")
    if name == "roofline":
        from traincast.kernels.roofline import Roofline

        return Roofline()
    if name == "paleo":
        from traincast.kernels.paleo import Paleo

        return Paleo(1.0 if ppp is None else ppp)
    if name == "layerwise":
        from traincast.kernels.layerwise.layerwise import Layerwise

        if weights is None:
            return Layerwise()
        from traincast.kernels.layerwise.own import read_networks

        return Layerwise(own=read_networks(weights))
    from traincast.kernels.predictor import Traincast

    return Traincast(layout=layout)
