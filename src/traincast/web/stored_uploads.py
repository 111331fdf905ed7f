"""Models that questions can name: those of the zoo, and uploads, of which the last ones are kept as they were sent.

The server itself never opens an upload: its bytes go to the process that answers about it.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from traincast.errors import InputError, UnknownModelError, close_names

if TYPE_CHECKING:
    from traincast.trace.trace import Trace

Kind = Literal["upload", "log"]


@dataclass(frozen=True, slots=True)
class Upload:
    """A trace or a log, and the name that its owner gave it."""

    name: str
    content: bytes


class StoredUploads:
    """Uploads by an id that their content has: the same file has the same one."""

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._uploads: OrderedDict[str, Upload] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        with self._lock:
            return self._n_bytes()

    def put(self, kind: Kind, upload: Upload) -> str:
        """Keeps it; those that nobody has asked about for longest make room."""
        if len(upload.content) > self._most_bytes:
            raise InputError(f"'{upload.name}' is larger than {self._most_bytes // 2**20} MiB, the most that is kept.")
        key = f"{kind}-{hashlib.sha256(upload.content).hexdigest()[:24]}"
        with self._lock:
            self._uploads[key] = upload
            self._uploads.move_to_end(key)
            while len(self._uploads) > self._most or self._n_bytes() > self._most_bytes:
                self._uploads.popitem(last=False)
        return key

    def find(self, key: str) -> Upload:
        with self._lock:
            if key not in self._uploads:
                raise UnknownModelError(f"The upload '{key}' is no longer available: upload the file again.")
            self._uploads.move_to_end(key)
            return self._uploads[key]

    def _n_bytes(self) -> int:
        return sum(len(upload.content) for upload in self._uploads.values())


def is_upload(model: str) -> bool:
    """Whether a model is named by an id that an upload was stored under."""
    return model.startswith("upload-")


@lru_cache(maxsize=64)
def zoo_model(name: str, seqlen: int | None = None) -> Trace:
    """Once loaded it stays, with what was worked out about it. Nothing that a request says is taken for a path."""
    from traincast.frontend.models.named import find_named, named_models
    from traincast.frontend.models.registry import ZOO
    from traincast.frontend.named import load_named
    from traincast.frontend.zoo import load_zoo_model

    length = {} if seqlen is None else {"seqlen": seqlen}
    if name in ZOO:
        usual = ZOO[name].complete(**length) if length else {}
        if usual != (ZOO[name].options if length else {}):
            raise InputError(
                f"The page answers {name} at {ZOO[name].options['seqlen']:,} tokens; published models such as "
                "llama-3.1-8b take any length."
            )
        return load_zoo_model(name)
    named = find_named(name)
    if named is None:
        known = [*ZOO, *named_models()]
        raise UnknownModelError(
            f"No model named '{name}'.{close_names(name, known)} /api/models lists them; upload files first."
        )
    return load_named(named, **length)
