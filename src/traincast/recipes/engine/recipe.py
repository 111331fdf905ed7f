"""What all recipes have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.stages import Stage


class RecipeResult(Protocol):
    """What came out; each recipe adds its own."""

    @property
    def stage_seconds(self) -> Mapping[str, float]:
        """What each stage took, by its name."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        ...


Result_co = TypeVar("Result_co", bound=RecipeResult, covariant=True)


class Recipe(Protocol[Result_co]):
    """Settings and data of an experiment: it tells its stages, and runs them in a folder, again and again the same."""

    @property
    def name(self) -> str: ...

    def stages(self) -> list[Stage]: ...

    def run(self, folder: Path, on_progress: Progress | None = None) -> Result_co: ...
