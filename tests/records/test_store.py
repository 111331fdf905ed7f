"""The store of records: whole, shared, and clear about what it is not."""

import dataclasses
import hashlib
import itertools
import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_samples import HERE, record

from traincast.errors import FileFormatError, InputError, StoreError
from traincast.records.record import task_key
from traincast.records.store import Store
from traincast.records.store_file import VERSION, check_store

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text()


@given(st.dictionaries(st.text(), SCALARS))
def test_a_key_does_not_depend_on_the_order_of_the_settings(settings):
    assert task_key("layer", settings) == task_key("layer", dict(reversed(settings.items())))


@given(st.dictionaries(st.text(), st.integers()), st.dictionaries(st.text(), st.integers()))
def test_different_settings_have_different_keys(first, second):
    assert (task_key("op", first) == task_key("op", second)) == (first == second)


def test_a_key_is_the_same_on_every_machine_and_for_every_version_of_us():
    text = '["layer",{"batch":2,"layer":"dense"}]'
    assert task_key("layer", {"layer": "dense", "batch": 2}) == hashlib.sha256(text.encode()).hexdigest()


def test_what_was_stored_comes_back_in_order_after_closing(tmp_path):
    given_records = [record(2), record(1, kind="op"), record(3, values={"error": "No memory."})]
    with Store(tmp_path / "a.db") as store:
        assert [store.add(each) for each in given_records] == [True] * 3
    with Store(tmp_path / "a.db", create=False) as store:
        assert store.records() == given_records
        assert store.records("op") == given_records[1:2]
        assert store.keys(campaign="default", failed=True) == {given_records[2].key}


def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"cannot be reached: File name too long"):
        Store(tmp_path / ("a" * 300))


def test_whether_records_can_be_stored_is_told_without_making_the_file(tmp_path):
    check_store(tmp_path / "new.db")
    assert list(tmp_path.iterdir()) == []
    with Store(tmp_path / "a.db"):
        pass
    check_store(tmp_path / "a.db")
    (tmp_path / "b.db").write_bytes(b"no database at all, but long enough to be read as one" * 50)
    with pytest.raises(FileFormatError, match="is not a SQLite database"):
        check_store(tmp_path / "b.db")


def test_a_task_is_stored_once_a_campaign_and_the_first_result_stays(tmp_path):
    with Store(tmp_path / "a.db") as store:
        assert store.add(record(1, values={"step_s": 1.0}))
        assert not store.add(record(1, values={"step_s": 2.0}))
        assert store.add(record(1, values={"step_s": 3.0}), campaign="another")
        assert [each.values["step_s"] for each in store.records()] == [1.0, 3.0]


def test_a_failure_gives_way_to_a_result_and_a_result_never_to_a_failure(tmp_path):
    failure = record(1, values={"error": "It rained."})
    with Store(tmp_path / "a.db") as store:
        assert store.add(failure)
        assert store.add(record(1))
        assert not store.add(failure)
        assert store.records() == [record(1)]


def test_many_records_of_one_environment_store_it_once(tmp_path):
    other = dataclasses.replace(HERE, device="Other CPU")
    with Store(tmp_path / "a.db") as store:
        n_new = store.add_all([record(number) for number in range(5)] + [record(9, environment=other)])
        (group,) = store.groups()
    assert n_new == 6
    assert (group.n, group.n_failed, group.devices) == (6, 0, ("Other CPU", "Test CPU"))
    assert one_value(tmp_path / "a.db", "SELECT count(*) FROM environments") == 2


def test_all_of_many_records_are_stored_or_none(tmp_path):
    with Store(tmp_path / "a.db") as store:
        with pytest.raises(TypeError):
            store.add_all([record(1), record(2, values={"step_s": object()})])
        assert store.records() == []


@pytest.mark.parametrize("content", [b"\x07random bytes" * 500, b"batch,step_s\n2,0.1\n"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "a.db"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a\.db' is not a SQLite database"):
        Store(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(FileFormatError, match="of another program"):
        Store(path)
    assert path.read_bytes() == content


def test_a_store_of_another_version_names_both_versions(tmp_path):
    path = tmp_path / "a.db"
    Store(path).close()
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    with pytest.raises(FileFormatError, match=f"has version {VERSION + 1}, and this traincast reads version {VERSION}"):
        Store(path)


def test_a_store_cut_short_is_called_damaged(tmp_path):
    path = tmp_path / "a.db"
    with Store(path) as store:
        store.add_all(record(number) for number in range(300))
    path.write_bytes(path.read_bytes()[:8192])
    with pytest.raises(FileFormatError, match="damaged"), Store(path) as store:
        store.records()


def test_places_where_no_store_can_be_are_named(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(InputError, match=r"folder '.*nowhere' does not exist"):
        Store(tmp_path / "nowhere" / "a.db")
    with pytest.raises(InputError, match="There is no store"):
        Store(tmp_path / "a.db", create=False)
    assert not (tmp_path / "a.db").exists()
    with pytest.raises(InputError, match="not a regular file"):
        Store("/dev/null")


def test_an_empty_file_is_no_store_to_read_but_can_become_one(tmp_path):
    path = tmp_path / "a.db"
    path.touch()
    with pytest.raises(FileFormatError, match="is empty"):
        Store(path, create=False)
    with Store(path) as store:
        assert store.add(record())


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path):
    with small_disk(tmp_path / "disk", n_bytes=600_000) as folder:
        with Store(folder / "a.db") as store:
            stored = fill(store)
            assert store.add(record(0)) is False  # it still answers
        with Store(folder / "a.db", create=False) as store:
            assert [each.task["number"] for each in store.records()] == list(range(stored))
        assert one_value(folder / "a.db", "PRAGMA integrity_check") == "ok"


def test_a_place_that_may_not_be_written_is_one_sentence(tmp_path):
    with small_disk(tmp_path / "disk", n_bytes=600_000) as folder:
        Store(folder / "old.db").close()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        for name in ("old.db", "new.db"):
            with pytest.raises(StoreError, match=f"'.*{name}' cannot be written here"):
                Store(folder / name)


def fill(store):
    """How many records went in before the disk was full."""
    numbers = itertools.count()
    with pytest.raises(StoreError, match=r"The disk of store '.*' is full"):
        all(store.add(record(number, values={"text": "x" * 5000})) for number in numbers)
    return next(numbers) - 1


class small_disk:
    """A file system of so many bytes; where none may be mounted the test is skipped."""

    def __init__(self, folder, *, n_bytes):
        self.folder, self.n_bytes = folder, n_bytes

    def __enter__(self):
        self.folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={self.n_bytes}", "tmpfs", str(self.folder)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("a small file system can only be mounted by root")
        return self.folder

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


def test_processes_that_open_a_new_store_at_once_all_write_to_it(tmp_path):
    script = textwrap.dedent("""
        import sys, time
        from stored_samples import record
        from traincast.records.store import Store
        me, path, start_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
        time.sleep(max(0, start_s - time.time()))
        with Store(path) as store:
            for number in range(20):
                store.add(record(100 * me + number))
                store.add(record(number), campaign="shared")
    """)
    start_s = str(time.time() + 3)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(me), str(tmp_path / "a.db"), start_s], env=environment)
        for me in range(1, 5)
    ]
    assert [child.wait(timeout=60) for child in children] == [0] * 4
    with Store(tmp_path / "a.db") as store:
        assert len(store.records()) == 4 * 20 + 20
        assert len(store.records(campaign="shared")) == 20
    assert one_value(tmp_path / "a.db", "PRAGMA integrity_check") == "ok"


def one_value(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchone()[0]
    finally:
        connection.close()
