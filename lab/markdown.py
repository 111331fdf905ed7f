"""Tables and figures as our pages print them, and their place in a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from traincast.errors import FileFormatError
from traincast.validation.errors import ErrorSummary


def refresh(page: str, tables: Mapping[str, str]) -> str:
    """The page with its tables replaced; each lies between a begin and an end comment with its name."""
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->\n", f"\n<!-- end {name} -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise FileFormatError(f"The page has no place for table '{name}': '{begin.strip()}' ... '{end.strip()}'.")
        page = before + begin + table + end + after
    return page


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
