"""What others build on besides answers: the signatures of the public names, and the web page's OpenAPI document.

The help of every command is held by docs/cli.md and the schema of job files by docs/job.schema.json: tests render both
again, and `renew.py` writes them too.
"""

import inspect

from starlette.testclient import TestClient

import traincast
from traincast.web.app import make_app


def signatures():
    """How each public name is called, and what a public type shows."""
    return {name: _shape(getattr(traincast, name)) for name in sorted(traincast.__all__)}


def _shape(value):
    if not inspect.isclass(value):
        return _called(value)
    shown = sorted(name for name in dir(value) if not name.startswith("_"))
    called = None if issubclass(value, Exception) else _called(value)
    return {"called": called, "bases": [base.__name__ for base in value.__bases__], "shown": shown}


def _called(value):
    """{"batch_size": "positional or keyword: int", "precision": "keyword-only: str | None = None", ...}"""
    signature = inspect.signature(value)
    parameters = {name: f"{one.kind.description}: {one.annotation}" for name, one in signature.parameters.items()}
    for name, one in signature.parameters.items():
        if one.default is not one.empty:
            parameters[name] += f" = {one.default!r}"
    return {**parameters, "return": str(signature.return_annotation)}


def openapi():
    """One entry a route and a schema; without versions, and without the schemas that FastAPI brings along."""
    with TestClient(make_app(), base_url="http://localhost") as client:
        document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    return {
        **document["paths"],
        **{name: schemas[name] for name in sorted(schemas) if name not in ("HTTPValidationError", "ValidationError")},
    }
