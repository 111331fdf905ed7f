"""Models that questions can name: those of the zoo, and uploads, the last ones of which are kept in memory."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING

from traincast.errors import UnknownModelError, close_names

if TYPE_CHECKING:
    from traincast.trace.trace import Trace

_UPLOADED = "upload-"


class Shelf:
    """Traces by name. Nothing that a request says is taken for a path."""

    def __init__(self, *, n_uploads: int) -> None:
        self._n_uploads = n_uploads
        self._uploads: OrderedDict[str, Trace] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, content: bytes, trace: Trace) -> str:
        """Keeps an upload under a name that its bytes have."""
        name = _UPLOADED + hashlib.sha256(content).hexdigest()[:24]
        with self._lock:
            self._uploads[name] = trace
            self._uploads.move_to_end(name)
            while len(self._uploads) > self._n_uploads:
                self._uploads.popitem(last=False)
        return name

    def find(self, name: str) -> Trace:
        if name.startswith(_UPLOADED):
            with self._lock:
                if name not in self._uploads:
                    raise UnknownModelError(f"The upload '{name}' is not kept any more: upload the file again.")
                self._uploads.move_to_end(name)
                return self._uploads[name]
        return _zoo_model(name)


@lru_cache(maxsize=64)
def _zoo_model(name: str) -> Trace:
    """Once loaded it stays, with what was worked out about it."""
    from traincast.frontend.models.registry import ZOO
    from traincast.frontend.zoo import load_zoo_model

    if name not in ZOO:
        raise UnknownModelError(
            f"No model named '{name}'.{close_names(name, ZOO)} /api/models lists all; files are uploaded."
        )
    return load_zoo_model(name)
