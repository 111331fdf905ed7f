"""Tiny blocks as fixtures."""

from tiny_blocks import build, ops, steps

__all__ = ["build", "ops", "steps"]
