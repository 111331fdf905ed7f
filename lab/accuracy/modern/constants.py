"""The baselines to beat on whole training steps: one constant times the roofline, and one constant MFU.

Each is fitted on a set's own rows (in sample: as good as a constant can be) and carried over from the other sources
that ran on the same GPU, which is what a user has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.accuracy.modern.asking import Answer
from lab.accuracy.modern.scored_rows import language_set
from traincast.hardware.catalog import find_device
from traincast.trace.graph import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """Errors are absolute fractions; carried ones are None where no other source ran on that GPU."""

    name: str
    n: int
    ratio: float  # measured over roofline, median
    ratio_p10: float
    ratio_p90: float
    roofline_median: float  # error of roofline x ratio
    roofline_mean: float
    roofline_carried: float | None  # with the median ratio of the other sources
    mfu: float
    mfu_median: float
    mfu_mean: float
    mfu_carried: float | None
    commit: str
    date: str


def constants_of(
    answers: Sequence[Answer], *, commit: str, date: str, known: Sequence[Constant] = ()
) -> list[Constant]:
    """Of all files together, one entry a set that is not `known`; others of its ground carry over to it."""
    sets: dict[str, list[Answer]] = {}
    for answer in answers:
        if not answer.refused and not answer.row.parts:
            sets.setdefault(language_set(answer), []).append(answer)
    before = {each.name: each for each in known}
    columns = {name: _Columns.of(some) for name, some in sets.items() if name not in before}
    figures = {name: (each.ratio, each.mfu) for name, each in columns.items()}
    figures |= {name: (each.ratio, each.mfu) for name, each in before.items()}
    return [
        Constant(**_constant(name, own, _others(name, figures)), commit=commit, date=date)
        for name, own in columns.items()
    ]


def _others(name: str, figures: Mapping[str, tuple[float, float]]) -> list[tuple[float, float]]:
    return [each for other, each in figures.items() if other != name and _ground(other) == _ground(name)]


def _ground(name: str) -> str:
    """Device and recomputation."""
    return name.split(": ", 1)[1]


@dataclass(frozen=True, eq=False, slots=True)
class _Columns:
    observed_s: Floats
    roofline_s: Floats
    ideal_s: Floats  # flop of the model at the peak

    @staticmethod
    def of(answers: Sequence[Answer]) -> _Columns:
        peaks = [find_device(str(each.row.device_name)).peak_flop_per_s("bf16") for each in answers]
        return _Columns(
            np.array([each.row.step_s for each in answers]),
            np.array([each.roofline_s for each in answers]),
            np.array([each.row.flop_per_gpu / peak for each, peak in zip(answers, peaks, strict=True)]),
        )

    @property
    def ratio(self) -> float:
        return float(np.median(self.observed_s / self.roofline_s))

    @property
    def mfu(self) -> float:
        return float(np.median(self.ideal_s / self.observed_s))


def _constant(name: str, own: _Columns, others: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """All fields but commit and date. `others` are ratios and MFUs of other sources."""
    ratios = own.observed_s / own.roofline_s
    by_roofline = _errors(own.roofline_s * own.ratio, own.observed_s)
    by_mfu = _errors(own.ideal_s / own.mfu, own.observed_s)
    ratio, mfu = np.median(others, axis=0) if others else (np.nan, np.nan)
    figures: dict[str, Any] = {
        "ratio": own.ratio,
        "ratio_p10": np.quantile(ratios, 0.1),
        "ratio_p90": np.quantile(ratios, 0.9),
        "roofline_median": np.median(by_roofline),
        "roofline_mean": np.mean(by_roofline),
        "roofline_carried": np.median(_errors(own.roofline_s * ratio, own.observed_s)),
        "mfu": own.mfu,
        "mfu_median": np.median(by_mfu),
        "mfu_mean": np.mean(by_mfu),
        "mfu_carried": np.median(_errors(own.ideal_s / mfu, own.observed_s)),
    }
    rounded = {key: None if np.isnan(value) else round(float(value), 4) for key, value in figures.items()}
    return {"name": name, "n": len(ratios), **rounded}


def _errors(predicted_s: Floats, observed_s: Floats) -> Floats:
    errors: Floats = np.abs(predicted_s / observed_s - 1.0)
    return errors
