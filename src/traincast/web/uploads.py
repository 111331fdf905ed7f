"""Uploaded files: their bytes go to a folder of their own, a process of its own reads them, and the folder goes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import FileFormatError
from traincast.web.child import RESULT, TRACE, UPLOAD

if TYPE_CHECKING:
    from starlette.requests import Request

    from traincast.trace.trace import Trace
    from traincast.web.limits import Limits
    from traincast.web.questions import LogQuestion

_LONGEST_NAME = 80


def plain_name(name: str) -> str:
    """A name to show, never to open: its last part, without what a terminal or a page could take amiss."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(letter for letter in last if letter.isprintable() and letter not in "<>&\"'`")
    return kept[-_LONGEST_NAME:].strip() or "the upload"


async def save_body(request: Request, folder: Path, name: str) -> None:
    """The guard has put limits on the size and on the time of the body."""
    n_bytes = 0
    with (folder / UPLOAD).open("wb") as file:
        async for chunk in request.stream():
            file.write(chunk)
            n_bytes += len(chunk)
    if not n_bytes:
        raise FileFormatError(f"'{name}' is empty.")


async def read_model(
    request: Request, name: str, model_options: dict[str, Any], limits: Limits
) -> tuple[bytes, Trace, str]:
    """The bytes of the model's trace, the trace, and what kind of file it was."""
    from traincast.trace.file import parse_trace

    with tempfile.TemporaryDirectory(prefix="traincast-upload-") as made:
        folder = Path(made)
        await save_body(request, folder, name)
        options = {"name": name, "model_options": model_options, "trace_ops": limits.trace_ops}
        result = await _run_child("model", options, folder, limits)
        if (folder / TRACE).stat().st_size > limits.trace_bytes:
            raise FileFormatError(f"'{name}' makes a trace of more than {limits.trace_bytes // 2**20} MiB.")
        content = (folder / TRACE).read_bytes()
    return content, parse_trace(content, where=f"'{name}'"), result["kind"]


async def read_log(request: Request, asked: LogQuestion, presenter: str, limits: Limits) -> bytes:
    """The body of the reply."""
    name = plain_name(asked.name)
    with tempfile.TemporaryDirectory(prefix="traincast-upload-") as made:
        folder = Path(made)
        await save_body(request, folder, name)
        options = {"name": name, "asked": asked.model_dump(exclude={"name"}), "presenter": presenter}
        return json.dumps(await _run_child("log", options, folder, limits)).encode()


async def _run_child(job: str, options: dict[str, Any], folder: Path, limits: Limits) -> dict[str, Any]:
    options |= {"memory_bytes": limits.reading_memory_bytes, "seconds": limits.reading_s}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "traincast.web.child", job, json.dumps(options)),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )
    name = options["name"]
    try:
        async with asyncio.timeout(limits.reading_s):
            await process.wait()
    except TimeoutError as error:
        raise FileFormatError(f"'{name}' took longer than {limits.reading_s:g} s to read.") from error
    finally:
        if process.returncode is None:  # too slow, or whoever asked has gone
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    result_file = folder / RESULT
    if not result_file.is_file():
        raise FileFormatError(
            f"'{name}' could not be read: it is damaged, of another kind, or needs more memory or time than an upload "
            "may take."
        )
    result: dict[str, Any] = json.loads(result_file.read_text(encoding="utf-8"))
    if set(result) == {"error"}:
        raise FileFormatError(_named(result["error"], folder, name))
    return result


def _named(text: str, folder: Path, name: str) -> str:
    """The folder is nobody's business: the file has the name that its owner gave it."""
    for own in ("upload.trace", "upload.onnx", "config.json", UPLOAD):
        text = text.replace(str(folder.resolve() / own), name).replace(str(folder / own), name)
    for own in (str(folder.resolve()), str(folder)):
        text = text.replace(own, "the upload")
    return text.replace(f"'{UPLOAD}'", f"'{name}'")
