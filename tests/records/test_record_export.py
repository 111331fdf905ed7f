"""Records as tables: flat CSV and Parquet, and the columns that the fits read."""

import contextlib
import csv
import dataclasses
import gzip
import sqlite3

import pytest
from stored_samples import HERE, record

from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.kernels.layerwise.rows import read_layers
from traincast.kernels.refit.op_rows import read_rows
from traincast.microbenchmarks.public_tables import write_public_tables
from traincast.records.export import export
from traincast.records.record import Record
from traincast.records.store import Store


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_has_the_task_the_values_and_the_environment_by_name(tmp_path):
    assert export([("first", record(3, values={"step_s": 0.1, "marks": [1, 2]}))], tmp_path / "a.csv") == 1
    (row,) = read(tmp_path / "a.csv")
    assert row["campaign"] == "first"
    assert (row["task.layer"], row["task.number"]) == ("dense", "3")
    assert (row["value.step_s"], row["value.marks"]) == ("0.1", "[1, 2]")
    assert (row["environment.device"], row["environment.versions.torch"]) == ("Test CPU", "2.13.0")


def test_records_of_different_kinds_share_one_header_and_leave_cells_empty(tmp_path):
    rows = [("c", record(1)), ("c", record(2, kind="op", values={"error": 'No, "really".'}))]
    export(rows, tmp_path / "a.csv")
    first, second = read(tmp_path / "a.csv")
    assert (first["value.step_s"], first["value.error"]) == ("0.1", "")
    assert (second["value.step_s"], second["value.error"]) == ("", 'No, "really".')
    names = [name.partition(".")[0] for name in first]
    assert names == sorted(names, key=["campaign", "kind", "created_s", "task", "value", "environment"].index)


def test_parquet_holds_the_same_with_types_and_mixed_columns_as_text(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the parquet extra is not installed")
    mixed = [record(n, values={"a": a}) for n, a in enumerate([1, 2.5, None])]
    mixed += [record(n, values={"b": b}) for n, b in enumerate([1, "one"], start=3)]
    assert export([("c", each) for each in mixed], tmp_path / "a.parquet") == 5
    columns = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert columns["task.number"] == [0, 1, 2, 3, 4]
    assert columns["value.a"] == [1.0, 2.5, None, None, None]
    assert columns["value.b"] == [None, None, None, "1", "one"]


def test_nothing_to_export_is_a_header(tmp_path):
    assert export([], tmp_path / "a.csv") == 0
    assert (tmp_path / "a.csv").read_text() == "campaign,kind,created_s\n"


def test_another_ending_is_refused_and_a_failing_export_leaves_the_old_file(tmp_path):
    with pytest.raises(InputError, match=r"\.csv or \.parquet, and '.*a\.xlsx' is neither"):
        export([], tmp_path / "a.xlsx")
    (tmp_path / "a.csv").write_text("old")

    def broken():
        yield "c", record(1)
        raise InputError("The store went away.")

    with pytest.raises(InputError, match="went away"):
        export(broken(), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "old"


GPU = dataclasses.replace(HERE, device="K80", device_kind="cuda")


def layer(**settings):
    times = {"forward_s": 0.001, "step_s": 0.004}
    spread = {f"{what}_{name}": value for name, value in times.items() for what in ("min", "max", "std")}
    return Record(kind="layer", task=settings, values={**times, **spread}, environment=GPU, created_s=1.0)


def test_layers_are_read_by_the_layerwise_fit_once_forward_and_once_with_the_update(tmp_path):
    image = {"input_size": 8, "kernel": 3, "channels_in": 2, "channels_out": 5, "stride": 2, "padding": "SAME"}
    conv = layer(layer="conv", batch=4, **image, bias=1, activation="relu", optimizer="rmsprop", device="cuda")
    dense = layer(layer="dense", batch=4, dim_in=2, dim_out=3, activation="none", optimizer="adam", device="cuda")
    failed = dataclasses.replace(dense, values={"error": "No memory."})
    paths = write_public_tables([("c", conv), ("c", dense), ("c", failed)], tmp_path)
    assert [path.name for path in paths] == ["conv_K80.csv.gz", "dense_K80.csv.gz"]
    read_conv = read_layers(tmp_path / "layers", "conv", gpus=["K80"])
    assert read_conv.median_s.tolist() == [0.001, 0.004]
    assert read_conv.layers.has_backward.tolist() == [False, True]
    assert read_conv.layers.output_size.tolist() == [4, 4]
    assert len(read_layers(tmp_path / "layers", "dense", gpus=["K80"])) == 2


def test_ops_have_the_columns_and_milliseconds_of_the_public_ones(tmp_path):
    def op(**settings):
        values = {"fastest_s": 0.002, "median_s": 0.003}
        return "c", Record(kind="op", task=settings, values=values, environment=GPU, created_s=1.0)

    sizes = {"dtype": "fp32", "device": "cuda"}
    write_public_tables(
        [
            op(op="linear", b=1, m=2, n=3, k=4, **sizes),
            op(op="gelu", rows=5, cols=6, **sizes),
            op(op="ln", rows=7, cols=8, **sizes),
        ],
        tmp_path,
    )
    (linear,), (gelu,), (norm,) = (
        read_rows(tmp_path / "ops" / f"{name}.csv.gz") for name in ("gemm_linear", "elementwise", "softmax_ln")
    )
    assert (linear["device"], linear["op"], linear["k"], linear["ms"]) == ("K80", "linear", "4", "2.0")
    assert (gelu["op"], gelu["rows"], norm["op"], norm["cols"]) == ("gelu", "5", "ln", "8")


def test_the_same_records_give_the_same_bytes(tmp_path):
    rows = [("c", layer(layer="lstm", batch=4, seqlen=2, dim_in=2, dim_out=3, optimizer="sgd"))]
    (first,), (second,) = (write_public_tables(rows, tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()).startswith(b"run,batch,seqlen,dim_in,dim_out,optimizer,backward,")


def test_a_store_without_layers_and_ops_has_no_tables(tmp_path):
    with pytest.raises(InputError, match="no layer or op records"):
        write_public_tables([("c", record(1, kind="step"))], tmp_path)


@pytest.mark.parametrize("spoilt", [{"values": {"step_s": 1.0}}, {"task": {}}, {"task": {"layer": "none"}}])
@pytest.mark.parametrize("kind", ["layer", "op"])
def test_a_record_that_nobody_measured_so_is_refused_by_its_campaign(tmp_path, spoilt, kind):
    conv = dataclasses.replace(layer(layer="lstm", op="linear", batch=4, optimizer="sgd"), kind=kind, **spoilt)
    with pytest.raises(FileFormatError, match=f"A record of kind '{kind}' in campaign 'mine' is damaged"):
        write_public_tables([("mine", conv)], tmp_path)


@pytest.mark.parametrize(
    ("column", "content"),
    [("created_s", "soon"), ("created_s", 1e300), ("created_s", b"\0"), ("kind", b"\xff"), ("campaign", b"\xff")],
)
def test_a_store_with_a_damaged_cell_is_refused_by_name_by_whatever_reads_it(tmp_path, column, content):
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.add(record(1))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE records SET {column} = ?", (content,))
        connection.commit()
    with Store(path) as store:
        for read in (store.groups, store.records):
            with pytest.raises(FileFormatError, match=r"Store '.*a\.db' is damaged: "):
                read()


def test_a_device_that_is_a_number_of_many_digits_is_damage(tmp_path):
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.add(record(1))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE environments SET content = ?", (f'{{"device": {"9" * 400}}}',))
        connection.commit()
    with (
        Store(path) as store,
        pytest.raises(FileFormatError, match=r"a\.db' is damaged: an environment was not"),
    ):
        store.groups()


@pytest.mark.parametrize("content", ["{", "[1]", "null", "", "[" * 100_000, 5, b"\xff\x00"])
@pytest.mark.parametrize(("table", "column"), [("records", "task"), ("records", "value"), ("environments", "content")])
def test_a_damaged_store_is_refused_by_name_when_it_is_exported(tmp_path, table, column, content):
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.add(record(1))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ?", (content,))
        connection.commit()
    with Store(path) as store, pytest.raises(TraincastError, match=r"a\.db"):
        export(store.rows(), tmp_path / "a.csv")
