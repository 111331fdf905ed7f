"""Epoch, step and time of a line in the forms that are more than one name and one number.

Those of the ImageNet example, timm, mmengine, the tutorials of PyTorch, progress bars, and dates in several spellings.
Each function takes what it has read off the line and gives the rest.
"""

from __future__ import annotations

import re

from traincast.logs import names
from traincast.logs.cells import seconds_in
from traincast.logs.gate import number
from traincast.logs.line_facts import LineFacts

_EPOCH_AND_STEP = re.compile(
    r"(?:epoch(?:\((?P<of>\w+)\))?:?\s*\[\s*(?P<epoch>\d+)\s*(?:/\s*(?P<epochs>\d+)\s*)?\]|\btrain:\s*(?P<timm>\d+))"
    r"\s*\[\s*(?P<step>\d+)\s*/\s*(?P<steps>\d+)\s*(?:\]|\([^)]*\)\s*\])",
    re.IGNORECASE,
)
_STEP_OF = re.compile(r"\biter\((?P<of>\w+)\)\s*\[\s*(?P<step>\d+)\s*/\s*(?P<steps>\d+)\s*\]", re.IGNORECASE)
_EPOCH_COMMA_STEP = re.compile(r"^\s*\[\s*(\d+)\s*,\s*(\d+)\s*\]")  # of the CIFAR-10 tutorial
_EPOCH_AND_SAMPLES = re.compile(r"epoch:?\s*(\d+)\s*\[\s*(\d+)\s*/\s*(\d+)\s*\(\s*[\d.]+\s*%\s*\)\s*\]", re.IGNORECASE)
_PART_OF_EPOCH = re.compile(r"\bepoch (\d+):\s+\d+ / \d+ ", re.IGNORECASE)  # of fairseq, whose step comes later
_SAMPLES = re.compile(r"\[\s*(\d+)\s*/\s*(\d+)\s*\]\s*$")  # of the quickstart, behind the loss
_BAR = re.compile(r"(?:^|\|)\s*(\d+)\s*/\s*(\d+)\s*(?:\[|━)")
_FIRST = re.compile(r"\s*(?:\[\s*(\d+)(?:\s*/\s*\d+)?\s*\]|(\d+)(?=\s*(?::(?!\d)|\|)|\s+[a-z]))", re.IGNORECASE)
_DAY_AND_TIME = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)(?:[ T]|, ?)(\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_DAY_WITHOUT_YEAR = re.compile(r"^\W*()(\d\d)/(\d\d) (\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_GLOG = re.compile(r"^[IWEF]()(\d\d)(\d\d) (\d\d:\d\d:\d\d)\.(\d{1,6})\d*\s")
_TIME_ALONE = re.compile(r"^\W*(\d\d:[0-5]\d:[0-5]\d(?:[.,]\d{1,6})?)(?![\w:])")
_SOME_YEAR = "2000"  # for dates without one; a leap year has every day


def without_clock(text: str, found: LineFacts) -> str:
    """Takes the time of day off the line; what looks like one and is none stays away from the clock."""
    day = _DAY_AND_TIME.search(text) or _DAY_WITHOUT_YEAR.match(text) or _GLOG.match(text)
    if day is None and (alone := _TIME_ALONE.match(text)):
        found.time_of_day_s = seconds_in(alone[1])
        return text[alone.end() :]
    if day is None:
        return text
    time_s = seconds_in(f"{day[1] or _SOME_YEAR}-{day[2]}-{day[3]}T{day[4]}.{(day[5] or '0'):0<6}")
    if time_s == time_s:
        found.numbers["timestamp"] = time_s
    return text[: day.start()] + text[day.end() :]


def without_counters(text: str, found: LineFacts) -> str:
    """Takes the forms of epoch and step off the line."""
    if "[" in text and (both := _EPOCH_AND_STEP.search(text)):
        return _with_split(text, both, _epoch_and_step(both, found), found)
    if "(" in text and (step := _STEP_OF.search(text)):
        return _with_split(text, step, step["of"], found)
    if tutorial := _EPOCH_COMMA_STEP.match(text):
        found.numbers |= {"epoch": number(tutorial[1]), "step": number(tutorial[2])}
        return text[tutorial.end() :]
    if "%" in text and (samples := _EPOCH_AND_SAMPLES.search(text)):
        found.numbers["epoch"] = number(samples[1])
        found.sample_fraction = number(samples[2]) / max(1.0, number(samples[3]))
        return text[: samples.start()] + " " + text[samples.end() :]
    if " / " in text and (part := _PART_OF_EPOCH.search(text)):
        found.numbers["epoch"], found.is_within = number(part[1]), True
        return text[: part.start()] + " " + text[part.end() :]
    if bar := _BAR.search(text):
        found.bar = number(bar[1]), number(bar[2])
        return text[: bar.start()] + " | " + text[bar.end() :]
    if first := _FIRST.match(text):
        found.first_number = number(first[1] or first[2])
    elif text.rstrip().endswith("]") and (seen := _SAMPLES.search(text)) and number(seen[2]) > 0:
        found.sample_fraction = number(seen[1]) / number(seen[2])
    return text


def _epoch_and_step(both: re.Match[str], found: LineFacts) -> str:
    """Keeps the epoch, and says of what it is."""
    found.numbers["epoch"] = number(both["epoch"] or both["timm"])
    if both["epochs"]:
        found.totals["epoch"] = number(both["epochs"])
    return "train" if both["timm"] else both["of"] or ""


def _with_split(text: str, place: re.Match[str], of: str, found: LineFacts) -> str:
    """Keeps the step, unless it counts the batches of a validation, and leaves the word that says so."""
    if names.split_of(of) in (None, "train"):
        found.numbers["step"], found.totals["step"] = number(place["step"]), number(place["steps"])
    return f"{text[: place.start()]} {of} {text[place.end() :]}"
