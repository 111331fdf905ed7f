"""Ways to make a language model fit that does not: the same question changed, cheapest first.

Each is asked of the forecast again. What it costs is device time per sample, so that more devices that are faster in
proportion cost nothing, and a pass that runs twice costs what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from traincast.errors import InputError
from traincast.forecasting.device_memory import device_memory
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.question import Question
from traincast.forecasting.sweep import forecast_step
from traincast.hardware.cluster_text import find_cluster
from traincast.scaling.split import WHOLE
from traincast.scaling.strategy import find_strategy

_MOST_TIMES = 64  # as many devices
_LEAST_FREED = 0.01  # of what is needed: less is no way out
_RECOMPUTED = {"none": ("selective", "full"), "selective": ("full",)}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class WayOut:
    """One change or several together, what it frees on the fullest device, and what it costs."""

    change: str
    catch: str
    forecast: Forecast
    freed_bytes: int
    device_time_fraction: float  # more device time per sample than before; below 0 it is less

    trains_less: bool  # than the question asks: an adapter instead of all weights, or on a 4-bit base

    @property
    def fits(self) -> bool:
        return self.forecast.fits

    def to_dict(self) -> dict[str, Any]:
        return {
            "change": self.change,
            "catch": self.catch,
            "freed_bytes": self.freed_bytes,
            "device_time_fraction": self.device_time_fraction,
            "step_s": self.forecast.step_s,
            "peak_memory_bytes": self.forecast.peak_memory_bytes,
            "fits": self.fits,
            "trains_less": self.trains_less,
        }


@dataclass(frozen=True, slots=True)
class _Change:
    words: str
    catch: str
    question: Question


_Changer = Callable[[Question], Iterator[_Change]]


def needs_way_out(answer: Forecast) -> bool:
    """Whether ways are looked for: it costs forecasts of its own, and other models have other ways."""
    question = answer.question
    is_language = question.trace.tokens_per_sample is not None and question.device.kind != "cpu"
    return is_language and not question.is_inference and not answer.fits


@lru_cache(maxsize=1)  # text and JSON of one answer tell the same
def ways_out(answer: Forecast) -> tuple[WayOut, ...]:
    """Those that fit first, each group by its cost; several changes together only where none alone is enough."""
    if not needs_way_out(answer):
        return ()
    found = [way for changer in _ALONE for way in _asked(changer, answer)]
    if not any(way.fits and not way.trains_less for way in found):
        together = _asked(_together, answer)
        enough = [way for way in together if way.fits]
        found += enough or together
    return tuple(sorted(found, key=lambda way: (not way.fits, way.trains_less, way.device_time_fraction)))


def _asked(changer: _Changer, before: Forecast) -> list[WayOut]:
    """Nothing where the engine refuses the change, or where it frees nothing."""
    found: list[WayOut] = []
    changes = changer(before.question)
    while True:
        try:
            change = next(changes)
            way = _way(change, before)
        except (InputError, StopIteration):
            return found
        if way.freed_bytes > _LEAST_FREED * before.peak_memory_bytes:
            found.append(way)


def _way(change: _Change, before: Forecast) -> WayOut:
    after = forecast_step(change.question)
    cost, own = (one.question.n_devices / one.samples_per_s for one in (after, before))
    return WayOut(
        change=change.words,
        catch=change.catch,
        forecast=after,
        freed_bytes=before.peak_memory_bytes - after.peak_memory_bytes,
        device_time_fraction=cost / own - 1,
        trains_less=after.question.settings.adapter != before.question.settings.adapter,
    )


def _recomputation(question: Question) -> Iterator[_Change]:
    for how in _RECOMPUTED.get(question.settings.recompute, ()):
        yield _Change(f"recompute='{how}'", "", _recomputed(question, how))


def _sharding(question: Question) -> Iterator[_Change]:
    if question.n_devices > 1 and question.strategy.kind == "ddp" and question.split == WHOLE:
        yield _Change("strategy='fsdp'", "", _sharded(question))


def _smaller_passes(question: Question) -> Iterator[_Change]:
    """The same update in more passes: as few as fit, or one sample each."""
    changed, micro = question, question.micro_batch_size
    while changed.micro_batch_size > 1 and not _fits(changed):
        n_passes = 2 * changed.accumulation_steps
        if question.batch_size % (n_passes * question.n_replicas):
            break
        changed = replace(question, accumulation_steps=n_passes)
    if changed.micro_batch_size < micro:
        yield _Change(_passes(changed), "", changed)


def _more_devices(question: Question) -> Iterator[_Change]:
    """As many samples on each as before."""
    if question.split != WHOLE or question.strategy.kind not in ("ddp", "sharded"):
        return
    times = 2
    while times <= _MOST_TIMES:
        changed = _on_more(question, times)
        if _fits(changed):
            catch = f"Batch {changed.batch_size:,} instead of {question.batch_size:,}, and {times} times the rent."
            yield _Change(f"{changed.place} with {changed.strategy.name}", catch, changed)
            return
        times *= 2


def _on_more(question: Question, times: int) -> Question:
    cluster = find_cluster(f"{times * question.n_devices}x{question.device.name}")
    return replace(
        question,
        cluster=replace(cluster, device=question.device),
        batch_size=times * question.batch_size,
        strategy=question.strategy if question.strategy.kind == "sharded" else find_strategy("fsdp"),
    )


def _quantised_base(question: Question) -> Iterator[_Change]:
    adapter = question.settings.adapter
    if adapter is None or adapter.startswith("lora"):
        name = "qlora:16" if adapter is None else f"q{adapter}"
        catch = "Fine-tuning only: a 4-bit base stays as it is, and only its adapter is trained."
        yield _Change(f"adapter='{name}'", catch, replace(question, settings=replace(question.settings, adapter=name)))


def _together(question: Question) -> Iterator[_Change]:
    """Sharding and recomputation, then also with the smallest passes."""
    (sharding,) = list(_sharding(question)) or [_Change("", "", question)]
    for how in _RECOMPUTED.get(question.settings.recompute, ()):
        changed = _recomputed(sharding.question, how)
        words = [word for word in (sharding.words, f"recompute='{how}'") if word]
        if sharding.words:
            yield _Change(" and ".join(words), "", changed)
        if not _fits(changed):
            for passes in _smaller_passes(changed):
                yield _Change(" and ".join((*words, passes.words)), "", passes.question)
            for more in _more_devices(changed):
                yield _Change(f"recompute='{how}' and {more.words}", more.catch, more.question)


_ALONE: tuple[_Changer, ...] = (_recomputation, _sharding, _smaller_passes, _more_devices, _quantised_base)


def _recomputed(question: Question, how: str) -> Question:
    return replace(question, settings=replace(question.settings, recompute=how))


def _sharded(question: Question) -> Question:
    return replace(question, strategy=find_strategy("fsdp"))


def _passes(question: Question) -> str:
    each = question.micro_batch_size
    return f"accumulation_steps={question.accumulation_steps} (passes of {each:,} sample{'s' * (each > 1)})"


def _fits(question: Question) -> bool:
    return device_memory(question).total_bytes <= question.device.usable_memory_bytes
