"""What comes back, for the OpenAPI document. Answers are written by hand into JSON that has this form."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Problem(BaseModel):
    """Why there is no answer."""

    error: str = Field(description="One sentence: what was given, what is wrong with it, what would be right.")


class ShownTable(BaseModel):
    """A table with its cells as people read them."""

    title: str
    headers: list[str]
    is_numeric: list[bool]
    rows: list[list[str]]
    notes: list[str]


class ShownChart(BaseModel):
    """A plotly figure."""

    title: str
    figure: dict[str, Any]


class CardRow(BaseModel):
    """One number."""

    label: str
    value: str
    detail: str


class Card(BaseModel):
    """What people came for, at one place."""

    title: str
    fits: bool
    rows: list[CardRow]


class Shown(BaseModel):
    """An answer: what the command prints, what it draws, and what its --json holds."""

    title: str
    subtitle: str
    cards: list[Card] = Field(description="Of a forecast; else empty.")
    tables: list[ShownTable]
    charts: list[ShownChart]
    notes: list[str]
    data: dict[str, Any] = Field(description="Raw values in base units, with the unit in each name.")


class ModelName(BaseModel):
    """A model that questions can name."""

    name: str
    title: str
    n_parameters: int | None


class ModelNames(BaseModel):
    """All zoo models."""

    models: list[ModelName]


class DeviceName(BaseModel):
    """A device that questions can name."""

    name: str
    year: int | None
    memory_bytes: int


class MachineName(BaseModel):
    """A machine that questions can name."""

    name: str
    provider: str
    devices: str
    price_usd_per_hour: float | None
    price_date: str | None


class PlaceNames(BaseModel):
    """All places."""

    devices: list[DeviceName]
    machines: list[MachineName]
    providers: list[str] = Field(description="Those that rent out something.")


class Uploaded(BaseModel):
    """A model that the server keeps for a while, in memory."""

    id: str = Field(description="What questions name as `model`.")
    name: str
    kind: str
    n_parameters: int
    n_ops: int
    assumptions: list[str]


class UploadedLog(BaseModel):
    """A log that the server keeps for a while, in memory."""

    id: str = Field(description="What a target names as `log`.")
    name: str
    metrics: list[str]
