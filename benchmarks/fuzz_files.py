"""Damaged files of every kind against the real commands:  python benchmarks/fuzz_files.py [--seconds N] [--kind TEXT]

Makes a small valid file of each kind that traincast reads, damages it at random, and runs a command on it, in a child
process that may take 20 s and 2 GB a file. What is looked for: tracebacks, hangs, peaks, exit codes without a sentence,
warnings of libraries, and answers that are no JSON. The same seed makes the same files; those that broke something
go to --out, each with its line, and --again FOLDER tries them again. The exit code is 1 if anything broke.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from attack.crew import Worker
from attack.kinds import KINDS
from attack.trial import MOST_S, Outcome, damaged


def orders(kinds: list[str], n_files: int) -> Iterator[tuple[str, int]]:
    """Kinds take turns, so that every budget reaches them all."""
    for place in range(n_files):
        yield kinds[place % len(kinds)], place // len(kinds)


def keep(outcome: Outcome, seed: int, folder: Path) -> None:
    """The file that broke something, and beside it how."""
    kind = KINDS[outcome.kind]
    content, line = damaged(kind, seed, outcome.number)
    place = folder / f"{kind.name.replace(' ', '_').replace(':', '')}-{seed}-{outcome.number}"
    place.mkdir(parents=True, exist_ok=True)
    (place / kind.file).write_bytes(content)
    about = {"wrong": outcome.wrong, "kind": kind.name, "seed": seed, "number": outcome.number, "line": line}
    (place / "about.json").write_text(json.dumps({**about, "what": outcome.what}, indent=1) + "\n", encoding="utf-8")


def kept(folder: Path) -> list[tuple[str, int, int]]:
    """(kind, seed, number) of what an earlier run kept."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/about.json"))]
    return [(one["kind"], one["seed"], one["number"]) for one in found]


def table(outcomes: list[Outcome]) -> str:
    """A row a kind."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_kind[one.kind].append(one)
    lines = [f"{'kind':22}{'files':>7}{'answers':>9}{'refused':>9}{'slowest':>10}{'peak':>10}  broken"]
    for kind, found in sorted(by_kind.items()):
        codes, wrong = Counter(one.code for one in found), Counter(one.wrong for one in found if one.wrong)
        broken = ", ".join(f"{n} {what}" for what, n in sorted(wrong.items()))
        slowest, peak = max(one.seconds for one in found), max(one.peak_bytes for one in found)
        lines.append(
            f"{kind:22}{len(found):7}{codes[0] + codes[3]:9}{codes[2]:9}{slowest:8.1f} s{peak / 1e9:7.2f} GB  {broken}"
        )
    wrong = Counter(one.wrong for one in outcomes if one.wrong)
    lines.append(
        f"{len(outcomes)} files of {len(by_kind)} kinds: {wrong['traceback']} tracebacks, {wrong['hang']} hangs over "
    )
    lines[-1] += (
        f"{MOST_S:g} s, {wrong['peak']} peaks over 2 GB, {wrong.total() - sum(wrong[one] for one in _AIMS)} others"
    )
    return "\n".join(lines)


def causes(outcomes: list[Outcome]) -> str:
    """What broke, the most frequent first: where in the product, with which words, and one file that shows it."""
    shown: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        if one.wrong:
            places = re.findall(r'File ".*/traincast/(\S+)", line (\d+)', one.what)
            place = ":".join(places[-1]) if places else "?"
            words = re.sub(r"\d+", "N", one.what.strip().split("\n")[-1])[:150]
            shown[f"{one.wrong} in {place}: {words}"].append(one)
    ranked = sorted(shown.items(), key=lambda item: -len(item[1]))
    return "\n".join(f"{len(found):4} x {cause}  ({found[0].kind} {found[0].number})" for cause, found in ranked)


_AIMS = ("traceback", "hang", "peak")


def main() -> int:
    """Tries files until the budget is spent, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="budget; no file begins after it")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="", help="only kinds with this in their name")
    parser.add_argument("--out", type=Path, help="folder for the files that broke something")
    parser.add_argument("--again", type=Path, help="try what an earlier run kept in this folder")
    options = parser.parse_args()
    kinds = [name for name in KINDS if options.kind.lower() in name.lower()]
    if not kinds:
        parser.error(f"no kind has '{options.kind}' in its name; there are {', '.join(KINDS)}")
    chosen = ((kind, options.seed, number) for kind, number in orders(kinds, options.files))
    until_s, outcomes = time.monotonic() + options.seconds, []
    with Worker() as worker:
        for kind, seed, number in kept(options.again) if options.again else chosen:
            if time.monotonic() > until_s:
                break
            outcomes.append(worker.tried(kind, seed, number))
            if outcomes[-1].wrong:
                last = outcomes[-1].what.strip().split("\n")[-1]
                print(f"{kind} {number}: {outcomes[-1].wrong}: {last[:150]}", flush=True)
                if options.out:
                    keep(outcomes[-1], seed, options.out)
    print(table(outcomes), causes(outcomes), sep="\n")
    return int(any(one.wrong for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
