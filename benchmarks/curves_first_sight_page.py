"""docs/curves_first_sight.md: medians of families, their mean over each source, and the mean over sources."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

import checkout  # noqa: F401 - finds lab
from lab.accuracy.law_curves import MLPERF
from lab.markdown import percent, table

METHODS = ("ours", "optimus", "power", "last")
RATE_TOLD = "ours, rate told"
_FEWEST = 10  # curves of a source that has a part in the mean
_INTRO = """\
Written by `python benchmarks/curves_first_sight.py --data DIR --write` on {when}, once, with the code of commit
{commit}: no prior had been fitted to any of these runs, and what comes later does not change this page. At most
{of_family} curves of a family and {of_source} of a source, families alike and evenly spread: {n_asked:,} of {n_all:,}
(a run has a curve for each metric and split).

Asked is `tc.fit_curve` with the part of the curve that was seen, the length of the run, and whether the metric is a
loss or an accuracy; *rate told* has the logged learning rate of the whole run too. Beside it are Optimus' law and a
power law (SciPy, bounded; the last value where they cannot be fitted), on what an accuracy lacks to 1 or 100, and the
last value. Errors are relative to the true value (the mean of the last fiftieth); of a family the median, of a source
the mean over its families, then the mean over sources with at least {fewest} curves. *Inside* is the share of true
values in our p10 to p90, *width* p90 less p10 as a share of the true value, both by the same means (the width: medians
first). Curves with fewer than four points in the part that was seen are not asked about.
"""
_TARGETS = """\
The target is the value (a running median) half way between the cut and the end; where it had been reached before the
cut, nothing is asked. A law that does not get there by the end of the run says the end.
"""
_MLPERF = """\
These runs end when they reach the quality that the rules ask for (bert 0.72, resnet 0.759, rnnt 0.058 WER, ssd 0.23,
unet3d 0.908, dlrm 0.8025 AUC, dlrm_dcnv2 0.80275, retinanet 0.34), so the time to it is asked, and no length is told.
No method is let say more than ten times what was seen: the last value always says that.
"""


class Row(Protocol):
    source: str
    family: str
    share: float
    method: str
    refused: str
    final_error: float
    target_error: float


def page(rows: Sequence[Row], n_of: Mapping[str, int], *, most: tuple[int, int], commit: str, when: str) -> str:
    n_asked = len({(row.source, row.family, row.run, row.split, row.metric) for row in rows})  # type: ignore[attr-defined]
    intro = _INTRO.format(
        when=when,
        commit=commit,
        of_family=most[0],
        of_source=most[1],
        n_asked=n_asked,
        n_all=sum(n_of.values()),
        fewest=_FEWEST,
    )
    parts = ["# Learning curves of strangers, at first sight", intro.strip(), *sections(rows)]
    return "\n\n".join(parts) + "\n"


def sections(rows: Sequence[Row]) -> list[str]:
    """All tables, with what they are."""
    others = [row for row in rows if row.source != MLPERF]
    shares = sorted({row.share for row in rows})
    parts = ["## In short", _short(rows, shares)]
    for share in shares:
        some = [row for row in others if row.share == share]
        parts += [f"## Final value from the first {share:.0%}".replace("%", " %"), _by_source(some, "final")]
    parts += ["## Steps to a target", _TARGETS.strip()]
    for share in shares:
        some = [row for row in others if row.share == share]
        parts += [f"From the first {share:.0%}:".replace("%", " %"), _by_source(some, "target")]
    parts += ["## MLPerf: time to the target", _MLPERF.strip(), _mlperf(rows, shares)]
    parts += ["## Where the learning rate is told", _told(others, shares), "## What could not be asked", _refused(rows)]
    return parts


def _mean(rows: Sequence[Row], field: str, of_family: Callable[[Sequence[float]], float]) -> float:
    """Of a source: over its families."""
    families: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if np.isfinite(value := getattr(row, field)):
            families[row.family].append(value)
    return float(np.mean([of_family(some) for some in families.values()])) if families else float("nan")


def _figures(rows: Sequence[Row], what: str) -> dict[str, float]:
    """Of one source and share: the errors of every method, and our interval."""
    median, mean = (lambda some: float(np.median(some))), (lambda some: float(np.mean(some)))
    ours = [row for row in rows if row.method == "ours"]
    found = {name: _mean([r for r in rows if r.method == name], f"{what}_error", median) for name in METHODS}
    found["n"] = sum(np.isfinite(getattr(row, f"{what}_error")) for row in ours)
    found["inside"] = _mean(ours, f"{what}_inside", mean)
    found["width"] = _mean(ours, "final_width", median) if what == "final" else float("nan")
    return found


def _over_sources(rows: Sequence[Row], what: str) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    by_source: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[row.source].append(row)
    found = {source: _figures(some, what) for source, some in by_source.items()}
    counted = [each for each in found.values() if each["n"] >= _FEWEST]
    mean = (
        {key: float(np.mean([each[key] for each in counted])) for key in next(iter(found.values()))} if counted else {}
    )
    return found, mean | {"n": float(sum(each["n"] for each in counted)), "sources": float(len(counted))}


def _by_source(rows: Sequence[Row], what: str) -> str:
    found, mean = _over_sources(rows, what)
    lines = [_line(source, each, what) for source, each in found.items() if each["n"]]
    lines.append(_line(f"**mean over {mean['sources']:.0f} sources**", mean, what))
    header = ["source", "n", "ours", "Optimus", "power law", "last value", "inside %"] + ["width %"] * (what == "final")
    return table(header, lines)


def _line(name: str, each: Mapping[str, float], what: str) -> tuple[str, ...]:
    errors = [_shown(each.get(method, float("nan"))) for method in METHODS]
    tail = [_shown(each.get("inside", float("nan")))] + [_shown(each.get("width", float("nan")))] * (what == "final")
    return (name, f"{each['n']:,.0f}", *errors, *tail)


def _shown(fraction: float) -> str:
    return "-" if not np.isfinite(fraction) else percent(fraction)


def _short(rows: Sequence[Row], shares: Sequence[float]) -> str:
    """Mean over sources, by share: errors in percent."""
    lines = []
    for what, name in (("final", "final value"), ("target", "steps to a target")):
        for share in shares:
            some = [row for row in rows if row.share == share and row.source != MLPERF]
            _, mean = _over_sources(some, what)
            lines.append(_line(f"{name}, from {100 * share:.0f} %", mean, "final"))
    header = ["mean over sources", "n", "ours", "Optimus", "power law", "last value", "inside %", "width %"]
    return table(header, lines)


def _mlperf(rows: Sequence[Row], shares: Sequence[float]) -> str:
    lines = []
    for share in shares:
        some = [row for row in rows if row.source == MLPERF and row.share == share]
        for family in sorted({row.family for row in some}):
            own = _figures([row for row in some if row.family == family], "target")
            if own["n"]:
                lines.append((f"{100 * share:.0f} %", *_line(family, own, "target")))
        if some:
            lines.append((f"{100 * share:.0f} %", *_line("**mean**", _figures(some, "target"), "target")))
    return table(("from", "family", "n", "ours", "Optimus", "power law", "last value", "inside %"), lines, 2)


def _told(rows: Sequence[Row], shares: Sequence[float]) -> str:
    """The same curves, with and without it."""
    lines = []
    told = {(row.source, row.share) for row in rows if row.method == RATE_TOLD}
    for share in shares:
        for source in sorted({name for name, at in told if at == share}):
            some = [row for row in rows if row.source == source and row.share == share]
            pair = [_with(some, method) for method in ("ours", RATE_TOLD)]
            lines.append((f"{100 * share:.0f} %", source, f"{pair[1][0]:,}", *pair[0][1], *pair[1][1]))
    header = ("from", "source", "n", "ours", "inside %", "width %", "rate told", "inside %", "width %")
    return table(header, lines, 2)


def _with(rows: Sequence[Row], method: str) -> tuple[int, list[str]]:
    """Of all curves of the source whose rate was logged."""
    logged = {_curve(row) for row in rows if row.method == RATE_TOLD}
    some = [row for row in rows if row.method == method and _curve(row) in logged]
    n = sum(np.isfinite(row.final_error) for row in some)
    figures = (
        _mean(some, "final_error", lambda all_: float(np.median(all_))),
        _mean(some, "final_inside", lambda all_: float(np.mean(all_))),
        _mean(some, "final_width", lambda all_: float(np.median(all_))),
    )
    return n, [_shown(each) for each in figures]


def _curve(row: Row) -> tuple[str, ...]:
    return (row.family, row.run, row.split, row.metric)  # type: ignore[attr-defined]


def _refused(rows: Sequence[Row]) -> str:
    counts = Counter((row.source, row.refused, row.share) for row in rows if row.refused and row.method == "ours")
    lines = [(source, why, f"{100 * share:.0f} %", f"{n:,}") for (source, why, share), n in sorted(counts.items())]
    return table(("source", "why not", "from", "curves"), lines, 3) if lines else "Nothing."
