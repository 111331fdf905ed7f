"""Whether a recipe fits into this machine, before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.calibration.machine_rates import read_memory_bytes
from traincast.errors import InputError
from traincast.units import show_bytes

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast


def check_memory(forecast: RecipeForecast) -> None:
    """Raises where a stage that trains on this machine's CPU needs more than all of its memory.

    A GPU refuses what does not fit and the run ends with a sentence; a machine kills the process instead.
    """
    has_bytes = read_memory_bytes()
    for stage in forecast.stages:
        if stage.stage.device == "cpu" and stage.peak_memory_bytes > has_bytes:
            raise InputError(
                f"'{stage.name}' needs {show_bytes(stage.peak_memory_bytes)} of memory, and this machine has "
                f"{show_bytes(has_bytes)}: choose a smaller batch size or image side."
            )
