"""The application: its routes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from traincast import __version__
from traincast.web import questions as ask
from traincast.web import replies
from traincast.web.guard import App, Guard
from traincast.web.limits import Limits
from traincast.web.page import page_files, send_file
from traincast.web.question_runner import QuestionRunner
from traincast.web.refusals import add_refusals
from traincast.web.registers import model_names, place_names
from traincast.web.stored_uploads import StoredUploads
from traincast.web.upload_intake import UploadIntake
from traincast.web.uploads import plain_name

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": replies.Problem, "description": "The host name or the body is not accepted here"},
    403: {"model": replies.Problem, "description": "The request comes from another site"},
    408: {"model": replies.Problem, "description": "The request arrived too slowly"},
    413: {"model": replies.Problem, "description": "The request is too large"},
    422: {"model": replies.Problem, "description": "The question cannot be answered; the body says why"},
    429: {"model": replies.Problem, "description": "Too many questions at once"},
}
_ANSWER: dict[int | str, dict[str, Any]] = {200: {"model": replies.Shown}, **_ERRORS}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
FileName = Annotated[str, Query(min_length=1, max_length=200, description="The file's name, for display.")]


def make_app(*, limits: Limits | None = None, host: str = "127.0.0.1") -> App:
    """The page and the API, behind the guard."""
    limits = limits or Limits()
    app = FastAPI(
        title="traincast",
        version=__version__,
        description="What will this training run take, before you rent the GPUs? Answers are those of the commands.",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
    )
    stored = StoredUploads(most=limits.n_uploads, most_bytes=limits.kept_upload_bytes)
    runner = QuestionRunner(stored, limits)
    add_refusals(app)
    _add_names(app)
    for what in ask.QUESTIONS:
        _add_question(app, what, runner)
    _add_uploads(app, UploadIntake(stored, runner, limits))
    _add_page(app)
    return Guard(app, limits=limits, host=host)


def _add_names(app: FastAPI) -> None:
    @app.get("/api/models", responses={400: _ERRORS[400]}, tags=["names"])
    def models() -> replies.ModelNames:
        """Models that questions can name."""
        return model_names()

    @app.get("/api/devices", responses={400: _ERRORS[400]}, tags=["names"])
    def devices() -> replies.PlaceNames:
        """Devices and machines that questions can name."""
        return place_names()


def _add_question(app: FastAPI, what: str, runner: QuestionRunner) -> None:
    """One route a question; it answers what the command of its name does."""

    async def answer(asked: ask.Question, request: Request) -> Response:
        return Response(await runner.answer(what, asked, request.is_disconnected), media_type="application/json")

    answer.__annotations__["asked"] = ask.QUESTIONS[what]
    app.add_api_route(
        f"/api/{what}",
        answer,
        methods=["POST"],
        name=what,
        summary=ask.summary_of(what),
        responses=_ANSWER,
        tags=["questions"],
    )


def _add_uploads(app: FastAPI, intake: UploadIntake) -> None:
    @app.post("/api/models", responses=_ERRORS, openapi_extra=_BODY, tags=["uploads"])
    async def upload_model(
        request: Request,
        name: FileName,
        seqlen: Annotated[
            int | None, Query(ge=1, le=1_048_576, description="Tokens per sequence, for a config.json.")
        ] = None,
        image_size: Annotated[
            int | None, Query(ge=1, le=8192, description="Image side in pixels, for a config.json.")
        ] = None,
        n_classes: Annotated[
            int | None, Query(ge=1, le=10_000_000, description="Number of classes, for a config.json.")
        ] = None,
    ) -> replies.Uploaded:
        """Keeps a model for questions: an ONNX file, a saved trace or a Hugging Face config.json as the body.

        Never code, never pickles. The file is read in a process of its own; only its trace is kept, in memory.
        """
        options = {"seqlen": seqlen, "image_size": image_size, "n_classes": n_classes}
        given = {option: value for option, value in options.items() if value is not None}
        return await intake.take_model(request, plain_name(name), given)

    @app.post("/api/logs", responses=_ERRORS, openapi_extra=_BODY, tags=["uploads"])
    async def upload_log(
        request: Request,
        name: FileName,
        metric: Annotated[
            ask.Metric | None, Query(description="The column to use as the metric, whatever its name.")
        ] = None,
    ) -> replies.UploadedLog:
        """Keeps the log of an earlier run, for questions with a target. The body is the log."""
        return await intake.take_log(request, plain_name(name), metric)

    @app.post("/api/converge", responses=_ANSWER, openapi_extra=_BODY, tags=["uploads"])
    async def converge(request: Request, asked: Annotated[ask.LogQuestion, Query()]) -> Response:
        """Where will this run end? The body is its log so far: CSV, JSON lines, TensorBoard, plain text and others."""
        return Response(await intake.continue_log(request, asked), media_type="application/json")


def _add_page(app: FastAPI) -> None:
    files = page_files()

    async def page(request: Request) -> Response:
        return send_file(files[request.url.path.removeprefix("/") or "index.html"], request)

    for name in files:
        path = "/" if name == "index.html" else f"/{name}"
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False)
