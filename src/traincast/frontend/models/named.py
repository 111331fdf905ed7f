"""The models that are asked for by the name under which they were published: their sizes, as data. No torch here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from traincast.errors import InputError

FILES = ("data/models/language.jsonl", "data/models/others.jsonl")
SHORTEST = 3  # tokens: the loss predicts all but the first, and a row of one number is a case of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """One published model. `seqlen` is the length it was usually trained with, at most 8,192; None: it has no other.

    `sizes` are those of our own decoder, or hold the `config` of a Hugging Face model and its `head`.
    """

    name: str
    title: str
    n_parameters: int
    seqlen: int | None
    repository: str
    aliases: tuple[str, ...]
    source: str
    count_source: str
    accessed: str
    sizes: Mapping[str, Any]

    @property
    def options(self) -> dict[str, int | str]:
        """The options it takes, with their defaults."""
        return {} if self.seqlen is None else {"seqlen": self.seqlen}

    @property
    def positions(self) -> int:
        """The longest sequence that it can tell the places of."""
        return int(self.sizes["positions"])

    @property
    def task(self) -> str:
        kind = self.sizes.get("config", {}).get("model_type")
        return "image" if kind in ("vit", "swin", "convnext") else "text"

    @property
    def gmacs(self) -> None:
        """No multiply-adds are published of one length in particular."""

    @property
    def gmacs_source(self) -> None:
        """As there is no figure."""

    def length(self, options: Mapping[str, Any]) -> int:
        """The sequence length that was asked for, or the usual one."""
        for option in options:
            if option not in self.options:
                takes = "it takes seqlen" if self.options else "it takes none"
                raise InputError(f"{self.name} takes no option '{option}'; {takes}.")
        if self.seqlen is None:
            return 0
        length = options.get("seqlen", self.seqlen)
        if isinstance(length, bool) or not isinstance(length, int) or length < SHORTEST:
            raise InputError(f"seqlen={length!r} is not possible for {self.name}: give {SHORTEST} tokens or more.")
        if length > self.positions:
            raise InputError(
                f"seqlen={length:,} is more than the {self.positions:,} positions of {self.name}: the longest sequence "
                f"that works is {self.positions:,}."
            )
        return length


@cache
def named_models() -> Mapping[str, NamedModel]:
    """All of them by name."""
    texts = [resources.files("traincast").joinpath(file).read_text(encoding="utf-8") for file in FILES]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    return {row["name"]: NamedModel(**{**row, "aliases": tuple(row["aliases"])}) for row in rows}


def find_named(text: str) -> NamedModel | None:
    """The model of a name as people type it: any case, an alias, or organisation/name."""
    models = named_models()
    if text in models:
        return models[text]
    return _by_alias().get(text.lower())


@cache
def _by_alias() -> Mapping[str, NamedModel]:
    found: dict[str, NamedModel] = {}
    for model in named_models().values():
        for alias in (model.name, model.repository, model.repository.rpartition("/")[2], *model.aliases):
            if alias:
                found.setdefault(alias.lower(), model)
    return found
