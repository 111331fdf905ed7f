"""A gap in sentences: how large it is, where it is, and what bound the run."""

from __future__ import annotations

from traincast.planning.bound import Bound, measured_bound, products_flop_per_s
from traincast.planning.gap import BUBBLE, HOST, Gap, GapRow
from traincast.units import show_duration, show_flop_per_s

_ROUNDING = 1e-9  # of a step: sums of many ops in another order
_CLOSE = 0.05
_SHARE_WORTH_A_WORD = 0.15
_MOST_POSSIBLE = 1.05
_ADVICE = {
    "compute": "more FLOP/s or a lower precision would make it faster",
    "memory": "more bandwidth, fused ops or a lower precision would make it faster",
    "host": "a larger batch, compilation or fewer small ops would make it faster",
    "input": "more loader workers or cheaper samples would make it faster",
    "communication": "faster links, a larger batch per device or fewer devices would make it faster",
    "pipeline": "more accumulation steps or fewer stages would make it faster",
}


def verdict(gap: Gap) -> tuple[str, ...]:
    """From the largest to the smallest thing to know."""
    if gap.measured is None:
        return (_predicted_only(gap),)
    sentences = [_size(gap), *_place(gap), _bound_sentence(gap, measured_bound(gap))]
    sentences += _rate_sentence(gap)
    return tuple(sentences)


def _predicted_only(gap: Gap) -> str:
    answer = gap.forecast
    first = gap.kinds[0]
    advice = _ADVICE[answer.bound_by]
    if answer.input_wait_s and answer.bound_by != "input":
        advice = "but the loader is slower than the step, so that only a faster loader would make it faster"
    return (
        f"Predicted to be bound by {_who(answer.bound_by)}: {advice}. The largest kind of work is "
        f"{_named(first)}, {_percent(first.predicted_s, answer.step_s)} of the step."
    )


def _size(gap: Gap) -> str:
    measured_s, predicted_s = gap.step.measured_s or 0.0, gap.step.predicted_s
    low, high = gap.forecast.interval("step_s")
    interval = f"p10 to p90: {show_duration(low)} to {show_duration(high)}"
    told = (
        f"A step took {show_duration(measured_s)} and was predicted to take {show_duration(predicted_s)} ({interval})"
    )
    ratio = measured_s / predicted_s
    if abs(ratio - 1) < _CLOSE:
        return f"{told}: they agree to within {100 * _CLOSE:.0f} %."
    inside = "inside" if low <= measured_s <= high else "outside"
    return f"{told}: {ratio:.2f} times as long, {inside} that interval."


def _place(gap: Gap) -> list[str]:
    """The kinds, or where they are not known the phases, that make most of the difference."""
    rows = [row for row in (gap.kinds if gap.has_kinds else gap.phases) if row.difference_s is not None]
    total_s = sum(abs(row.difference_s or 0.0) for row in rows)
    if not rows or total_s <= _ROUNDING * gap.step.predicted_s:
        return []
    slower = _told([row for row in rows if (row.difference_s or 0.0) > 0], total_s)
    faster = _told([row for row in rows if (row.difference_s or 0.0) < 0], total_s)
    parts = [f"slower than predicted in {slower}"] if slower else []
    parts += [f"faster {'' if slower else 'than predicted '}in {faster}"] if faster else []
    return [f"The run was {', '.join(parts)}."] if parts else []


def _told(rows: list[GapRow], total_s: float) -> str:
    rows = sorted(rows, key=lambda row: -abs(row.difference_s or 0.0))
    named = [
        f"{_named(row)} by {show_duration(abs(row.difference_s or 0.0))}"
        for row in rows[:3]
        if abs(row.difference_s or 0.0) >= _SHARE_WORTH_A_WORD * total_s
    ]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _bound_sentence(gap: Gap, bound: Bound | None) -> str:
    predicted = gap.forecast.bound_by
    if bound is None:
        return (
            "This measurement does not show what bound the run; a trace of torch.profiler does. "
            f"The forecast says {_who(predicted)}."
        )
    same = "as the forecast says" if bound.by == predicted else f"the forecast says {_who(predicted)}"
    share = f"{100 * bound.fraction:.0f} % of the step"
    return f"The run was bound by {_who(bound.by)} ({share}; {same}): {_ADVICE[bound.by]}."


def _rate_sentence(gap: Gap) -> list[str]:
    """What the run reached of the peak; more than all of it shows that two different things were compared."""
    rate, question = products_flop_per_s(gap), gap.forecast.question
    if rate is None:
        return []
    device = question.device
    reached = rate / device.peak_flop_per_s(question.settings.precision)
    if device.prices:  # its peak is what large products reached, which windows with fewer products may exceed
        return [
            f"Its matrix products and convolutions reached {show_flop_per_s(rate)}, {100 * reached:.0f} % of what "
            f"large matrix products reached when {device.name} was calibrated."
        ]
    told = f"Its matrix products and convolutions reached {show_flop_per_s(rate)}, {100 * reached:.0f} % of the peak"
    if reached > _MOST_POSSIBLE:
        return [f"{told} of {device.name}, which is impossible: was it another model, batch, precision or device?"]
    return [f"{told} listed for {device.name}."]


def _who(bound_by: str) -> str:
    return f"the {bound_by}" if bound_by in ("host", "input", "pipeline") else bound_by


def _named(row: GapRow) -> str:
    return {HOST: "the host (dispatch, Python)", BUBBLE: "the pipeline bubble"}.get(row.name, row.name)


def _percent(part_s: float, whole_s: float) -> str:
    return f"{100 * part_s / whole_s:.0f} %" if whole_s else "all"
