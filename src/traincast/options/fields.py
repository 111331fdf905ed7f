"""An option as a field of a job file or of a request: pydantic's words for what was declared."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from traincast.options.option import REQUIRED, Declared

_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "str": str}


def field_of(one: Declared, *, is_listed: bool = False, is_required: bool = False) -> tuple[Any, Any]:
    """Type and default. A listed option takes one value or several; files and models are named, so they are text."""
    kinds = [part.strip() for part in one.type_text.replace("Sequence[", "").replace("]", "").split(" | ")]
    kind = _bounded(one, next((_TYPES[name] for name in kinds if name in _TYPES), str))
    if is_listed:
        kind = kind | Annotated[list[kind], Field(min_length=1)]  # type: ignore[valid-type]
    is_needed = is_required or one.is_required
    if "None" in kinds and not is_needed:
        kind = kind | None
    default = ... if is_needed else one.default
    return kind, Field(default, description=one.option.help)


def _bounded(one: Declared, kind: Any) -> Any:
    told = one.option
    if kind is str:
        return Annotated[str, Field(min_length=1)]
    if kind is bool:
        return Annotated[bool, Field(strict=True)]
    bounds = {"ge": told.at_least, "gt": told.above, "le": told.at_most}
    limits: dict[str, Any] = {name: kind(value) for name, value in bounds.items() if value is not None}
    limits |= {"strict": True} if kind is int else {"allow_inf_nan": False}
    return Annotated[kind, Field(**limits)]


_LONGEST_NAME = 40  # letters


def page_field(one: Declared, *, default: Any = None) -> tuple[Any, Any]:
    """Type and default of an option in a request: text has a length, numbers the bounds that keep an answer short."""
    told = one.option
    kinds = [part.strip() for part in one.type_text.replace("Sequence[", "").replace("]", "").split(" | ")]
    plain = next((_TYPES[name] for name in kinds if name in _TYPES), str)
    choices = told.choices_on_page or told.choices
    if choices:
        kind: Any = Literal[choices]
    elif plain is str:
        kind = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)]
    elif plain is bool:
        kind = bool
    else:
        bounds = {"ge": told.at_least, "gt": told.above, "le": told.at_most_on_page or told.at_most}
        limits: dict[str, Any] = {name: plain(value) for name, value in bounds.items() if value is not None}
        kind = Annotated[plain, Field(**limits)]
    usual = one.default if default is None else default
    if "None" in kinds:
        kind = kind | None
    return kind, Field(... if usual is REQUIRED else usual, description=told.help)


def page_bounds(one: Declared) -> tuple[float | None, float | None]:
    """The least and the most that a request may say; of what must be above a bound, that bound."""
    told = one.option
    return told.at_least if told.at_least is not None else told.above, told.at_most_on_page or told.at_most
