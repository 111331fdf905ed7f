"""What can be asked: the bodies of requests, with the limits that keep an answer short."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Precision = Literal["fp32", "tf32", "amp-fp16", "amp-bf16", "bf16"]
Optimizer = Literal["none", "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam", "adamw"]
Strategy = Literal["ddp", "dp", "mirrored", "fsdp", "zero1", "zero2", "zero3"]
Place = Annotated[
    str,
    Field(
        min_length=1,
        max_length=80,
        description="A device or machine of /api/devices, also as '4xT4' or '2x4xT4@50Gb/s'. Never a file.",
        examples=["T4"],
    ),
]
Count = Annotated[int, Field(ge=1, le=1_048_576)]
Price = Annotated[float | None, Field(gt=0, le=10_000, description="Of one device.")]


class Target(BaseModel):
    """What is good enough, and the log of an earlier run that tells how long that takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    log: str = Field(min_length=1, max_length=80, description="The id of a log that was uploaded.")
    value: float = Field(ge=-1e9, le=1e9)
    metric: Literal["loss", "accuracy"] | None = Field(default=None, description="Without it the log's own.")


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

    layout: Literal["nchw", "nhwc"] = "nchw"
    compiled: bool = Field(default=False, description="Under torch.compile.")
    input_samples_per_s: float | None = Field(default=None, gt=0, le=1e9, description="What the data loader delivers.")

    @property
    def settings(self) -> dict[str, Any]:
        names = ("precision", "optimizer", "layout", "compiled", "input_samples_per_s")
        return {name: getattr(self, name) for name in names}


class RunQuestion(StepQuestion):
    """And how long."""

    n_samples: int | None = Field(default=None, ge=1, le=10**12, description="Samples of one epoch.")
    n_epochs: int = Field(default=1, ge=1, le=100_000)

    @property
    def length(self) -> dict[str, Any]:
        return {"n_samples": self.n_samples, "n_epochs": self.n_epochs}


class ForecastQuestion(RunQuestion):
    """What will this run take, at each of these places?"""

    on: list[Place] = Field(min_length=1, max_length=8)
    accumulation_steps: int = Field(default=1, ge=1, le=4096)
    strategy: Strategy = "ddp"
    price_usd_per_hour: Price = None
    target: Target | None = None


class MemoryQuestion(Question):
    """Does it fit?"""

    on: Place | None = None


class LayersQuestion(Question):
    """What does each layer ask for?"""

    on: Place | None = None


class ExplainQuestion(StepQuestion):
    """Why does a step take so long, and what would help?"""

    on: Place


class ScaleQuestion(RunQuestion):
    """What do more devices bring? `batch_size` is global, for strong scaling."""

    on: Place
    n_devices: list[Annotated[int, Field(ge=1, le=512)]] | None = Field(default=None, min_length=1, max_length=12)
    strategy: Strategy = "ddp"
    price_usd_per_hour: Price = None


class PlanQuestion(StepQuestion):
    """What should be rented? Machines of up to `max_gpus` devices on `max_nodes` nodes are compared."""

    batch_size: Count = Field(default=256, description="Samples of one update, of all devices together.")
    n_samples: int = Field(ge=1, le=10**12, description="Samples of one epoch.")
    n_epochs: int = Field(default=1, ge=1, le=100_000)
    target: Target | None = Field(default=None, description="An accuracy, which takes the place of `n_epochs`.")
    deadline_s: float | None = Field(default=None, gt=0, le=1e9)
    budget_usd: float | None = Field(default=None, gt=0, le=1e9)
    confidence: float = Field(default=0.8, ge=0.5, le=0.99)
    provider: str | None = Field(default=None, min_length=1, max_length=40)
    strategy: Strategy | None = Field(default=None, description="Without it ddp, and fsdp where that does not fit.")
    spot: bool = False
    max_gpus: int = Field(default=16, ge=1, le=64)
    max_nodes: int = Field(default=2, ge=1, le=8)


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
    metric: Literal["loss", "accuracy"] | None = None
    target: float | None = Field(default=None, ge=-1e9, le=1e9, description="What is good enough.")
    total_steps: float | None = Field(default=None, gt=0, le=1e12)
    n_epochs: float | None = Field(default=None, gt=0, le=1e6)
    usd_per_hour: float | None = Field(default=None, ge=0, le=1e6, description="Of all devices together.")
