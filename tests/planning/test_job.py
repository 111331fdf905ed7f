"""Job files: what they say, where their files are, and one sentence for what is wrong."""

import json
from pathlib import Path

import pytest

from traincast.api.job import answer_job, job_of, read_job, schema
from traincast.errors import FileFormatError, InputError
from traincast.planning.gates import Gates

DOCS = Path(__file__).parents[2] / "docs"
GOOD = {"model": "resnet18", "training": {"batch": 8}, "cluster": {"on": "T4"}}
WHOLE = """
[model]
name = "resnet18"
image_size = 224

[data]
samples = 10_000
input_samples_per_s = 2_000

[training]
batch = [32, 64]
epochs = 3
precision = "amp-fp16"

[cluster]
on = ["T4", "p3.2xlarge"]
region = "Germany"

[limits]
hours = 2
memory_fraction = 0.9
"""


def test_a_job_says_what_the_flags_say(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(WHOLE)
    job = read_job(path)
    assert job.gates == Gates(hours=2, memory_fraction=0.9)
    found = answer_job(path)
    choices = [(one.place, one.batch_size) for one in found]
    assert choices == [("T4", 32), ("T4", 64), ("p3.2xlarge", 32), ("p3.2xlarge", 64)]
    question = found[0].question
    assert (question.n_samples, question.n_epochs, question.settings.precision) == (10_000, 3, "amp-fp16")
    assert question.input_samples_per_s == 2_000
    assert found[0].energy.grid.name == "Germany"


def test_the_shortest_job_is_three_lines():
    options = job_of(GOOD).options(Path())
    assert (options["model"], options["on"], options["batch_sizes"]) == ("resnet18", ["T4"], [8])
    assert options["n_epochs"] == 1


def test_files_are_those_beside_the_job(tmp_path):
    for name in ("net.py", "log.csv", "here.toml", "own.csv"):
        (tmp_path / name).write_text("")
    job = {
        "model": "net.py:make",
        "training": {"batch": 8},
        "cluster": {"on": ["here.toml", "T4"], "devices": "own.csv"},
        "target": {"curve": "log.csv", "value": 0.5},
    }
    options = job_of(job).options(tmp_path)
    assert options["model"] == f"{tmp_path / 'net.py'}:make"
    assert options["on"] == [str(tmp_path / "here.toml"), "T4"]
    assert options["devices"] == str(tmp_path / "own.csv")
    assert options["curve"] == str(tmp_path / "log.csv")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"modle": "x"}, "unknown key 'modle'. Close names: model."),
        ({"training": {"batch": 8, "epoch": 3}}, "unknown key 'training.epoch'. Close names: epochs."),
        ({"model": {"nam": "x"}}, "unknown key 'model.nam'. Close names: name."),
        ({"data": {"epochs": 3}}, "unknown key 'data.epochs'. It belongs to training.epochs."),
        ({"limits": {"zebra": 3}}, "unknown key 'limits.zebra'. Known are budget_usd, hours, memory_fraction."),
        ({"training": {"batch": 0}}, "training.batch cannot be 0: it should be 1 or more."),
        ({"training": {"batch": "8"}}, "training.batch cannot be '8': it should be a whole number."),
        ({"training": {"batch": [8, -1]}}, "training.batch.1 cannot be -1: it should be 1 or more."),
        ({"limits": {"budget_usd": "200"}}, "limits.budget_usd cannot be '200': it should be a number."),
        ({"limits": {"hours": True}}, "limits.hours cannot be True: it should be a number."),
        ({"limits": {"memory_fraction": 90}}, "limits.memory_fraction cannot be 90: it should be 1 or less."),
        ({"data": {"samples": 10.0}}, "data.samples cannot be 10.0: it should be a whole number."),
        ({"model": {"name": "x", "n_classes": [3]}}, "model.n_classes cannot be a list: it should be a whole number."),
        ({"training": {"batch": 8.5}}, "training.batch cannot be 8.5: it should be a whole number."),
        ({"training": {"batch": 8, "compiled": 1}}, "training.compiled cannot be 1: it should be true or false."),
        ({"cluster": {"on": []}}, "cluster.on cannot be a list: it should not be empty."),
        ({"cluster": {"on": "T4", "pue": 0.5}}, "cluster.pue cannot be 0.5: it should be 1 or more."),
        ({"limits": {"hours": "soon"}}, "limits.hours cannot be 'soon': it should be a number."),
        ({"limits": {"hours": float("nan")}}, "limits.hours cannot be nan: it should be finite."),
        ({"model": 3}, "model cannot be 3: it should be text."),
        ({"data": 3}, "data cannot be 3: it should be a table."),
        ({"target": {"curve": "a"}}, "target.value is missing."),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_key(changes, words):
    with pytest.raises(FileFormatError) as refused:
        job_of({**GOOD, **changes}, "Job file 'job.toml'")
    assert str(refused.value) == f"Job file 'job.toml': {words}"


def test_a_file_that_is_no_job_is_refused(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text("model = ")
    with pytest.raises(FileFormatError, match="is not TOML"):
        read_job(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="is UTF-16 text"):
        read_job(path)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_job(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_job("nul\0l.toml")


def test_the_published_schema_is_that_of_the_model():
    published = json.loads((DOCS / "job.schema.json").read_text(encoding="utf-8"))
    assert published == schema(), "docs/job.schema.json is stale: run 'python docs/generate.py'"
    assert published["required"] == ["model", "training", "cluster"]
    assert set(published["properties"]) == {"model", "data", "training", "cluster", "target", "limits", "method"}


def test_every_key_of_a_job_is_described():
    for part in schema()["$defs"].values():
        assert part["description"]
        assert all("description" in field for field in part["properties"].values())


@pytest.mark.parametrize(
    ("value", "words"), [("[" * 5000, "is nested too deeply"), ("9" * 5000, "thousands of digits")]
)
def test_a_value_that_toml_can_spell_and_nobody_means_is_refused(tmp_path, value, words):
    path = tmp_path / "job.toml"
    path.write_text(f"[training]\nbatch = {value}\n")
    with pytest.raises(FileFormatError, match=f"is not TOML: it .*{words}"):
        read_job(path)


def test_a_batch_size_that_is_listed_twice_is_forecast_once(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text('model = "mnist_cnn"\n[training]\nbatch = [64, 64]\n[cluster]\non = ["T4", "T4"]\n')
    assert [one.batch_size for one in answer_job(path)] == [64]
