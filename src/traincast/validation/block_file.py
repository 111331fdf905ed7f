"""A block of rows, and further columns, as one .npz file: lowering a thousand traces takes minutes, reading this none.

Arrays only, no pickles. A file belongs to a key; under another key it is stale and is made again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from traincast.kernels.refit.block import Block, Kernels
from traincast.report.files import write_file
from traincast.trace.graph import Floats

_GROUPS = ("kernels.", "sizes.", "tags.", "extra.")


def write_block(path: Path, block: Block, extra: Mapping[str, Floats], *, key: str) -> None:
    arrays: dict[str, Any] = {}
    settings: dict[str, Any] = {"key": key}
    for field in fields(Block):
        value = getattr(block, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif field.name not in ("kernels", "tags"):
            settings[field.name] = value
    arrays |= {
        f"kernels.{field.name}": getattr(block.kernels, field.name)
        for field in fields(Kernels)
        if field.name != "sizes"
    }
    arrays |= {f"sizes.{name}": value for name, value in block.kernels.sizes.items()}
    arrays |= {f"tags.{name}": value for name, value in block.tags.items()}
    arrays |= {f"extra.{name}": value for name, value in extra.items()}
    content = io.BytesIO()
    np.savez_compressed(content, settings=np.array(json.dumps(settings)), **arrays)
    write_file(path, content.getvalue())


def read_block(path: Path, *, key: str) -> tuple[Block, dict[str, Floats]] | None:
    """What was written under this key; None where there is nothing, or something else."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            settings = json.loads(str(stored["settings"]))
            if settings.pop("key") != key:
                return None
            arrays = {name: stored[name] for name in stored.files if name != "settings"}
    except (OSError, ValueError, KeyError, BadZipFile):  # half a file, or none of ours: make it again
        return None
    parts = {
        group: {name.removeprefix(group): value for name, value in arrays.items() if name.startswith(group)}
        for group in _GROUPS
    }
    plain = {name: value for name, value in arrays.items() if not name.startswith(_GROUPS)}
    settings["devices"] = tuple(settings["devices"])
    kernels = Kernels(**parts["kernels."], sizes=parts["sizes."])
    return Block(kernels=kernels, tags=parts["tags."], **plain, **settings), parts["extra."]
