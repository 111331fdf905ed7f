"""Shares as people type them: 5% or 0.05."""

from __future__ import annotations

from traincast.errors import InputError


def fraction_of(text: str, flag: str, *, such_as: str = "5% or 0.05") -> float:
    """Between 0 and 1."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share <= 1:
        raise InputError(f"{flag} '{text}' is no share: write {such_as}.")
    return share
