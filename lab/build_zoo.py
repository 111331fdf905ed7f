"""Captures the zoo again: python -m lab.build_zoo [NAME ...]"""

from __future__ import annotations

import sys

from lab.paths import PACKAGE
from traincast.frontend.models.registry import ZOO, find
from traincast.frontend.zoo import FOLDER, write_zoo


def main(names: list[str]) -> None:
    """Writes the traces into the package of this checkout."""
    folder = PACKAGE / FOLDER
    for name in names or ZOO:
        (path,) = write_zoo(folder, [find(name).name])
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
