"""Uploads: models and logs are read in a process of their own, and nothing in them can do more than be refused."""

import json
import pickle
import zlib

import pytest
from starlette.testclient import TestClient

import traincast as tc
from traincast.web.app import make_app
from traincast.web.child import kind_of
from traincast.web.limits import Limits
from traincast.web.uploads import plain_name

_LOG = "step,loss,seconds\n" + "".join(
    f"{step},{0.5 + 4.0 / (1 + step / 50):.5f},{0.25 * step:.2f}\n" for step in range(10, 400, 10)
)


_BOMB = b"traincast-trace 1\n" + zlib.compress(bytes(200 * 2**20))


def upload(client, name, content, **options):
    return client.post("/api/models", params={"name": name, **options}, content=content)


def title_of(client, model):
    return client.post("/api/forecast", json={"model": model, "on": ["T4"]}).json()["title"]


def refused(client, name, content):
    reply = upload(client, name, content)
    assert reply.status_code == 422, reply.text
    assert "/tmp" not in reply.text
    return reply.json()["error"]


@pytest.fixture(scope="module")
def saved_trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mine.trace"
    tc.load_model("alexnet").save(path)
    return path.read_bytes()


def test_a_saved_trace_can_be_asked_about_like_a_zoo_model(client, saved_trace):
    found = upload(client, "mine.trace", saved_trace).json()
    assert (found["kind"], found["name"]) == ("trace", "mine.trace")
    question = {"batch_size": 64, "on": ["T4"]}
    own, zoo = (client.post("/api/forecast", json={"model": model, **question}) for model in (found["id"], "alexnet"))
    assert own.json()["data"]["forecasts"][0]["step_s"] == zoo.json()["data"]["forecasts"][0]["step_s"]
    assert upload(client, "again.trace", saved_trace).json()["id"] == found["id"]


def test_the_oldest_upload_makes_room(saved_trace):
    with TestClient(make_app(limits=Limits(n_uploads=0)), base_url="http://localhost") as small:
        found = upload(small, "mine.trace", saved_trace).json()
        reply = small.post("/api/memory", json={"model": found["id"]})
    assert "upload the file again" in reply.json()["error"]


def test_a_hugging_face_config_is_captured(client):
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 64, "vocab_size": 1000}
    reply = upload(client, "config.json", json.dumps(config), seqlen=32)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert found["kind"] == "config"
    assert title_of(client, found["id"]) == "GPT2LMHeadModel on T4, batch 32"
    again = upload(client, "config.json", " " * 100 + json.dumps(config), seqlen=32).json()
    assert again["id"] == found["id"]
    assert found["n_parameters"] == 1000 * 64 + 64 * 64 + 2 * (12 * 64**2 + 13 * 64) + 2 * 64


def test_an_onnx_file_is_captured(client):
    reply = upload(client, "net.onnx", _onnx_network())
    assert reply.status_code == 200, reply.text
    assert (reply.json()["kind"], reply.json()["n_parameters"]) == ("onnx", 8 * 4)
    assert title_of(client, reply.json()["id"]) == "net on T4, batch 32"
    assert upload(client, "net.onnx", _onnx_network()).json()["id"] == reply.json()["id"]


def test_an_onnx_file_cannot_name_other_files(client):
    sentence = refused(client, "net.onnx", _onnx_network("../../../../etc/passwd"))
    assert "points outside the directory" in sentence


def _onnx_network(shape_from: str | None = None) -> bytes:
    """A linear layer; with `shape_from`, a reshape before it whose sizes are said to lie in that file."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.zeros((8, 4), np.float32), "weight")
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["y"])]
    tensors = [weight]
    if shape_from is not None:
        shape = TensorProto(name="shape", data_type=TensorProto.INT64, dims=[2])
        shape.data_location = TensorProto.EXTERNAL
        for key, value in {"location": shape_from, "offset": "0", "length": "16"}.items():
            shape.external_data.add(key=key, value=value)
        nodes = [
            helper.make_node("Reshape", ["x", "shape"], ["z"]),
            helper.make_node("MatMul", ["z", "weight"], ["y"]),
        ]
        tensors.append(shape)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


class _Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model.pt", pickle.dumps(_Bomb()), "is a pickle or an archive, and those are never opened here"),
        ("model.onnx", pickle.dumps(_Bomb()), "is a pickle or an archive"),
        ("weights.bin", b"PK\x03\x04" + bytes(100), "is a pickle or an archive"),
        ("model.py", b"import os", "is code, which is never run here"),
        ("config.json", b"[1, 2]", "is not a JSON object"),
        ("config.json", b'{"model_type": ', "config.json"),
        ("net.onnx", b"\x00\x01garbage" * 50, "net.onnx"),
        ("cut.trace", b"traincast-trace 1\nabc", "truncated or damaged"),
        ("bent.trace", b"\x00raincast-trace 1\nabc", "'bent.trace' is not a saved trace, or its beginning is damaged"),
        ("model.py", b"traincast-trace 1\nabc", "is code, which is never run here"),
        ("net.onnx", b"traincast-trace 1\nabc", "'net.onnx' is truncated or damaged"),
        ("model.keras", b"PK\x03\x04" + bytes(100), "tc.load_model('model.keras').save('model.trace') writes a trace"),
        ("model.h5", b"\x89HDF", "is a Keras file, which may hold code and is never opened here"),
        ("photo.png", b"\x89PNG\r\n\x1a\n", "'photo.png' is not a model that can be read here: upload an ONNX file"),
        ("model", b"anything", "'model' is not a model that can be read here"),
        ("bomb.trace", _BOMB, "'bomb.trace' unpacks to more than 64 MiB, the most that a trace may take."),
        ("config.json", b'{"a":' * 30_000, "it is nested too deeply"),
        ("config.json", b" " * 300 + b"[1]", "is not a JSON object"),
        ("nothing.onnx", b"", "'nothing.onnx' is empty."),
    ],
)
def test_a_bad_file_is_a_clear_message(client, name, content, words):
    assert words in refused(client, name, content)


@pytest.mark.parametrize("name", ["mnist", "mnist.onnx", "mnist.json", "mnist.trace.txt"])
def test_a_model_is_known_by_its_content_whatever_its_name(client, saved_trace, name):
    found = upload(client, name, saved_trace).json()
    assert (found["kind"], found["name"]) == ("trace", name)


@pytest.mark.parametrize(
    ("start", "kind"),
    [(b"\x08\x09\x12\x07pytorch", "onnx"), (b' {"model_type"', "config"), (b"traincast-trace 1", "trace")],
)
def test_a_file_is_what_it_begins_like(start, kind):
    assert kind_of(start, "model") == kind


def test_what_takes_too_long_or_too_much_memory_is_ended():
    config = {"model_type": "gpt2", "n_layer": 1_000, "n_embd": 64, "n_head": 2}
    with TestClient(make_app(limits=Limits(reading_s=3.0)), base_url="http://localhost") as hasty:
        assert refused(hasty, "config.json", json.dumps(config)) == "'config.json' took longer than 3 s to read."
    tight = Limits(reading_memory_bytes=200 * 2**20, trace_memory_bytes=2**30)
    with TestClient(make_app(limits=tight), base_url="http://localhost") as small:
        assert "memory" in refused(small, "bomb.trace", _BOMB)


def test_a_file_that_is_too_large_is_not_read_to_its_end():
    with TestClient(make_app(limits=Limits(upload_bytes=2**20)), base_url="http://localhost") as small:
        whole = upload(small, "large.onnx", bytes(2**21))
        pieces = upload(small, "large.onnx", (bytes(2**18) for _ in range(8)))
    for reply in (whole, pieces):
        assert reply.status_code == 413
        assert reply.json() == {"error": "The request is larger than 1 MiB, the most that is accepted."}


def test_a_log_is_continued_to_its_target(client):
    reply = client.post(
        "/api/converge", params={"name": "run.csv", "target": 0.8, "total_steps": 2000, "usd_per_hour": 4}, content=_LOG
    )
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert answer["title"] == "Where run.csv will end"
    assert answer["data"]["path"] == "run.csv"
    assert answer["data"]["arrival"]["steps"]["p50"] == pytest.approx(617, rel=0.15)  # 0.5 + 4/(1 + k/50) = 0.8
    assert answer["data"]["left_s"]["p50"] == pytest.approx(0.25 * (2000 - 390), rel=0.05)
    assert answer["charts"]


def test_advice_is_such_as_a_page_can_follow(client):
    sentence = refused(client, "config.json", b'{"model_type": "nope"}')
    assert "has no model type 'nope'" in sentence
    assert "factory" not in sentence
    reply = client.post("/api/converge", params={"name": "run.txt"}, content=b"hello\nworld\n")
    assert reply.json()["error"].startswith("'run.txt' has no line with a recognisable loss or accuracy: ")


def test_a_column_of_any_name_is_continued_once_it_is_named_as_the_metric(client):
    log = "step,objective\n" + "".join(f"{step},{1 + 3 / step}\n" for step in range(1, 60))
    reply = client.post("/api/converge", params={"name": "run.csv"}, content=log)
    assert reply.json()["error"].endswith("it has step, objective. Name the column that is one.")
    named = client.post("/api/converge", params={"name": "run.csv", "metric": "objective"}, content=log)
    assert named.json()["subtitle"].startswith("train objective")
    kept = client.post("/api/logs", params={"name": "run.csv", "metric": "objective"}, content=log).json()
    assert kept["metrics"] == ["objective"]
    target = {"log": kept["id"], "value": 1.02, "metric": "objective"}
    question = {"model": "mnist_cnn", "on": ["T4"], "batch_size": 8, "n_samples": 60_000, "target": target}
    found = client.post("/api/forecast", json=question).json()
    assert found["data"]["forecasts"][0]["to_target"]["metric"] == "objective"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "'run.csv' is empty."),
        (b"hello\nworld\n", "run.csv"),
        (bytes(range(256)) * 9, "'run.csv' is a binary file"),
    ],
)
def test_a_log_without_numbers_is_told_so(client, content, words):
    reply = client.post("/api/converge", params={"name": "run.csv"}, content=content)
    assert reply.status_code == 422
    assert words in reply.json()["error"]
    assert "upload" not in reply.json()["error"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\models\\net.onnx", "net.onnx"),
        ("<script>alert(1)</script>.onnx", "script>.onnx".replace(">", "")),
        ("a\x1b[31mb.trace", "a[31mb.trace"),
        ("/", "the upload"),
    ],
)
def test_a_file_name_is_shown_and_never_opened(given, shown):
    assert plain_name(given) == shown


def test_a_target_of_no_loss_at_all_is_answered(client):
    steep = "step,loss\n" + "".join(f"{step},{8.0 / step:.6f}\n" for step in range(1, 80))
    reply = client.post("/api/converge", params={"name": "run.csv", "target": 0, "total_steps": 200}, content=steep)
    assert reply.status_code == 200, reply.text
    assert reply.json()["charts"][0]["figure"]["layout"]["yaxis"]["type"] == "log"


def test_with_the_log_of_an_earlier_run_a_forecast_tells_when_the_target_is_reached(client):
    kept = client.post("/api/logs", params={"name": "earlier.csv"}, content=_LOG).json()
    assert (kept["name"], kept["metrics"]) == ("earlier.csv", ["loss"])
    question = {"model": "resnet18", "on": ["T4"], "batch_size": 32, "n_samples": 50_000}
    plain = client.post("/api/forecast", json=question).json()["data"]["forecasts"][0]
    reply = client.post("/api/forecast", json={**question, "target": {"log": kept["id"], "value": 0.8}})
    assert reply.status_code == 200, reply.text
    found = reply.json()["data"]["forecasts"][0]
    assert found["step_s"] == plain["step_s"]
    assert found["to_target"]["log"] == "earlier.csv"
    assert found["to_target"]["updates"]["p50"] == pytest.approx(617, rel=0.15)  # 0.5 + 4/(1 + k/50) = 0.8
    assert found["to_target"]["total_s"]["p50"] == pytest.approx(617 * found["step_s"], rel=0.2)
    assert "to target" in {row["label"] for row in reply.json()["cards"][0]["rows"]}


_BOTH = "step,loss,accuracy\n" + "".join(
    f"{step},{0.3 + 2.0 / (1 + step / 50):.5f},{0.95 - 0.85 / (1 + step / 60):.5f}\n" for step in range(10, 400, 10)
)


@pytest.mark.parametrize(
    ("target", "metric", "meant"),
    [
        (0.9, None, "accuracy"),
        (90, None, "accuracy"),  # percent: the loss was never as high
        (0.9, "loss", "loss"),
        (0.9, "accuracy", "accuracy"),
        (1.5, None, "loss"),  # no accuracy, and hardly 1.5 percent
        (0.1, None, "loss"),  # less than the first accuracy
    ],
)
def test_a_target_is_of_the_accuracy_where_a_log_has_one_and_it_can_be(client, target, metric, meant):
    asked = {"name": "run.csv", "target": target} | ({} if metric is None else {"metric": metric})
    reply = client.post("/api/converge", params=asked, content=_BOTH)
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert answer["data"]["metric"] == meant
    assert answer["metrics"] == ["accuracy", "loss"]
    told = f"'run.csv' has both: the target {target:g} is read as the {meant}"
    assert any(note.startswith(told) for note in answer["notes"]) == (metric is None)


def test_forecast_and_plan_take_a_target_for_the_same_metric(client):
    kept = client.post("/api/logs", params={"name": "earlier.csv"}, content=_BOTH).json()
    question = {"model": "cifar_resnet20", "batch_size": 64, "n_samples": 50_000}

    def plan(**target):
        asked = {**question, "max_gpus": 1, "max_nodes": 1, "target": {"log": kept["id"], **target}}
        return client.post("/api/plan", json=asked).json()

    asked = {**question, "on": ["T4"], "target": {"log": kept["id"], "value": 0.85}}
    found = client.post("/api/forecast", json=asked).json()["data"]["forecasts"][0]
    assert found["to_target"]["metric"] == "accuracy"
    for target in ({"value": 0.85}, {"value": 85, "metric": "accuracy"}):
        assert any("reach an accuracy of 0.85" in note for note in plan(**target)["notes"])
    warning = "Warning: plans are made for accuracies, and the target is of loss: this plan is for 1 epoch."
    assert warning in plan(value=0.85, metric="loss")["notes"]


def test_a_plan_to_an_accuracy_takes_as_long_as_that_whatever_epochs_are_given(client):
    kept = client.post("/api/logs", params={"name": "earlier.csv"}, content=_BOTH).json()
    asked = {"model": "cifar_resnet20", "batch_size": 64, "n_samples": 50_000, "max_gpus": 1, "max_nodes": 1}
    asked["target"] = {"log": kept["id"], "value": 0.85}
    replies = [client.post("/api/plan", json=asked | given) for given in ({}, {"n_epochs": 90})]
    assert [reply.status_code for reply in replies] == [200, 200], replies[1].text
    alone, beside = (reply.json() for reply in replies)
    assert beside["data"] == alone["data"]
    assert set(beside["notes"]) - set(alone["notes"]) == {"The target replaces the 90 epochs."}


def test_a_target_that_most_runs_miss_is_told_as_never(client):
    kept = client.post("/api/logs", params={"name": "earlier.csv"}, content=_BOTH).json()
    asked = {"model": "cifar_resnet20", "on": ["T4"], "target": {"log": kept["id"], "value": 0.97}}
    (row,) = (
        row
        for row in client.post("/api/forecast", json=asked).json()["cards"][0]["rows"]
        if row["label"] == "to target"
    )
    assert row["value"] == "never"
    assert row["detail"].endswith(" to never")


def test_a_metric_that_a_log_lacks_is_told_which_it_has(client):
    reply = client.post("/api/converge", params={"name": "run.csv", "metric": "f1", "target": 0.9}, content=_BOTH)
    assert reply.status_code == 422
    assert reply.json()["error"].startswith("'run.csv' has no series 'f1': it has loss (train), accuracy (train).")


def test_a_log_that_is_none_is_not_kept(client):
    reply = client.post("/api/logs", params={"name": "run.csv"}, content=bytes(range(256)))
    assert reply.status_code == 422
    assert "run.csv" in reply.json()["error"]
    reply = client.post(
        "/api/forecast", json={"model": "resnet18", "on": ["T4"], "target": {"log": "log-0", "value": 1}}
    )
    assert reply.json()["error"] == "The upload 'log-0' is no longer available: upload the file again."
