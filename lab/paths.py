"""Where the checkout keeps what is written here: the package's own data and the pages."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "traincast"
DOCS = ROOT / "docs"
