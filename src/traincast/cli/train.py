"""`traincast train`: recipes that train for real. A new recipe is one line here."""

import typer

from traincast.cli.train_collect import collect
from traincast.cli.train_scaling import scaling
from traincast.cli.train_scratch import scratch
from traincast.cli.train_teacher_student import teacher_student
from traincast.cli.train_transfer import transfer
from traincast.cli.train_weak import weak

train = typer.Typer(
    name="train",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Train for real: a forecast first, then the run, then both side by side.",
)
train.callback()(lambda: None)  # keeps it a group of commands, however many there are
train.command("scratch")(scratch)
train.command("transfer")(transfer)
train.command("teacher-student")(teacher_student)
train.command("weak")(weak)
train.command("scaling")(scaling)
train.command("collect")(collect)
