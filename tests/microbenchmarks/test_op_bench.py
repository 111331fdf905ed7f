"""Single ops: the same for the same seed, and timed with the shapes they say."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError, MemoryEndedError
from traincast.microbenchmarks import op_bench
from traincast.microbenchmarks.op_bench import op_of, run_op
from traincast.microbenchmarks.op_tasks import ELEMENTWISE, ROW_WISE, conv_output_size, op_tasks, op_work

torch.set_num_threads(1)


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_more_ops_of_a_seed_begin_with_the_fewer_and_none_comes_twice(seed, n):
    fewer, more = op_tasks(n, seed), op_tasks(n + 10, seed)
    assert more[:n] == fewer
    assert len({task.key for task in more}) == n + 10


def test_every_op_is_among_a_few_hundred():
    assert {task.settings["op"] for task in op_tasks(400)} == {"linear", "bmm", "conv", *ELEMENTWISE, *ROW_WISE}


def test_no_ops_are_no_benchmark():
    with pytest.raises(InputError, match="at least one row"):
        op_tasks(-1)


def test_the_shapes_of_ops_by_hand():
    assert op_of({"op": "linear", "b": 1, "m": 2, "n": 3, "k": 4}, "cpu")().shape == (1, 2, 3)
    assert op_of({"op": "bmm", "b": 5, "m": 2, "n": 3, "k": 4}, "cpu")().shape == (5, 2, 3)
    conv = {"op": "conv", "n": 2, "c_in": 3, "c_out": 4, "ksize": 3, "hw_in": 7, "stride": 2, "pad": 1}
    assert op_of(conv, "cpu")().shape == (2, 4, 4, 4)
    assert conv_output_size(conv) == 4
    assert op_work({"op": "bmm", "b": 5, "m": 2, "n": 3, "k": 4}) == (2 * 5 * 2 * 3 * 4, 4 * 5 * (8 + 12 + 6))
    assert op_work(conv) == (2 * 2 * 16 * 3 * 4 * 9, 4 * (2 * (3 * 49 + 4 * 16) + 3 * 4 * 9))
    assert op_work({"op": "add", "rows": 2, "cols": 3}) == (0, 4 * 3 * 6)
    assert op_work({"op": "ln", "rows": 2, "cols": 3}) == (0, 4 * 2 * 6)


@pytest.mark.parametrize("name", [*ELEMENTWISE, *ROW_WISE])
def test_every_op_on_rows_keeps_their_shape(name):
    output = op_of({"op": name, "rows": 3, "cols": 4}, "cpu")()
    assert output.shape == (3, 4)
    assert not output.isnan().any()


def test_an_op_is_timed_and_its_fastest_runs_are_no_slower_than_the_median(monkeypatch):
    monkeypatch.setattr(op_bench, "repeats", lambda: range(10))
    values = run_op({"op": "linear", "b": 1, "m": 2, "n": 3, "k": 4, "device": "cpu"})
    assert 0 < values["min_s"] <= values["fastest_s"] <= values["median_s"]
    assert (values["n_runs"], values["flop"], values["bytes"]) == (10, 48, 4 * (8 + 12 + 6))


def test_an_op_without_memory_or_name_gives_one_sentence():
    with pytest.raises(MemoryEndedError, match="Op add on 'cpu' ran out of memory"):
        run_op({"op": "add", "rows": 2**24, "cols": 2**24})
    with pytest.raises(InputError, match="no op 'sort' to time"):
        run_op({"op": "sort", "rows": 2, "cols": 2})
