"""The methods by the names that users type. Each is imported when it is asked for."""

from __future__ import annotations

from traincast.errors import ChoiceError, InputError
from traincast.kernels.method import Method

METHODS = ("traincast", "roofline", "paleo", "layerwise")


def make_method(name: str, *, layout: str = "nchw", ppp: float | None = None) -> Method:
    """A method with its settings; a setting that the method has no use for is refused, not ignored."""
    if name not in METHODS:
        raise ChoiceError("method", name, METHODS)
    if ppp is not None and name != "paleo":
        raise InputError(f"PPP is a setting of the method paleo and means nothing to {name}: leave it out.")
    if name != "traincast" and layout != "nchw":
        raise InputError(f"The method {name} does not tell layouts apart: leave {layout} out, or use traincast.")
    if name == "roofline":
        from traincast.kernels.roofline import Roofline

        return Roofline()
    if name == "paleo":
        from traincast.kernels.paleo import Paleo

        return Paleo(1.0 if ppp is None else ppp)
    if name == "layerwise":
        from traincast.kernels.layerwise.layerwise import Layerwise

        return Layerwise()
    from traincast.kernels.predictor import Traincast

    return Traincast(layout=layout)
