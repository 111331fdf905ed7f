"""The family "auto" where nobody tells the learning rate: no fall is assumed, and what one would bring is told."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from traincast.curves.curve import Curve, Members, Rescaled
from traincast.curves.points import Points
from traincast.curves.priors import Priors, shipped
from traincast.curves.weighed import N_MEMBERS, Fan, fan_of, outlook_of

_LEAST = 1e-9
_MOST_DROP = 0.7  # of the logarithm: what low losses of classifiers fall further by is not true of every low loss
_SAY = "Say what it does: constant, linear, cosine, or its milestones."
_ENDLESS = (
    "Neither the length of the run nor what its learning rate will do is known: no fall of the rate is assumed. "
    "Say how many steps the run has."
)


def fit_untold(
    points: Points,
    *,
    total_steps: float | None = None,
    top: float | None = None,
    share_of: float | None = None,
    raised: float = 0.0,
    priors: Priors | None = None,
) -> Curve:
    """`points` are falling and above 0: losses, errors that are shares of `share_of`, or `top` minus an accuracy."""
    known, outlook, whole = priors or shipped(), outlook_of(points), top or share_of
    is_error = whole is not None
    fan = fan_of(outlook, known.unknown_rate, total_steps=total_steps, is_error=is_error)
    annealing = known.error if is_error else known.loss
    log_drop = annealing.log_drop(outlook.noise, max(points.level(), _LEAST) / (whole or 1.0))
    drop = min(math.exp(log_drop), _MOST_DROP)
    laws, optimus, trend, stays = outlook.weights.tolist()
    return Curve(
        family="auto",
        members=replace(fan, top=top, raised=raised, drop=max(drop, fan.fall)),
        weights=np.full(N_MEMBERS, 1.0 / N_MEMBERS),
        first_step=float(points.steps[0]),
        last_step=points.last_step,
        total_steps=total_steps,
        is_rising=top is not None,
        parameters={"laws": laws, "optimus": optimus, "trend": trend, "stays": stays},
        warnings=points.warnings,
    )


def about_the_rate(curve: Curve) -> tuple[str, ...]:
    """What the end would be if the rate came down; nothing where the run is over."""
    end = curve.total_steps
    if end is None:
        return (_ENDLESS,)
    if end <= curve.last_step:
        return ()
    value = float(np.median(_annealed(curve.members).values(np.array([end]))))
    return (
        "What the learning rate will do is not known, and no fall of it is assumed. If the rate came down to zero by "
        f"the end, the run would end near {value:.4g} instead of {curve.predict(end):.4g}. {_SAY}",
    )


def _annealed(members: Members) -> Members:
    if isinstance(members, Rescaled):
        return replace(members, members=_annealed(members.members))
    assert isinstance(members, Fan)
    return replace(members, log_path=members.log_path + members.fall - members.drop)
