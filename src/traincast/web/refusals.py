"""Whatever has no answer: one sentence, always as {"error": ...}."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

from traincast.errors import BusyError, TraincastError
from traincast.web.wording import sentence_of


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """What the sentence quotes from a request may be half a character, which no reply can hold."""
    shown = sentence.encode(errors="replace").decode()
    return JSONResponse({"error": shown}, status_code=status, headers=headers)


def add_refusals(app: FastAPI) -> None:
    """One handler a kind of error."""

    async def ours(_request: Request, error: Exception) -> Response:
        is_busy = isinstance(error, BusyError)
        headers = {"Retry-After": "3"} if is_busy else None
        return problem(429 if is_busy else 422, " ".join(str(error).split()), headers)

    async def invalid(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(422, sentence_of(error.errors()))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            return _other_methods(app, request)
        sentence = _REFUSED.get(str(error.detail), str(error.detail)).format(path=request.url.path[:80])
        return problem(error.status_code, sentence, error.headers)

    async def too_much(_request: Request, _error: Exception) -> Response:
        return problem(422, "This question needs more memory than the server has.")

    async def failed(_request: Request, _error: Exception) -> Response:
        return problem(500, "The server failed to answer this question: this is a bug in traincast.")

    app.add_exception_handler(TraincastError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(MemoryError, too_much)
    app.add_exception_handler(Exception, failed)


_REFUSED = {  # in the words of those who made the framework
    "Not Found": "There is nothing at '{path}': the page is at /, and /openapi.json describes the API.",
    "There was an error parsing the body": "The question cannot be read: it should be a JSON object in UTF-8.",
}


def _other_methods(app: FastAPI, request: Request) -> Response:
    """What can be asked here instead."""
    routes = [route for route in app.routes if isinstance(route, Route) and route.path == request.url.path]
    allowed = sorted({method for route in routes for method in route.methods or ()} - {"HEAD"})
    headers = {"Allow": ", ".join(allowed)}
    if request.method == "OPTIONS":
        return Response(status_code=204, headers=headers)
    sentence = f"{request.method[:20]} is not supported at {request.url.path}: use {' or '.join(allowed)}."
    return problem(405, sentence, headers)
