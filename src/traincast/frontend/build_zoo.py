"""Captures the zoo again: python -m traincast.frontend.build_zoo [NAME ...]"""

from __future__ import annotations

import sys
from pathlib import Path

from traincast.frontend.models.registry import ZOO, find
from traincast.frontend.zoo import FOLDER, write_zoo


def main(names: list[str]) -> None:
    """Writes the traces into the package that this module belongs to."""
    folder = Path(__file__).parents[1] / FOLDER
    for name in names or ZOO:
        (path,) = write_zoo(folder, [find(name).name])
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
