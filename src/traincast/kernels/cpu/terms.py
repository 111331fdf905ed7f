"""Amounts of work, each of an op and with a price of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traincast.trace.graph import Floats, Ints


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """One kind of work of several ops: one row a batch size, one column an op."""

    price: str
    ops: Ints
    amount: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Terms:
    """All work of a graph: one row a batch size, one column a term."""

    prices: tuple[str, ...]
    op: Ints
    price: Ints  # a place in `prices`
    amount: Floats

    @staticmethod
    def join(terms: Sequence[Term]) -> Terms:
        kept = [term for term in terms if len(term.ops)]
        prices = tuple(dict.fromkeys(term.price for term in kept))
        place = {price: number for number, price in enumerate(prices)}
        return Terms(
            prices=prices,
            op=np.concatenate([term.ops for term in kept]),
            price=np.concatenate([np.full(len(term.ops), place[term.price]) for term in kept]),
            amount=np.concatenate([term.amount for term in kept], axis=1),
        )

    def totals(self, group_of_op: Ints, n_groups: int) -> Floats:
        """Amounts summed over groups of ops, at the first batch size: one row a group, one column a price."""
        cell = group_of_op[self.op] * len(self.prices) + self.price
        n_cells = n_groups * len(self.prices)
        sums: Floats = np.bincount(cell, weights=self.amount[0], minlength=n_cells).astype(float)
        return sums.reshape(n_groups, len(self.prices))

    def seconds(self, price_s: Mapping[str, float], n_ops: int) -> Floats:
        """By batch size and op. Work that has no price takes no time: whoever asks must say so."""
        known = np.array([price_s.get(name, 0.0) for name in self.prices])
        seconds = self.amount * known[self.price]
        cell = self.op + n_ops * np.arange(len(seconds))[:, None]
        sums: Floats = np.bincount(cell.ravel(), weights=seconds.ravel(), minlength=len(seconds) * n_ops).astype(float)
        return sums.reshape(len(seconds), n_ops)
