"""What the name of a column means: a position, a clock, a learning rate, or a metric of some split."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# In order of trust: W&B's own `_step` counts calls of its logger, and `batch` may be a size.
STEP_NAMES = (
    "global_step", "trainer_global_step", "train_global_step", "step", "steps", "iteration", "iterations", "iter",
    "iters", "it", "num_updates", "updates", "update", "train_step", "step_num", "_step", "batch_idx", "batch_index",
    "batch",
)  # fmt: skip
EPOCH_NAMES = ("epoch", "epochs", "_epoch", "train_epoch", "trainer_epoch", "epoch_num", "current_epoch", "ep")
CLOCK_NAMES = (
    "seconds", "elapsed_seconds", "elapsed_s", "elapsed", "elapsed_time", "time_elapsed", "_runtime", "runtime",
    "wall_time", "walltime", "wall_clock", "train_time", "training_time", "total_time", "_timestamp", "timestamp",
    "unix_time", "datetime", "date", "time",
)  # fmt: skip
RATE_NAMES = ("learning_rate", "lr", "train_learning_rate", "train_lr", "learning_rate_0", "lr_0", "base_lr")
RUN_NAMES = ("run", "run_id", "curve_id", "run_name", "experiment", "trial")
SPLIT_COLUMNS = ("phase", "split", "mode", "subset", "stage")
FACT_NAMES = {
    "batch_size": ("batch_size", "global_batch_size", "global_batch", "train_batch_size"),
    "steps_per_epoch": ("steps_per_epoch", "iterations_per_epoch", "epoch_steps"),
    "total_steps": ("total_steps", "max_steps", "n_steps", "num_steps"),
    "n_epochs": ("n_epochs", "num_epochs", "num_train_epochs", "max_epochs", "total_epochs"),
}

_SPLIT_WORDS = {
    "train": "train", "training": "train", "val": "validation", "valid": "validation", "validation": "validation",
    "eval": "validation", "evaluation": "validation", "dev": "validation", "test": "test", "testing": "test",
}  # fmt: skip
_ACCURACY = re.compile(
    r"(acc|accuracy|acc1|acc_1|accuracy_1|accuracy_top1|top1|top_1|top_1_acc|top_1_accuracy|top1_acc|top1_accuracy|acc_top1"
    r"|prec1|prec_1|acc_at_1|(sparse_)?(categorical|binary)_accuracy|sparse_categorical_accuracy)"
)
_LOSS = re.compile(r"(loss|total_loss|loss_total|avg_loss|average_loss|mean_loss|loss_avg|loss_mean|lm_loss)")
_KNOWN = re.compile(
    r"(perplexity|ppl|bpb|bpc|nll|error|err|top1_err|top_1_error|f1|f1_score|auc|roc_auc|map|bleu|wer|cer|mae|mse|rmse|iou|miou"
    r"|dice|precision|recall|reward|metric|top5|top_5|top_5_acc|acc5|acc_5|prec5|prec_5|accuracy_5|top_5_accuracy|cross_entropy"
    r"|hit_rate|ndcg|rouge.*|metrics_.+|map_?50.*|r2|psnr|fid|.+_loss|.+_acc|.+_accuracy|loss_.+)"
)
_SURE = ("loss", "accuracy")
# Numbers about the machine, not about learning.
_NOT_LEARNING = re.compile(
    r".*(runtime|per_sec|per_second|_time|samples|speed|throughput|memory|flos|mfu|step_avg|tokens).*"
)


@dataclass(frozen=True, slots=True)
class Metric:
    """What a column measures."""

    metric: str
    split: str | None  # None where the name does not say
    is_epoch_mean: bool = False


def plain(name: str) -> str:
    """A column's name in one spelling: 'Train/Loss (%)' becomes 'train_loss'."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", name.strip())
    low = re.sub(r"[^a-z0-9]+", "_", spaced.lower())
    return low.rstrip("_") if low.startswith("_") and name.strip().startswith("_") else low.strip("_")


def split_of(text: str) -> str | None:
    """The split that a word, a file name or a title speaks of: 'val.csv' is of validation."""
    for word in re.split(r"[^a-z]+", text.lower()):
        if word in _SPLIT_WORDS:
            return _SPLIT_WORDS[word]
    return None


def metric_of(name: str) -> Metric | None:
    """What a column measures, or None for a column that measures nothing we know."""
    low = plain(name)
    words = [word for word in low.split("_") if word]
    splits = [_SPLIT_WORDS[word] for word in words if word in _SPLIT_WORDS]
    rest = [word for word in words if word not in _SPLIT_WORDS]
    is_epoch_mean = len(rest) > 1 and (rest[-1] == "epoch" or rest[0] == "epoch")
    if len(rest) > 1 and rest[-1] in ("epoch", "step"):
        rest = rest[:-1]
    if len(rest) > 1 and rest[0] in ("epoch", "batch"):
        rest = rest[1:]
    metric = _metric_name("_".join(rest), has_split=bool(splits))
    return None if metric is None else Metric(metric, splits[0] if splits else None, is_epoch_mean)


def known_metric_of(name: str) -> Metric | None:
    """The same without what is only called a metric because a split stands before it, such as 'train dataset'."""
    metric = metric_of(name)
    return metric if metric is not None and (_KNOWN.fullmatch(metric.metric) or metric.metric in _SURE) else None


def _metric_name(rest: str, *, has_split: bool) -> str | None:
    if _LOSS.fullmatch(rest):
        return "loss"
    if _ACCURACY.fullmatch(rest):
        return "accuracy"
    if not rest or _NOT_LEARNING.fullmatch(rest) or rest in {*STEP_NAMES, *EPOCH_NAMES, *CLOCK_NAMES, *RATE_NAMES}:
        return None
    return rest if has_split or _KNOWN.fullmatch(rest) else None


def first_of(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """The column that is meant, by the order of `wanted`."""
    spelled = {plain(name): name for name in reversed(list(names))}
    return next((spelled[one] for one in wanted if one in spelled), None)


def clock_of(names: Iterable[str]) -> str | None:
    """The column that tells the time since the start, or of day; a unit at the end of its name does not matter."""
    spelled = {re.sub(r"_(ms|s|sec|secs|seconds)$", "", plain(name)): name for name in reversed(list(names))}
    return first_of(names, CLOCK_NAMES) or next((spelled[one] for one in CLOCK_NAMES if one in spelled), None)


def is_milliseconds(name: str) -> bool:
    return plain(name).endswith("_ms")


def is_rate(name: str) -> bool:
    """Lightning names rates by optimizer: 'lr-SGD', 'lr-Adam/pg1'."""
    low = plain(name)
    return low in RATE_NAMES or low.startswith(("lr_", "learning_rate"))
