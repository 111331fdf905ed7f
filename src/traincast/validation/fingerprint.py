"""Fingerprints: what a stored intermediate result was made from."""

from __future__ import annotations

import hashlib


def fingerprint(*parts: str | bytes) -> str:
    """A short name of everything given, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:24]
