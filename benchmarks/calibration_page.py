"""The page that `calibration.py` writes."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Rows = list[dict[str, Any]]
Sums = dict[str, dict[str, Any]]


def page(facts: dict[str, Any], rows: Rows, sums: Sums) -> str:
    """Markdown, ready to be kept."""
    return "\n".join([*_head(facts), *_errors(rows), *_by_model(rows), *_layer_sums(sums), _HISTORY])


_HISTORY = """
## How this came about

The kinds of work that have a price were chosen with these models in view. On 2026-11-16 the mean error was 28 % while
processes gave memory back between steps (one round), 21 % with memory kept (another round), 19 % on the same rows with
prices for the call of a convolution, for the weights of recurrent layers and for transposed copies, and 14.1 % on new
rows with small networks among the benchmarks, one-channel convolutions and the bytes of pooling; p10 to p90 held
87.3 %. Half an hour after these rows calibration was made anew with seven more benchmarks, gradients of images: 12.0 %
and 93.1 %. Then, on the same timings and the same rows, two simpler rules: the median of rounds is
priced, where it was the quickest of all times one factor (LSTMs, whose steps vary little, came out 30 to 50 % too
slow), and the spread is that of steps left out of the fit, where it also had the spread between rounds, counted twice,
and that between machines of one type. With these rules the calibration made *before* the rows, without gradients of
images, has a mean error of 11.0 %, and p10 to p90 hold 77.5 %.

A third calibration and one round of steps on the same day, with other jobs on the machine (load average 2 to 3): 14.9 %
and 70.6 % (n = 102); single steps were measured at twice their time.

**Both rules were chosen on these 102 steps.** Four ways to sum up rounds were compared by their error on them, with the
earlier and with the later calibration: the quickest times a factor 14.5 and 12.0 %, the median of rounds 11.0 and
9.4 %, the fastest round's median times a factor 14.5 and 11.6 %, the second fastest 13.8 and 10.2 %; the best was kept.
Three spreads were compared by what they hold: 97 and 96 %, 92 and 92 %, then 77.5 and 84.3 %.

**Fresh runs, made after the rules were chosen.** The first, on a quiet machine: mean error 13.6 %, median 10.0 %, and
p10 to p90 held 60.8 % (n = 102): too narrow. Two causes were found. A run has one moment, and what is left out of the
fit are medians over four: how far the rounds of a benchmark are apart is now added, less what a median of four varies
by itself. And the part of a step that is calls and not work had no spread at all. Neither has a number that was
fitted on a model's steps. The second, while other programs started on the machine: 17.9 % (everything 14 % too slow)
and 93.1 %. The third, with all other programs stopped: 9.1 % and 80.4 %, worst LSTMs, 19 % too slow; ratios of layer
sums off by 0.07 (best constant 0.09). **The fourth, a day later on another machine of the same type, with nothing
changed since the third, is what the tables above show** (one round). So a mean error of about 10 % and an interval that
holds about 80 % were found twice; that the ratio of layer sums is forecast better than by a constant was not: its
errors were 0.07 and 0.18.

No price was ever fitted on these models, but they are no longer unseen by who chose the form.

Measured with memory kept by the process, as `traincast measure` does it. By glibc's defaults the same steps are 1.0 to
2.5 times as long, for page faults that no forecast of ours foresees ([why](calibrate.md#page-faults)).
"""


def _head(facts: dict[str, Any]) -> Iterator[str]:
    yield f"""# Forecasts for this machine, before and after calibrating it

Written by `python benchmarks/calibration.py --write`: `traincast calibrate`, then real training steps of models that
calibration never saw, in fp32 at three batch sizes over a factor of 16, with SGD and Adam. A measured step is the
median over rounds (minutes apart, a fresh process a model) of the median of 30, 15 or 7 steps, by batch size.

- Machine: {facts["name"]}, {facts["n_cores"]} cores; {facts["source"]}; load average after it {facts["load"]:.1f}.
- Calibration took {facts["seconds"]:.0f} s for {facts["n_steps"]} benchmark steps; each of them, predicted from nine
  tenths of the others, is {_percent(facts["mean_error"])} off on average.
"""


def _errors(rows: Rows) -> Iterator[str]:
    errors, before = [abs(row["after"]) for row in rows], [abs(row["before"]) for row in rows]
    noise = [value for row in rows for value in row["noise"]]
    inside = statistics.mean(row["is_inside"] for row in rows)
    yield from _table("forecast step against measured", "mean", "median", "n")
    for name, values in (
        ("before calibrating (generic-cpu)", before),
        ("**after calibrating**", errors),
        ("noise: one round against the median of rounds", noise),
    ):
        if any(values):  # of one round there is no noise to see
            yield _row(name, _percent(np.mean(values)), _percent(np.median(values)), len(values))
    yield _row("best constant factor on generic-cpu, in hindsight", _percent(_constant(rows)), "", len(rows))
    yield f"""
p10 to p90 hold {_percent(inside)} of the {len(rows)} measured steps (target: 70 to 90 %).
The target of the mean error is 15 %: {"met" if np.mean(errors) <= 0.15 else "missed"}.
"""


def _by_model(rows: Rows) -> Iterator[str]:
    yield "## By model\n\nBatch columns: forecast over measured, SGD.\n"
    yield from _table("model", "mean error", "bias", "before", "smallest batch", "largest batch")
    by_model = defaultdict(list)
    for row in rows:
        by_model[row["key"][0]].append(row)
    for model, own in by_model.items():
        sgd = sorted((row for row in own if row["key"][2] == "sgd"), key=lambda row: row["key"][1])
        ends = [f"{1 + row['after']:.2f}" for row in (sgd[0], sgd[-1])]
        after = [row["after"] for row in own]
        mean, bias = _percent(np.mean(np.abs(after))), f"{100 * np.median(after):+.0f} %"
        yield _row(_short(model), mean, bias, _percent(np.mean([abs(row["before"]) for row in own])), *ends)


def _layer_sums(sums: Sums) -> Iterator[str]:
    yield """
## Why the sum of layers is not the model

Every layer alone (its gradient of the input included, as in a layer benchmark), summed, over the whole model:
measured (median of three rounds), and forecast from the same prices. A lone layer pays the fixed costs of a step again
(`phase.*`) and a gradient that the first layer of a network does not need; a network pays for additions and a loss that
are no layer's.
"""
    yield from _table("model", "layers", "measured sum / whole", "forecast sum / whole", "lone layers: mean error")
    for model, one in sums.items():
        ratios = [f"{one[name]:.2f}" for name in ("measured", "forecast")]
        yield _row(_short(model), one["n"], *ratios, _percent(one["layer_error"]))
    measured = np.array([one["measured"] for one in sums.values()])
    forecast = np.array([one["forecast"] for one in sums.values()])
    ours, constant = np.abs(forecast - measured).mean(), np.abs(np.median(measured) - measured).mean()
    yield f"""
Mean error of the ratio: {ours:.2f} forecast, {constant:.2f} with the best constant in hindsight (n = {len(sums)}).
"""


def _table(*headers: str) -> Iterator[str]:
    yield _row(*headers)
    yield _row("---", *("---:" for _ in headers[1:]))


def _row(*cells: object) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _constant(rows: Rows) -> float:
    """One factor on the uncalibrated forecast, the best there is."""
    ratios = np.array([1 + row["before"] for row in rows])
    factors = 1 / np.quantile(ratios, np.linspace(0.02, 0.98, 97))
    return float(min(np.abs(factor * ratios - 1).mean() for factor in factors))


def _short(model: str) -> str:
    return Path(model).name.partition(":")[2] + " (own)" if ":" in model else model


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
