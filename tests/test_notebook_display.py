"""Whatever `traincast` gives shows itself in a notebook, and no name in it becomes an element."""

import ast
import dataclasses
import importlib
import inspect
import json
import sys

import pytest

import traincast as tc
from traincast.api.calibrating import Calibration
from traincast.api.forecasts import answer
from traincast.hardware.catalog import find_device
from traincast.measurement.epoch import EpochMeasurement
from traincast.measurement.measured import Measurement
from traincast.measurement.statistics import Summary
from traincast.planning.advice import Advice
from traincast.records.environment import Environment

EVIL = "<img src=x onerror=alert(1)>"
HERE = Environment(device=EVIL, device_kind="cpu", host="", n_threads=1, n_cores=2, versions={}, clocks={})
TIMES = Summary(n=5, median=0.3, minimum=0.2, p10=0.25, p90=0.4, mean=0.3)
HOW = {"model": EVIL, "batch_size": 8, "optimizer": "sgd", "precision": "fp32", "device": "cpu", "environment": HERE}


@pytest.fixture(scope="module")
def trace():
    return dataclasses.replace(tc.load_model("mnist_cnn"), name=EVIL)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / f"{EVIL.replace('/', '')}.csv"
    rows = [f"{step},{2 + 8 * step**-0.4:.5f},{0.5 * step}" for step in range(100, 2001, 100)]
    path.write_text("\n".join(["step,loss,seconds", *rows]))
    return path


def check(result, *words):
    """It is a table with these words, and the name that would be an element is text."""
    shown = result._repr_html_()
    assert shown.startswith("<table><caption>")
    assert "<img" not in shown
    for word in words:
        assert word in shown


def test_a_trace_and_its_memory(trace):
    check(trace, "&lt;img src=x", "<th>Conv2d</th>")
    check(tc.estimate_memory(trace, 8, on="T4"), "&lt;img src=x", "<th>activations</th>", "It fits T4")


def test_a_forecast_the_whole_answer_and_what_would_help(trace):
    found = tc.forecast(trace, on="T4", batch_size=64, n_samples=60_000, n_epochs=3, price_usd_per_hour=0.5)
    check(found, "<th>total</th>", "<th>cost</th>", "p90", "&lt;img src=x")
    check(answer(found), "<th>total</th>", "A step by what bounds it")
    check(Advice(found), "<th>total</th>", "What would help")


def test_scaling_and_a_plan(trace):
    check(tc.scale(trace, on="T4", gpus=[1, 2], batch_size=64), "strong: speedup", "<tr><th>2</th>")
    check(tc.plan(trace, n_samples=60_000, max_gpus=1), "<th>cheapest</th>", "limits kept", "&lt;img src=x")


def test_a_log_its_curve_and_where_it_ends(log):
    found = tc.converge(log, target=2.3, total_steps=4000, usd_per_hour=3.0)
    check(found, "<th>at the end</th>", "<th>time left</th>", "&lt;img src=x")
    check(found.curve, "<th>end: 4,000</th>")
    check(tc.read_log(log), "&lt;img src=x", "<th>loss</th>")


def test_what_other_models_say_of_one_that_has_not_run(tmp_path):
    rows = [
        {"model": f"net{depth}", "depth": depth, "family": EVIL, "b0": 1e-4 * depth, "b1": 0.6, "b2": 0.02}
        for depth in (10, 16, 24)
    ]
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(rows))
    check(tc.transfer(path, 20, total_steps=1_000), "<th>b0</th>", "20 layers")


def test_a_schedule_of_many_jobs(tmp_path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(f"name,submit_s,seconds,n_devices\nb,0,100,1\n{EVIL},10,50,2\n")
    check(tc.simulate(jobs, "1x2xT4", policy="fifo"), "2 jobs on", "<th>mean completion</th>", "Slowest: &lt;img src=x")


def returned(name):
    """The class that a public function gives, by its annotation; modules import most of them for it alone."""
    function = getattr(tc, name)
    kind = function.__annotations__["return"]
    module = sys.modules[function.__module__]
    imports = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module for node in imports for alias in node.names}
    return getattr(importlib.import_module(homes[kind]) if kind in homes else module, kind)


@pytest.mark.parametrize("name", [name for name in tc.__all__ if inspect.isfunction(getattr(tc, name))])
def test_what_a_public_function_gives_shows_itself(name):
    assert "_repr_html_" in vars(returned(name))


@pytest.mark.parametrize("name", [name for name in tc.__all__ if dataclasses.is_dataclass(getattr(tc, name))])
def test_every_public_result_shows_itself(name):
    assert "_repr_html_" in vars(getattr(tc, name))


def test_measurements_and_a_calibration():
    check(Measurement(**HOW, phases={"forward": TIMES}, step=TIMES), "<th>forward</th>", "300 ms")
    epoch = EpochMeasurement(
        **HOW, n_workers=0, n_batches=5, n_samples=40, phases={"data": TIMES}, batch=TIMES, start_s=0.1, epoch_s=1.5
    )
    check(epoch, "<th>data</th><td>300 ms</td><td>100.0 %</td>")
    device = dataclasses.replace(find_device("generic-cpu"), name=EVIL)
    check(
        Calibration(device=device, path=None, mean_error=0.08, n_steps=9, seconds=100.0, warnings=(EVIL,)),
        "<td>8.0 %</td>",
        "<th>kept in</th><td>-</td>",
    )


def test_the_forecast_of_a_recipe():
    torch = pytest.importorskip("torch")
    from traincast.api.recipe_forecast import forecast_stages
    from traincast.recipes.engine.stages import Stage

    stage = Stage(
        name=EVIL,
        kind="train",
        make_module=lambda: torch.nn.Linear(4, 2),
        example=lambda n: torch.zeros(n, 4),
        n_samples=64,
        batch_size=8,
        optimizer="sgd",
    )
    check(forecast_stages([stage], "T4"), "&lt;img src=x", "On T4", "<td>8</td>")
