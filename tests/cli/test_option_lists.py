"""Questions that can be asked in several ways have the same options in all of them."""

import inspect
from pathlib import Path

from traincast.api.answering import answers
from traincast.api.explaining import explain
from traincast.api.forecasts import forecast
from traincast.api.planning import plan
from traincast.cli.explain import explain as explain_command
from traincast.cli.forecast import forecast as forecast_command
from traincast.cli.plan import plan as plan_command
from traincast.planning.job import job_of

SHAPE = {"n_classes", "image_size", "seqlen", "head"}
OUTPUT = {"context", "as_json", "html", "png"}
RENAMED = {
    "accumulate": "accumulation_steps",
    "devices_file": "devices",
    "price": "price_usd_per_hour",
    "deadline": "deadline_s",
    "budget": "budget_usd",
    "setup": "setup_s",
    "checkpoint_rate": "checkpoint_bytes_per_s",
}


def options(function, *, besides=()):
    """Names of its parameters, as Python calls them."""
    named = {RENAMED.get(name, name) for name in inspect.signature(function).parameters}
    return named - OUTPUT - SHAPE - set(besides)


def test_the_command_plan_has_the_options_of_the_function():
    assert options(plan_command, besides={"as_job"}) == options(plan)


def test_the_command_forecast_has_the_options_of_the_function_and_of_answers():
    of_gates = {"fail_over", "compare", "against"}
    asked = options(forecast_command, besides={*of_gates, "batch"})
    known = options(forecast, besides={"batch_size"}) | options(answers, besides={"batch_sizes", "options"})
    assert asked == known - {"model_options"}


def test_a_job_file_has_the_options_of_the_command_forecast():
    job = job_of({"model": "resnet18", "training": {"batch": 8}, "cluster": {"on": "T4"}})
    known = options(forecast, besides={"batch_size"}) | options(answers, besides={"options"})
    assert set(job.options(Path())) == known


def test_explain_asks_of_a_step_what_forecast_asks():
    """What is about the run as a whole is not its question; models over several devices are not taken apart."""
    of_the_run = {"n_samples", "n_epochs", "price_usd_per_hour"}
    split = {"tensor_parallel", "pipeline_parallel"}
    assert options(explain, besides={"measured", "options"}) == options(forecast) - of_the_run - split
    assert options(explain_command, besides={"measured", "batch"}) == options(forecast) - of_the_run - split - {
        "batch_size"
    }
