"""The walk of one command through the code: calls, functions, files, rooms and changes of room.

    python lab/walk.py                                   # the forecast of the review
    python lab/walk.py --files --calls 20 converge running.csv

Only functions of traincast count; bodies of modules and classes are left out. A room is a folder of traincast (or a
module beside them); a change of room is counted along the functions in the order in which they are first entered.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import itertools
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

FORECAST = ["forecast", "resnet50", "--on", "8xA100-SXM4-80GB", "--batch", "256"]
_UNNAMED = ("<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")


@dataclass
class Walk:
    """How often each function was entered, in the order of first visits."""

    root: Path
    calls: Counter[CodeType] = field(default_factory=Counter)
    _is_ours: dict[CodeType, bool] = field(default_factory=dict)

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        known = self._is_ours.get(code)
        if known is None:
            known = self._is_ours[code] = code.co_filename.startswith(str(self.root)) and not _is_body(code)
        if known:
            self.calls[code] += 1

    @property
    def named(self) -> list[CodeType]:
        return [code for code in self.calls if code.co_name not in _UNNAMED]

    def file_of(self, code: CodeType) -> str:
        return str(Path(code.co_filename).relative_to(self.root))

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(self.file_of(code) for code in self.named))

    @property
    def rooms(self) -> list[str]:
        """The room of each function, in the order of first visits."""
        return [self.file_of(code).split("/")[0] for code in self.named]


def _is_body(code: CodeType) -> bool:
    """Of a module or a class: these write to a namespace that is given to them."""
    return not code.co_flags & inspect.CO_NEWLOCALS


def walk(words: list[str]) -> Walk:
    """Runs the command in this process, quietly."""
    import traincast
    from traincast.__main__ import run

    seen = Walk(Path(traincast.__file__).parent)
    with contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(seen.see)
        try:
            code = run(words)
        finally:
            sys.setprofile(None)
    if code:
        sys.exit(f"'traincast {' '.join(words)}' ended with exit code {code}.")
    return seen


def show(seen: Walk, *, with_files: bool, n_calls: int) -> None:
    rooms = seen.rooms
    changes = sum(here != there for here, there in itertools.pairwise(rooms))
    print(f"calls into traincast  {sum(seen.calls.values()):>9,}")
    print(f"named functions       {len(rooms):>9,}")
    print(f"files                 {len(seen.files):>9,}")
    print(f"rooms                 {len(set(rooms)):>9,}")
    print(f"changes of room       {changes:>9,}")
    if with_files:
        by_room: dict[str, Counter[str]] = {}
        for code in seen.named:
            name = seen.file_of(code)
            by_room.setdefault(name.split("/")[0], Counter())[name] += 1
        for room, names in by_room.items():
            print(f"\n{room}: {len(names)} files")
            print("\n".join(f"  {n:4}  {name}" for name, n in names.items()))
    for code, n in seen.calls.most_common(n_calls):
        print(f"{n:>9,}  {seen.file_of(code)}:{code.co_qualname if sys.version_info >= (3, 11) else code.co_name}")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="The files of each room and their functions.")
    parser.add_argument("--order", action="store_true", help="Each function in the order of first visits.")
    parser.add_argument("--calls", type=int, default=0, metavar="N", help="The N functions called most.")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="A command of traincast; that forecast by default.")
    return parser.parse_args()


if __name__ == "__main__":
    asked = _asked()
    found = walk(asked.words or FORECAST)
    show(found, with_files=asked.files, n_calls=asked.calls)
    if asked.order:
        for code in found.named:
            print(f"{found.file_of(code):50} {code.co_name}")
