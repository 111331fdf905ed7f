"""Commands, Python, job files and the page ask the same, because one signature declares what can be asked."""

import inspect
from pathlib import Path

import pytest
from typer.main import get_command

import traincast as tc
from traincast.api.benchmarks import bench
from traincast.api.calibrating import calibrate
from traincast.api.elastic import schedule
from traincast.api.explaining import explain
from traincast.api.forecasts import forecasts
from traincast.api.job import job_of, schema
from traincast.api.listings import list_devices, list_machines, list_models
from traincast.api.measuring_together import measure_together
from traincast.api.model_measuring import measure_model, measure_model_epoch
from traincast.api.model_sweep import sweep_model
from traincast.api.models import estimate_memory, layers
from traincast.api.records import export_records, export_tables, import_records, stored_records
from traincast.api.simulating import simulate_many
from traincast.cli.app import make_app
from traincast.options.option import declared
from traincast.options.words import words_of
from traincast.validation.comparing import compare
from traincast.web.questions import QUESTIONS

OUTPUTS = {"--json", "--html", "--png", "--help"}


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


# Several questions, or options of the command alone.
COMMANDS = [
    ("bench", [bench], set()),
    ("calibrate", [calibrate], {"--export"}),
    ("compare", [compare], set()),
    ("devices", [list_devices, list_machines], {"--machines"}),
    ("models", [list_models], set()),
    ("measure", [measure_model, measure_model_epoch, measure_together, sweep_model], {"--store"}),
    ("records", [stored_records, export_records, export_tables, import_records], set()),
    ("schedule", [schedule], set()),
    ("simulate", [simulate_many], set()),
]


@pytest.mark.parametrize(("command", "questions", "own"), COMMANDS, ids=[command for command, *_ in COMMANDS])
def test_a_command_has_the_options_of_all_its_questions(command, questions, own):
    every = [one for question in questions for one in declared(question)]
    asked = {one.name if one.option.is_argument else one.flag for one in every}
    assert flags_of(command) == asked | own | OUTPUTS - {"--help"}


def test_a_question_can_be_typed_again_from_its_values():
    """The processes of `measure --repeat` are asked so. What is as usual is not repeated."""
    asked = {"model": "mnist_cnn", "batch_size": 8, "n_steps": None, "compiled": True, "optimizer": "sgd", "seqlen": 64}
    assert list(words_of(measure_model, asked)) == ["mnist_cnn", "--batch", "8", "--compiled", "--seqlen", "64"]


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
    of_the_run = {"n_samples", "n_epochs", "n_tokens", "price_usd_per_hour", "tensor_parallel", "pipeline_parallel"}
    beside = {"region", "grid_g_per_kwh", "pue", "curve", "target", "metric"}
    asked, known = ({one.name for one in declared(question)} for question in (explain, tc.forecast))
    assert asked - {"measured"} == known - of_the_run - beside


def test_an_option_that_is_declared_once_is_asked_everywhere():
    """`n_tokens` is an alias in options/run.py and a line in a TypedDict; nothing else names it for its faces."""
    assert {"--tokens"} <= flags_of("forecast") & flags_of("scale")
    assert inspect.signature(tc.forecast).parameters["n_tokens"].default is None
    assert "tokens" in schema()["$defs"]["Data"]["properties"]
    assert "n_tokens" in QUESTIONS["forecast"].model_fields
    job = {"model": "gpt2", "data": {"tokens": 10**9}, "training": {"batch": 8}, "cluster": {"on": "T4"}}
    assert job_of(job).options(Path())["n_tokens"] == 10**9
