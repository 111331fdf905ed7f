"""What the name of a column means: a position, a clock, a learning rate, or a metric of some split."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# In order of trust: W&B's own `_step` counts calls of its logger, and `batch` may be a size.
STEP_NAMES = (
    "global_step", "trainer_global_step", "train_global_step", "step", "steps", "iteration", "iterations", "iter",
    "iters", "it", "total_timesteps", "time_total_timesteps",
    "num_updates", "updates", "update", "train_step", "step_num", "_step", "batch_idx", "batch_index",
    "batch",
)  # fmt: skip
EPOCH_NAMES = ("epoch", "epochs", "_epoch", "train_epoch", "trainer_epoch", "epoch_num", "current_epoch", "ep")
CLOCK_NAMES = (
    "seconds", "elapsed_seconds", "elapsed_s", "elapsed", "elapsed_time", "time_elapsed", "_runtime", "runtime",
    "wall_time", "walltime", "wall_clock", "train_time", "training_time", "total_time", "time_time_elapsed",
    "_timestamp", "timestamp", "unix_time", "datetime", "date", "time",
)  # fmt: skip
WAIT_NAMES = (  # for data, in each step
    "data_wait", "data_time", "data_load_time", "data_loading_time", "dataloader_wait", "dataloader_time", "input_wait",
)  # fmt: skip
RUN_NAMES = ("run", "run_id", "curve_id", "run_name", "experiment", "trial")
SPLIT_COLUMNS = ("phase", "split", "mode", "subset", "stage")
FACT_NAMES = {
    "batch_size": ("batch_size", "global_batch_size", "global_batch", "train_batch_size"),
    "steps_per_epoch": ("steps_per_epoch", "iterations_per_epoch", "epoch_steps"),
    "total_steps": ("total_steps", "max_steps", "n_steps", "num_steps"),
    "n_epochs": ("n_epochs", "num_epochs", "num_train_epochs", "max_epochs", "total_epochs"),
}

_POSITIONS = frozenset((*STEP_NAMES, *EPOCH_NAMES, *CLOCK_NAMES))
_RATE = re.compile(r"([a-z0-9]+_)?(lr|learning_rate)\d*(_.*)?")
SPLIT_WORDS = {
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
    r"|hit_rate|ndcg.*|mrr|(mean_)?average_precision|auroc|exact_match|sacrebleu|chrf|meteor|mean_reward|ssim|mcc|rouge.*|map_?50.*|r2|psnr|fid|.+_loss|.+_acc|.+_accuracy|loss_.+"
    r"|(.+_)?(log_?loss|cross_entropy|perplexity|ppl|ap\d*|map(_?\d+)*|iou|top_?[15]|f1|auc|bleu|wer|reward|rew_mean|error))"
)
_A_LOSS = re.compile(r"(.+_)?(loss|log_?loss|nll|cross_entropy)|loss_.+")
_OF_A_SET = re.compile(
    r"(.+_)?(m?ap\d*|bleu|sacrebleu|rouge\w*|chrf\w*|meteor|fid|ndcg\w*|mrr)(_.*)?"
)  # not of a batch
_SURE = ("loss", "accuracy")
# Better when higher. A share is of 1, or of 100 in percent; points are of 100 or of 1, as their authors like; of the
# others nobody knows the highest. What has a word of falling in its name falls: 'top1_err', 'reward_loss'.
_SHARE = re.compile(
    r"acc\d*|accuracy|accuracies|top\d*|prec\d*|precision|recall|f1|f\d|fscore|auc|auroc|aucroc|auprc|m?ap\d*|m?iou"
    r"|dice|jaccard|ndcg\d*|mrr\d*|hit|hits|em|exact|success|win|fitness|ssim"
)
_POINTS = re.compile(r"(sacre)?bleu\d*|rouge[a-z0-9]*|meteor|chrf\w*|score")
_UNBOUNDED = re.compile(r"rew(ard\w*)?|returns?|psnr|r2|mcc|kappa|matthews|pearson\w*|spearman\w*|correlation|elbo")
_FALLING = re.compile(
    r"\w*loss\w*|err\d*|errors?|nll|perplexity|ppl|bp[bc]|wer|cer|mae|mse|rmse|fid|entropy|miss|variance|std|var"
)
_WRONG = {"err", "error", "wer", "cer"}
_OF_A_DISTANCE = {"squared", "absolute", "relative", "abs", "sq", "rel"}
# Numbers about the machine, not about learning.
_NOT_LEARNING = re.compile(
    r".*(runtime|per_sec|per_second|_time|samples|speed|throughput|memory|flos|mfu|step_avg|tokens|loss_scale).*"
    r"|(.*_)?(ips|wps|ups|fps|tps)"
    r"|best_.*|.*_best"
)


@dataclass(frozen=True, slots=True)
class Metric:
    """What a column measures."""

    metric: str
    split: str | None  # None where the name does not say
    is_epoch_mean: bool = False


def plain(name: str) -> str:
    """A column's name in one spelling: 'Train/Loss (%)' becomes 'train_loss'."""
    one_word = name.strip().replace("mAP", "map").replace("mIoU", "miou").replace("IoU", "iou")
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", one_word)
    low = re.sub(r"[^a-z0-9]+", "_", spaced.lower())
    return low.rstrip("_") if low.startswith("_") and name.strip().startswith("_") else low.strip("_")


def split_of(text: str) -> str | None:
    """The split that a word, a file name or a title speaks of: 'val.csv' is of validation."""
    for word in re.split(r"[^a-z]+", text.lower()):
        if word in SPLIT_WORDS:
            return SPLIT_WORDS[word]
    return None


def metric_of(name: str) -> Metric | None:
    """What a column measures, or None for a column that measures nothing we know."""
    low = plain(name)
    words = [word for word in low.split("_") if word]
    splits = [SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS]
    rest = [word for word in words if word not in SPLIT_WORDS]
    is_measured = bool(splits) or (len(rest) > 1 and rest[0] == "metrics")  # what YOLO and Composer write above others
    if len(rest) > 1 and rest[0] == "metrics":
        rest = rest[1:]
    if len(rest) > 1 and rest[-1] in ("pct", "percent", "percentage"):
        rest = rest[:-1]
    is_epoch_mean = len(rest) > 1 and (rest[-1] == "epoch" or rest[0] == "epoch")
    if len(rest) > 1 and rest[-1] in ("epoch", "step"):
        rest = rest[:-1]
    if len(rest) > 1 and rest[0] in ("epoch", "batch"):
        rest = rest[1:]
    metric = _metric_name("_".join(rest), is_measured=is_measured)
    return None if metric is None else Metric(metric, splits[0] if splits else None, is_epoch_mean)


def known_metric_of(name: str) -> Metric | None:
    """The same without what is only called a metric because a split stands before it, such as 'train dataset'."""
    metric = metric_of(name)
    return metric if metric is not None and (_KNOWN.fullmatch(metric.metric) or metric.metric in _SURE) else None


def _metric_name(rest: str, *, is_measured: bool) -> str | None:
    if _LOSS.fullmatch(rest):
        return "loss"
    if _ACCURACY.fullmatch(rest):
        return "accuracy"
    if not rest or _NOT_LEARNING.fullmatch(rest) or rest in _POSITIONS or is_rate(rest) or is_wait(rest):
        return None
    return rest if is_measured or _KNOWN.fullmatch(rest) else None


def is_error_rate(metric: str) -> bool:
    """Whether it is a share of what was answered wrong: 'top1_err', 'wer', but not 'mean_squared_error'."""
    words = set(plain(metric).split("_"))
    return bool(words & _WRONG) and not words & _OF_A_DISTANCE


def is_rising(metric: str) -> bool:
    """Whether more of a metric is better: of an accuracy, an F1 or a reward it is, of what we do not know it is not."""
    return _has(metric, _SHARE) or _has(metric, _POINTS) or _has(metric, _UNBOUNDED)


def is_loss(metric: str) -> bool:
    """Whether a metric is a loss, or a part of one: 'box_loss', 'loss_cls'."""
    return _A_LOSS.fullmatch(metric) is not None


def is_of_a_set(metric: str) -> bool:
    """Whether a metric is measured on a whole data set, as a mean average precision is."""
    return _OF_A_SET.fullmatch(metric) is not None


def is_known(metric: str) -> bool:
    """Whether we know which way is better."""
    return metric in _SURE or _KNOWN.fullmatch(metric) is not None or is_rising(metric)


def is_share(metric: str) -> bool:
    """Whether a metric goes from 0 to 1, and is often written in percent."""
    return _has(metric, _SHARE)


def has_top(metric: str) -> bool:
    """Whether there is a highest value, 1 or 100."""
    return _has(metric, _SHARE) or _has(metric, _POINTS)


def _has(metric: str, known: re.Pattern[str]) -> bool:
    """By the words of its name; an accuracy that is told from a loss is an accuracy."""
    words = re.split(r"[^a-z0-9]+", metric.lower().partition(" from ")[0])
    return any(map(known.fullmatch, words)) and not any(map(_FALLING.fullmatch, words))


def is_percent(name: str) -> bool:
    """Whether a column says that it is written in percent: 'acc (%)', 'accuracy_pct'."""
    return "%" in name or plain(name).endswith(("_pct", "_percent", "_percentage"))


def is_wait(name: str) -> bool:
    """Whether a column is the time that a step waits for data; a split or a unit in its name does not matter."""
    words = [word for word in plain(name).split("_") if word not in SPLIT_WORDS]
    return re.sub(r"_(ms|s|sec|secs|seconds)$", "", "_".join(words)) in WAIT_NAMES


def is_gradient_norm(name: str) -> bool:
    """Whether a column is the size of the gradients: 'grad_norm', 'train/grad_norm'."""
    return plain(name).endswith("grad_norm")


def panel_of(name: str) -> tuple[str, str] | None:
    """Run and metric of a column of a chart that W&B's page exports: 'amber-12 - train/loss'."""
    run, dash, metric = name.strip().rpartition(" - ")
    return (run, metric) if dash and run and metric_of(re.sub(r"__M(IN|AX)$", "", metric)) is not None else None


def first_of(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """The column that is meant, by the order of `wanted`."""
    spelled = {plain(name): name for name in reversed(list(names))}
    return next((spelled[one] for one in wanted if one in spelled), None)


def clocks_of(names: Iterable[str]) -> list[str]:
    """The columns that tell the time since the start, or of day; a unit at the end of a name does not matter."""
    spelled = {plain(name): name for name in reversed(list(names))}
    bare = {re.sub(r"_(ms|s|sec|secs|seconds)$", "", low): name for low, name in spelled.items()}
    return list(dict.fromkeys(some[one] for some in (spelled, bare) for one in CLOCK_NAMES if one in some))


def clock_of(names: Iterable[str]) -> str | None:
    """The first of them."""
    return next(iter(clocks_of(names)), None)


def is_milliseconds(name: str) -> bool:
    return plain(name).endswith("_ms")


def is_rate(name: str) -> bool:
    """Lightning names rates by optimizer: 'lr-SGD', 'lr-Adam/pg1'; YOLOv5 by group: 'x/lr0'."""
    return _RATE.fullmatch(plain(name)) is not None
