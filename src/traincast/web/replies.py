"""What comes back, for the OpenAPI document. Answers are written by hand into JSON that has this form."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Problem(BaseModel):
    """Why there is no answer."""

    error: str = Field(
        description="One sentence: what was given, what is wrong with it, what would be right.",
        examples=["Batch (batch_size) should be at least 1, not 0."],
    )


class ShownTable(BaseModel):
    """A table with its cells as people read them."""

    title: str = Field(description="What the table is about.")
    headers: list[str] = Field(description="One per column.")
    is_numeric: list[bool] = Field(description="Whether each column is numeric.")
    rows: list[list[str]] = Field(description="Cells with their units, one per column.")
    notes: list[str] = Field(description="Notes on the table.")


class ShownChart(BaseModel):
    """A plotly figure."""

    title: str = Field(description="What the chart is about.")
    figure: dict[str, Any] = Field(description="`data` and `layout` for plotly; axes name their units.")


class CardRow(BaseModel):
    """One number."""

    label: str = Field(description="What it is.")
    value: str = Field(description="With its unit.")
    detail: str = Field(description="Its interval, or what it is compared with.")


class Card(BaseModel):
    """What people came for, at one place."""

    title: str = Field(description="The place.")
    fits: bool = Field(description="Whether the step fits in a device's memory.")
    rows: list[CardRow] = Field(description="Time, cost, step, memory, speed; unknown ones are left out.")


class PlaceProblem(BaseModel):
    """A place that is left out of the answer, and why."""

    on: str = Field(description="The place as it was asked for.")
    error: str = Field(description="One sentence, as in an error.")


class Shown(BaseModel):
    """An answer: what the command prints, what it draws, and what its --json holds."""

    title: str = Field(description="What was asked.")
    subtitle: str = Field(description="The settings of the step, or what was compared.")
    verdict: str = Field(description="The answer in a sentence or two, where there is one; else empty.")
    cards: list[Card] = Field(description="For a forecast; otherwise empty.")
    problems: list[PlaceProblem] = Field(description="Places of a forecast without an answer, and why.")
    metrics: list[str] = Field(description="For a log: the metrics that a target can have; otherwise empty.")
    tables: list[ShownTable] = Field(description="As the command prints them.")
    charts: list[ShownChart] = Field(description="As the command draws them.")
    notes: list[str] = Field(description="Warnings (these begin with 'Warning: '), notes and assumptions.")
    data: dict[str, Any] = Field(description="Raw values in base units, with the unit in each name.")


class UsualRun(BaseModel):
    """How a published language model is usually trained, by the names of the options."""

    on: str = Field(description="A place.")
    batch_size: int = Field(description="Sequences of one update.")
    seqlen: int = Field(description="Tokens in a sequence.")
    n_tokens: int = Field(description="Tokens of the run: 20 a parameter.")
    precision: str = Field(description="As the model's own default.")
    optimizer: str = Field(description="As the model's own default.")
    strategy: str | None = Field(description="How several devices share the work; null for one.")
    recompute: str | None = Field(description="Activations that are made again; null for none.")


class ModelName(BaseModel):
    """A model that questions can name."""

    name: str = Field(description="The name to use as `model`.")
    title: str = Field(description="The name in full.")
    n_parameters: int | None = Field(description="Trainable parameters.")
    usual: UsualRun | None = Field(description="Of a published language model; null for others.")


class ModelNames(BaseModel):
    """All zoo models."""

    models: list[ModelName] = Field(description="In the order of the zoo.")


class DeviceName(BaseModel):
    """A device that questions can name."""

    name: str = Field(description="The name to use as `on`.")
    year: int | None = Field(description="Release year.")
    memory_bytes: int = Field(description="Memory of the device in bytes.")


class MachineName(BaseModel):
    """A machine that questions can name."""

    name: str = Field(description="The name to use as `on`.")
    provider: str = Field(description="The provider.")
    devices: str = Field(description="Number and type of its devices, such as 8xV100-SXM2-16GB.")
    price_usd_per_hour: float | None = Field(description="List price of the whole machine in US dollars per hour.")
    price_date: str | None = Field(description="Date of the price (YYYY-MM-DD).")


class PlaceNames(BaseModel):
    """All places."""

    devices: list[DeviceName] = Field(description="Single devices.")
    machines: list[MachineName] = Field(description="Machines that can be rented.")
    providers: list[str] = Field(description="Providers with offers.")


class Uploaded(BaseModel):
    """A model that the server keeps for a while, in memory."""

    id: str = Field(description="The name to use as `model`.")
    name: str = Field(description="The file's name, for display.")
    kind: str = Field(description="The kind of file: trace, onnx or config.")
    n_parameters: int = Field(description="Trainable parameters.")
    n_ops: int = Field(description="Operations of one step.")
    assumptions: list[str] = Field(description="What was assumed because the file does not say it.")


class UploadedLog(BaseModel):
    """A log that the server keeps for a while, in memory."""

    id: str = Field(description="The id to use as `log` of a target.")
    name: str = Field(description="The file's name, for display.")
    metrics: list[str] = Field(description="Metrics that a target can have.")
