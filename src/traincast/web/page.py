"""The page's own files, and plotly's script out of its package: all of them known by name, none looked for on disk."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from traincast.web.form import filled

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_OWN = ("index.html", "app.js", "calls.js", "choice.js", "view.js", "style.css", "icon.svg")
PLOTLY = "plotly.min.js"


@dataclass(frozen=True, slots=True)
class File:
    """One file, ready to send."""

    content: bytes
    packed: bytes
    media_type: str
    tag: str


@lru_cache(maxsize=1)
def page_files() -> dict[str, File]:
    folder = resources.files("traincast.web").joinpath("static")
    contents = {name: folder.joinpath(name).read_bytes() for name in _OWN}
    contents["index.html"] = filled(contents["index.html"].decode()).encode()
    contents[PLOTLY] = resources.files("plotly").joinpath("package_data", PLOTLY).read_bytes()
    return {name: _file(name, content) for name, content in contents.items()}


def _file(name: str, content: bytes) -> File:
    media_type = f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8"
    return File(
        content, gzip.compress(content, 5, mtime=0), media_type, f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    )


def send_file(file: File, request: Request) -> Response:
    """Whole, packed, or not at all where the browser has it."""
    headers = {"ETag": file.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
