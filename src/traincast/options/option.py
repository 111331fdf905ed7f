"""An option: how it is called, what it means, what it may be, and how people type it.

A public function declares what can be asked by its signature. A parameter has an alias of this room as its annotation,
`Annotated[int | None, Option(...)]`; options that several questions share stand in a TypedDict of such aliases, and a
function takes them as `**run: Unpack[RunOptions]`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ForwardRef, get_args, is_typeddict

from traincast.options.typed import Typed

REQUIRED: Any = inspect.Parameter.empty
_PACKED = "Unpack["


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is written down of an option. Its type stands beside it, in the `Annotated` that holds it."""

    help: str  # one sentence, the same wherever it is asked
    label: str = ""  # on the page; "": its name in words
    default: Any = None  # of one in a TypedDict; a parameter has its own
    flag: str | None = None  # None: from the name of the parameter
    aliases: tuple[str, ...] = ()  # flags that it had before
    metavar: str | None = None
    typed: Typed | None = None  # how people type it, where that is not as Python has it
    is_argument: bool = False  # on a command line it stands without a flag
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    at_most_on_page: float | None = None  # what keeps an answer short
    choices: tuple[str, ...] = ()
    choices_on_page: tuple[str, ...] = ()
    job: str = ""  # its table and key in a job file; "": it is not asked there
    is_on_page: bool = True
    shows_default: bool = True


@dataclass(frozen=True, kw_only=True)
class Declared:
    """An option as a function asks for it."""

    name: str  # of the parameter
    type: Any  # as Python takes it: a type, or the text of one that this room must not import
    option: Option
    default: Any

    @property
    def flag(self) -> str:
        return self.option.flag or f"--{self.name.removeprefix('n_').replace('_', '-')}"

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @cached_property
    def type_text(self) -> str:
        """The type as it would be written: 'int | None'."""
        return type_text(self.type)

    def read(self, text: str) -> Any:
        """The value that somebody typed."""
        typed = self.option.typed
        return text if typed is None else typed.of(text, self.flag)


def type_text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    text = str(annotation)
    for module in ("collections.abc.", "pathlib.", "typing."):
        text = text.replace(module, "")
    return text


@functools.cache
def declared(function: Callable[..., Any]) -> tuple[Declared, ...]:
    """The options of a question in the order of its signature; those of a TypedDict stand where it is unpacked."""
    found: list[Declared] = []
    for name, annotation, default in _parameters(function):
        own = option_in(annotation)
        if own is not None:
            kind, option = own
            found.append(Declared(name=name, type=kind, option=option, default=default))
        elif is_typeddict(annotation):
            found += _of_typed_dict(annotation)
    return tuple(found)


def option_in(annotation: Any) -> tuple[Any, Option] | None:
    """The type and the option of an `Annotated` that has one."""
    for extra in getattr(annotation, "__metadata__", ()):
        if isinstance(extra, Option):
            return annotation.__origin__, extra
    return None


def _of_typed_dict(options: Any) -> Iterator[Declared]:
    for name, annotation in options.__annotations__.items():
        own = option_in(annotation)
        if own is None:
            raise TypeError(f"{options.__name__}.{name} is no option")
        yield Declared(name=name, type=own[0], option=own[1], default=own[1].default)


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[str, Any, Any]]:
    """Names, what their annotations stand for, and defaults. Annotations may be text: 'o.NSamples', 'Unpack[o.Run]'."""
    inner = inspect.unwrap(function)
    for name, parameter in inspect.signature(inner, follow_wrapped=False).parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _looked_up(annotation.removeprefix(_PACKED).removesuffix("]"), inner.__globals__)
        elif get_args(annotation) and parameter.kind is parameter.VAR_KEYWORD:
            (annotation,) = get_args(annotation)
        yield name, annotation, parameter.default


def _looked_up(text: str, names: dict[str, Any]) -> Any:
    """What a dotted name stands for in a module; other annotations stand for themselves."""
    first, *others = text.split(".")
    found = names.get(first)
    for name in others:
        found = getattr(found, name, None)
    return text if found is None else found
