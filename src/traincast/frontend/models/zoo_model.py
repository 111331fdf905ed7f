"""One entry of the zoo: what it is, which options it takes, and how it is built.

Nothing here imports torch: listing the zoo and checking options must work, and be quick, without it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from traincast.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

LossName = Literal["labels", "binary", "next-token", "span"]

MOST = 10**6  # of classes, pixels a side or tokens: no shape leaves int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What one option may be: one of a few words, or a whole number in a range.

    `in_module` is False where the option changes the example only, as the length of a sequence does.
    """

    default: int | str
    at_least: int = 1
    at_most: int = MOST
    multiple_of: int = 1
    choices: tuple[str, ...] = ()
    in_module: bool = True

    def allows(self, value: object) -> bool:
        if self.choices:
            return value in self.choices
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return self.at_least <= value <= self.at_most and value % self.multiple_of == 0

    @property
    def allowed(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        number = f"a multiple of {self.multiple_of}" if self.multiple_of > 1 else "a whole number"
        return f"{number} from {self.at_least:,} to {self.at_most:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooModel:
    """A model of the zoo. `build` imports torch and the model's file when it is called, not before."""

    name: str
    title: str
    source: str
    task: str
    loss: LossName
    module: str
    rules: Mapping[str, Option]
    n_parameters: int
    n_channels: int | None = None
    gmacs: float | None = None
    gmacs_source: str | None = None

    @property
    def options(self) -> dict[str, int | str]:
        """The options it takes, with their defaults."""
        return {option: rule.default for option, rule in self.rules.items()}

    def complete(self, **options: int | str) -> dict[str, int | str]:
        """The given options and the defaults of all others; raises InputError at the first that cannot be."""
        for option, value in options.items():
            rule = self.rules.get(option)
            if rule is None:
                raise InputError(f"{self.name} takes no option '{option}'; it takes {', '.join(self.rules)}.")
            if not rule.allows(value):
                raise InputError(f"{option}={value!r} is not possible for {self.name}: it must be {rule.allowed}.")
        return {**self.options, **options}

    def build(self, **options: int | str) -> Any:
        """The torch module, on the device and in the dtype that are torch's defaults when it is called."""
        chosen = self.complete(**options)
        try:
            file = importlib.import_module(f"traincast.frontend.models.{self.module}")
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtraError(f"Building {self.name}", extra="torch") from error
        factory = getattr(file, self.name.replace("-", "_"))
        return factory(**{option: chosen[option] for option, rule in self.rules.items() if rule.in_module})
