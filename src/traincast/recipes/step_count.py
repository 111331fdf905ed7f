"""One bar over many runs."""

from __future__ import annotations

from traincast.recipes.engine.progress import Progress


class StepCount:
    """Steps done in all runs of a recipe, told as each goes on; a run found finished counts at once."""

    def __init__(self, n_steps: int, tell: Progress | None) -> None:
        self._n_steps, self._tell = n_steps, tell
        self._n_done = 0

    def within(self, n_done: int, _: int) -> None:
        """The progress of the run that goes on now."""
        if self._tell is not None:
            self._tell(self._n_done + n_done, self._n_steps)

    def ended(self, n_steps: int) -> None:
        """A run of so many steps."""
        self._n_done += n_steps
        self.within(0, 0)
