"""Asks all goldens again, says what moved and by how much, and stores the new answers.

python tests/goldens/renew.py            (or: make goldens)
python tests/goldens/renew.py --check    changes nothing; exit code 1 where something moved
python tests/goldens/renew.py --all      every change, not the largest only
"""

import argparse
import difflib
import importlib.util
import re
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))  # the checkout that these goldens belong to

from asking import answers_of, read_answers, write_answers
from changes import ABSENT, changes_between, show_relative
from questions import questions_by_command
from surface import openapi, signatures

_MOST_LINES, _WIDEST = 15, 110
_DOCS = Path(__file__).parents[2] / "docs"


def goldens():
    """{"forecast": a function that asks its questions again, ..., "signatures": ..., "openapi": ...}"""
    asked = {
        command: lambda questions=questions: answers_of(questions)
        for command, questions in questions_by_command().items()
    }
    return {**asked, "signatures": signatures, "openapi": openapi}


def report(name, n_questions, changes, *, most=_MOST_LINES):
    """A paragraph: what came and went, numbers by key with the largest change first, then changed sentences."""
    moved = len({change.question for change in changes if change.key})
    lines = [f"{name}: {moved} of {n_questions} answers moved" if moved else f"{name}: no answer moved"]
    kinds = {"question": [], "key": [], "number": [], "other": []}
    for change in changes:
        kinds[_kind(change)].append(change)
    lines += _shortened([f"  {change}" for change in kinds["question"]], most, "questions")
    lines += _shortened(_key_lines(kinds["key"]), most, "keys")
    lines += _shortened(_number_lines(kinds["number"]), most + 1, "numbers, each by less")
    lines += _shortened(_other_lines(kinds["other"]), most, "texts")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="print only, change nothing")
    parser.add_argument("--all", action="store_true", help="list every number that moved")
    asked = parser.parse_args()
    has_moved = False
    for name, ask in goldens().items():
        stored, fresh = read_answers(name), ask()
        changes = changes_between(stored, fresh)
        print(report(name, len(fresh), changes, most=sys.maxsize if asked.all else _MOST_LINES))
        has_moved = has_moved or bool(changes)
        if changes and not asked.check:
            write_answers(name, fresh)
    for page, (old, new) in _pages().items():
        changed = [line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-"]
        print(f"docs/{page}: {len(changed)} lines changed" if changed else f"docs/{page}: no line changed")
        print("".join(f"  {line}\n" for line in changed[:_MOST_LINES]), end="")
        has_moved = has_moved or bool(changed)
        if changed and not asked.check:
            (_DOCS / page).write_text(new, encoding="utf-8")
    return int(asked.check and has_moved)


def _pages():
    """The generated pages that hold what users see, as they are and as they should be."""
    spec = importlib.util.spec_from_file_location("generate", _DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return {page: ((_DOCS / page).read_text(encoding="utf-8"), make()) for page, make in generate.PAGES.items()}


def _kind(change):
    if not change.key:
        return "question"
    if change.relative is not None:
        return "number"
    return "key" if ABSENT in (change.old, change.new) else "other"


def _by_key(changes):
    """Places in lists count as one key, and so do short lists and the first rows of long ones."""
    by_key = {}
    for change in changes:
        by_key.setdefault(re.sub(r"(\.first)?\[\d+\]", "[]", change.key), []).append(change)
    return by_key


def _key_lines(changes):
    lines = []
    for key, those in _by_key(changes).items():
        n_new = sum(change.old is ABSENT for change in those)
        counts = [f"new in {n_new}"] * bool(n_new) + [f"gone from {len(those) - n_new}"] * (n_new < len(those))
        lines.append(f"  {key}: {', '.join(counts)}, as in {those[0].question}")
    return lines


def _number_lines(changes):
    """A table with the largest change on top."""
    rows = []
    for key, those in _by_key(changes).items():
        worst = max(those, key=lambda change: abs(change.relative))
        middle = statistics.median(change.relative for change in those)
        cells = f"{len(those):>6}{show_relative(middle):>12}{show_relative(worst.relative):>12}"
        rows.append((-abs(worst.relative), f"  {key:<44}{cells}  {worst.question}"))
    header = f"  {'number':<44}{'moved':>6}{'median':>12}{'largest':>12}  the largest in"
    return [header, *(line for _, line in sorted(rows))] if rows else []


def _other_lines(changes):
    """Words and sentences by key, the most frequent first; what differs in its numbers alone is told once."""
    lines = []
    for key, those in _by_key(changes).items():
        alike = {}
        for change in those:
            pair = _only_what_differs(change)
            pattern = tuple(re.sub(r"\d[\d.,]*", "#", text) for text in pair)
            alike.setdefault(pattern, []).append((pair, change.question))
        for pairs in alike.values():
            (old, new), question = pairs[0]
            old, new = (text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..." for text in (old, new))
            lines.append((-len(pairs), f"  {key}: {len(pairs)} x, as in {question}\n    - {old}\n    + {new}"))
    return [line for _, line in sorted(lines)]


def _shortened(lines, most, what):
    return [*lines[:most], *([f"  and {len(lines) - most} more {what} (--all lists them)"] if lines[most:] else [])]


def _only_what_differs(change):
    """Old and new as text; of two lists of sentences, those that are not in both."""
    old, new = change.old, change.new
    if isinstance(old, list) and isinstance(new, list):
        gone, come = [one for one in old if one not in new], [one for one in new if one not in old]
        return " ".join(gone) or "(as before)", " ".join(come) or ("(in another order)" if not gone else "(nothing)")
    return str(old), str(new)


if __name__ == "__main__":
    sys.exit(main())
