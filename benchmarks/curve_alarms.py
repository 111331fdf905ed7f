"""Are runs that diverge noticed, and others left in peace?  python benchmarks/curve_alarms.py --data DIR [--write]

Published curves are looked at eleven times, as `converge` would. Diverged means a loss above twice its minimum for the
whole last tenth of the run. With --write docs/curve_alarms.md is made. Takes two minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
from lab.accuracy.law_curves import StrangerCurve, evenly, stranger_curves
from lab.markdown import percent, table
from traincast.curves.fit import fit_curve
from traincast.curves.status.alarms import learning_alarms
from traincast.curves.status.settled import NOTHING_SETTLED
from traincast.errors import InputError
from traincast.logs.log import Series
from traincast.report.files import write_file

PAGE = Path(__file__).parents[1] / "docs" / "curve_alarms.md"
LOOKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)  # shares of the run
MOVES = 0.02  # of the value: a plateau that is left by more was none
DIVERGED, OTHERS = (12, 60), (8, 40)  # curves at most, of a family and of a source
_KINDS = ("Diverging", "Plateau")
_INTRO = """
# Alarms on curves of strangers

Written by `python benchmarks/curve_alarms.py --data DIR --write` on {when}. A curve of the folder `laws/` is looked
at from 10, 20 ... 90, 95 and 98 % of its run. *Diverged* is a loss above twice its minimum for the whole last tenth. A
plateau is false if the run moves by more than 2 % afterwards. The limits of the alarms (a rise of 15 % in two blocks
of twenty, or of 90 % in one; p10 gains less than 2 %) were chosen in three tries on such curves: the figures
flatter them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    source: str
    has_diverged: bool
    alarms: frozenset[str]
    is_false_plateau: bool


def has_diverged(curve: StrangerCurve) -> bool:
    end = curve.values[-max(1, len(curve.values) // 10) :]
    return not curve.is_rising and bool((end > 2.0 * curve.values.min()).all())


def watched(curve: StrangerCurve) -> Watched:
    raised: set[str] = set()
    is_false = False
    for share in LOOKS:
        seen = curve.steps <= share * curve.end
        if seen.sum() < 4:
            continue
        metric = "accuracy" if curve.is_rising else "loss"
        series = Series(
            name=curve.metric, metric=metric, split=curve.split, steps=curve.steps[seen], values=curve.values[seen]
        )
        try:
            fitted = fit_curve(series.steps, series.values, total_steps=curve.end, metric=curve.kind)
        except InputError:
            fitted = None
        kinds = {words.split(":")[0] for words in learning_alarms(series, fitted, NOTHING_SETTLED)}
        now = float(np.median(series.values[-max(3, len(series) // 8) :]))
        is_false |= "Plateau" in kinds and abs(curve.final / now - 1.0) > MOVES
        raised |= kinds
    return Watched(
        source=curve.source,
        has_diverged=has_diverged(curve),
        alarms=frozenset(raised & set(_KINDS)),
        is_false_plateau=is_false,
    )


def page(found: Sequence[Watched]) -> str:
    bad = [one for one in found if one.has_diverged]
    good = [one for one in found if not one.has_diverged]

    def share(some: Sequence[Watched], is_so: Sequence[bool]) -> tuple[str, str]:
        return f"{len(some):,}", percent(float(np.mean(is_so)))

    rows = [
        ("diverged: noticed before the end (aim: 90)", *share(bad, ["Diverging" in one.alarms for one in bad])),
        ("others: called diverging (aim: below 2)", *share(good, ["Diverging" in one.alarms for one in good])),
        ("others: a plateau that was none (aim: below 2)", *share(good, [one.is_false_plateau for one in good])),
        ("others: any plateau", *share(good, ["Plateau" in one.alarms for one in good])),
    ]
    intro = _INTRO.format(when=date.today()).strip()
    return f"{intro}\n\n{table(('at any of the looks', 'curves', '%'), rows)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write docs/curve_alarms.md")
    options = parser.parse_args()
    chosen: list[StrangerCurve] = []
    for curves in stranger_curves(options.data).values():
        for are_diverged, (of_family, of_all) in ((True, DIVERGED), (False, OTHERS)):
            some = [curve for curve in curves if len(curve.values) >= 4 and has_diverged(curve) == are_diverged]
            chosen += evenly(some, of_family=of_family, of_all=of_all)
    with ProcessPoolExecutor(options.processes) as pool:
        text = page(list(pool.map(watched, chosen, chunksize=8)))
    print(text)
    if options.write:
        write_file(PAGE, text)


if __name__ == "__main__":
    main()
