"""An option: how it is called, what it means, what it may be, and how people type it.

A public function declares what can be asked by its signature. A parameter has an alias of this room as its annotation,
`Annotated[int | None, Option(...)]`; options that several questions share stand in a TypedDict of such aliases, and a
function takes them as `**run: Unpack[RunOptions]`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ForwardRef, get_args, is_typeddict

from traincast.options.typed import Typed

REQUIRED: Any = inspect.Parameter.empty
_PACKED = "Unpack["
_SIMPLE = {"int": int, "float": float, "bool": bool}


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
    is_repeated: bool = False  # on a command line each of its values has a flag of its own
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

    @property
    def shown_as(self) -> str:
        """What a message calls it on a command line: its flag, or what the help shows in its place."""
        return (self.option.metavar or self.name) if self.option.is_argument else self.flag

    @cached_property
    def type_text(self) -> str:
        """The type as it would be written: 'int | None'."""
        return type_text(self.type)

    @property
    def is_mapping(self) -> bool:
        """On a command line it is repeated, each time with a name and its value."""
        return self.type_text.startswith("Mapping[")

    @property
    def is_list(self) -> bool:
        """On a command line it is repeated, each time with one value."""
        is_sequence = re.search(r"Sequence\[[^]]*\b(str|int|float|Path)\b", self.type_text) is not None
        return is_sequence and (self.option.typed is None or self.option.is_repeated)

    @property
    def word_type(self) -> Any:
        """What a command line makes of a word: text, a number, a switch, or several of them."""
        kinds = [part.strip() for part in self.type_text.split(" | ")]
        kind: Any = str
        if self.is_mapping or self.is_list:
            kind = list[str]
        elif self.option.typed is None:
            kind = next((_SIMPLE[name] for name in kinds if name in _SIMPLE), str)
        return kind | None if "None" in kinds else kind

    def read(self, text: str) -> Any:
        """The value that somebody typed."""
        typed = self.option.typed
        return text if typed is None else typed.of(text, self.flag)

    def read_word(self, value: Any) -> Any:
        """What a command line holds as what it means; typer itself would tell its own story of a mistake."""
        if self.is_mapping:
            return dict(self.read(text) for text in value or ()) or None
        if self.option.typed is None:
            return value
        if isinstance(value, list):
            return [self.read(text) for text in value] or None
        return self.read(value) if isinstance(value, str) else value


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
