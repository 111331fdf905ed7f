"""First sights, written down once. A figure of an earlier commit is history: it is never written again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from lab.accuracy.modern.constants import Constant
from lab.accuracy.modern.scored_rows import FileCount, ScoredRows
from traincast.errors import InputError
from traincast.lognormal import P90_SDS
from traincast.report.files import write_file
from traincast.validation.errors import summarise

_DIGITS = 4  # of a fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the code of one commit said about rows that no fit had seen."""

    name: str
    file: str
    n: int
    median_absolute_fraction: float
    mean_absolute_fraction: float
    bias_fraction: float  # median with sign: positive where we are too slow
    n_inside: int | None  # between p10 and p90; None: the answer had no interval
    p90_over_p10: float | None  # median
    baseline_ratio: float  # median of measured over the baseline
    scaled_baseline_fraction: float  # median absolute error of the baseline times that ratio, fitted on these rows
    commit: str
    date: str
    quantity: str = "step time"
    rule: str = "roofline"  # that the baseline follows


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRows:
    """Rows of a file: which the code of one commit could not be asked about, and what was assumed about others."""

    file: str
    n_rows: int
    not_asked: dict[str, int]
    assumed: dict[str, int]
    commit: str
    date: str


@dataclass(frozen=True, slots=True)
class Record:
    """Everything that was ever seen, oldest first."""

    sights: tuple[Sight, ...] = ()
    asked: tuple[AskedRows, ...] = ()
    constants: tuple[Constant, ...] = ()


def sight_of(rows: ScoredRows, *, commit: str, date: str) -> Sight:
    summary = summarise(rows.predicted, rows.observed, rows.log_sd)
    ratio = float(np.median(rows.observed / rows.baseline))
    scaled = np.abs(ratio * rows.baseline / rows.observed - 1.0)
    width = None if rows.log_sd is None else round(float(np.median(np.exp(2 * P90_SDS * rows.log_sd))), 3)
    return Sight(
        name=rows.name,
        file=rows.file,
        n=summary.n,
        median_absolute_fraction=round(summary.median_absolute_fraction, _DIGITS),
        mean_absolute_fraction=round(summary.mean_absolute_fraction, _DIGITS),
        bias_fraction=round(summary.bias_fraction, _DIGITS),
        n_inside=summary.n_inside,
        p90_over_p10=width,
        baseline_ratio=round(ratio, 3),
        scaled_baseline_fraction=round(float(np.median(scaled)), _DIGITS),
        commit=commit,
        date=date,
        quantity=rows.quantity,
        rule=rows.rule,
    )


def asked_of(count: FileCount, *, commit: str, date: str) -> AskedRows:
    return AskedRows(
        file=count.file,
        n_rows=count.n_rows,
        not_asked=count.not_asked,
        assumed=count.assumed,
        commit=commit,
        date=date,
    )


def read_record(path: Path) -> Record:
    """Empty while there is no such file."""
    if not path.exists():
        return Record()
    stored = json.loads(path.read_text(encoding="utf-8"))
    return Record(
        tuple(Sight(**each) for each in stored["sights"]),
        tuple(AskedRows(**each) for each in stored["asked"]),
        tuple(Constant(**each) for each in stored["constants"]),
    )


def appended(
    record: Record, sights: Sequence[Sight], asked: Sequence[AskedRows], constants: Sequence[Constant] = ()
) -> Record:
    """With what is new at the end. A set that was seen before, at whatever commit, is refused."""
    _check_new(record.sights, sights)
    _check_new(record.constants, constants)
    return Record((*record.sights, *sights), (*record.asked, *asked), (*record.constants, *constants))


def _check_new(known: Sequence[Sight | Constant], new: Sequence[Sight | Constant]) -> None:
    before = {each.name: each for each in known}
    for each in new:
        if each.name in before:
            first = before[each.name]
            raise InputError(
                f"'{each.name}' was first seen at commit {first.commit} on {first.date}: a first sight is written down "
                "once, so leave it out."
            )


def write_record(path: Path, record: Record) -> Path:
    return write_file(path, json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n")
