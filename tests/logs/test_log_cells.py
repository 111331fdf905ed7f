"""Numbers as people write them: thousands, percentages, dates, odd separators, other encodings."""

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.logs.cells import value_in
from traincast.logs.clock import seconds_of


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("12", 12.0), (" 1.5 ", 1.5), ("12,345", 12345.0), ("1,234,567.5", 1234567.5), ("0,523", 0.523), ("2,5", 2.5),
        ("85%", 0.85), ("85.5 %", 0.855), ("nan", np.inf), ("1970-01-02T00:00:00Z", 86400.0),
    ],
)  # fmt: skip
def test_a_cell_is_a_number_a_percentage_or_a_time(cell, value):
    assert value_in(cell) == pytest.approx(value)


@pytest.mark.parametrize("cell", ["", "red", "2024-02-30 12:00:00", "0000-00-00 00:00:00", "1,23,456"])
def test_what_is_no_number_is_none(cell):
    assert np.isnan(value_in(cell))


def test_where_semicolons_part_cells_a_comma_is_decimal():
    assert value_in("2,345", has_thousands=False) == 2.345


def test_steps_with_thousands_separators(tmp_path):
    (tmp_path / "log.txt").write_text("step 12,345 loss 2.1\nstep 12,445 loss 2.0\n")
    assert tc.read_log(tmp_path / "log.txt").find("loss").steps.tolist() == [12345, 12445]
    (tmp_path / "log.csv").write_text('step,loss\n"12,345",2.1\n"12,445",2.0\n')
    assert tc.read_log(tmp_path / "log.csv").find("loss").steps.tolist() == [12345, 12445]


@pytest.mark.parametrize(
    ("header", "cells"), [("acc", ("0.1%", "0.9%")), ("acc (%)", ("0.1", "0.9")), ("acc_pct", ("0.1%", "0.9%"))]
)
def test_early_percentages_are_small_fractions(tmp_path, header, cells):
    file = tmp_path / "log.csv"
    file.write_text(f"step,{header}\n" + "".join(f"{step},{cell}\n" for step, cell in enumerate(cells, 1)))
    assert tc.read_log(file).find("accuracy").values.tolist() == pytest.approx([0.001, 0.009])


def test_times_of_json_lines_are_a_clock(tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_text(
        '{"step": 1, "loss": 2, "timestamp": "2024-06-06T12:00:00Z"}\n'
        '{"step": 2, "loss": 1, "timestamp": "2024-06-06T12:00:30Z"}\n'
    )
    assert tc.read_log(file).find("loss").seconds.tolist() == [0, 30]


def test_a_number_that_is_too_large_is_not_finite(tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_text('{"step": 1, "loss": 2}\n{"step": 2, "loss": 1' + "0" * 400 + "}\n")
    assert tc.read_log(file).find("loss").n_not_finite == 1


@pytest.mark.parametrize(
    "date", ["0000-00-00 00:00:00", "2024-02-30 10:00:00", "0001-01-01 00:00:00", "2024-06-06 23:59:60"]
)
def test_a_date_that_is_none_costs_no_line(tmp_path, date):
    file = tmp_path / "log.txt"
    file.write_text(f"{date} step 1 loss 2.5\n{date} step 2 loss 2\n")
    assert tc.read_log(file).find("loss").values.tolist() == [2.5, 2]


def test_a_table_of_pandas_with_its_index(tmp_path):
    file = tmp_path / "log.tsv"
    file.write_text("\tstep\tloss\n0\t10\t2.5\n1\t20\t2\n")
    log = tc.read_log(file)
    assert (log.find("loss").steps.tolist(), log.remarks) == ([10, 20], ())


def test_a_separator_at_the_end_of_each_row(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("step,loss\n10,2.5,\n20,2,\n")
    log = tc.read_log(file)
    assert (log.find("loss").values.tolist(), log.remarks) == ([2.5, 2], ())


def test_what_powershell_writes(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text("step 1 loss 2.5\nstep 2 loss 2\n", encoding="utf-16")
    assert tc.read_log(file).find("loss").values.tolist() == [2.5, 2]


@pytest.mark.parametrize(
    ("name", "durations"),
    [("time", [30.1, 30.2, 30.4]), ("train_time", [30.0, 31.0, 29.5, 30.5]), ("elapsed", [30.0, 31.0, 29.5, 30.5])],
)
def test_durations_of_a_few_rows_are_no_clock_yet(name, durations):
    seconds, remarks = seconds_of(np.array(durations), name)
    assert seconds is None
    assert "duration of each row" in remarks[0]


def test_the_clock_of_a_run_that_was_resumed_goes_on():
    once = np.arange(1.0, 21.0) * 30
    seconds, remarks = seconds_of(np.concatenate((once, once)), "time")
    assert seconds.tolist() == pytest.approx([*once, *(600 + once)])
    assert remarks == ("The clock 'time' restarts once: its times are added up.",)


def test_one_slow_row_makes_no_clock_of_durations():
    durations = np.full(40, 0.3)
    durations[20] = 5.0
    assert seconds_of(durations, "time")[0] is None


def test_columns_are_for_tables_and_json_lines(tmp_path):
    file = tmp_path / "log.txt"
    file.write_text("it 1 loss 2\nit 2 loss 1\n")
    with pytest.raises(InputError, match="columns= says what columns of a table"):
        tc.read_log(file, columns={"step": "it"})


@pytest.mark.parametrize("format", ["csv", "text", "jsonl", "tensorboard", "wandb", "trainer_state"])
def test_a_missing_file_of_a_given_format(tmp_path, format):
    with pytest.raises(InputError, match="There is no log"):
        tc.read_log(tmp_path / "missing", format=format)


def test_a_history_of_wandb_may_be_a_table(tmp_path):
    file = tmp_path / "history.csv"
    file.write_text("_step,_runtime,loss\n1,1.5,2\n2,3,1\n")
    log = tc.read_log(file, format="wandb")
    assert (log.format, log.find("loss").seconds.tolist()) == ("wandb", [1.5, 3])
