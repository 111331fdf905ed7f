"""Tables and figures as the pages of accuracy print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traincast.validation.errors import ErrorSummary


def table(header: Sequence[str], rows: Iterable[Sequence[str]], n_text: int = 1) -> str:
    """The first columns are text, the others figures."""
    marks = ["---" if number < n_text else "---:" for number in range(len(header))]
    lines = [header, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(fraction: float | None, *, sign: bool = False) -> str:
    if fraction is None or fraction != fraction:  # not a number
        return "-"
    return f"{100 * fraction:+.1f}" if sign else f"{100 * fraction:.1f}"


def figures(summary: ErrorSummary) -> tuple[str, str, str]:
    """Median, mean and bias."""
    return (
        percent(summary.median_absolute_fraction),
        percent(summary.mean_absolute_fraction),
        percent(summary.bias_fraction, sign=True),
    )


def coverage(summary: ErrorSummary) -> str:
    if summary.coverage_fraction is None:
        return "-"
    return percent(summary.coverage_fraction) + ("" if summary.is_coverage_right else " (wrong)")
