"""A job file: a training run and its limits, written down once and forecast as often as one likes.

Fields are the options of `traincast forecast` by the question they answer. The JSON Schema of this model is published
as docs/job.schema.json.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from traincast.errors import FileFormatError, InputError, close_names
from traincast.planning.gates import Gates
from traincast.report.input_files import regular
from traincast.report.parsing import parse_toml

_Count = Annotated[int, Field(ge=1, strict=True)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(gt=0, le=1)]
_Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Model(_Part):
    """What is trained."""

    name: _Text = Field(description="A zoo name, a .trace, .onnx, .keras or config.json file, or file.py:factory.")
    n_classes: _Count | None = Field(None, description="Classes of the last layer.")
    image_size: _Count | None = Field(None, description="Side of a square image, in pixels.")
    seqlen: _Count | None = Field(None, description="Tokens in a sequence.")
    head: _Text | None = Field(None, description="What the model is trained for: qa, mlm, causal, ...")


class Data(_Part):
    """What it is trained on."""

    samples: _Count | None = Field(None, description="Samples of one epoch.")
    input_samples_per_s: _Positive | None = Field(None, description="What the data loader delivers.")


class Training(_Part):
    """How it is trained."""

    batch: _Count | Annotated[list[_Count], Field(min_length=1)] = Field(
        description="Samples of one update of all devices; a list: each in turn."
    )
    epochs: _Count = Field(1, description="Epochs of the run.")
    precision: _Text | None = Field(None, description="fp32, tf32, amp-fp16, amp-bf16 or bf16; default: as captured.")
    optimizer: _Text | None = Field(None, description="none, sgd, momentum, adam, adamw, ...; default: as captured.")
    layout: _Text = Field("nchw", description="How images lie in memory: nchw or nhwc.")
    compiled: bool = Field(False, strict=True, description="The model runs under torch.compile.")
    accumulate: _Count = Field(1, description="Passes that share the batch of one update.")


class Cluster(_Part):
    """Where it runs."""

    on: _Text | Annotated[list[_Text], Field(min_length=1)] = Field(
        description="T4, 4xT4, 2x4xT4@50Gb/s, p3.16xlarge, FILE.toml, this-machine; a list: each in turn."
    )
    strategy: _Text = Field(
        "ddp", description="On many devices: ddp, dp, mirrored, ps:P, ps-async:P, fsdp, zero1 to zero3."
    )
    tensor_parallel: _Count = Field(1, description="Devices of a node that share each block.")
    pipeline_parallel: _Count = Field(1, description="Stages that share the blocks of a transformer.")
    host: _Text | None = Field(None, description="What dispatches the ops: torch-eager, tf1-session, tf2-keras, ...")
    devices: _Text | None = Field(None, description="CSV or TOML file with devices of your own.")
    price_usd_per_hour: _Positive | None = Field(None, description="Price of a device and hour.")
    region: _Text | None = Field(None, description="A country or a cloud's region, for CO2.")
    grid_g_per_kwh: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="CO2 of a kilowatt-hour, instead of the region's."
    )
    pue: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        1.0, description="What the site draws for each joule of its devices."
    )


class Target(_Part):
    """When it is good enough, by the log of an earlier run."""

    curve: _Text = Field(description="Log of an earlier run of the same model and data.")
    value: Annotated[float, Field(allow_inf_nan=False)] = Field(description="The loss or accuracy to reach.")
    metric: _Text | None = Field(None, description="loss, accuracy or a column's name; default: a loss.")


class Limits(_Part):
    """What it may take: a forecast beyond ends with exit code 3."""

    budget_usd: _Positive | None = Field(None, description="Dollars of the whole run.")
    hours: _Positive | None = Field(None, description="Hours of the whole run.")
    memory_fraction: _Share | None = Field(None, description="Share of the device's memory: 0.9.")


class Method(_Part):
    """How it is forecast."""

    name: _Text = Field("traincast", description="traincast, roofline, paleo or layerwise.")
    ppp: _Positive | None = Field(None, description="Fraction of the peaks that paleo reaches.")


class Job(_Part):
    """A training run for `traincast forecast JOB.toml`. Paths are relative to the file."""

    model: _Text | Model
    training: Training
    cluster: Cluster
    data: Data = Data()  # type: ignore[call-arg]
    target: Target | None = None
    limits: Limits = Limits()  # type: ignore[call-arg]
    method: Method = Method()  # type: ignore[call-arg]

    @property
    def gates(self) -> Gates:
        return Gates(**self.limits.model_dump())

    def options(self, folder: Path) -> dict[str, Any]:
        """Keyword arguments of `api.answering.answers`; files are looked for in the folder of the job."""
        model = Model(name=self.model) if isinstance(self.model, str) else self.model  # type: ignore[call-arg]
        shape = {name: value for name, value in model.model_dump(exclude={"name"}).items() if value is not None}
        training, cluster, target = self.training, self.cluster, self.target
        return {
            "model": _model_beside(model.name, folder),
            "model_options": shape,
            "on": [_beside(one, folder) for one in ([cluster.on] if isinstance(cluster.on, str) else cluster.on)],
            "batch_sizes": [training.batch] if isinstance(training.batch, int) else training.batch,
            "n_samples": self.data.samples,
            "n_epochs": training.epochs,
            "precision": training.precision,
            "optimizer": training.optimizer,
            "layout": training.layout,
            "compiled": training.compiled,
            "accumulation_steps": training.accumulate,
            "strategy": cluster.strategy,
            "tensor_parallel": cluster.tensor_parallel,
            "pipeline_parallel": cluster.pipeline_parallel,
            "method": self.method.name,
            "ppp": self.method.ppp,
            "host": cluster.host,
            "input_samples_per_s": self.data.input_samples_per_s,
            "price_usd_per_hour": cluster.price_usd_per_hour,
            "devices": None if cluster.devices is None else _beside(cluster.devices, folder),
            "region": cluster.region,
            "grid_g_per_kwh": cluster.grid_g_per_kwh,
            "pue": cluster.pue,
            "curve": None if target is None else _beside(target.curve, folder),
            "target": None if target is None else target.value,
            "metric": None if target is None else target.metric,
        }


def read_job(path: str | Path) -> Job:
    """The job of a TOML file; what is wrong with it is one sentence that names the key."""
    where = f"Job file '{path}'"
    try:
        content = parse_toml(regular(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise FileFormatError(f"{where} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(f"{where} is not TOML: {str(error).rstrip('.')}.") from None
    except OSError as error:
        raise InputError(f"{where} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # a path with a null character
        raise InputError(f"{where} cannot be read: {error}.") from None
    return job_of(content, where)


def job_of(content: dict[str, Any], where: str = "The job") -> Job:
    """The job of a table of tables."""
    try:
        return Job.model_validate(content)
    except ValidationError as error:
        raise FileFormatError(f"{where}: {_first(error)}") from None


def schema() -> dict[str, Any]:
    """The JSON Schema of a job."""
    title = "traincast job"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Job.model_json_schema(), "title": title}


_PARTS: dict[str, type[_Part]] = {
    "model": Model,
    "data": Data,
    "training": Training,
    "cluster": Cluster,
    "target": Target,
    "limits": Limits,
    "method": Method,
}


_LISTED = ("batch", "on")  # one value, or a list of them
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
    has_two_forms = any(part in _LISTED for part in mistake["loc"])
    is_list = isinstance(mistake["input"], list)
    is_other_form = has_two_forms and is_list != any("list" in str(part) for part in mistake["loc"])
    return mistake["type"] != "extra_forbidden", is_other_form, -len(mistake["loc"])


def _names() -> set[str]:
    return {*_PARTS, *(name for part in _PARTS.values() for name in part.model_fields)}


def _unknown(path: list[str]) -> str:
    known = list(Job.model_fields) if len(path) == 1 else list(_PARTS[path[0]].model_fields)
    close = close_names(path[-1], known)
    if not close:  # a key that is right in another table
        homes = [f"{part}.{path[-1]}" for part, fields in _PARTS.items() if path[-1] in fields.model_fields]
        close = f" It belongs to {homes[0]}." if homes else f" Known are {', '.join(known)}."
    return f"unknown key '{'.'.join(path)}'.{close}"


def _beside(name: str, folder: Path) -> str:
    """The file of that name beside the job, if there is one; else what was written."""
    return str(folder / name) if name and (folder / name).is_file() else name


def _model_beside(name: str, folder: Path) -> str:
    file, colon, factory = name.rpartition(":")
    if colon and (folder / file).is_file():
        return f"{folder / file}:{factory}"
    return _beside(name, folder)
