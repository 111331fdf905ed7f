"""A file from the network: checked while it arrives, and in its place only once it is whole."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO

from traincast.errors import DownloadError

OnProgress = Callable[[int, int | None], None]  # bytes so far, and of the whole file where the server tells
_CHUNK_BYTES = 2**18
_TIMEOUT_S = 60.0


def cache_folder() -> Path:
    """Where downloads are kept: XDG_CACHE_HOME or ~/.cache, then traincast/data."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "traincast" / "data"


def download(url: str, path: Path, *, md5: str, on_progress: OnProgress | None = None) -> None:
    """Fetch a file into its place; a file of another checksum, or half of one, never gets there."""
    if not url.startswith(("https://", "http://")):
        raise DownloadError(f"'{url}' is not an address that starts with https:// or http://.")
    half: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Made in the same folder, so that the last step is a rename; of its own name, so that two may fetch at once.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        half = Path(name)
        with os.fdopen(handle, "wb") as file:
            found = _fetch(url, file, on_progress)
        if found != md5:
            raise DownloadError(f"'{url}' has the MD5 checksum {found} instead of {md5}: it was discarded.")
        half.replace(path)
        half = None
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"'{url}' could not be fetched to '{path}': {_reason(error)}.") from None
    finally:
        if half is not None:
            half.unlink(missing_ok=True)


def _fetch(url: str, file: IO[bytes], on_progress: OnProgress | None) -> str:
    """Write what the address answers; returns its MD5 checksum."""
    checksum = hashlib.md5(usedforsecurity=False)
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        length = answer.headers.get("Content-Length", "")
        n_bytes = int(length) if length.isdigit() else None
        n_done = 0
        while chunk := answer.read(_CHUNK_BYTES):
            file.write(chunk)
            checksum.update(chunk)
            n_done += len(chunk)
            if on_progress is not None:
                on_progress(n_done, n_bytes)
    if n_bytes is not None and n_done < n_bytes:
        raise http.client.IncompleteRead(b"", n_bytes - n_done)
    return checksum.hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return f"the connection ended {error.expected} bytes too early"
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(getattr(cause, "strerror", None) or cause or type(cause).__name__)
