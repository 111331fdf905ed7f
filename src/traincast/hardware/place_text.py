"""How people write a place: 'T4', '4xT4', '2x4xT4@50Gb/s', '2xp3.16xlarge', '3 of own.toml'.

Words are only taken apart here. What a name means is for the tables of devices and machines to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from traincast.errors import InputError

_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]*)?"  # also those that no count can be: they are refused as what they are
_COUNTED = re.compile(rf"(?P<n>{_NUMBER})\s*x\s*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_PART = re.compile(rf"(?P<n>{_NUMBER})\s+of\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceText:
    """A place as it is written, outermost number first. Numbers are kept as digits until `whole_number` reads them."""

    name: str  # of a device or machine, or the path of a cluster file
    counts: tuple[str, ...] = ()  # ("2", "4") of '2x4xT4'
    link: str | None = None  # what follows the @; None: there is no @
    parts: tuple[str, ...] = ()  # ("3",) of '3 of own.toml'

    def __str__(self) -> str:
        of = "".join(f"{n} of " for n in self.parts)
        counted = "".join(f"{n}x" for n in self.counts)
        return f"{of}{counted}{self.name}" + ("" if self.link is None else f"@{self.link}")

    @property
    def is_file(self) -> bool:
        """The name of a file is taken as it is: an x or an @ in it has no meaning."""
        return _is_file(self.name) and not self.counts and self.link is None

    @property
    def is_name(self) -> bool:
        """Nothing but a name: neither counted nor joined, neither a part nor a file."""
        return not (self.parts or self.counts or self.is_file) and self.link is None

    def named(self, is_known: Callable[[str], bool]) -> PlaceText:
        """The same with numbers that belong to a known name: '8x_H200-SXM_SECURE' is a machine, not eight of one."""
        for n in range(len(self.counts)):
            name = "x".join((*self.counts[n:], self.name))
            if is_known(name):
                return replace(self, counts=self.counts[:n], name=name)
        return self


def read_place(text: str) -> PlaceText:
    """Any text is read, and what is shown of it reads as itself."""
    parts, words = [], text.strip()
    while (part := split_part(words)) is not None:
        parts.append(part[0])
        words = part[1].strip()
    if _is_file(words):
        return PlaceText(name=words, parts=tuple(parts))
    left, at, link = words.partition("@")
    counts, name = [], left.strip()
    while (counted := _COUNTED.fullmatch(name)) is not None:
        counts.append(counted["n"])
        name = counted["rest"].strip()
    return PlaceText(name=name, counts=tuple(counts), link=link.strip() if at else None, parts=tuple(parts))


def split_part(text: str) -> tuple[str, str] | None:
    """('3', 'own.toml') of '3 of own.toml'; None where no part is named."""
    part = _PART.fullmatch(text)
    return None if part is None else (part["n"], part["rest"])


def whole_number(digits: str, what: str, text: str) -> int:
    """The number of something in the place that `text` names."""
    number = float(digits)
    if not number.is_integer() or not 1 <= number <= _MOST:
        raise InputError(f"'{text}': the number of {what} should be a whole number from 1 to {_MOST:,}, not {digits}.")
    return int(number)


def _is_file(words: str) -> bool:
    return words.lower().endswith(".toml")
