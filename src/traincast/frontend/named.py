"""Published models as traces: shipped folded, so that any sequence length needs nothing but the package."""

from __future__ import annotations

import threading
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from traincast.frontend.models.named import NamedModel
from traincast.trace.folding.file import SUFFIX, parse_folded

if TYPE_CHECKING:
    from traincast.trace.folding.folded import FoldedTrace
    from traincast.trace.trace import Trace

FOLDER = "data/models"
_LOCK = threading.Lock()


def load_named(model: NamedModel, **options: Any) -> Trace:
    """The trace of a published model at one sequence length."""
    length = model.length(options)
    with _LOCK:
        return _at(model.name, length)


@lru_cache(maxsize=8)
def _at(name: str, length: int) -> Trace:
    return folded_model(name).at(length)


@cache
def folded_model(name: str) -> FoldedTrace:
    """The folded trace that ships."""
    content = resources.files("traincast").joinpath(FOLDER, f"{name}{SUFFIX}").read_bytes()
    return parse_folded(content, where=f"the shipped trace of {name}")
