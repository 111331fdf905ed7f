"""JSON carries raw values under names with units."""

import json
import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.report.document import Document
from traincast.report.json_ import plain, to_dict, to_json
from traincast.report.table import Column, Table


def test_a_document_keeps_base_units():
    table = Table(
        title="Steps",
        columns=(Column(key="name", header="device"), Column(key="step_s", header="step", show="duration")),
        rows=(("T4", 0.25), ("V100", math.nan)),
        notes=("measured",),
    )
    assert json.loads(to_json(to_dict(Document(title="Time", subtitle="fp32", tables=(table,), notes=("n",))))) == {
        "title": "Time",
        "subtitle": "fp32",
        "tables": [
            {
                "title": "Steps",
                "rows": [{"name": "T4", "step_s": 0.25}, {"name": "V100", "step_s": None}],
                "notes": ["measured"],
            }
        ],
        "notes": ["n"],
    }


class Colour(Enum):
    RED = "red"


class Kind(str, Enum):  # noqa: UP042
    GEMM = "gemm"


@dataclass(frozen=True)
class Point:
    x_s: float
    shape: tuple[int, ...]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), [[1.0, None], [None, 2.0]]),
        (np.float64("nan"), None),
        (-math.inf, None),
        ((1, 2), [1, 2]),
        ({1: Path("a/b"), Colour.RED: None}, {"1": "a/b", "red": None}),
        (Kind.GEMM, "gemm"),
        (Point(0.1, (2, 3)), {"x_s": 0.1, "shape": [2, 3]}),
    ],
)
def test_values_become_what_json_knows(value, expected):
    assert plain(value) == expected
    assert json.loads(to_json(value)) == expected


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="JSON cannot represent object"):
        plain(object())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(value=json_values)
def test_plain_values_survive_the_round_trip(value):
    assert json.loads(to_json(value)) == value


@given(values=st.lists(st.floats()))
def test_no_float_breaks_strict_json(values):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    read = json.loads(to_json({"values_s": values}), parse_constant=refuse)
    assert read == {"values_s": [value if math.isfinite(value) else None for value in values]}
