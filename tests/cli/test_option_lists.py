"""Commands, Python, job files and the page ask the same, because one signature declares what can be asked."""

import inspect
from pathlib import Path

import pytest
from typer.main import get_command

import traincast as tc
from traincast.api.explaining import explain
from traincast.api.forecasts import forecasts
from traincast.api.job import job_of, schema
from traincast.api.models import estimate_memory, layers
from traincast.cli.app import make_app
from traincast.options.option import declared

OUTPUTS = {"--json", "--verbose", "--html", "--png", "--help"}


def flags_of(command):
    """Flags of a command, and its arguments by their name."""
    found = get_command(make_app([command])).commands[command]
    return {one.opts[0] for one in found.params}


@pytest.mark.parametrize(
    ("command", "question"),
    [("memory", estimate_memory), ("layers", layers), ("explain", explain), ("forecast", forecasts)],
)
def test_a_command_has_the_options_that_its_question_declares(command, question):
    asked = {one.name if one.option.is_argument else one.flag for one in declared(question)}
    own = {"--fail-over", "--compare", "--against"} if command == "forecast" else set()
    assert flags_of(command) == asked | OUTPUTS - {"--help"} | own


def test_several_forecasts_are_asked_what_one_is_asked():
    one, several = ({each.name for each in declared(question)} for question in (tc.forecast, forecasts))
    assert one ^ several == {"batch_size", "batch_sizes"}


def test_a_job_file_holds_every_option_that_declares_its_place_there():
    job = job_of({"model": "resnet18", "training": {"batch": 8}, "cluster": {"on": "T4"}})
    assert set(job.options(Path())) == {one.name for one in declared(forecasts) if one.option.job}


def test_a_job_file_tells_of_an_option_what_the_command_tells():
    (epochs,) = [one for one in declared(forecasts) if one.name == "n_epochs"]
    assert schema()["$defs"]["Training"]["properties"]["epochs"]["description"] == epochs.option.help


def test_python_shows_every_option_by_itself():
    shown = inspect.signature(tc.forecast).parameters
    assert list(shown)[:3] == ["model", "on", "batch_size"]
    assert shown["n_epochs"].default == 1
    assert all(one.kind is not one.VAR_KEYWORD for one in shown.values())


def test_explain_asks_of_a_step_what_forecast_asks():
    """What is about the run as a whole is not its question; models over several devices are not taken apart."""
    of_the_run = {"n_samples", "n_epochs", "price_usd_per_hour", "tensor_parallel", "pipeline_parallel"}
    beside = {"region", "grid_g_per_kwh", "pue", "curve", "target", "metric"}
    asked, known = ({one.name for one in declared(question)} for question in (explain, tc.forecast))
    assert asked - {"measured"} == known - of_the_run - beside
