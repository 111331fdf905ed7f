"""`traincast records`: what is in a store, and out of it into files."""

import csv
import json

import pytest

from traincast.__main__ import run
from traincast.records.environment import Environment
from traincast.records.record import Record
from traincast.records.store import Store

HERE = Environment(
    device="Test CPU", device_kind="cpu", host="here", n_threads=1, n_cores=1, versions={}, clocks={}
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    def record(kind, number):
        values = {"step_s": 0.1 * number, "fastest_s": 0.1} if number else {"error": "It rained."}
        task = {"op": "gelu", "rows": 2, "cols": number}
        return Record(kind=kind, task=task, values=values, environment=HERE, created_s=1e9 + number)

    with Store(tmp_path / "a.db") as store:
        store.add_all(record("op", number) for number in range(4))
        store.add_all((record("step", number) for number in range(2)), campaign="mine")
    return tmp_path / "a.db"


def records(*arguments):
    return run(["records", *map(str, arguments)])


def test_a_table_of_kinds_and_campaigns(path, capsys):
    assert records(path) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:2] == ["6", "records"]
    assert lines[4][:4] == ["op", "default", "4", "1"]
    assert lines[5][:4] == ["step", "mine", "2", "1"]
    assert lines[5][-2:] == ["Test", "CPU"]


def test_json_has_base_units(path, capsys):
    assert records(path, "--kind", "step", "--json") == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group == {
        "kind": "step", "campaign": "mine", "n": 2, "n_failed": 1, "first_s": 1e9, "last_s": 1e9 + 1,
        "devices": ["Test CPU"],
    }  # fmt: skip


def test_the_table_is_a_page_as_well(path, tmp_path):
    assert records(path, "--html", tmp_path / "page.html") == 0
    assert "<th" in (tmp_path / "page.html").read_text()


def test_an_export_holds_the_chosen_kind(path, tmp_path, capsys):
    assert records(path, "--kind", "op", "--export", tmp_path / "out.csv") == 0
    assert "Wrote 4 records" in capsys.readouterr().err
    with (tmp_path / "out.csv").open(newline="") as file:
        assert {row["kind"] for row in csv.DictReader(file)} == {"op"}


def test_tables_are_written_into_a_folder(path, tmp_path):
    assert records(path, "--tables", tmp_path / "tables") == 0
    assert [file.name for file in (tmp_path / "tables" / "ops").iterdir()] == ["elementwise.csv.gz"]


def test_what_is_no_store_is_one_sentence_and_nothing_is_made(tmp_path, capsys):
    assert records(tmp_path / "none.db") == 2
    assert "There is no store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.db").write_bytes(b"no database at all, but long enough to be read as one" * 50)
    assert records(tmp_path / "a.db") == 2
    assert "is not a SQLite database" in capsys.readouterr().err


def test_an_empty_kind_shows_no_rows(path, capsys):
    assert records(path, "--kind", "nothing") == 0
    assert "(no rows)" in capsys.readouterr().out


def test_what_others_measured_is_added_once_and_a_bad_file_leaves_no_store(tmp_path, capsys):
    table, store = tmp_path / "theirs.csv", tmp_path / "new.db"
    table.write_text("model,device\nresnet50,T4\n")
    assert records(store, "--import", table) == 2
    assert not store.exists()
    table.write_text("model,batch_size,device,step_s\nresnet50,32,T4,0.2\nresnet50,64,T4,0.4\n")
    assert records(store, "--import", table) == 0
    assert f"Imported 2 records from {table}.\n" in capsys.readouterr().err
    assert records(store, "--import", table, "--json") == 0
    printed = capsys.readouterr()
    assert f"Imported 0 records from {table}; 2 were there before.\n" in printed.err
    (group,) = json.loads(printed.out)["groups"]
    assert (group["n"], group["campaign"]) == (2, "theirs.csv")


def test_a_store_is_not_imported_into_itself(path, capsys):
    assert records(path, "--import", path) == 2
    assert "is the store itself" in capsys.readouterr().err
    assert records(path) == 0
    assert capsys.readouterr().out.startswith("6 records")
