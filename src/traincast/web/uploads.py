"""Uploaded files: their bytes go to a folder of their own, a process of its own reads them, and the folder goes."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.child_process import kill_session, module_command
from traincast.errors import FileFormatError
from traincast.web.answer_process import QUIET
from traincast.web.child import PROBLEM, RESULT, TRACE, UPLOAD

if TYPE_CHECKING:
    from traincast.web.limits import Limits
    from traincast.web.questions import LogQuestion

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What the process has made of a file: bytes to keep, and what there is to tell about them."""

    content: bytes
    told: dict[str, Any]


def plain_name(name: str) -> str:
    """A name to show, never to open: its last part, without what a terminal or a page could take amiss."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(letter for letter in last if letter.isprintable() and letter not in "<>&\"'`")
    return kept[-_LONGEST_NAME:].strip() or "the upload"


async def read_model(folder: Path, name: str, model_options: dict[str, Any], limits: Limits) -> ReadFile:
    """The bytes of the model's trace. They are not opened here."""
    options = {
        "name": name,
        "model_options": model_options,
        "trace_ops": limits.trace_ops,
        "trace_memory_bytes": limits.trace_memory_bytes,
    }
    told = json.loads(await _run_child("model", options, folder, limits))
    return ReadFile(_content(folder / TRACE, f"The trace of '{name}'", limits.trace_bytes), told)


async def keep_log(folder: Path, name: str, metric: str | None, limits: Limits) -> ReadFile:
    """The log as it was sent, once a process of its own could read it."""
    told = json.loads(await _run_child("log", {"name": name, "metric": metric}, folder, limits))
    return ReadFile(_content(folder / UPLOAD, f"'{name}'", limits.kept_upload_bytes), told)


async def continue_log(folder: Path, asked: LogQuestion, limits: Limits) -> bytes:
    """The body of the reply."""
    options = {"name": plain_name(asked.name), "asked": asked.model_dump(exclude={"name"})}
    return await _run_child("converge", options, folder, limits)


async def _run_child(job: str, options: dict[str, Any], folder: Path, limits: Limits) -> bytes:
    """What the process has written; raises with its sentence where it has written one."""
    options |= {"memory_bytes": limits.reading_memory_bytes, "seconds": limits.reading_s}
    process = await asyncio.create_subprocess_exec(
        *module_command("traincast.web.child", job, json.dumps(options)),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | QUIET,
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
            kill_session(process)
            await process.wait()
    if (folder / PROBLEM).is_file():
        sentence = _content(folder / PROBLEM, "The reason", limits.answer_bytes).decode(errors="replace")
        raise FileFormatError(_named(sentence, folder, name))
    if not (folder / RESULT).is_file():
        raise FileFormatError(
            f"'{name}' could not be read: it is damaged, of another kind, or needs more memory or time than an upload "
            "may take."
        )
    return _content(folder / RESULT, f"The answer about '{name}'", limits.answer_bytes)


def _content(path: Path, what: str, most_bytes: int) -> bytes:
    """Its size is looked at before it is read."""
    if path.stat().st_size > most_bytes:
        raise FileFormatError(f"{what} is larger than {most_bytes // 2**20} MiB, the most that is kept.")
    return path.read_bytes()


def _named(text: str, folder: Path, name: str) -> str:
    """The folder is nobody's business: the file has the name that its owner gave it."""
    for own in ("upload.trace", "upload.onnx", "config.json", UPLOAD):
        text = text.replace(str(folder.resolve() / own), name).replace(str(folder / own), name)
    for own in (str(folder.resolve()), str(folder)):
        text = text.replace(own, "the upload")
    return text.replace(f"'{UPLOAD}'", f"'{name}'")
