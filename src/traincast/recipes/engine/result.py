"""What a training run came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """Seconds are of all processes that worked on the run, but not those after the last checkpoint of a killed one.

    `train_s` is what steps took, `input_s` waiting for their images, `evaluate_s` the test data (their images too),
    `other_s` checkpoints, the log and setting up.
    """

    name: str
    n_steps: int
    train_s: float
    input_s: float
    evaluate_s: float
    other_s: float
    final_loss: float  # of the last batch
    test_loss: float
    test_accuracy: float
    best_test_accuracy: float
    log_path: Path
    checkpoint_path: Path
    resumed_at_step: int | None = None  # None: begun here, or ended before

    @property
    def total_s(self) -> float:
        return self.train_s + self.input_s + self.evaluate_s + self.other_s

    def to_dict(self) -> dict[str, Any]:
        paths = {"log_path": str(self.log_path), "checkpoint_path": str(self.checkpoint_path)}
        return {**asdict(self), **paths, "total_s": self.total_s}


def result_from(content: Mapping[str, Any], *, log_path: Path, checkpoint_path: Path) -> TrainResult:
    """Of a result.json; the folder may have been moved since it was written."""
    names = {field.name for field in fields(TrainResult)} - {"log_path", "checkpoint_path", "resumed_at_step"}
    try:
        known = {name: content[name] for name in names}
    except KeyError as error:
        raise FileFormatError(
            f"'{log_path.with_name('result.json')}' lacks {error}: delete the folder to begin again."
        ) from None
    return TrainResult(**known, log_path=log_path, checkpoint_path=checkpoint_path)
