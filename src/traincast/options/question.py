"""The public functions, whose signatures declare what can be asked: arguments are checked before any work is done."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from traincast.errors import ChoiceError, ParameterError
from traincast.options.option import Declared, declared
from traincast.options.types import as_annotated

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_UNCHECKED = ("model",)  # `load_model` takes more than an annotation can say


def question(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Arguments have the type, the bounds and the choices that were declared; options that were left out are there.

    The signature shows every option by itself, also those that the function takes as `**run: Unpack[...]`.
    """
    options = {one.name: one for one in declared(function)}
    signature = _whole_signature(function, options)
    others = {
        name: str(parameter.annotation)
        for name, parameter in signature.parameters.items()
        if name not in options and name not in _UNCHECKED and parameter.kind is not parameter.VAR_KEYWORD
    }

    @functools.wraps(function)
    def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        for name, annotation in others.items():
            bound.arguments[name] = as_annotated(name, bound.arguments[name], annotation)
        for name, option in options.items():
            if name not in _UNCHECKED:
                bound.arguments[name] = checked_value(option, bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def checked_value(option: Declared, value: Any) -> Any:
    """The value as a plain one, within its bounds and among its choices."""
    plain = as_annotated(option.name, value, option.type_text)
    for number in plain if isinstance(plain, list) else (plain,):
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            _check_bounds(option, number)
    choices = option.option.choices
    if isinstance(plain, str) and choices and plain not in choices:
        raise ChoiceError(option.name, plain, choices)
    return plain


def checked_word(option: Declared, value: Any) -> Any:
    """An option of a command alone has no question that checks it; what is read from text is checked by reading."""
    read = option.read_word(value)
    return read if option.option.typed is not None else checked_value(option, read)


def _check_bounds(option: Declared, value: float) -> None:
    told, is_whole = option.option, "int" in option.type_text
    what = "a whole number" if is_whole else "a number"
    if told.at_least is not None and value < told.at_least:
        raise ParameterError(option.name, value, f"give {what} of at least {told.at_least:g}")
    if told.above is not None and value <= told.above:
        raise ParameterError(option.name, value, f"give {what} above {told.above:g}")
    if told.at_most is not None and value > told.at_most:
        raise ParameterError(option.name, value, f"give {what} of at most {_shown(told.at_most)}")


def _shown(bound: float) -> str:
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:g}"


def _whole_signature(function: Callable[..., Any], options: dict[str, Declared]) -> inspect.Signature:
    """Every option by itself, with its type as it would be written."""
    signature = inspect.signature(function)
    parameters, shown = [], set()
    for name, parameter in signature.parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            if name in options:
                parameter = parameter.replace(annotation=options[name].type_text)
            parameters.append(parameter)
            shown.add(name)
            continue
        packed = [one for one in options.values() if one.name not in shown and one.name not in signature.parameters]
        parameters += [
            inspect.Parameter(one.name, parameter.KEYWORD_ONLY, annotation=one.type_text, default=one.default)
            for one in packed
        ]
        if not packed:  # options of somebody else, such as those of `load_model`
            parameters.append(parameter)
    return signature.replace(parameters=parameters)
