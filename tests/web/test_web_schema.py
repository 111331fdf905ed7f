"""Whatever the OpenAPI document allows, and what it does not: an answer that the document describes, never a 5xx."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

_CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
_PATIENT = {"deadline": None, "suppress_health_check": list(HealthCheck)}
_NAMES = ("forecast", "memory", "layers", "explain", "scale", "plan")
_ANSWER_S = 20  # a question that takes longer hangs


@pytest.fixture(scope="session")
def operations(page_address):
    schema = schemathesis.openapi.from_url(f"{page_address}openapi.json")
    found = [result.ok() for result in schema.get_all_operations()]
    return {f"{one.method.upper()} {one.path}": one for one in found}


_UPLOADS = ("POST /api/models", "POST /api/logs", "POST /api/converge")
_OTHERS = ("GET /api/models", "GET /api/devices", *(f"POST /api/{what}" for what in _NAMES))


def test_the_document_has_every_route(operations):
    assert set(operations) == {*_UPLOADS, *_OTHERS}


@pytest.mark.parametrize("what", _NAMES)
def test_the_example_of_each_question_is_answered(client, what):
    document = client.get("/openapi.json").json()
    body = document["paths"][f"/api/{what}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    (example,) = document["components"]["schemas"][body["$ref"].rpartition("/")[2]]["examples"]
    assert client.post(f"/api/{what}", json=example).status_code == 200


def test_every_field_is_described_and_every_refusal_has_one_form(client):
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    bare = {
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, about in schema.get("properties", {}).items()
        if "description" not in about
    }
    operations = [one for path in document["paths"].values() for one in path.values()]
    bare |= {
        one["name"] for operation in operations for one in operation.get("parameters", []) if "description" not in one
    }
    assert bare == set()
    forms = {
        json.dumps(reply["content"]["application/json"]["schema"])
        for operation in operations
        for status, reply in operation["responses"].items()
        if status.startswith("4")
    }
    assert forms == {'{"$ref": "#/components/schemas/Problem"}'}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("name", [*_OTHERS, *_UPLOADS])
def test_any_request_gets_a_reply_that_is_documented(operations, name, mode):
    if name.startswith("GET") and mode is GenerationMode.NEGATIVE:
        return  # nothing can be wrong with them

    @given(operations[name].as_strategy(generation_mode=mode))
    @settings(max_examples=3 if name in _UPLOADS else 25, **_PATIENT)
    def ask(case):
        case.call_and_validate(checks=_CHECKS, timeout=_ANSWER_S)

    ask()


_COUNTS = st.one_of(st.integers(1, 300), st.sampled_from([4096, 65_536, 1_048_576]))
_STEP = {
    "model": st.sampled_from(["alexnet", "cifar_resnet20", "vit_b_16"]),
    "batch_size": _COUNTS,
    "precision": st.sampled_from([None, "fp32", "tf32", "amp-fp16", "amp-bf16", "bf16"]),
    "optimizer": st.sampled_from([None, "none", "sgd", "momentum", "adagrad", "adadelta", "rmsprop", "adam", "adamw"]),
}
_PLACES = st.sampled_from(
    ["T4", "4xT4", "2x4xT4@50Gb/s", "p3.16xlarge", "8xp4d.24xlarge", "MI250-GCD", "generic-cpu", "512xB200", "K80"]
)
_HOW = {
    "layout": st.sampled_from(["nchw", "nhwc"]),
    "compiled": st.booleans(),
    "input_samples_per_s": st.none() | st.floats(1e-6, 1e9),
}
_LENGTH = {"n_samples": st.none() | st.integers(1, 10**12), "n_epochs": st.integers(1, 100_000)}
_STRATEGY = {"strategy": st.sampled_from(["ddp", "dp", "mirrored", "fsdp", "zero1", "zero2", "zero3"])}
_QUESTIONS = {
    "forecast": st.fixed_dictionaries(
        {**_STEP, **_HOW, **_LENGTH, **_STRATEGY, "on": st.lists(_PLACES, min_size=1, max_size=3)},
        optional={"accumulation_steps": st.sampled_from([1, 2, 3, 16]), "price_usd_per_hour": st.floats(1e-6, 10_000)},
    ),
    "memory": st.fixed_dictionaries({**_STEP, "on": st.none() | _PLACES}),
    "layers": st.fixed_dictionaries({**_STEP, "on": st.none() | _PLACES}),
    "explain": st.fixed_dictionaries({**_STEP, **_HOW, "on": _PLACES}),
    "scale": st.fixed_dictionaries(
        {**_STEP, **_HOW, **_LENGTH, **_STRATEGY, "on": _PLACES},
        optional={"n_devices": st.lists(st.integers(1, 512), min_size=1, max_size=4)},
    ),
    "plan": st.fixed_dictionaries(
        {**_STEP, "n_samples": st.integers(1, 10**12), "n_epochs": st.integers(1, 100_000)},
        optional={
            **_HOW,
            **_STRATEGY,
            "deadline_s": st.floats(1e-3, 1e9),
            "budget_usd": st.floats(1e-3, 1e9),
            "max_gpus": st.integers(1, 4),
            "max_nodes": st.integers(1, 2),
            "spot": st.booleans(),
            "provider": st.sampled_from(["AWS", "GCP"]),
        },
    ),
}


@pytest.mark.parametrize("what", _NAMES)
def test_every_well_formed_question_is_answered_or_refused_in_a_sentence(client, what):
    @given(_QUESTIONS[what])
    @settings(max_examples=5 if what in ("plan", "explain") else 40, **_PATIENT)
    def ask(question):
        reply = client.post(f"/api/{what}", json=question)
        assert reply.status_code in (200, 422), reply.text
        if reply.status_code == 422:
            assert reply.json()["error"].endswith((".", "?", ")"))

    ask()
