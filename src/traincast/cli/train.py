"""`traincast train`: recipes that train for real. A new recipe is one name here, and a module of that name."""

from collections.abc import Sequence
from importlib import import_module

import typer

# In the order of `traincast train --help`. `teacher-student` is the function `teacher_student` of its own module.
RECIPES = ("scratch", "transfer", "teacher-student", "weak", "scaling", "collect", "layer-model")


def make_group(asked: Sequence[str]) -> typer.Typer:
    """With the recipe that the line asks for; with all of them where it asks for none."""
    train = typer.Typer(
        name="train",
        no_args_is_help=True,
        rich_markup_mode=None,
        help="Train for real: a forecast first, then the run, then both side by side.",
    )
    train.callback()(lambda: None)  # keeps it a group of commands, however many there are
    for name in asked if asked and set(asked) <= set(RECIPES) else RECIPES:
        function = name.replace("-", "_")
        train.command(name)(getattr(import_module(f"traincast.cli.train_{function}"), function))
    return train
