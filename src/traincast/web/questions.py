"""What can be asked: the bodies of requests, with the limits that keep an answer short."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Precision = Literal["fp32", "tf32", "amp-fp16", "amp-bf16", "bf16"]
Optimizer = Literal["none", "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam", "adamw"]
Strategy = Literal["ddp", "dp", "mirrored", "fsdp", "zero1", "zero2", "zero3"]
_PLACE = "A device or machine of /api/devices, also as '4xT4' or '2x4xT4@50Gb/s'. Never a file."
Place = Annotated[str, Field(min_length=1, max_length=80, description=_PLACE, examples=["T4"])]
Count = Annotated[int, Field(ge=1, le=1_048_576)]
Metric = Annotated[str, Field(min_length=1, max_length=80, examples=["accuracy"])]
_OWN_METRIC = (
    "What the target is of: loss, accuracy, f1 or a column's name. Without it, and with a target that can be one, an "
    "accuracy where the log has one, else a loss."
)
Price = Annotated[float | None, Field(gt=0, le=10_000)]
_PRICE = "US dollars an hour of one device. Without it the listed price of a machine."
_EPOCHS = "Passes over the samples of one epoch."
_STRATEGY = "How several devices share the work."


def _example(**question: JsonValue) -> ConfigDict:
    """For the document; a test asks each of them."""
    return ConfigDict(json_schema_extra={"examples": [{"model": "resnet50", **question}]})


class Target(BaseModel):
    """What is good enough, and the log of an earlier run that tells how long that takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    log: str = Field(min_length=1, max_length=80, description="The id of a log that was uploaded.")
    value: float = Field(
        ge=-1e9, le=1e9, description="In the unit of the log; an accuracy as a fraction or in percent.", examples=[0.92]
    )
    metric: Metric | None = Field(default=None, description=_OWN_METRIC)


class Question(BaseModel):
    """A model, its batch and how it is trained."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    model: str = Field(
        min_length=1, max_length=80, description="A name of /api/models, or the id of an upload.", examples=["resnet50"]
    )
    batch_size: Count = Field(default=32, description="Samples of one update, of all devices together.")
    precision: Precision | None = Field(default=None, description="Without it as captured: fp32 for zoo models.")
    optimizer: Optimizer | None = Field(default=None, description="Without it as captured: sgd for zoo models.")

    @property
    def settings(self) -> dict[str, Any]:
        return {"precision": self.precision, "optimizer": self.optimizer}


class StepQuestion(Question):
    """How the step is run."""

    layout: Literal["nchw", "nhwc"] = Field(default="nchw", description="Of images in memory; nhwc: channels last.")
    compiled: bool = Field(default=False, description="Under torch.compile.")
    input_samples_per_s: float | None = Field(
        default=None, gt=0, le=1e9, description="What the data loader delivers, samples a second."
    )

    @property
    def settings(self) -> dict[str, Any]:
        names = ("precision", "optimizer", "layout", "compiled", "input_samples_per_s")
        return {name: getattr(self, name) for name in names}


class RunQuestion(StepQuestion):
    """And how long."""

    n_samples: int | None = Field(default=None, ge=1, le=10**12, description="Samples of one epoch.")
    n_epochs: int = Field(default=1, ge=1, le=100_000, description=_EPOCHS)

    @property
    def length(self) -> dict[str, Any]:
        return {"n_samples": self.n_samples, "n_epochs": self.n_epochs}


class ForecastQuestion(RunQuestion):
    """What will this run take, at each of these places?"""

    model_config = _example(
        on=["g4dn.xlarge", "4xT4"], batch_size=64, n_samples=1_281_167, n_epochs=90, precision="amp-fp16"
    )

    on: list[Place] = Field(
        min_length=1, max_length=8, description="Places to compare, each with an answer of its own."
    )
    accumulation_steps: int = Field(default=1, ge=1, le=4096, description="Passes that make up one update.")
    strategy: Strategy = Field(default="ddp", description=_STRATEGY)
    price_usd_per_hour: Price = Field(default=None, description=_PRICE)
    target: Target | None = Field(default=None, description="Tells when it is reached, beside the time of the epochs.")


class MemoryQuestion(Question):
    """Does it fit?"""

    model_config = _example(on="T4", batch_size=64, optimizer="adamw")

    on: Place | None = Field(default=None, description=f"{_PLACE} Without it nothing is said about fitting.")


class LayersQuestion(Question):
    """What does each layer ask for?"""

    model_config = _example(on="T4", batch_size=64)

    on: Place | None = Field(default=None, description=f"{_PLACE} Without it no times are told.")


class ExplainQuestion(StepQuestion):
    """Why does a step take so long, and what would help?"""

    model_config = _example(on="T4", batch_size=64)

    on: Place


class ScaleQuestion(RunQuestion):
    """What do more devices bring? `batch_size` is global, for strong scaling."""

    model_config = _example(on="8xV100-SXM2-16GB", batch_size=512, n_samples=1_281_167)

    on: Place
    n_devices: list[Annotated[int, Field(ge=1, le=512)]] | None = Field(
        default=None,
        min_length=1,
        max_length=12,
        description="Numbers of devices. Without it 1, 2, 4 ... of the place.",
    )
    strategy: Strategy = Field(default="ddp", description=_STRATEGY)
    price_usd_per_hour: Price = Field(default=None, description=_PRICE)


class PlanQuestion(StepQuestion):
    """What should be rented? Machines of up to `max_gpus` devices on `max_nodes` nodes are compared."""

    model_config = _example(batch_size=256, n_samples=1_281_167, n_epochs=90, deadline_s=86_400.0, budget_usd=200.0)

    batch_size: Count = Field(default=256, description="Samples of one update, of all devices together.")
    n_samples: int = Field(ge=1, le=10**12, description="Samples of one epoch.")
    n_epochs: int = Field(default=1, ge=1, le=100_000, description=_EPOCHS)
    target: Target | None = Field(default=None, description="An accuracy, which takes the place of `n_epochs`.")
    deadline_s: float | None = Field(default=None, gt=0, le=1e9, description="Seconds that the run may take.")
    budget_usd: float | None = Field(default=None, gt=0, le=1e9, description="US dollars that the run may cost.")
    confidence: float = Field(default=0.8, ge=0.5, le=0.99, description="Probability to stay within both, a fraction.")
    provider: str | None = Field(
        default=None, min_length=1, max_length=40, description="One of those of /api/devices. Without it all."
    )
    strategy: Strategy | None = Field(default=None, description="Without it ddp, and fsdp where that does not fit.")
    spot: bool = Field(default=False, description="Whether to compare spot prices, too.")
    max_gpus: int = Field(default=16, ge=1, le=64, description="Devices of a plan, at most.")
    max_nodes: int = Field(default=2, ge=1, le=8, description="Machines of a plan, at most.")


QUESTIONS: dict[str, type[Question]] = {
    "forecast": ForecastQuestion,
    "memory": MemoryQuestion,
    "layers": LayersQuestion,
    "explain": ExplainQuestion,
    "scale": ScaleQuestion,
    "plan": PlanQuestion,
}


def target_of(asked: Question) -> Target | None:
    """The target of a question, where it can have one."""
    return asked.target if isinstance(asked, ForecastQuestion | PlanQuestion) else None


class LogQuestion(BaseModel):
    """Where will a run end? Of the log that is the body."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=200, description="The file's name, to show.")
    metric: Metric | None = Field(default=None, description=_OWN_METRIC)
    target: float | None = Field(default=None, ge=-1e9, le=1e9, description="What is good enough.")
    total_steps: float | None = Field(default=None, gt=0, le=1e12, description="Length of the run, in the log's steps.")
    n_epochs: float | None = Field(default=None, gt=0, le=1e6, description="Length of the run in epochs.")
    usd_per_hour: float | None = Field(
        default=None, ge=0, le=1e6, description="US dollars an hour, all devices together."
    )
