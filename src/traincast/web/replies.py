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
    headers: list[str] = Field(description="One a column.")
    is_numeric: list[bool] = Field(description="Whether a column holds numbers, one a column.")
    rows: list[list[str]] = Field(description="Cells with their units, one a column.")
    notes: list[str] = Field(description="Remarks on the table.")


class ShownChart(BaseModel):
    """A plotly figure."""

    title: str = Field(description="What the chart is about.")
    figure: dict[str, Any] = Field(description="`data` and `layout` for plotly; axes name their units.")


class CardRow(BaseModel):
    """One number."""

    label: str = Field(description="What it is.")
    value: str = Field(description="With its unit.")
    detail: str = Field(description="From what to what it may be, or what it is compared with.")


class Card(BaseModel):
    """What people came for, at one place."""

    title: str = Field(description="The place.")
    fits: bool = Field(description="Whether the step fits in a device's memory.")
    rows: list[CardRow] = Field(description="Time, cost, step, memory, speed; what is not known is left out.")


class PlaceProblem(BaseModel):
    """A place that is left out of the answer, and why."""

    on: str = Field(description="The place as it was asked for.")
    error: str = Field(description="One sentence, as in an error.")


class Shown(BaseModel):
    """An answer: what the command prints, what it draws, and what its --json holds."""

    title: str = Field(description="What was asked.")
    subtitle: str = Field(description="How the step is run, or what was compared.")
    verdict: str = Field(description="The answer in a sentence or two, where there is one; else empty.")
    cards: list[Card] = Field(description="Of a forecast; else empty.")
    problems: list[PlaceProblem] = Field(description="Places of a forecast that have no answer; the others have.")
    metrics: list[str] = Field(description="Of a log that is continued: what a target can be of. Else empty.")
    tables: list[ShownTable] = Field(description="As the command prints them.")
    charts: list[ShownChart] = Field(description="As the command draws them.")
    notes: list[str] = Field(description="Warnings (these begin with 'Warning: '), notes and assumptions.")
    data: dict[str, Any] = Field(description="Raw values in base units, with the unit in each name.")


class ModelName(BaseModel):
    """A model that questions can name."""

    name: str = Field(description="What questions name as `model`.")
    title: str = Field(description="The name in full.")
    n_parameters: int | None = Field(description="Trainable parameters.")


class ModelNames(BaseModel):
    """All zoo models."""

    models: list[ModelName] = Field(description="In the order of the zoo.")


class DeviceName(BaseModel):
    """A device that questions can name."""

    name: str = Field(description="What questions name as `on`.")
    year: int | None = Field(description="In which it came out.")
    memory_bytes: int = Field(description="Bytes of its own memory.")


class MachineName(BaseModel):
    """A machine that questions can name."""

    name: str = Field(description="What questions name as `on`.")
    provider: str = Field(description="Who rents it out.")
    devices: str = Field(description="How many of which device it has, such as 8xV100-SXM2-16GB.")
    price_usd_per_hour: float | None = Field(description="US dollars an hour of the whole machine, as listed.")
    price_date: str | None = Field(description="Day of the price, as YYYY-MM-DD.")


class PlaceNames(BaseModel):
    """All places."""

    devices: list[DeviceName] = Field(description="Single devices.")
    machines: list[MachineName] = Field(description="Machines that can be rented.")
    providers: list[str] = Field(description="Those that rent out something.")


class Uploaded(BaseModel):
    """A model that the server keeps for a while, in memory."""

    id: str = Field(description="What questions name as `model`.")
    name: str = Field(description="The file's name, to show.")
    kind: str = Field(description="What it was: trace, onnx or config.")
    n_parameters: int = Field(description="Trainable parameters.")
    n_ops: int = Field(description="Operations of one step.")
    assumptions: list[str] = Field(description="What the file does not say and was taken for granted.")


class UploadedLog(BaseModel):
    """A log that the server keeps for a while, in memory."""

    id: str = Field(description="What a target names as `log`.")
    name: str = Field(description="The file's name, to show.")
    metrics: list[str] = Field(description="What a target can be of.")
