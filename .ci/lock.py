"""Writes requirements-dev.lock: what is installed in this environment, with the hashes that pip finds for it.

Run by the Python whose environment was tried (`make lock`). torch is left out: machines take it from different places,
so its file is not the same everywhere; the Makefile pins its version. No index is named, pip's own settings hold.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent.parent / "requirements-dev.lock"
_HEAD = """\
# Written by `make lock`, for Python 3.11 on Linux x86-64. torch is not in it, see the Makefile.
"""
_OWN = ("traincast", "torch", "pip")


def main() -> None:
    listed = json.loads(_pip("list", "--format", "json"))
    pins = [f"{one['name']}=={one['version']}" for one in listed if one["name"] not in _OWN]
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder, "pins.txt"), Path(folder, "report.json")
        wanted.write_text("\n".join(pins), encoding="utf-8")
        how = ("--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:")
        _pip("install", "--quiet", *how, "--report", str(report), "-r", str(wanted))
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    lines = sorted((_line(each) for each in found), key=str.lower)
    LOCK.write_text(_HEAD + "".join(lines), encoding="utf-8")


def _pip(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _line(found: dict[str, Any]) -> str:
    name, version = found["metadata"]["name"], found["metadata"]["version"]
    return f"{name}=={version} --hash=sha256:{found['download_info']['archive_info']['hashes']['sha256']}\n"


if __name__ == "__main__":
    main()
