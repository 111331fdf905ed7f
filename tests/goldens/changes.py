"""What moved between two sets of answers."""

import math
from dataclasses import dataclass

from asking import is_number, leaves

ABSENT = "(absent)"
REL_TOL = 1e-9
# Where a solver stops depends on the CPU's own way to add up: the fit of measured epochs by 4e-7 between two of them.
_SOLVED_REL_TOL = {"scale --measured": 1e-5}
ABS_TOL = 1e-12  # what is left where two equal times are subtracted is noise: 1e-16 s on one machine, 2e-16 on another


@dataclass(frozen=True)
class Change:
    """One number or sentence of one answer. `key` is "" where a whole question is new or gone."""

    question: str
    key: str
    old: object
    new: object

    @property
    def relative(self):
        """(new - old) / |old|; infinite from 0; None where either is no number."""
        if not (is_number(self.old) and is_number(self.new)):
            return None
        return (self.new - self.old) / abs(self.old) if self.old else math.copysign(math.inf, self.new)

    def __str__(self):
        if not self.key:
            return f"{self.question}: {'a new question' if self.old is ABSENT else 'no longer asked'}"
        by = "" if self.relative is None else f" ({show_relative(self.relative)})"
        return f"{self.question}\n    {self.key}: {self.old!r} -> {self.new!r}{by}"


def changes_between(stored, fresh):
    """Every difference, in the order of the questions."""
    found = []
    for question in {**stored, **fresh}:
        if question not in stored or question not in fresh:
            is_new = question not in stored
            found.append(Change(question, "", *((ABSENT, "asked") if is_new else ("asked", ABSENT))))
            continue
        old, new = leaves(stored[question]), leaves(fresh[question])
        rel_tol = next((loose for start, loose in _SOLVED_REL_TOL.items() if question.startswith(start)), REL_TOL)
        found += [
            Change(question, key, old.get(key, ABSENT), new.get(key, ABSENT))
            for key in {**old, **new}
            if not _is_same(old.get(key, ABSENT), new.get(key, ABSENT), rel_tol)
        ]
    return found


def show_relative(relative):
    """+1.25 %, or what a person can tell from 0."""
    if math.isinf(relative):
        return "from 0"
    if abs(relative) >= 10:
        return f"{100 * relative:+.0e} %"
    return f"{100 * relative:+.2f} %" if abs(relative) >= 5e-5 else f"{relative:+.1e}"


def _is_same(old, new, rel_tol):
    if isinstance(old, int) and isinstance(new, int):
        return old is new if isinstance(old, bool) or isinstance(new, bool) else old == new
    if is_number(old) and is_number(new):
        return math.isclose(old, new, rel_tol=rel_tol, abs_tol=ABS_TOL)
    return old == new
