"""What does the code as it is say about measurements that no fit has seen? Writes docs/first_sight.md, once a set.

    python benchmarks/first_sight.py --data ../shared/data [--traces DIR] [--file NAME] [--rows FILE] [--write]

Needs the traces of capture_models.py (timm-inference, transformers), capture_language_models.py and
capture_more_models.py; takes about a quarter of an hour. --file asks about that file alone, and may be repeated. With
--write the figures of new sets go into benchmarks/first_sight.json, which never changes those that it has; --rows
writes every row of the language models with its forecast, its roofline and measured over roofline.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import checkout  # noqa: F401 - finds lab
from lab.accuracy.modern.asking import Answer, ask_all
from lab.accuracy.modern.collective_rows import collective_rows
from lab.accuracy.modern.collective_sight import of_collectives
from lab.accuracy.modern.constants import constants_of
from lab.accuracy.modern.memory_rows import LITGPT, MEGATRON, litgpt_rows, megatron_rows
from lab.accuracy.modern.memory_sight import of_memory, of_mlps
from lab.accuracy.modern.mlp_rows import MLPS, mlp_rows
from lab.accuracy.modern.model_rows import model_rows
from lab.accuracy.modern.model_sight import of_models, of_ratios
from lab.accuracy.modern.repeats import Repeats, kernel_repeats, language_repeats, software_repeats
from lab.accuracy.modern.scored_rows import (
    FileCount,
    ScoredRows,
    language_set,
    of_examples,
    of_images,
    of_kernels,
    of_language,
)
from lab.accuracy.modern.sight_page import page, with_first_sight
from lab.accuracy.modern.sight_record import appended, asked_of, read_record, sight_of, write_record
from traincast.errors import InputError
from traincast.kernels.refit.folders import USUAL_TRACES
from traincast.kernels.refit.modern.e2e_files import EXAMPLES, TIMM, image_rows
from traincast.kernels.refit.modern.kernel_files import kernel_rows
from traincast.kernels.refit.modern.language_files import language_rows
from traincast.kernels.refit.modern.language_row import LanguageRow
from traincast.report.files import write_file

ROOT = Path(__file__).parents[1]
RECORD, PAGE = ROOT / "benchmarks" / "first_sight.json", ROOT / "docs" / "first_sight.md"
ACCURACY = ROOT / "docs" / "accuracy.md"
ENGINE = ("src/traincast", ":(exclude)src/traincast/validation")  # what a forecast is made of

Scoring = tuple[list[ScoredRows], FileCount]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--file", action="append", metavar="NAME", help="only this file of measurements")
    parser.add_argument("--rows", type=Path, help="write every row of the language models to this CSV file")
    parser.add_argument("--write", action="store_true", help="write down what is new, and both pages that show it")
    arguments = parser.parse_args()
    commit, today, record = engine_commit(), f"{date.today()}", read_record(RECORD)
    known = {each.name for each in record.sights}
    answers: list[Answer] = []
    sights, asked = [], []
    for file, score in scorings(arguments.data, arguments.traces, answers):
        if arguments.file and file not in arguments.file:
            continue
        scored, count = score()
        new = [sight_of(rows, commit=commit, date=today) for rows in scored if rows.name not in known]
        for sight in new:
            print(
                f"{sight.name}: n {sight.n}, median {sight.median_absolute_fraction:.1%}, "
                f"bias {sight.bias_fraction:+.1%}, inside {sight.n_inside if sight.n_inside is not None else '-'}",
                flush=True,
            )
        sights += new
        if new or not any(each.file == count.file for each in record.asked):
            asked.append(asked_of(count, commit=commit, date=today))
    constants = constants_of(answers, commit=commit, date=today, known=record.constants)
    after = appended(record, sights, asked, constants)
    text = page(after, repeats(arguments.data))
    print(text)
    if arguments.rows:
        write_rows(arguments.rows, answers)
    if arguments.write:
        write_record(RECORD, after)
        print(f"Wrote {write_file(PAGE, text)}")
        shown = with_first_sight(ACCURACY.read_text(encoding="utf-8"), text)
        print(f"Wrote {write_file(ACCURACY, shown)}")


def scorings(data: Path, traces: Path, answers: list[Answer]) -> Iterator[tuple[str, Callable[[], Scoring]]]:
    """By file, in the order of the page. What is said about language models is also put into `answers`."""
    for file, rows in kernel_rows(data).items():
        yield file, partial(of_kernels, file, rows)
    for file, lines in language_rows(data).items():
        yield file, partial(scored_language, file, lines, traces, answers)
    yield TIMM, partial(of_images, data, traces)
    yield EXAMPLES, partial(of_examples, data, traces)
    for file, models in model_rows(data).items():
        yield file, partial(of_models, file, models, traces)
    yield MEGATRON, lambda: of_memory(MEGATRON, megatron_rows(data), traces)
    yield LITGPT, lambda: of_memory(LITGPT, litgpt_rows(data), traces)
    yield MLPS, lambda: of_mlps(mlp_rows(data), traces)
    for file, collectives in collective_rows(data).items():
        yield file, partial(of_collectives, file, collectives)
    for count in of_ratios(data):
        yield count.file, partial(lambda only: ([], only), count)


def scored_language(file: str, rows: Sequence[LanguageRow], traces: Path, answers: list[Answer]) -> Scoring:
    some = ask_all(rows, traces)
    answers += some
    return of_language(file, some)


def repeats(data: Path) -> list[Repeats]:
    found = [language_repeats(file.removesuffix(".csv.gz"), rows) for file, rows in language_rows(data).items()]
    found += [kernel_repeats(file.removesuffix(".csv.gz"), rows) for file, rows in kernel_rows(data).items()]
    return [each for each in (*found, software_repeats(image_rows(data))) if each is not None]


def engine_commit() -> str:
    """The last commit that changed what forecasts are made of; refused while that has changes of its own."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    if changed := git("status", "--porcelain", "--", *ENGINE):
        raise InputError(f"A first sight belongs to a commit, and these files are not committed: {changed}.")
    return git("log", "-1", "--format=%h", "--", *ENGINE)


def write_rows(path: Path, answers: Sequence[Answer]) -> None:
    columns = (
        "file", "set", "model", "n_gpus", "seqlen", "batch", "passes", "recompute", "measured_s", "forecast_s",
        "roofline_s", "ratio", "assumed",
    )  # fmt: skip
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        for each in answers:
            if each.refused or each.row.architecture is None:
                continue
            row = each.row
            numbers = (f"{value:.6g}" for value in (row.step_s, each.step_s, each.roofline_s))
            ratio = f"{row.step_s / each.roofline_s:.4f}"
            writer.writerow(
                (
                    row.file, language_set(each), row.model, row.n_gpus, row.architecture.seqlen, row.global_batch,
                    row.accumulation_steps, row.recompute, *numbers, ratio, "; ".join(row.assumed),
                )
            )  # fmt: skip


if __name__ == "__main__":
    main()
