"""Tables: raw values inside, one way to read them."""

import math

import numpy as np
import pytest

from traincast.report.table import Column, Table, columns_of, show_value


def test_the_column_decides_how_a_raw_value_reads():
    table = Table(
        title="layers",
        columns=(
            Column(key="layer", header="layer"),
            Column(key="n_parameters", header="parameters", show="integer"),
            Column(key="forward_flop", header="forward", show="flop"),
            Column(key="output_bytes", header="output", show="bytes"),
            Column(key="step_s", header="time", show="duration"),
            Column(key="output_shape", header="shape", show="shape"),
        ),
        rows=(("conv1", 9408, 2.36e8, 3_211_264, 0.00025, (64, 112, 112)),),
    )
    assert table.formatted() == [["conv1", "9,408", "236 Mflop", "3.06 MiB", "250 us", "64x112x112"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (math.nan, "-"), (math.inf, "inf"), (-math.inf, "-inf"), (np.float32(0.5), "500 ms")],
)
def test_what_is_missing_or_not_finite_does_not_look_like_a_number(value, text):
    assert show_value(value, "duration") == text


def test_numbers_are_right_aligned_and_only_text_may_wrap():
    assert Column(key="step_s", header="", show="duration").is_numeric
    assert not Column(key="name", header="").is_numeric
    assert Column(key="name", header="").may_wrap
    assert not Column(key="shape", header="", show="shape").may_wrap


@pytest.mark.parametrize(
    ("key", "show"),
    [("time", "duration"), ("memory", "bytes"), ("share", "percent"), ("flops", "flop"), ("price", "usd")],
)
def test_a_key_must_carry_the_unit_because_json_has_nothing_else(key, show):
    with pytest.raises(ValueError, match=f"column '{key}' shows {show}, so its key should end in"):
        Column(key=key, header="", show=show)


@pytest.mark.parametrize(
    ("key", "show"),
    [("step_s", "duration"), ("bytes", "bytes"), ("price_usd_per_hour", "usd"), ("step_s_p10", "duration")],
)
def test_keys_with_their_unit_are_fine(key, show):
    assert Column(key=key, header="", show=show).key == key


def test_a_table_that_does_not_add_up_is_refused():
    name = Column(key="name", header="")
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table(title="t", columns=(name,), rows=(("a", "b"),))
    with pytest.raises(ValueError, match="two columns of one key"):
        Table(title="t", columns=(name, name), rows=())
    with pytest.raises(ValueError, match="no way to show 'parsecs'"):
        Column(key="a", header="", show="parsecs")


def test_columns_are_written_as_text_and_the_unit_of_a_key_says_how_its_values_read():
    found = columns_of("rent as name, total_s: time, samples_per_s, n_gpus: GPUs, link_bytes_per_s: rate, what:")
    assert [column.header for column in found] == ["rent", "time", "samples_per_s", "GPUs", "rate", ""]
    assert [column.show for column in found] == ["name", "duration", "ratio", "integer", "bytes_per_s", "text"]


def test_a_way_to_show_that_there_is_none_of_is_refused_in_text_too():
    with pytest.raises(ValueError, match="no way to show 'minutes'"):
        columns_of("total_s: time as minutes")
