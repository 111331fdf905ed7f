"""What one line of a plain-text log says, without being told its pattern.

Covers 'key: value', 'key=value' and, for names that we know, 'key value'; N/M after a step or an epoch; progress bars
of Keras and tqdm; the forms of the PyTorch examples, caffe, mxnet and nanoGPT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from traincast.convergence.logs import names
from traincast.convergence.logs.cells import seconds_in, value_in

_GROUPED = r"[1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?"  # 12,345
_NUMBER = rf"[-+]?(?:{_GROUPED}|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan\b|inf(?:inity)?\b)"
_PAIR = re.compile(  # possessive, so that a long line without numbers is done in one pass
    r"(?<![\w@.])(?P<name>learning rate|[a-z_][\w/@.-]{0,60}+)"
    rf"(?P<between>['\"]?\s*[:=\[]\s*[\['\"]?\s*|\s+)(?P<value>{_NUMBER})(?:\s*/\s*(?P<total>\d+)(?![\d.]))?\]?"
    r"(?P<unit>\s?%|\s?ms\b|\s?s\b|(?=\W|$))",
    re.IGNORECASE,
)
_EPOCH_AND_STEP = re.compile(  # of the ImageNet example, and of timm
    r"(?:epoch:?\s*\[\s*(?P<epoch>\d+)\s*(?:/\s*(?P<epochs>\d+)\s*)?\]|\btrain:\s*(?P<timm>\d+))"
    r"\s*\[\s*(?P<step>\d+)\s*/\s*(?P<steps>\d+)\s*(?:\]|\([^)]*\)\s*\])",
    re.IGNORECASE,
)
_EPOCH_AND_SAMPLES = re.compile(r"epoch:?\s*(\d+)\s*\[\s*(\d+)\s*/\s*(\d+)\s*\(\s*[\d.]+\s*%\s*\)\s*\]", re.IGNORECASE)
_BAR = re.compile(r"(?:^|\|)\s*(\d+)\s*/\s*(\d+)\s*(?:\[|━)")
_DAY_AND_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_GLOG = re.compile(r"^[IWEF](\d{4}) (\d\d:\d\d:\d\d\.\d+)\s")
_NOISE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08+")
_LONGEST_LINE = 4096  # what is longer is no row of numbers
_GLOG_YEAR = "2000"  # glog writes no year; a leap year has every day
_COUNTERS = {**dict.fromkeys(names.STEP_NAMES, "step"), **dict.fromkeys(names.EPOCH_NAMES, "epoch")}


@dataclass(slots=True)
class LineFacts:
    """Numbers of a line by name. A total is what stands behind a slash: 'step 120/391'."""

    numbers: dict[str, float] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    bar: tuple[float, float] | None = None  # a progress bar: how far it is, and how far it goes
    sample_fraction: float | None = None  # of the epoch, where a line counts samples instead of steps
    n_percent: int = 0
    has_metric: bool = False
    trust: dict[str, int] = field(default_factory=dict)  # of a counter: how far behind others its name is

    def is_better(self, counter: str, name: str) -> bool:
        """Whether a name says what it counts better than the one before: 'num_updates' does, behind 'update'."""
        rank = (names.STEP_NAMES if counter == "step" else names.EPOCH_NAMES).index(name)
        if rank >= self.trust.get(counter, -1 if counter in self.numbers else 1_000):
            return False
        self.trust[counter] = rank
        return True


def facts_of(line: str) -> LineFacts:
    """Everything on the line that is a number with a name."""
    found = LineFacts()
    text = _counters(_clock(_NOISE.sub("", line[:_LONGEST_LINE]), found), found)
    split = "validation" if text.lstrip().startswith("* Acc@") else None  # how the ImageNet example ends a validation
    position = 0
    for pair in _PAIR.finditer(text):
        split = _split_before(text[position : pair.start()]) or split
        position = pair.end()
        if found.bar is not None and text[position : position + 1] == "|":
            continue  # the title of a bar, 'Map: 45%|###', is no metric
        if not _take(pair, split, found):
            split = names.split_of(pair["name"]) or split  # 'Test: [10/196] Loss 0.5'
    if found.bar is not None and found.has_metric:  # else nobody knows yet what it counts
        found.numbers.setdefault("step", found.bar[0])
        found.totals.setdefault("step", found.bar[1])
    return found


def _take(pair: re.Match[str], split: str | None, found: LineFacts) -> bool:
    """Keeps a pair that means something to us."""
    meaning, value, between = _meaning(pair["name"]), value_in(pair["value"]), pair["between"].strip(" '\"")
    if meaning is None:
        return False
    if meaning.counter is not None:
        if meaning.name in ("batch", "it") and between in (":", "="):
            return False  # 'batch: 128' is a size
        if found.is_better(meaning.counter, meaning.name):
            found.numbers[meaning.counter] = value
        if pair["total"] is not None:
            found.totals.setdefault(meaning.counter, float(pair["total"]))
        return True
    name, metric = meaning.name, meaning.metric
    if metric is not None:
        if not between and metric.metric not in ("loss", "accuracy"):
            return False
        value = _fraction(value, pair, found) if names.is_share(metric.metric) else value
        name = f"{split}_{name}" if metric.split is None and split is not None else name
        found.has_metric = True
    found.numbers.setdefault(f"{name}_ms" if pair["unit"].strip() == "ms" else name, value)
    return True


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a name on a line is: a counter, a metric, or a rate, a clock or the wait for data."""

    name: str
    counter: str | None = None
    metric: names.Metric | None = None


@lru_cache(maxsize=4096)
def _meaning(given: str) -> _Meaning | None:
    low = names.plain(given)
    metric = names.known_metric_of(low)
    if low in _COUNTERS:
        return _Meaning(low, counter=_COUNTERS[low])
    if metric is not None or names.is_rate(low) or names.is_wait(low) or names.clock_of([low]) is not None:
        return _Meaning(low, metric=metric)
    return None


def _fraction(value: float, pair: re.Match[str], found: LineFacts) -> float:
    """'9867/10000' and '98.7 %' as a fraction."""
    if pair["total"] and float(pair["total"]) > 0:
        return value / float(pair["total"])
    if pair["unit"].strip() != "%":
        return value
    found.n_percent += 1
    return value / 100


def _split_before(gap: str) -> str | None:
    """'Test net output #0: accuracy = 0.9': the last words before a pair say of what it is."""
    words = re.findall(r"[A-Za-z]+", gap)[-4:]
    return names.split_of(" ".join(reversed(words)))


def _clock(text: str, found: LineFacts) -> str:
    """Takes the time of day off the line; what looks like one and is none stays away from the clock."""
    if day := _DAY_AND_TIME.search(text):
        time_s = seconds_in(f"{day[1]}T{day[2]}.{(day[3] or '0'):0<6}")
        text = text[: day.start()] + text[day.end() :]
    elif glog := _GLOG.match(text):
        time_s = seconds_in(f"{_GLOG_YEAR}-{glog[1][:2]}-{glog[1][2:]}T{glog[2][:15]}")
        text = text[glog.end() :]
    else:
        return text
    if time_s == time_s:
        found.numbers["timestamp"] = time_s
    return text


def _counters(text: str, found: LineFacts) -> str:
    """Takes the forms of epoch and step off the line that are more than one name and one number."""
    if both := _EPOCH_AND_STEP.search(text):
        found.numbers |= {"epoch": float(both["epoch"] or both["timm"]), "step": float(both["step"])}
        found.totals["step"] = float(both["steps"])
        if both["epochs"]:
            found.totals["epoch"] = float(both["epochs"])
        return text[: both.start()] + (" " if both["epoch"] else " train ") + text[both.end() :]
    if samples := _EPOCH_AND_SAMPLES.search(text):
        found.numbers["epoch"] = float(samples[1])
        found.sample_fraction = float(samples[2]) / max(1.0, float(samples[3]))
        return text[: samples.start()] + " " + text[samples.end() :]
    if bar := _BAR.search(text):
        found.bar = float(bar[1]), float(bar[2])
        return text[: bar.start()] + " | " + text[bar.end() :]
    return text


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
