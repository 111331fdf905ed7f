"""Captures the published models again: python -m lab.build_models [NAME ...]"""

from __future__ import annotations

import sys

from lab.paths import PACKAGE
from traincast.frontend.models.named import named_models
from traincast.frontend.named import FOLDER
from traincast.frontend.named_capture import capture_named
from traincast.report.files import write_file
from traincast.trace.folding.file import SUFFIX, folded_bytes


def main(names: list[str]) -> None:
    """Writes the folded traces into the package of this checkout."""
    models = named_models()
    for name in names or models:
        content = folded_bytes(capture_named(models[name]))
        write_file(PACKAGE / FOLDER / f"{name}{SUFFIX}", content)
        sys.stdout.write(f"{name}: {len(content):,} bytes\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
