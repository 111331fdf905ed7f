"""What docs/accuracy.md says about layers timed alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from lab.markdown import coverage, figures, percent, table
from traincast.kernels.library_factors import NAMES, Factors, shipped_library
from traincast.kernels.refit.layer_rows import HOST_BATCH, N_SCORED
from traincast.validation.measured_set import OURS, MeasuredSet


def _told() -> str:
    return f"""\
Convolutions and fully connected layers of random sizes, each in a graph of its own and one `session.run` a timing:
*layers conv* and *layers dense* by Justus et al. 2018 (TensorFlow 1.10, six GPUs), *layers conv tf2* by a project
after them (TensorFlow 2 in compatibility mode, four). Of every GPU and set {N_SCORED:,} rows, drawn at random with a
fixed seed, are scored. Rows of the part *forward* run the layer forward; those of the part *step* also have a loss,
backward, and updates of weights, input and target, which is more than a layer inside a model has:
[why layer sums are not the model](layer_sums.md).

- Libraries of 2018 to 2020 are not those that our coefficients were fitted to. What they do differently are
  {len(NAMES)} numbers (below), fitted on top of the coefficients to other rows of *layers conv* and *layers dense*,
  {_fitted_rows()}, by `python -m lab.refit.layers`; no row of *layers conv tf2* is among them. *GPU left
  out* uses the numbers fitted without that GPU (for the P100 whatever its form; the M40 no fit has seen) on
  coefficients fitted without it too, though the numbers stood on the coefficients that ship when they were fitted.
  *Row* or *set left out* is the fit that ships, which saw other rows of the GPU. *No library* is our method without
  these numbers. Forecasts of models use none of them.
- Nobody wrote down the hosts. What a call and the dispatch of an op cost on each machine is fitted, under our own
  times of the device, on the smallest fifth of its rows of batch {HOST_BATCH}, which are not scored. Every method but
  *layerwise* is given it. Where we are too fast on the device, part of that goes into the host.
- *layerwise* with the GPU left out are networks that learnt from rows of the other five GPUs (40,000 of them, short
  fits), calls included; with nothing left out it is the network that ships, which saw eight of ten of the rows. The
  rows of *layers conv tf2* were never learnt from; there *GPU left out* is the network without the K80 or the P100,
  and for the M40, which no network saw, the one that ships."""


_LIBRARY = """\
What the libraries do differently, as factors on the time of a kernel of ours (1: no difference):"""
_MEANING = {
    "convolution_input": "gradients of the input of convolutions",
    "convolution_weight": "gradients of their weight, stride 1 (FFT and Winograd serve them)",
    "convolution_weight.strided": "the same with a stride, beside the line above",
    "input_over_forward": "a gradient of the input takes at most so many forward times",
    "weight_over_forward": "a gradient of the weight takes at most so many forward times",
    "large_window": "a window of twice the size, beyond 3 x 3 and with stride 1",
    "layout": "changes between channels last and first",
    "layout.few_channels": "the same, for each halving below 32 channels",
    "filter": "changes of a filter's layout: read word by word across memory",
    "padding": "copies of images whose padding is uneven",
    "update": "updates, beside what the functors' passes explain",
    "kepler.products": "products and convolutions on Kepler: 192 lanes, of which 128 work without dual issue",
    "kepler.bytes": "all else on Kepler",
    "maxwell.products": "products and convolutions on Maxwell",
}
_CHOICE = """\
Read in TensorFlow's sources and not fitted: windows of one pixel or the whole image are convolutions too (its layout
optimizer turns them channels first, where it has no product for them), every convolution and gradient turns its
filter, uneven padding copies the image, and updates assign state by state (Adam makes ten passes over memory where
one fused kernel makes seven). And a K40 stays at its base clock of 745 MHz until its user raises it.

What to look for came from the first form of these tables, which had none of this; they showed all three sets, so that
much was known of *layers conv tf2* too. The form was then chosen by some 20 comparisons on the fitted rows with the
GPU left out. Tried and dropped, for little or no gain there: factors for forward convolutions, for fully connected
products forward and backward, for all bytes, for reductions and for empty tiles, an FFT way with transforms and
products of its own, and Kepler's products apart by kind. The scored rows were predicted once, after that, and nothing
was changed since. So *layers conv* and *layers dense* are too good by what such a choice brings on the same six
GPUs; *layers conv tf2* is the test from outside."""
_WHY = """\
The deviations are those of products, convolutions, bytes and host, each by its share of a call. Those that judge a
GPU come from errors on the other five, by fits that saw neither of the two, and are widened until eight of ten of
those errors are inside. They hold for a set and not for each GPU in it: with the only Maxwell or the only Volta card
left out nothing tells of its generation, and fully connected layers on the K40 take longer than the K80's say."""
_BY_WINDOW = """\
By the kind of convolution (stride 1 unless said). Large windows are the worst: libraries choose among direct, Winograd
and FFT ways (some rows of these files beat the GPU's peak), TensorFlow 2's newer ones more often than one exponent
of the window says."""


def _fitted_rows() -> str:
    rows = shipped_library().provenance["rows"]
    return " and ".join(f"{number:,} of *{name}*" for name, number in rows.items())


def layer_section(sets: Sequence[MeasuredSet]) -> list[str]:
    """Parts of the page; none without such sets."""
    layers = [each for each in sets if each.name.startswith("layers")]
    if not layers:
        return []
    tables = (_LIBRARY, _factors(), _CHOICE, _hosts(layers), _by_part(layers), _BY_WINDOW, _by_window(layers))
    return ["## Layers timed alone", _told(), *tables, _verdict(layers), _WHY]


def _factors() -> str:
    """What ships, and the least and the most of the fits without a GPU."""
    known, rows = shipped_library(), []
    for name in NAMES:
        values = [_shown(name, each.factors) for each in known.without.values()]
        rows.append(
            (_MEANING[name], f"{_shown(name, known.library.factors):.2f}", f"{min(values):.2f}", f"{max(values):.2f}")
        )
    return table(("what", "factor", "without a GPU: least", "most"), rows)


def _shown(name: str, factors: Factors) -> float:
    """The exponent of the window's size as what twice the size takes."""
    return float(np.exp(factors[name] * (log(2.0) if name == "large_window" else 1.0)))


def _hosts(layers: Sequence[MeasuredSet]) -> str:
    rows = []
    for measured in layers:
        for device in np.unique(measured.tags["device"]).tolist():
            first = int(np.flatnonzero(measured.tags["device"] == device)[0])
            call_s, dispatch_s = (float(measured.tags[name][first]) for name in ("call_s", "dispatch_s"))
            rows.append((measured.name, device, f"{1e6 * call_s:.0f}", f"{1e6 * dispatch_s:.1f}"))
    return table(("set", "machine of the", "call, us", "dispatch, us"), rows, 2)


def _by_part(layers: Sequence[MeasuredSet]) -> str:
    """Ours beside the networks and the best of the simple baselines of the set."""
    rows = []
    for measured in layers:
        simple = measured.take_methods(lambda method: method != "layerwise").best_baseline
        by_network = measured.summaries_by("device", "part", prediction=measured.prediction("layerwise"))
        by_simple = {} if simple is None else measured.summaries_by("device", "part", prediction=simple)
        for key, ours in measured.summaries_by("device", "part").items():
            others = [percent(by_network[key].median_absolute_fraction)]
            others.append(percent(by_simple[key].median_absolute_fraction) if by_simple else "-")
            others.append("-" if simple is None else simple.method)
            rows.append((measured.name, *key, f"{ours.n:,}", *figures(ours), coverage(ours), *others))
    header = (
        "set", "GPU", "part", "n", "ours: median %", "mean %", "bias %", "in p10-p90 %",
        "layerwise, GPU left out: median %", "simple baseline: median %", "which",
    )  # fmt: skip
    return table(header, rows, 3)


def _by_window(layers: Sequence[MeasuredSet]) -> str:
    rows = []
    for measured in layers:
        if len(np.unique(measured.tags["window"])) < 2:
            continue
        network = measured.summaries_by("window", "part", prediction=measured.prediction("layerwise"))
        for key, ours in measured.summaries_by("window", "part").items():
            other = percent(network[key].median_absolute_fraction)
            rows.append((measured.name, *key, f"{ours.n:,}", *figures(ours), coverage(ours), other))
    header = ("set", "window", "part", "n", "ours: median %", "mean %", "bias %", "in p10-p90 %", "layerwise: median %")
    return table(header, rows, 3)


def _verdict(layers: Sequence[MeasuredSet]) -> str:
    """Who is better where, in one sentence a set."""
    told = []
    for measured in layers:
        ours, network = measured.prediction(OURS), measured.prediction("layerwise")
        own, other = measured.summary(ours), measured.summary(network)
        better = "ours is better" if own.median_absolute_fraction < other.median_absolute_fraction else "ours is worse"
        if percent(own.median_absolute_fraction) == percent(other.median_absolute_fraction):
            better = "neither is better"
        if not other.n:
            better = "the networks were not fitted (scikit-learn is missing)"
        told.append(
            f"- {measured.name}: median {percent(own.median_absolute_fraction)} %, layerwise "
            f"{percent(other.median_absolute_fraction)} %, both without the GPU: {better}. Between p10 and p90 lie "
            f"{percent(own.coverage_fraction)} % of the rows."
        )
    return "\n".join(told)
