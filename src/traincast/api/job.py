"""A job file: a training run and its limits, written down once and forecast as often as one likes.

Tables and keys are those that the options of `traincast forecast` declare. The JSON Schema is published as
docs/job.schema.json.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from traincast.api.forecasts import forecasts
from traincast.errors import CaptureError, FileFormatError, InputError, ParameterError, close_names
from traincast.options.fields import field_of
from traincast.options.option import Declared, declared
from traincast.planning.gates import Gates
from traincast.report.small_files import read_toml

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast

_TABLES = {
    "model": "What is trained.",
    "data": "What it is trained on.",
    "training": "How it is trained.",
    "cluster": "Where it runs.",
    "target": "When it is good enough, by the log of an earlier run.",
    "method": "How it is forecast.",
}
_ALWAYS = ("model", "training", "cluster")  # tables that no job is without
_NEEDED_TOGETHER = ("target.curve", "target.value")
_LISTED = ("training.batch", "cluster.on")  # one value, or a list of them
_FILES = ("cluster.devices", "target.curve", "cluster.on")
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(gt=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Limits(_Part):
    """What it may take: a forecast beyond ends with exit code 3."""

    budget_usd: _Positive | None = Field(None, description="US dollars for the whole run.")
    hours: _Positive | None = Field(None, description="Hours for the whole run.")
    memory_fraction: _Share | None = Field(None, description="Share of the device's memory: 0.9.")


def _options() -> dict[str, Declared]:
    """The options of a forecast that a job file may hold, by table and key."""
    return {one.option.job: one for one in declared(forecasts) if one.option.job}


def _table(name: str) -> type[_Part]:
    fields: dict[str, Any] = {}
    for where, one in _options().items():
        table, _, key = where.partition(".")
        if table == name:
            fields[key] = field_of(one, is_listed=where in _LISTED, is_required=where in _NEEDED_TOGETHER)
    return create_model(name.capitalize(), __base__=_Part, __doc__=_TABLES[name], **fields)


_PARTS: dict[str, type[_Part]] = {name: _table(name) for name in _TABLES} | {"limits": Limits}


def _job_model() -> type[_Part]:
    fields: dict[str, Any] = {}
    for name, part in _PARTS.items():
        if name == "model":
            fields[name] = (Annotated[str, Field(min_length=1)] | part, ...)
        elif name in _ALWAYS:
            fields[name] = (part, ...)
        else:
            fields[name] = (part | None, None) if name == "target" else (part, part())
    told = "A training run for `traincast forecast JOB.toml`. Paths are relative to the file."
    return create_model("Job", __base__=_Part, __doc__=told, **fields)


_Job = _job_model()


@dataclass(frozen=True, eq=False)
class Job:
    """A job file as it was written."""

    content: Any

    @property
    def gates(self) -> Gates:
        return Gates(**self.content.limits.model_dump())

    def options(self, folder: Path) -> dict[str, Any]:
        """Keyword arguments of `forecasts`; files are looked for in the folder of the job."""
        written = {name: _values(getattr(self.content, name)) for name in _PARTS if name != "limits"}
        found = {}
        for where, one in _options().items():
            table, _, key = where.partition(".")
            value = written[table].get(key, one.default)
            if where in _LISTED and value is not None:
                value = value if isinstance(value, list) else [value]
            if where in _FILES:
                value = [_beside(item, folder) for item in value] if isinstance(value, list) else _beside(value, folder)
            found[one.name] = value
        return found | {"model": _model_beside(found["model"], folder)}


def _values(table: Any) -> dict[str, Any]:
    if table is None:
        return {}
    return {"name": table} if isinstance(table, str) else dict(table)


def read_job(path: str | Path) -> Job:
    """The job of a TOML file; what is wrong with it is one sentence that names the key."""
    where = f"Job file '{path}'"
    return job_of(read_toml(path, where), where)


def answer_job(path: str | Path) -> tuple[Forecast, ...]:
    """The forecasts that a job file asks for, one per place and batch size."""
    written = read_job(path).options(Path(path).parent)
    with of_job(path):
        return forecasts(**written)


@contextlib.contextmanager
def of_job(path: str | Path, besides: Collection[str] = ()) -> Iterator[None]:
    """A value that turns out to be wrong is told as one of the file, unless its parameter was given `besides`."""
    try:
        yield
    except ParameterError as error:
        if error.name in besides:
            raise
        raise FileFormatError(f"Job file '{path}': {error}") from error
    except (InputError, FileFormatError, CaptureError) as error:
        if besides or Path(path).name in str(error):
            raise
        raise type(error)(f"Job file '{path}': {error}") from error


def job_of(content: dict[str, Any], where: str = "The job") -> Job:
    """The job of a table of tables."""
    try:
        return Job(_Job.model_validate(content))
    except ValidationError as error:
        raise FileFormatError(f"{where}: {_first(error)}") from None


def schema() -> dict[str, Any]:
    """The JSON Schema of a job."""
    title = "traincast job"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_Job.model_json_schema(), "title": title}


_SHOULD_BE = {
    "model_type": "it should be a table",
    "string_type": "it should be text",
    "string_too_short": "it should be text",
    "int_type": "it should be a whole number",
    "float_parsing": "it should be a number",
    "float_type": "it should be a number",
    "finite_number": "it should be finite",
    "bool_type": "it should be true or false",
    "too_short": "it should not be empty",
    "greater_than_equal": "it should be {ge:g} or more",
    "greater_than": "it should be above {gt:g}",
    "less_than_equal": "it should be {le:g} or less",
}


def _first(error: ValidationError) -> str:
    """One mistake in a sentence: a wrong name before a wrong value, and of two forms the one that was written."""
    mistake = min(error.errors(include_url=False), key=_rank)
    path = [str(part) for part in mistake["loc"] if isinstance(part, int) or part in _names()]
    key = ".".join(path)
    if mistake["type"] == "extra_forbidden":
        return _unknown([str(part) for part in mistake["loc"] if part != "Model"])
    if mistake["type"] == "missing":
        return f"{key} is missing."
    given = mistake["input"]
    shown = repr(given) if isinstance(given, (str, int, float, bool)) else f"a {type(given).__name__}"
    right = _SHOULD_BE.get(mistake["type"], mistake["msg"]).format(**mistake.get("ctx", {}))
    return f"{key} cannot be {shown}: {right}."


def _rank(mistake: ErrorDetails) -> tuple[bool, bool, int]:
    has_two_forms = ".".join(str(part) for part in mistake["loc"][:2]) in _LISTED
    is_list = isinstance(mistake["input"], list)
    is_other_form = has_two_forms and is_list != any("list" in str(part) for part in mistake["loc"])
    return mistake["type"] != "extra_forbidden", is_other_form, -len(mistake["loc"])


def _names() -> set[str]:
    return {*_PARTS, *(name for part in _PARTS.values() for name in part.model_fields)}


def _unknown(path: list[str]) -> str:
    known = list(_Job.model_fields) if len(path) == 1 else list(_PARTS[path[0]].model_fields)
    close = close_names(path[-1], known)
    if not close:  # a key that is right in another table
        homes = [f"{part}.{path[-1]}" for part, fields in _PARTS.items() if path[-1] in fields.model_fields]
        close = f" It belongs to {homes[0]}." if homes else f" Known are {', '.join(known)}."
    return f"unknown key '{'.'.join(path)}'.{close}"


def _beside(name: Any, folder: Path) -> Any:
    """The file of that name beside the job, if there is one; else what was written."""
    return str(folder / name) if name and (folder / name).is_file() else name


def _model_beside(name: str, folder: Path) -> str:
    file, colon, factory = name.rpartition(":")
    if colon and (folder / file).is_file():
        return f"{folder / file}:{factory}"
    return _beside(name, folder)
