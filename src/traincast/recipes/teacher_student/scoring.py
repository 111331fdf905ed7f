"""The teacher looks at the unlabeled images, once; what it thinks of them is kept beside it."""

from __future__ import annotations

import io
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from traincast.errors import FileFormatError
from traincast.recipes.data.images import ImageDataset, LabeledImages
from traincast.recipes.engine.evaluate import outputs
from traincast.recipes.engine.feed import evaluation_batches
from traincast.recipes.engine.numerics import Numerics
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.teacher_student.selection import Scores, likeliest
from traincast.report.files import write_file


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Scoring:
    """What the teacher thinks, and how long it took."""

    scores: Scores
    seconds: float


def score(  # noqa: PLR0913  (who scores what, how, and where it is kept)
    teacher: nn.Module,
    unlabeled: LabeledImages,
    data: ImageDataset,
    settings: TrainSettings,
    *,
    p: int,
    path: Path,
    on_progress: Progress | None = None,
) -> Scoring:
    """The P likeliest classes of every image; read from `path` where they are there already."""
    if path.exists():
        found = _read(path)
        if found.scores.classes.shape[0] == unlabeled.n_samples and found.scores.classes.shape[1] >= p:
            return found
    start_s = time.perf_counter()
    numerics = Numerics(settings.device, settings.precision)
    batches = evaluation_batches(unlabeled, data, settings.batch_size)
    kept = []
    for step, (logits, _) in enumerate(outputs(numerics.place(teacher), batches, numerics), start=1):
        kept.append(likeliest(logits.softmax(1).cpu(), p=p))
        if on_progress is not None:
            on_progress(step, batches.n_steps)
    scores = Scores(
        classes=torch.cat([each.classes for each in kept]),
        probabilities=torch.cat([each.probabilities for each in kept]),
    )
    scoring = Scoring(scores=scores, seconds=time.perf_counter() - start_s)
    _write(path, scoring)
    return scoring


def _write(path: Path, scoring: Scoring) -> None:
    content = io.BytesIO()
    np.savez(
        content,
        classes=scoring.scores.classes.numpy(),
        probabilities=scoring.scores.probabilities.numpy(),
        seconds=np.array(scoring.seconds),
    )
    write_file(path, content.getvalue())


def _read(path: Path) -> Scoring:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            scores = Scores(
                classes=torch.from_numpy(content["classes"]), probabilities=torch.from_numpy(content["probabilities"])
            )
            return Scoring(scores=scores, seconds=float(content["seconds"]))
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"'{path}' does not have the scores of a teacher: delete it to score again.") from error
