"""Commands, Python, job files and the page ask the same, because one signature declares what can be asked."""

import inspect
import json
from pathlib import Path

import pytest
from typer.main import get_command

import traincast as tc
from traincast.__main__ import run
from traincast.api.benchmarks import bench
from traincast.api.calibrating import calibrate
from traincast.api.collecting import collect, plan_collection
from traincast.api.elastic import schedule
from traincast.api.explaining import explain
from traincast.api.forecasts import forecasts
from traincast.api.job import job_of, schema
from traincast.api.listings import list_devices, list_machines, list_models
from traincast.api.measuring_together import measure_together
from traincast.api.model_measuring import measure_model, measure_model_epoch
from traincast.api.model_sweep import sweep_model
from traincast.api.models import estimate_memory, layers
from traincast.api.recipes import plan_scratch, plan_teacher_student, plan_transfer, plan_weak
from traincast.api.records import export_records, export_tables, import_records, stored_records
from traincast.api.scaling_experiment import plan_scaling, run_scaling
from traincast.api.simulating import simulate_many
from traincast.api.watching import watch
from traincast.cli.app import app_for, make_app
from traincast.cli.train import RECIPES
from traincast.options.option import declared
from traincast.options.words import words_of
from traincast.report.json_ import to_json
from traincast.validation.comparing import compare
from traincast.web.questions import QUESTIONS

OUTPUTS = {"--json", "--html", "--png", "--help"}
ASSUMING = ("forecast", "scale", "plan", "layers", "memory", "explain")  # these have --verbose
OWN = {
    "forecast": {"--fail-over", "--compare", "--against"},
    "watch": {"--once"},
    "transfer": {"--predict"},
    "memory": {"--counts", "--largest", "--smallest-gpu", "--strategy"},
    "explain": {"--layer-sum"},
}
WITHOUT = {"transfer": {"--size", "--by"}}  # --predict has both


def flags_of(command):
    """Flags of a command, and its arguments by their name."""
    found = get_command(make_app([command])).commands[command]
    return {one.opts[0] for one in found.params} - ({"--verbose"} if command in ASSUMING else set())


@pytest.mark.parametrize(
    ("command", "question"),
    [
        ("memory", estimate_memory),
        ("layers", layers),
        ("explain", explain),
        ("forecast", forecasts),
        ("watch", watch),
        ("transfer", tc.transfer),
    ],
)
def test_a_command_has_the_options_that_its_question_declares(command, question):
    asked = {one.name if one.option.is_argument else one.flag for one in declared(question)}
    assert flags_of(command) == asked - WITHOUT.get(command, set()) | OUTPUTS - {"--help"} | OWN.get(command, set())


def test_converge_has_the_options_of_its_question_and_of_reading_a_log():
    asked = {one.flag for question in (tc.converge, tc.read_log) for one in declared(question)}
    assert flags_of("converge") == asked | OUTPUTS - {"--help"} | {"files", "--fits", "--export"}


def test_watch_asks_of_a_log_what_converge_asks_but_for_the_batch():
    watched, continued = ({one.name for one in declared(question)} for question in (watch, tc.converge))
    read = {one.name for one in declared(tc.read_log)}
    assert continued - watched == {"step", "batch_to", "noise_scale", "batch_size"}
    assert watched - continued - read == {"log", "step_s", "interval_s", "stop_if", "strict"}


PLANS = {
    "scratch": plan_scratch,
    "transfer": plan_transfer,
    "teacher-student": plan_teacher_student,
    "weak": plan_weak,
}
TRAINED = {
    **{name: (plan,) for name, plan in PLANS.items()},
    "scaling": (plan_scaling, run_scaling),
    "collect": (plan_collection, collect),
}


@pytest.mark.parametrize("name", TRAINED)
def test_a_command_that_trains_has_the_options_that_its_questions_declare(name):
    asked = {one.flag for question in TRAINED[name] for one in declared(question)}
    own = {"--forecast-only"} | ({"--picture"} if name == "transfer" else set())
    found = get_command(make_app(["train"])).commands["train"].commands[name]
    assert {one.opts[0] for one in found.params} == asked | own | OUTPUTS - {"--help"}


def test_of_the_commands_that_train_only_the_one_that_is_asked_for_is_made():
    commands = get_command(app_for(["train", "weak", "--epochs", "1"])).commands["train"].commands
    assert list(commands) == ["weak"]
    assert list(get_command(app_for(["train", "wek"])).commands["train"].commands) == list(RECIPES)


def test_what_all_that_trains_is_asked_is_written_once():
    first, *others = ({(one.name, one.option) for one in declared(plan)} for plan, *_ in TRAINED.values())
    shared = first.intersection(*others)
    assert {"data", "precision", "out", "image_side", "download", "price_usd_per_hour"} <= {name for name, _ in shared}


def test_python_plans_a_recipe_as_the_command_does(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    line = ["--labeled", "10%", "--k", "50", "--k", "20", "--batch-size", "64", "--on", "T4", "--image-side", "8"]
    assert run(["train", "teacher-student", *line, "--seeds", "1", "--forecast-only", "--json"]) == 0
    plan = plan_teacher_student(
        labeled_fraction=0.1, k_values=(20, 50), batch_size=64, n_seeds=1, on="T4", image_side=8
    )
    assert json.loads(capsys.readouterr().out) == json.loads(to_json(plan.to_dict()))


# Several questions, or options of the command alone.
COMMANDS = [
    ("bench", [bench], set()),
    ("calibrate", [calibrate], {"--export", "--ppp"}),
    ("compare", [compare], set()),
    ("devices", [list_devices, list_machines], {"--machines"}),
    ("models", [list_models], set()),
    ("measure", [measure_model, measure_model_epoch, measure_together, sweep_model], {"--store"}),
    ("records", [stored_records, export_records, export_tables, import_records], {"--spread"}),
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
    of_the_run |= {"context_parallel", "context_kind", "pipeline_schedule"}
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
