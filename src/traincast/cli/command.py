"""A command from a question: its options are those that the question's function declares, and where output goes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traincast.cli.output_files import image_file, page_file
from traincast.errors import InputError, ParameterError
from traincast.options.option import Declared, declared
from traincast.options.question import checked_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincast.report.document import Document

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in base units instead of text.")]
HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", callback=page_file, help="Also write an HTML page with charts."),
]
PngFile = Annotated[
    Path | None,
    typer.Option("--png", metavar="FILE", callback=image_file, help="Also write the chart as an image."),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print what the answer assumes.")]
_OUTPUTS = {
    "as_json": (AsJson, False),
    "verbose": (Verbose, False),
    "html": (HtmlFile, None),
    "png": (PngFile, None),
}


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """What somebody typed: options of the question, options of the command alone, and where the answer goes."""

    options: Mapping[str, Any]
    own: Mapping[str, Any]
    as_json: bool
    verbose: bool
    html: Path | None
    png: Path | None
    context: typer.Context
    flags: Mapping[str, str]  # by the names of options
    outputs: frozenset[str] = frozenset(_OUTPUTS)

    def options_of(self, question: Callable[..., Any]) -> dict[str, Any]:
        """Those of one question that can be typed, where a command has several."""
        return {one.name: self.options[one.name] for one in declared(question) if one.name in self.options}

    @property
    def typed(self) -> frozenset[str]:
        """Names of the options that stand on the line, whatever their value."""
        sources = {name: self.context.get_parameter_source(name) for name in self.context.params}
        return frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")

    @property
    def has_charts(self) -> bool:
        """Whether anybody looks at them: text and JSON have none."""
        return self.html is not None or self.png is not None

    def show(self, document: Document, data: Any = None, *, page: Document | None = None) -> None:
        """`data` is what the Python result holds, or a function that gives it; without it JSON repeats the tables.

        `page` is what files show where that is more: what was printed before stands on no page yet.
        """
        from traincast.cli.show import show

        known = data() if callable(data) and self.as_json else data
        show(
            document,
            as_json=self.as_json,
            verbose=self.verbose,
            html=self.html,
            png=self.png,
            data=known if self.as_json else None,
            page=page,
        )


def command(
    *questions: Callable[..., Any],
    own: Callable[..., Any] | None = None,
    without: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
    has_answer: bool = True,
    assumes: bool = False,
) -> Callable[[Callable[[CommandLine], None]], Callable[..., None]]:
    """Decorates what answers: it gets the whole line, and its docstring is the help.

    A command of several questions has the options of all of them, each as the first that has it declares it.
    `own` declares options of the command alone, by its signature; `without` are those of the question that cannot be
    typed. `defaults` are for what Python must be given, as it comes before something that has no default. A command
    without an answer prints no JSON and writes no page; one whose answer `assumes` something tells what on demand.
    """
    usual = defaults or {}
    known = {one.name: one for question in reversed(questions) for one in declared(question)}
    every = {one.name: known[one.name] for question in questions for one in declared(question)}
    asked = tuple(
        replace(one, default=usual.get(one.name, one.default)) for one in every.values() if one.name not in without
    )
    beside = () if own is None else declared(own)

    def decorate(answer: Callable[[CommandLine], None]) -> Callable[..., None]:
        # Last of the command's own options come the outputs, as everywhere.
        arguments = [_parameter(one) for one in sorted((*asked, *beside), key=lambda one: not one.option.is_argument)]
        flags = {one.name: one.shown_as for one in (*asked, *beside)}

        def run(context: typer.Context, **values: Any) -> None:
            outputs: dict[str, Any] = {name: values.get(name, default) for name, (_, default) in _OUTPUTS.items()}
            try:
                answer(
                    CommandLine(
                        options={one.name: one.read_word(values[one.name]) for one in asked},
                        own={one.name: checked_word(one, values[one.name]) for one in beside},
                        context=context,
                        flags=flags,
                        **outputs,
                    )
                )
            except ParameterError as error:
                raise InputError(error.called(flags.get(error.name, error.name))) from None

        outputs = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, (kind, default) in _OUTPUTS.items()
            if has_answer and (assumes or name != "verbose")
        ]
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        run.__signature__ = inspect.Signature([context, *arguments, *outputs])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in (context, *arguments, *outputs)}
        run.__doc__, run.__name__, run.__module__ = answer.__doc__, answer.__name__, answer.__module__
        return run

    return decorate


def _parameter(one: Declared) -> inspect.Parameter:
    """As typer reads it."""
    kwargs: dict[str, Any] = {"help": one.option.help, "metavar": one.option.metavar}
    if not one.option.shows_default:
        kwargs["show_default"] = False
    # What is on by itself needs a flag that turns it off.
    flag = f"{one.flag}/--no-{one.flag.removeprefix('--')}" if one.default is True else one.flag
    make = typer.Argument if one.option.is_argument else typer.Option
    info = make(**kwargs) if one.option.is_argument else make(flag, *one.option.aliases, **kwargs)
    usual, typed = one.default, one.option.typed
    if typed is not None and usual is not None and not one.is_required:
        usual = [typed.show(value) for value in usual] if one.option.is_repeated else typed.show(usual)
    default = {} if one.is_required else {"default": usual}
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[one.word_type, info], **default
    )
