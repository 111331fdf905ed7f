"""What can be asked: the bodies of requests, with the limits that keep an answer short.

An option is a field here if its declaration says that the page may ask it; bounds, choices and help are those of the
declaration. Only what a page cannot have (files, uploads, several places) is said here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from traincast.api import explaining, forecasts, models, planning
from traincast.options.fields import page_field
from traincast.options.option import declared

_PLACE = "A device or machine of /api/devices, also as '4xT4' or '2x4xT4@50Gb/s'. Never a file."
Place = Annotated[str, Field(min_length=1, max_length=80, description=_PLACE, examples=["T4"])]
Metric = Annotated[str, Field(min_length=1, max_length=80, examples=["accuracy"])]
_OWN_METRIC = (
    "The metric of the target: loss, accuracy, f1 or a column's name. Default: an accuracy if the log has one and "
    "the target can be one, else a loss."
)
_USUAL_BATCH = 32
_LARGEST_SCALE = 512
_MOST_COUNTS, _MOST_PLACES = 12, 8
_OF_THE_PAGE = ("model", "on", "target")  # told here, as a page has no files


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "forecast": forecasts.forecast,
    "memory": models.estimate_memory,
    "layers": models.layers,
    "explain": explaining.explain,
    "scale": forecasts.scale,
    "plan": planning.plan,
}


class Target(BaseModel):
    """What is good enough, and the log of an earlier run that tells how long that takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    log: str = Field(min_length=1, max_length=80, description="The id of an uploaded log.")
    value: float = Field(
        ge=-1e9, le=1e9, description="In the log's unit; an accuracy as a fraction or in percent.", examples=[0.92]
    )
    metric: Metric | None = Field(default=None, description=_OWN_METRIC)


class Question(BaseModel):
    """A model, its batch and how it is trained."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    model: str = Field(
        min_length=1, max_length=80, description="A name of /api/models, or the id of an upload.", examples=["resnet50"]
    )

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of the function that answers; model, place and target are looked up first."""
        return self.model_dump(exclude=set(_OF_THE_PAGE))


def _question(what: str, example: dict[str, JsonValue], **own: Any) -> type[Question]:
    """`own` are fields that are otherwise than declared: a default, or a type and a field."""
    fields: dict[str, Any] = {}
    for one in declared(FUNCTIONS[what]):
        if one.option.is_on_page and one.name not in _OF_THE_PAGE:
            fields[one.name] = page_field(one)
    fields |= own
    config = ConfigDict(**Question.model_config, json_schema_extra={"examples": [{"model": "resnet50", **example}]})
    made = create_model(f"{what.capitalize()}Question", __base__=Question, __doc__=_TOLD[what], **fields)
    made.model_config = config
    made.model_rebuild(force=True)
    return made


_TOLD = {
    "forecast": "What will this run take: time, memory, money, energy?",
    "memory": "Does one step fit, and which batch is the largest that does?",
    "layers": "What does each layer ask for: shapes, parameters, flop, bytes?",
    "explain": "Why does a step take so long, and what would help?",
    "scale": "What do more devices bring? `batch_size` is global, for strong scaling.",
    "plan": "What should be rented? Machines of up to `max_gpus` devices on `max_nodes` nodes are compared.",
}


def _with_default(function: Callable[..., Any], name: str, default: int | None = None) -> Any:
    """As it is declared, with a default that suits a page."""
    (one,) = (one for one in declared(function) if one.name == name)
    return page_field(one, default=default)


def _batch(default: int) -> Any:
    return _with_default(models.estimate_memory, "batch_size", default)


def _maybe_place(without: str) -> Any:
    return (Place | None, Field(default=None, description=f"{_PLACE} {without}"))


_TARGET = "Also forecasts when the target is reached."
_INSTEAD = "An accuracy, which replaces `n_epochs`."
_RUN: dict[str, JsonValue] = {"n_samples": 1_281_167, "n_epochs": 90}
QUESTIONS: dict[str, type[Question]] = {
    "forecast": _question(
        "forecast",
        {"on": ["g4dn.xlarge", "4xT4"], "batch_size": 64, **_RUN, "precision": "amp-fp16"},
        on=(
            list[Place],
            Field(min_length=1, max_length=_MOST_PLACES, description="Places to compare; each gets an answer."),
        ),
        batch_size=_batch(_USUAL_BATCH),
        target=(Target | None, Field(default=None, description=_TARGET)),
    ),
    "memory": _question(
        "memory",
        {"on": "T4", "batch_size": 64, "optimizer": "adamw"},
        on=_maybe_place("Without it the answer does not say whether the step fits."),
        batch_size=_batch(_USUAL_BATCH),
    ),
    "layers": _question(
        "layers",
        {"on": "T4", "batch_size": 64},
        on=_maybe_place("Without it the answer has no times."),
        optimizer=_with_default(models.estimate_memory, "optimizer"),  # of the run; it changes no layer
        batch_size=_batch(_USUAL_BATCH),
    ),
    "explain": _question(
        "explain",
        {"on": "T4", "batch_size": 64},
        on=(Place, ...),
        batch_size=_batch(_USUAL_BATCH),
    ),
    "scale": _question(
        "scale",
        {"on": "8xV100-SXM2-16GB", "batch_size": 512, "n_samples": 1_281_167},
        on=(Place, ...),
        batch_size=_batch(_USUAL_BATCH),
        n_devices=(
            list[Annotated[int, Field(ge=1, le=_LARGEST_SCALE)]] | None,
            Field(
                default=None,
                min_length=1,
                max_length=_MOST_COUNTS,
                description="Numbers of devices. Default: 1, 2, 4 ... up to those of the place.",
            ),
        ),
    ),
    "plan": _question(
        "plan",
        {"batch_size": 256, **_RUN, "deadline_s": 86_400.0, "budget_usd": 200.0},
        batch_size=_batch(planning.USUAL_BATCH),
        max_gpus=_with_default(planning.plan, "max_gpus", 16),
        max_nodes=_with_default(planning.plan, "max_nodes", 2),
        target=(Target | None, Field(default=None, description=_INSTEAD)),
    ),
}


def summary_of(what: str) -> str:
    """The question in a sentence."""
    return f"{_TOLD[what].partition('?')[0]}?"


def seqlen_of(asked: Question) -> int | None:
    """The length of a sequence, of questions that have one."""
    return getattr(asked, "seqlen", None)


def target_of(asked: Question) -> Target | None:
    """The target of a question, where it can have one."""
    found: Target | None = getattr(asked, "target", None)
    return found


class LogQuestion(BaseModel):
    """Where will a run end? Of the log that is the body."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=200, description="The file's name, for display.")
    metric: Metric | None = Field(default=None, description=_OWN_METRIC)
    target: float | None = Field(default=None, ge=-1e9, le=1e9, description="The value to reach.")
    total_steps: float | None = Field(default=None, gt=0, le=1e12, description="Length of the run, in the log's steps.")
    n_epochs: float | None = Field(default=None, gt=0, le=1e6, description="Length of the run in epochs.")
    usd_per_hour: float | None = Field(
        default=None, ge=0, le=1e6, description="US dollars per hour for all devices together."
    )
