"""What would help: changes that people make to a slow run, each asked of the forecast again, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from traincast.errors import InputError
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.question import Question
from traincast.planning.gain import ForecastWithErrors, Gain, ask

LEAST_GAIN = 0.005  # a share of the speed: less is not worth a change


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class WhatIf:
    """One change: what it is, what it brings, and what it costs otherwise."""

    name: str
    change: str
    catch: str
    forecast: Forecast
    gain: Gain
    peak_memory_bytes: int
    is_reckoned: bool = False  # from the forecast's own figures, where the engine has no model of the change

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "change": self.change,
            "catch": self.catch,
            "speedup": self.gain.speedup,
            "speedup_interval": [self.gain.low, self.gain.high],
            "step_s": self.forecast.step_s,
            "batch_size": self.forecast.batch_size,
            "samples_per_s": self.forecast.samples_per_s,
            "peak_memory_bytes": self.peak_memory_bytes,
            "bound_by": self.forecast.bound_by,
            "is_reckoned": self.is_reckoned,
        }


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A change that does not apply or does not help, and why."""

    name: str
    reason: str


Found = Iterable[WhatIf | LeftOut]
Remedy = Callable[[ForecastWithErrors], Found]


def what_ifs(question: Question) -> tuple[tuple[WhatIf, ...], tuple[LeftOut, ...]]:
    """Those that help, best first, and those that do not apply. What saves memory stays though it costs time."""
    from traincast.planning import remedies
    from traincast.planning.other_devices import another_gpu

    before = ask(question)
    found: list[WhatIf] = []
    left_out: list[LeftOut] = []
    for remedy in (*remedies.ALL, another_gpu):
        for one in _tried(remedy, before):
            if isinstance(one, LeftOut):
                left_out.append(one)
            elif _helps(one, before.forecast):
                found.append(one)
            else:
                left_out.append(LeftOut(one.name, _no_help(one)))
    return tuple(sorted(found, key=lambda one: -one.gain.speedup)), tuple(left_out)


def _tried(remedy: Remedy, before: ForecastWithErrors) -> Iterator[WhatIf | LeftOut]:
    try:
        yield from remedy(before)
    except InputError as error:  # the engine refuses the combination, and says why
        yield LeftOut(remedy.__name__.replace("_", " "), str(error).rstrip("."))


def _helps(one: WhatIf, before: Forecast) -> bool:
    saves_memory = one.is_reckoned and one.peak_memory_bytes < 0.95 * before.peak_memory_bytes
    return one.gain.speedup >= 1 + LEAST_GAIN or saves_memory


def _no_help(one: WhatIf) -> str:
    slower = 1 / one.gain.speedup - 1
    return f"on its own it would be {100 * slower:.0f} % slower" if slower > LEAST_GAIN else "it would change nothing"
