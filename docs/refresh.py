"""Runs the commands that pages show and writes what they print now:  python docs/refresh.py README.md docs/scale.md

Commands of `console` blocks run in a folder with the page's `csv NAME` blocks and docs/story/ as files; other blocks
(`console no-run`, `console times-differ`) are left alone.
Images that a command writes (--png) and the page shows go to docs/images. Some commands need torch, images a Chrome.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from traincast.__main__ import run

IMAGES = Path(__file__).resolve().parent / "images"
STORY = Path(__file__).resolve().parent / "story"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ traincast (?P<line>(?:[^\n]*\\\n)*[^\n]*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)


def refreshed(text: str) -> str:
    """The page with fresh outputs."""
    for block in FENCE.finditer(text):
        kind, _, name = block["info"].partition(" ")
        if kind == "csv" and name:
            Path(name).write_text(block["body"], encoding="utf-8")
    return FENCE.sub(_block, text)


def _block(block: re.Match[str]) -> str:
    if block["info"].strip() != "console":
        return block[0]
    return f"```console\n{COMMAND.sub(_command, block['body'])}```"


def _command(found: re.Match[str]) -> str:
    if not found["output"].strip():
        return found[0]  # shown without its output
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        code = run(shlex.split(found["line"].replace("\\\n", " ")))
    if code:
        raise SystemExit(f"traincast {found['line']} gave exit code {code}")
    return f"$ traincast {found['line']}\n{page.getvalue().rstrip()}\n"


def main() -> None:
    os.environ.pop("COLUMNS", None)
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            shutil.copytree(STORY, folder, dirs_exist_ok=True)
            text = refreshed(page.read_text(encoding="utf-8"))
            page.write_text(text, encoding="utf-8")
            for image in Path(folder).glob("*.png"):
                if f"/{image.name})" in text:
                    shutil.copy(image, IMAGES / image.name)
        sys.stdout.write(f"Wrote {page}\n")


if __name__ == "__main__":
    main()
