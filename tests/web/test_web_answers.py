"""What the API answers: what the commands answer, in JSON, and one sentence where there is no answer."""

import pytest
from starlette.testclient import TestClient

import traincast as tc
from traincast.web.answers import ANSWERS
from traincast.web.app import make_app

_RUN = {"model": "resnet18", "batch_size": 32, "n_samples": 50_000, "n_epochs": 3}
_STEP = {"model": "resnet18", "batch_size": 32}


def ask(client, what, **question):
    reply = client.post(f"/api/{what}", json=question)
    assert reply.status_code == 200, reply.text
    return reply.json()


def problem(client, what, **question):
    reply = client.post(f"/api/{what}", json=question)
    assert 400 <= reply.status_code < 500
    return reply.json()["error"]


def test_a_forecast_is_that_of_the_python_api(client):
    answer = ask(client, "forecast", **_RUN, on=["T4"], precision="amp-fp16", optimizer="adam")
    expected = tc.forecast("resnet18", "T4", 32, n_samples=50_000, n_epochs=3, precision="amp-fp16", optimizer="adam")
    (found,) = answer["data"]["forecasts"]
    assert found["total_s"] == pytest.approx(expected.total_s)
    assert found["peak_memory_bytes"] == expected.peak_memory_bytes
    assert answer["charts"][0]["figure"]["data"]


def test_cards_hold_what_people_came_for(client):
    answer = ask(client, "forecast", **_RUN, on=["g4dn.xlarge", "T4"])
    titles = [card["title"] for card in answer["cards"]]
    assert titles == ["g4dn.xlarge: T4", "T4"]
    rows = {row["label"]: row for row in answer["cards"][0]["rows"]}
    assert set(rows) == {"total time", "cost", "one step", "memory", "speed"}
    assert rows["cost"]["value"].startswith("$")
    assert rows["memory"]["detail"].startswith("fits in ")


def test_a_place_that_is_wrong_does_not_take_the_others_with_it(client):
    answer = ask(client, "forecast", **_RUN, on=["T4", "T5", "2x4xT4", "g4dn.xlarge"])
    assert [card["title"] for card in answer["cards"]] == ["T4", "g4dn.xlarge: T4"]
    assert len(answer["data"]["forecasts"]) == 2
    assert [one["on"] for one in answer["problems"]] == ["T5", "2x4xT4"]
    assert answer["problems"][0]["error"].startswith("No device or machine named 'T5'.")
    assert ask(client, "forecast", **_RUN, on=["T4"])["problems"] == []


def test_places_that_are_all_wrong_are_all_named(client):
    sentence = problem(client, "forecast", **_RUN, on=["T5", "T6"])
    assert "No device or machine named 'T5'." in sentence
    assert "No device or machine named 'T6'." in sentence


@pytest.mark.parametrize(
    ("what", "question", "chart"),
    [
        ("memory", {**_STEP, "on": "T4"}, "Bytes alive"),
        ("layers", {**_STEP, "on": "T4"}, "Flop of one step"),
        ("explain", {**_STEP, "on": "T4"}, "Roofline"),
        ("scale", {**_RUN, "on": "V100-SXM2-16GB", "n_devices": [1, 2, 4]}, "Throughput"),
        ("plan", {**_RUN, "deadline_s": 86_400, "max_gpus": 4, "max_nodes": 1}, "Time and cost"),
    ],
)
def test_every_question_has_tables_and_its_chart(client, what, question, chart):
    answer = ask(client, what, **question)
    assert answer["tables"]
    assert answer["data"]
    assert any(chart in one["title"] for one in answer["charts"])
    for table in answer["tables"]:
        assert all(len(row) == len(table["headers"]) == len(table["is_numeric"]) for row in table["rows"])


def test_a_machine_with_one_device_is_scaled_as_several_of_it(client):
    answer = ask(client, "scale", **_RUN, on="g4dn.xlarge")
    assert answer["title"] == "resnet18 on 1, 2, 4, 8 x T4"


def test_names_are_listed_and_can_be_asked_about(client):
    models = client.get("/api/models").json()["models"]
    places = client.get("/api/devices").json()
    assert {"resnet50", "bert-base"} <= {model["name"] for model in models}
    assert "T4" in {device["name"] for device in places["devices"]}
    assert "p3.2xlarge" in {machine["name"] for machine in places["machines"]}
    assert "AWS" in places["providers"]


@pytest.mark.parametrize(
    "model", ["/etc/passwd", "../secret.trace", "model.py:make", "file.onnx", "http://example.org/m.onnx", "resnet"]
)
def test_a_model_is_a_name_and_never_a_path(client, model):
    assert problem(client, "forecast", model=model, on=["T4"]).startswith(f"No model named '{model}'.")


@pytest.mark.parametrize("on", ["/tmp/cluster.toml", "cluster.toml", "this-machine", "4xcluster.toml", "no such GPU"])
def test_a_place_is_a_name_and_never_a_file(client, on):
    sentence = problem(client, "forecast", model="resnet18", on=[on])
    assert sentence.startswith(("No device or machine named", f"'{on}' is not a place"))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"batch_size": 0}, "Batch (batch_size) should be at least 1, not 0."),
        ({"batch_size": "many"}, "Batch (batch_size) should be a whole number, not 'many'."),
        ({"batch_size": 1.5}, "Batch (batch_size) should be a whole number, not 1.5."),
        ({"batch_size": int("9" * 40)}, "Batch (batch_size) should be at most 1,048,576, not 9999"),
        ({"batch_size": None}, "Batch (batch_size) should be a whole number, not null."),
        ({"n_epochs": [3]}, "Epochs (n_epochs) should be a whole number, not a list."),
        ({"model": ""}, "Model (model) is empty."),
        ({"model": "🚂" * 81}, "Model (model) should have at most 80 letters."),
        ({"model": 5}, "Model (model) should be text, not 5."),
        ({"compiled": "perhaps"}, "Under torch.compile (compiled) should be true or false, not 'perhaps'."),
        (
            {"precision": "int1"},
            "Precision (precision) should be 'fp32', 'tf32', 'amp-fp16', 'amp-bf16', 'bf16' or 'fp8'",
        ),
        ({"on": []}, "Device or machine (on) should have at least 1 of them."),
        ({"on": ["T4"] * 9}, "Device or machine (on) should have at most 8 of them, not 9."),
        ({"on": "T4"}, "Device or machine (on) should be a list, not 'T4'."),
        ({"on": [""]}, "Device or machine (on.0) is empty."),
        ({"target": {"log": "log-0", "value": "high"}}, "Target (target.value) should be a number, not 'high'."),
        ({"target": 0.9}, "Target (target) should be a JSON object, not 0.9."),
        ({"price_usd_per_hour": -1}, "'price_usd_per_hour' should be above 0, not -1."),
        ({"devices": "/etc/passwd"}, "'devices' is not a part of this question."),
        ({"batch_size": 0, "n_epochs": 0}, "not 0. (1 more field is wrong.)"),
        ({"on": ["9999xT4"]}, "'9999xT4' has 9,999 devices: the page answers for 1 to 512."),
        ({"model": "upload-0"}, "The upload 'upload-0' is no longer available: upload the file again."),
        ({"on": ["2x4xT4"]}, "name the link between them after an @"),
    ],
)
def test_what_cannot_be_answered_gets_one_sentence(client, question, words):
    asked = {**_STEP, "on": ["T4"], **question}
    assert words in problem(client, "forecast", **asked)


def test_an_unknown_provider_is_told_which_there_are(client):
    assert "AWS" in problem(client, "plan", **_RUN, provider="Nobody")


def test_what_is_no_json_is_told_so(client):
    reply = client.post("/api/forecast", content=b"\xff\x00{", headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert reply.json() == {"error": "The question cannot be read: it should be a JSON object in UTF-8."}


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b'{"model": ', "application/json", "The question is not valid JSON: Expecting value, at letter 10."),
        (b"[" * 60_000, "application/json", "The question cannot be read: it should be a JSON object in UTF-8."),
        (b'{"batch_size": ' + b"9" * 5000 + b"}", "application/json", "The question cannot be read"),
        (b'["T4"]', "application/json", "The question should be a JSON object"),
        (b"model=resnet50", "application/x-www-form-urlencoded", "sent with the content type application/json."),
        (b'{"model": "resnet50", "on": ["T4"]}', "text/plain", "sent with the content type application/json."),
        (b"", "application/json", "The question should be a JSON object"),
    ],
)
def test_a_body_of_another_kind_is_told_what_is_read(client, content, kind, words):
    reply = client.post("/api/forecast", content=content, headers={"content-type": kind})
    assert reply.status_code in (400, 422)
    assert words in reply.json()["error"]


def test_what_is_not_there_is_a_sentence_too(client):
    reply = client.get("/api/nothing")
    assert (reply.status_code, list(reply.json())) == (404, ["error"])
    assert reply.json()["error"].startswith("There is nothing at '/api/nothing'")
    reply = client.delete("/api/models")
    assert reply.json() == {"error": "DELETE is not supported at /api/models: use GET or POST."}
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, POST")
    reply = client.options("/api/forecast")
    assert (reply.status_code, reply.headers["allow"], reply.content) == (204, "POST", b"")


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/models", "/openapi.json"])
def test_headers_alone_can_be_asked_for(client, path):
    reply, whole = client.head(path), client.get(path)
    assert (reply.status_code, reply.content) == (200, b"")
    assert reply.headers["content-length"] == whole.headers["content-length"]


def test_a_fault_of_the_server_is_told_in_the_same_form(monkeypatch):
    monkeypatch.setitem(ANSWERS, "memory", lambda _asked, _given: 1 / 0)
    with TestClient(make_app(), base_url="http://localhost", raise_server_exceptions=False) as broken:
        reply = broken.post("/api/memory", json=_STEP)
    assert reply.status_code == 500
    assert reply.json() == {"error": "The server failed to answer this question: this is a bug in traincast."}


def test_the_same_question_is_worked_on_once(client, monkeypatch):
    worked, answer = [], ANSWERS["memory"]
    monkeypatch.setitem(ANSWERS, "memory", lambda asked, given: worked.append(asked) or answer(asked, given))
    question = {**_STEP, "on": "V100-PCIe-32GB", "batch_size": 37}
    assert ask(client, "memory", **question) == ask(client, "memory", **question)
    assert len(worked) == 1


def test_a_plan_is_of_steps_as_they_are_run(client):
    plain, compiled = (
        ask(client, "plan", **_RUN, max_gpus=1, max_nodes=1, provider="AWS", compiled=compiled)
        for compiled in (False, True)
    )
    assert plain["data"]["cheapest"] != compiled["data"]["cheapest"]


@pytest.mark.parametrize("what", ["forecast", "memory", "layers", "explain", "scale", "plan"])
def test_remarks_hold_no_advice_for_a_command_line(client, what):
    question = {"model": "resnet50", "batch_size": 64}
    question |= {"n_samples": 1000} if what == "plan" else {"on": ["T4", "A10G"] if what == "forecast" else "T4"}
    answer = client.post(f"/api/{what}", json=question).json()
    notes = [*answer["notes"], *(note for table in answer["tables"] for note in table["notes"])]
    assert notes
    assert [note for note in notes if "--" in note or "traincast " in note] == []


def test_a_price_of_nothing_is_refused_as_the_document_says(client):
    assert "above 0" in problem(client, "forecast", **_STEP, on=["T4"], price_usd_per_hour=0)


def test_a_question_that_is_too_long_is_not_read(client):
    reply = client.post("/api/forecast", content=b" " * 100_000, headers={"content-type": "application/json"})
    assert reply.status_code == 413
    assert reply.json() == {"error": "The request is larger than 64 KiB, the most that is accepted."}


def test_replies_say_what_a_browser_may_do_with_them(client):
    for path in ("/", "/app.js", "/api/models", "/nowhere"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::1"])
def test_a_name_that_is_not_this_server_is_refused(client, host):
    assert client.get("/api/models", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:80", "192.168.1.7:8000"])
def test_addresses_and_localhost_are_answered(client, host):
    assert client.get("/api/models", headers={"host": host}).status_code == 200


def test_another_site_may_not_ask(client):
    reply = client.post("/api/forecast", json={**_STEP, "on": ["T4"]}, headers={"origin": "http://evil.example"})
    assert reply.status_code == 403
    own = client.post("/api/forecast", json={**_STEP, "on": ["T4"]}, headers={"origin": "http://localhost"})
    assert own.status_code == 200


def test_files_of_the_page_are_sent_once(client):
    first = client.get("/plotly.min.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = client.get("/plotly.min.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/static/app.js", "/../app.py", "/%2e%2e/app.py", "/index.html/../../x"])
def test_only_known_files_are_served(client, path):
    assert client.get(path).status_code == 404


def test_half_a_character_in_a_question_is_a_sentence(client):
    content = b'{"model": "\\ud800", "on": "T4"}'
    reply = client.post("/api/explain", content=content, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert reply.json()["error"].startswith("Model (model) should be")
