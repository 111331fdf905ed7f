"""Scores layouts of language models over many GPUs on runs that others measured; nothing is fitted to them.

    python benchmarks/layouts.py --data ../shared/data --traces DIR [--first] [--write]

Plain decoders of each row's sizes are captured into DIR once (about three seconds each); how they are spread over GPUs
is asked as options. `--first` writes the errors of sets that were never asked before into
benchmarks/layouts_first_sight.json, and leaves the others there as they are. `--write` renews docs/layouts.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import checkout  # noqa: F401 - the rooms of lab
import traincast as tc
from capture_language_models import Choices, capture
from lab.accuracy.modern.layout_rows import Layout, layouts, plain
from lab.accuracy.modern.layout_sight import Score, Seen, grouped, order_of, score_of
from lab.accuracy.modern.repeats import language_repeats
from traincast.errors import InputError
from traincast.kernels.refit.folders import USUAL_TRACES
from traincast.trace.file import read_trace

PAGE = Path(__file__).parents[1] / "docs" / "layouts.md"
FIRST = Path(__file__).parent / "layouts_first_sight.json"
_N_WORST = 12
Row = tuple[str, ...]


def captured(some: Sequence[Layout], traces: Path) -> None:
    """Every model that has no trace yet."""
    traces.mkdir(parents=True, exist_ok=True)
    for name, row in {plain(each.row).trace_name: plain(each.row) for each in some if not each.why_not}.items():
        path = traces / f"{name}.trace"
        if not path.exists():
            assert row.architecture is not None
            capture(row.architecture, Choices(is_fused=row.attention == "fused")).save(path)


def asked(some: Iterable[Layout], traces: Path) -> tuple[list[Seen], Counter[str]]:
    """Forecasts, and what could not be asked: reasons and how many rows."""
    seen, missing = [], Counter[str]()
    by_trace: dict[str, list[Layout]] = defaultdict(list)  # so that each is read and lowered once
    for each in some:
        if each.why_not:
            missing[f"{each.row.file.partition('.')[0]}: {each.why_not}"] += 1
        else:
            by_trace[plain(each.row).trace_name].append(each)
    for name, rows in by_trace.items():
        trace = read_trace(traces / f"{name}.trace")
        print(f"{name}: {len(rows)} rows", file=sys.stderr, flush=True)
        for each in rows:
            try:
                found = tc.forecast(trace, on=each.place, batch_size=each.row.global_batch, **each.options)
            except InputError as error:
                missing[f"{each.row.file.partition('.')[0]}: {str(error).partition(':')[0][:120]}"] += 1
                continue
            low_s, high_s = found.interval("step_s")
            seen.append(Seen(layout=each, predicted_s=found.step_s, low_s=low_s, high_s=high_s, fits=found.fits))
    return seen, missing


def record_first(scores: dict[str, Score]) -> None:
    known = json.loads(FIRST.read_text(encoding="utf-8")) if FIRST.exists() else {}
    new = {name: {k: round(v, 4) for k, v in asdict(score).items()} for name, score in scores.items()}
    FIRST.write_text(json.dumps({**new, **known}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def percent(fraction: float, sign: str = "") -> str:
    return f"{100 * fraction:{sign}.1f}"


def errors_table(scores: dict[str, Score]) -> str:
    first = json.loads(FIRST.read_text(encoding="utf-8")) if FIRST.exists() else {}
    header = (
        "set", "n", "first sight: median %", "bias %", "today: median %", "mean %", "bias %", "in p10-p90 %",
        "constant MFU, in sample, median %", "said not to fit",
    )  # fmt: skip
    rows = []
    for name, score in scores.items():
        before = first.get(name)
        was = (percent(before["median"]), percent(before["bias"], "+")) if before else ("-", "-")
        now = (percent(score.median), percent(score.mean), percent(score.bias, "+"), f"{100 * score.covered:.0f}")
        rows.append((name, str(score.n), *was, *now, percent(score.constant), str(score.n_not_fitting)))
    return table(header, rows)


def order_table(seen: Sequence[Seen]) -> str:
    rows = []
    by_source = grouped(seen, lambda each: each.layout.source)
    for name, some in [*by_source.items(), ("**all**", list(seen))]:
        cells: list[str] = []
        for same_batch in (True, False):
            order = order_of(some, same_batch=same_batch)
            share = f"{100 * order.n_right / order.n_pairs:.1f}" if order.n_pairs else "-"
            cells += [f"{order.n_pairs:,}", share]
        rows.append((name, *cells))
    return table(("source", "pairs, same batch", "right %", "pairs, any batch", "right %"), rows)


def sizes_table(seen: Sequence[Seen]) -> str:
    """Where it goes wrong: bias by tensor, pipeline and context parallelism."""

    def sizes(each: Seen) -> str:
        split = each.layout.row.sharding
        source = each.layout.source
        return f"{source}: t{split.tensor_parallel} c{split.context_parallel} p{split.pipeline_parallel}"

    rows = []
    for name, some in grouped(seen, sizes).items():
        score = score_of(some)
        rows.append((name, str(score.n), percent(score.median), percent(score.bias, "+")))
    return table(("source: tensor, context, pipeline", "n", "median %", "bias %"), rows)


def worst_table(seen: Sequence[Seen]) -> str:
    """The worst of each set, then the worst of those."""
    ones = [max(some, key=lambda e: abs(e.error)) for some in grouped(seen, lambda e: e.layout.name).values()]
    worst = sorted(ones, key=lambda each: -abs(each.error))[:_N_WORST]
    rows = [
        (e.layout.name, e.layout.words, f"{e.observed_s:.3g}", f"{e.predicted_s:.3g}", percent(e.error, "+"))
        for e in worst
    ]
    return table(("set", "layout", "measured s", "forecast s", "off %"), rows)


def noise_table(seen: Sequence[Seen]) -> str:
    rows = []
    for name, some in grouped(seen, lambda each: each.layout.source).items():
        found = language_repeats(name, [each.layout.row for each in some])
        if found is not None:
            spread = (percent(found.median_fraction), percent(found.largest_fraction))
            rows.append((name, str(found.n_settings), str(found.n_rows), *spread))
    return table(("source", "settings", "rows", "median apart %", "largest %"), rows)


def table(header: Row, rows: Iterable[Row]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page(seen: Sequence[Seen], missing: Counter[str], scores: dict[str, Score]) -> str:
    parts = [
        "# Layouts, measured\n\n<!-- Generated by benchmarks/layouts.py: do not edit. -->",
        "How far forecasts of tensor, pipeline, context and data parallel runs are off on figures that others "
        "published. [The model](model_parallel.md) has no number fitted to any of these layouts; times of kernels were "
        "fitted elsewhere, on single-GPU rows and on rows of llm-foundry too. Each model is a plain decoder of the "
        "row's sizes, and its layout is asked as a user would: NeMo, Megatron-LM and Megatron-DeepSpeed as "
        '`stack="megatron"` with `compiled=True`, InternEvo and Composer as `torch`.',
        "First sight is the first forecast ever made of a set, kept as it was; today is what this version says. A "
        "constant MFU is the best there is for just these rows, known afterwards: no forecast, but a bar to clear.",
        "Between the two stand mechanisms, looked for where errors were largest, so today's figures are not blind: "
        "context parallelism without tensor parallelism divided nothing (a mistake); the stack `megatron` takes the "
        "vendor's attention kernels, exchanges activations beside products and gathers ZeRO-1's weights beside the "
        "next forward pass; sends of interleaved schedules go while other pieces compute; head and loss are the last "
        "stage's. One form was dropped: Megatron's joined kernels dispatched as eager ops (order of vtrain-single 74 "
        "instead of 77 %).",
        "Not mended: `vtrain-single` has small models whose pass takes 70 ms and more on 20 layers however "
        "they are cut: perhaps the host's time, several times what our eager host needs (looked at in one case, not "
        "verified). `bigscience-tr11` is still forecast fast; shapes that miss tiles and its Omni-Path network may be "
        "why, which was not checked. What is left on "
        "H100 in bf16 is mostly matrix products, forecast at 53 % of the peak. InternEvo on 1,024 GPUs: "
        "ZeRO-1 over 8 is asked as over all.",
        "Assumed where a source does not tell: no recomputation (`nemo`, `megatron-core`), a micro batch of 1 "
        "(`micro batch assumed`), schedules not interleaved unless the row says so, NVLink domains of 64 GB200, 1600 "
        "Gb/s a node of A100 and 3200 of H100, ZeRO-1 over all replicas where InternEvo had it over 4 or 8.",
        "## Errors\n\n" + errors_table(scores),
        "## Order\n\nTwo layouts of one model and precision on the same GPUs that differ by more than 10 % in time a "
        "token: how often the faster is forecast faster.\n\n" + order_table(seen),
        "## Noise\n\nSettings that were measured more than once, largest over smallest.\n\n" + noise_table(seen),
        "## The worst row of a set\n\n" + worst_table(seen),
        "## By sizes\n\n" + sizes_table(seen),
        "## Not asked\n\n" + table(("why", "rows"), [(why, str(n)) for why, n in sorted(missing.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--file", help="only the rows of this file")
    parser.add_argument("--first", action="store_true", help="keep the errors of sets that were never asked")
    parser.add_argument("--write", action="store_true", help="renew docs/layouts.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    every = [each for each in layouts(arguments.data) if arguments.file in (None, each.row.file.partition(".")[0])]
    captured(every, arguments.traces)
    seen, missing = asked(every, arguments.traces)
    scores = {name: score_of(some) for name, some in grouped(seen, lambda each: each.layout.name).items()}
    if arguments.first:
        record_first(scores)
    text = page(seen, missing, scores)
    print(text)
    if arguments.write and arguments.file is None:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
