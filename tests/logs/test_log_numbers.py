"""Numbers out of bytes: as `float` reads them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.logs.fast_cells import numbers_of


def read(text: str, n_columns: int):
    return numbers_of(text.encode(), separator=b",", n_columns=n_columns, wanted=list(range(n_columns)))


plain_numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**8), max_value=10**8, places=6)


@given(st.lists(st.tuples(plain_numbers, plain_numbers), min_size=1, max_size=20))
def test_decimal_fractions_of_up_to_fifteen_digits_are_what_float_gives(rows):
    columns = read("".join(f"{a:f},{b:f}\n" for a, b in rows), 2)
    assert [values.tolist() for values in columns] == [[float(a) for a, _ in rows], [float(b) for _, b in rows]]


@given(st.lists(st.tuples(plain_numbers, st.integers(-20, 8)), min_size=1, max_size=20))
def test_exponents_too(rows):
    texts = [f"{mantissa:f}e{exponent:+03d}" for mantissa, exponent in rows]
    (column,) = read("".join(f"{text}\n" for text in texts), 1)
    assert column.tolist() == [pytest.approx(float(text), rel=3e-16, abs=0) for text in texts]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_as_python_writes_them_are_read_to_the_last_digits(values):
    (column,) = read("".join(f"{value!r}\n" for value in values), 1)
    assert column.tolist() == pytest.approx(values, rel=1e-14, abs=0)


@pytest.mark.parametrize("cell", ["1e-05", "+2.5", "-3E4", ".5", "5.", "-.25", "0.1234567890123456789012345678", "007"])
def test_other_ways_to_write_a_number(cell):
    (column,) = read(f"{cell}\n", 1)
    assert column[0] == float(cell)


def test_an_empty_cell_is_told_from_a_number_that_is_not_finite():
    first, second = read("1,\n,nan\n-inf,3\n", 2)
    assert first[0] == 1
    assert math.isnan(first[1])
    assert second[1] == math.inf
    assert first[2] == math.inf
    assert math.isnan(second[0])


def test_spaces_and_line_ends_of_windows_do_not_matter():
    first, second = read("1, 2.5\r\n 3 ,4\r\n", 2)
    assert (first.tolist(), second.tolist()) == ([1, 3], [2.5, 4])


@pytest.mark.parametrize("text", ["1,2\n3\n", '1,"2"\n', "1,two\n", "1,2,3\n", "1,2\n\n3,4\n", "1,1.2.3\n", "1,-\n"])
def test_what_is_not_plain_is_left_to_the_careful_reader(text):
    assert read(text, 2) is None


def test_only_the_wanted_columns_need_to_be_numbers():
    (loss,) = numbers_of(b"warm,1,0.5\ncold,2,0.25\n", separator=b",", n_columns=3, wanted=[2])
    np.testing.assert_array_equal(loss, [0.5, 0.25])
