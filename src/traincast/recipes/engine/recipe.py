"""What all recipes have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from traincast.recipes.engine.stages import Stage

Progress = Callable[[int, int], None]  # steps done, of how many


class RecipeResult(Protocol):
    """What came out; each recipe adds its own."""

    @property
    def stage_seconds(self) -> Mapping[str, float]:
        """What each stage took, by its name."""
        ...


class Recipe(Protocol):
    """Settings and data of an experiment: it tells its stages, and runs them in a folder, again and again the same."""

    @property
    def name(self) -> str: ...

    def stages(self) -> list[Stage]: ...

    def run(self, folder: Path, on_progress: Progress | None = None) -> RecipeResult: ...
