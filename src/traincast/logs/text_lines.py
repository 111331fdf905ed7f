"""What one line of a plain-text log says, without being told its pattern.

Covers 'key: value', 'key=value' and, for names that we know, 'key value'; N/M after a step or an epoch; 'train 2.5' of
a loss; and what `text_counters` knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from traincast.logs import names
from traincast.logs.cells import value_in
from traincast.logs.gate import number
from traincast.logs.line_facts import LineFacts
from traincast.logs.text_counters import without_clock, without_counters

_GROUPED = r"[1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?"  # 12,345
_HOURS = r"\d+:[0-5]\d:[0-5]\d(?:\.\d+)?"  # of a clock
_NUMBER = rf"[-+]?(?:{_GROUPED}|{_HOURS}|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan\b|inf(?:inity)?\b)"
_PAIR = re.compile(  # possessive, so that a long line without numbers is done in one pass
    r"(?<![\w@.])(?P<name>learning rate|[a-z_][\w/@.-]{0,60}+)"
    rf"(?P<between>['\"]?\s*[:=\[]\s*[\['\"]?\s*|\s+)(?P<value>{_NUMBER})(?:\s*/\s*(?P<total>\d+)(?![\d.]))?\]?"
    r"(?P<unit>\s?%|\s?ms\b|\s?s\b|(?=\W|$))",
    re.IGNORECASE,
)
_NOISE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08+")
_LONGEST_LINE = 4096  # what is longer is no row of numbers
_LOSS_VALUE = re.compile(r"\b(loss|accuracy|perplexity|error) value\b", re.IGNORECASE)  # as Megatron says it
_RATE_OF = re.compile(r"\b(lr)\([^()]*\)")  # 'lr(PiecewiseDecay): 0.1' is a rate as others
_WORD = re.compile(r"[A-Za-z]+")
_LOSS_BEFORE = re.compile(r"\bloss\W*$", re.IGNORECASE)
_LOSS_OF = {"train": "train", "learn": "train", "val": "validation", "valid": "validation", "test": "test"}
_LOST = re.compile(r"\bgrad_norm\W+(nan|inf)\b", re.IGNORECASE)
_COUNTERS = {**dict.fromkeys(names.STEP_NAMES, "step"), **dict.fromkeys(names.EPOCH_NAMES, "epoch")}


def facts_of(line: str, asked: str = "", split: str | None = None) -> LineFacts:
    """Everything on the line that is a number with a name that we know, or that is asked for.

    `split` is what a title above the line says.
    """
    found = LineFacts()
    text = without_counters(without_clock(_NOISE.sub("", line[:_LONGEST_LINE]), found), found)
    text = _LOSS_VALUE.sub(r"\1", text) if " value" in text else text
    text = _RATE_OF.sub(r"\1", text) if "lr(" in text else text
    if text.lstrip().startswith("* Acc@"):
        split = "validation"  # how the ImageNet example ends a validation
    position, is_loss = 0, found.first_number is not None
    for pair in _PAIR.finditer(text):
        gap = text[position : pair.start()]
        split = _split_before(gap) or split
        position = pair.end()
        if found.bar is not None and text[position : position + 1] == "|":
            continue  # the title of a bar, 'Map: 45%|###', is no metric
        of = _LOSS_OF.get(pair["name"])
        is_loss = is_loss or (of is not None and _LOSS_BEFORE.search(gap) is not None)
        if of is not None and is_loss and "." in pair["value"]:
            found.numbers.setdefault(f"{of}_loss", value_in(pair["value"]))
            found.has_metric = True
        elif not _take(pair, gap.rstrip().lower(), split, found, asked):
            split = names.split_of(pair["name"]) or split  # 'Test: [10/196] Loss 0.5'
    if "train_runtime" in text and found.numbers.pop("train_loss", None) is not None:
        found.has_metric = False  # with which the Trainer ends: the mean of the whole run
    if found.numbers.get("loss") == 0 and _LOST.search(text):  # see `lost_losses`
        found.numbers["loss"] = math.inf
    if found.bar is not None and found.has_metric:  # else nobody knows yet what it counts
        found.numbers.setdefault("step", found.bar[0])
        found.totals.setdefault("step", found.bar[1])
    return found


def _take(pair: re.Match[str], gap: str, split: str | None, found: LineFacts, asked: str) -> bool:
    """Keeps a pair that means something to us."""
    meaning, value, between = _meaning(pair["name"]), value_in(pair["value"]), pair["between"].strip(" '\"")
    if meaning is None and asked and asked in (low := names.plain(pair["name"])):
        meaning = _Meaning(low, metric=names.Metric(low, None))
    if meaning is None or gap.endswith("best"):
        return False
    if meaning.counter is not None:
        return _count(pair, meaning, split, found)
    name, metric = meaning.name, meaning.metric
    if metric is not None:
        if not between and metric.metric not in ("loss", "accuracy") and not gap.endswith("|"):
            return False
        value = _fraction(value, pair, found) if names.is_share(metric.metric) else value
        name = f"{split}_{name}" if metric.split is None and split is not None else name
        found.has_metric = True
    found.has_rate |= meaning.is_rate
    found.numbers.setdefault(f"{name}_ms" if pair["unit"].strip() == "ms" else name, value)
    return True


def _count(pair: re.Match[str], meaning: _Meaning, split: str | None, found: LineFacts) -> bool:
    """Keeps an epoch or a step."""
    between, total = pair["between"].strip(" '\""), pair["total"]
    if meaning.name in ("batch", "it") and between in (":", "=") and total is None:
        return False  # 'batch: 128' is a size
    counter = meaning.counter or ""
    if found.is_better(counter, meaning.name):
        found.numbers[counter] = value_in(pair["value"])
        if counter == "step":
            found.is_evaluation = total is not None and split in ("validation", "test")
    if total is not None:
        found.totals.setdefault(counter, number(total))
    return True


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a name on a line is: a counter, a metric, or a rate, a clock or the wait for data."""

    name: str
    counter: str | None = None
    metric: names.Metric | None = None
    is_rate: bool = False


@lru_cache(maxsize=4096)
def _meaning(given: str) -> _Meaning | None:
    low = names.plain(given)
    metric = names.known_metric_of(low)
    if low in _COUNTERS:
        return _Meaning(low, counter=_COUNTERS[low])
    is_rate = metric is None and names.is_rate(low)
    if metric is not None or is_rate or names.is_wait(low) or names.clock_of([low]) is not None:
        return _Meaning(low, metric=metric, is_rate=is_rate)
    return None


def _fraction(value: float, pair: re.Match[str], found: LineFacts) -> float:
    """'9867/10000' and '98.7 %' as a fraction."""
    if pair["total"] and number(pair["total"]) > 0:
        return value / number(pair["total"])
    if pair["unit"].strip() != "%":
        return value
    found.n_percent += 1
    return value / 100


def _split_before(gap: str) -> str | None:
    """'Test net output #0: accuracy = 0.9': the last words before a pair say of what it is."""
    for word in reversed(_WORD.findall(gap)[-4:]):
        if split := names.SPLIT_WORDS.get(word.lower()):
            return split
    return None


def pattern_facts(pattern: re.Pattern[str], lines: Iterator[str]) -> Iterator[LineFacts]:
    """What the named groups of a pattern catch, line by line."""
    for line in lines:
        if (match := pattern.search(line)) is None:
            continue
        found = LineFacts()
        for name, text in match.groupdict().items():
            if text is None:
                continue
            value = value_in(text)
            if value != value:
                continue
            found.n_percent += text.strip().endswith("%")
            found.has_metric |= names.metric_of(name) is not None
            found.numbers[name] = value
        yield found
