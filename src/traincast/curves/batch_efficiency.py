"""How much a sample teaches in a larger batch: Pollux' statistical efficiency (Qiao et al., OSDI 2021).

    noise scale   phi = m0 * var / sqr
    efficiency    E(m) = (phi + m0) / (phi + m)

Legend: m batch size, m0 the batch size at which `var` was taken, sqr the squared norm of the expected gradient, var
the variance of the gradient of a batch of m0 (summed over parameters). E is progress per sample, relative to m0: it is
AdaScale's gain of one step of m samples, counted in steps of m0, (var + sqr) / (var m0/m + sqr), times m0/m. Where
gradients are mostly noise (phi far above m) a larger batch averages it away and a sample stays worth the same; where
they are mostly signal, more of them in one step say the same thing twice. It presumes a learning rate that follows
the gain, as AdaScale's does: at an unchanged rate a larger batch is worth less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traincast.errors import InputError

Floats = NDArray[np.float64]


def noise_scale(grad_sqr: ArrayLike, grad_var: ArrayLike, *, at_batch: float) -> Floats:
    """phi in samples; infinite where the expected gradient is 0. `at_batch` is the batch whose variance is given."""
    sqr = _checked(grad_sqr, "grad_sqr should be finite and not below 0")
    var = _checked(grad_var, "grad_var should be finite and not below 0")
    base = _batch(at_batch)
    if ((sqr == 0) & (var == 0)).any():
        raise InputError("A gradient with neither signal nor noise does not determine a batch size.")
    return base * np.divide(var, sqr, out=np.full(np.broadcast(var, sqr).shape, np.inf), where=sqr > 0)


def efficiency(batch_size: ArrayLike, *, at_batch: float, noise_scale: ArrayLike) -> Floats:
    """Progress per sample at a batch size, relative to that at `at_batch`: below 1 at larger batches."""
    return 1 / _samples_needed(batch_size, at_batch, noise_scale)


def epochs_at_batch(epochs: ArrayLike, batch_size: ArrayLike, *, at_batch: float, noise_scale: ArrayLike) -> Floats:
    """Epochs at another batch size for what so many epochs at `at_batch` did.

    The noise scale grows during a run. Give both as arrays, stretch by stretch, and sum what comes back.
    """
    amounts = _checked(epochs, "Epochs should be finite and not below 0")
    return amounts * _samples_needed(batch_size, at_batch, noise_scale)


def _samples_needed(batch_size: ArrayLike, at_batch: float, noise_scale: ArrayLike) -> Floats:
    """Samples for the same progress, relative to `at_batch`: (phi + m) / (phi + m0), and 1 where phi is infinite."""
    batch, base, phi = _batch(batch_size), _batch(at_batch), _numbers(noise_scale)
    if not (phi >= 0).all():
        raise InputError(
            f"A noise scale is a number of samples and should not be below 0; found {phi[~(phi >= 0)].ravel()[0]:g}."
        )
    return 1 + (batch - base) / (phi + base)


def _batch(batch_size: ArrayLike) -> Floats:
    batch = _checked(batch_size, "A batch size should be finite and above 0")
    if (batch == 0).any():
        raise InputError("A batch size should be finite and above 0; found 0.")
    return batch


def _checked(given: ArrayLike, rule: str) -> Floats:
    values = _numbers(given)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        raise InputError(f"{rule}; found {values[wrong].ravel()[0]:g}.")
    return values


def _numbers(given: ArrayLike) -> Floats:
    try:
        return np.asarray(given, float)
    except (TypeError, ValueError):
        raise InputError(f"Batch sizes, noise scales and gradients should be numbers, not {given!r}.") from None
