"""Campaigns: resumed, shared, killed, and never doing or storing a thing twice."""

import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import killed_campaign
import pytest

from traincast.errors import InputError, StoreError
from traincast.records.campaign import Task, run_campaign
from traincast.records.claims import LEASE_S, claim, is_alive, release, this_process
from traincast.records.store import Store
from traincast.records.work_list import WorkList

TASKS = [Task("sum", {"number": number}) for number in range(5)]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "a.db") as opened:
        yield opened


class Doing:
    """Runs tasks and remembers which; `broken` numbers cannot be done."""

    def __init__(self, *, broken=(), error=InputError):
        self.done, self.broken, self.error = [], set(broken), error

    def __call__(self, settings):
        self.done.append(settings["number"])
        if settings["number"] in self.broken:
            raise self.error(f"Number {settings['number']}\n is broken.")
        return {"double": 2 * settings["number"]}


def test_each_task_is_done_and_stored_in_order(store):
    run, told = Doing(), []
    progress = run_campaign(TASKS, run, store, campaign="sums", on_progress=told.append)
    assert run.done == [0, 1, 2, 3, 4]
    assert [record.values for record in store.records("sum", campaign="sums")] == [{"double": 2 * n} for n in range(5)]
    assert (progress.n_now, progress.n_before, progress.n_left) == (5, 0, 0)
    assert [each.n_done for each in told] == [0, 1, 2, 3, 4, 5]


def test_a_record_tells_where_it_was_measured(store):
    run_campaign(TASKS[:1], Doing(), store)
    (record,) = store.records()
    assert record.environment.host == socket.gethostname()
    assert record.environment.device_kind == "cpu"


def test_the_same_call_again_does_nothing_and_more_tasks_only_what_is_new(store):
    run_campaign(TASKS[:3], Doing(), store)
    run = Doing()
    progress = run_campaign(TASKS, run, store)
    assert run.done == [3, 4]
    assert (progress.n_now, progress.n_before) == (2, 3)


def test_a_task_given_twice_is_done_once(store):
    run = Doing()
    assert run_campaign(TASKS[:2] * 3, run, store).n_tasks == 2
    assert run.done == [0, 1]


def test_a_task_that_cannot_be_done_is_stored_with_its_sentence_and_stops_nobody(store):
    progress = run_campaign(TASKS, Doing(broken=[1]), store)
    assert (progress.n_now, progress.n_failed, progress.n_left) == (5, 1, 0)
    assert [record.error for record in store.records()] == [None, "Number 1 is broken.", None, None, None]


def test_what_failed_is_tried_again_only_when_asked_and_then_once(store):
    run_campaign(TASKS, Doing(broken=[1, 3]), store)
    unasked, asked = Doing(), Doing(broken=[3])
    assert run_campaign(TASKS, unasked, store).n_failed == 2
    progress = run_campaign(TASKS, asked, store, retry_failed=True)
    assert unasked.done == []
    assert asked.done == [1, 3]
    assert (progress.n_before, progress.n_now, progress.n_failed) == (3, 2, 1)
    assert [record.error for record in store.records()] == [None, None, None, "Number 3 is broken.", None]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interruption_keeps_what_is_done_and_the_next_call_goes_on(store, error):
    with pytest.raises(error):
        run_campaign(TASKS, Doing(broken=[2], error=error), store)
    assert len(store.records()) == 2
    run = Doing()
    run_campaign(TASKS, run, store)
    assert run.done == [2, 3, 4]


def test_a_disk_that_fills_stops_the_campaign_with_one_sentence_and_it_can_go_on(store):
    def run(settings):
        return {"text": "x" * 20_000}

    with store.transaction() as connection:
        n_pages = connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {n_pages + 12}")
    with pytest.raises(StoreError, match=r"is full\. What was stored before is safe"):
        run_campaign(TASKS, run, store)
    n_stored = len(store.records())
    assert 0 < n_stored < 5
    store._connection.execute("PRAGMA max_page_count = 100000")
    assert run_campaign(TASKS, run, store).n_before == n_stored


def test_a_task_that_another_runner_has_is_left_to_it(store, tmp_path):
    first = WorkList(TASKS[:2], store, campaign="c")
    with Store(tmp_path / "a.db") as again:
        with again.transaction() as connection:
            held(connection, TASKS[0].key, owner=another_process())
        assert first.take() == TASKS[1]
        assert first.take() is None
        assert not first.is_done


def held(connection, key, *, owner, expires_s=None):
    expires_s = time.time() + LEASE_S if expires_s is None else expires_s
    connection.execute("INSERT INTO claims VALUES ('c', ?, ?, ?)", (key, owner, expires_s))


def another_process():
    """The name of a process that lives: ours, as another machine would call it."""
    return f"another-machine {os.getpid()} 1"


def test_a_lease_that_ran_out_and_a_process_that_ended_hold_nothing(store):
    child = subprocess.run(
        [sys.executable, "-c", "from traincast.records.claims import this_process; print(this_process())"],
        capture_output=True,
        text=True,
        check=True,
    )
    with store.transaction() as connection:
        held(connection, "expired", owner=another_process(), expires_s=50.0)
        held(connection, "alive", owner=another_process(), expires_s=150.0)
        held(connection, "ended", owner=child.stdout.strip(), expires_s=150.0)
        ours = {key: claim(connection, "c", key, now_s=100.0) for key in ("expired", "alive", "ended", "free")}
    assert ours == {"expired": True, "alive": False, "ended": True, "free": True}


def test_a_process_knows_itself_alive_and_a_later_one_of_its_number_as_another():
    host, pid, started = this_process().rsplit(" ", 2)
    assert is_alive(this_process())
    assert not is_alive(f"{host} {pid} {int(started) - 1}")
    assert is_alive(f"another-{host} {pid} {started}") is None


def test_the_claim_of_a_process_that_lives_here_outlasts_its_lease(store):
    with subprocess.Popen(
        [sys.executable, "-c", "from traincast.records.claims import this_process; print(this_process()); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        owner = other.stdout.readline().strip()
        with store.transaction() as connection:
            held(connection, "long", owner=owner, expires_s=50.0)
            assert not claim(connection, "c", "long", now_s=100.0)
        other.communicate("\n")
    with store.transaction() as connection:
        assert claim(connection, "c", "long", now_s=100.0)


def test_only_the_owner_gives_a_claim_back(store):
    with store.transaction() as connection:
        held(connection, "k", owner=another_process())
        release(connection, "c", "k")
        assert not claim(connection, "c", "k")


SCRIPT = Path(killed_campaign.__file__)


def start(path, seconds):
    return subprocess.Popen([sys.executable, str(SCRIPT), str(path), str(seconds)])


def wait_for(condition, *, longest_s=60.0):
    deadline_s = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def rows(path):
    if not path.exists():
        return []
    connection = sqlite3.connect(path, timeout=30)
    try:
        return connection.execute("SELECT id, key, value, created_s FROM records ORDER BY id").fetchall()
    except sqlite3.OperationalError:  # not made yet
        return []
    finally:
        connection.close()


def test_kill_minus_nine_again_and_again_loses_and_doubles_nothing(tmp_path):
    path, source, kept = tmp_path / "a.db", random.Random(5), []
    for n_at_least in (3, 10, 18):
        child = start(path, 0.01)
        wait_for(lambda n=n_at_least: len(rows(path)) >= n)
        time.sleep(source.uniform(0, 0.02))  # anywhere in a task or a transaction
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        now = rows(path)
        assert now[: len(kept)] == kept, "rows stored before the kill have changed"
        kept = now
    assert start(path, 0.0).wait(timeout=60) == 0
    final = rows(path)
    assert final[: len(kept)] == kept
    assert sorted(key for _, key, *_ in final) == sorted(task.key for task in killed_campaign.tasks())
    with Store(path, create=False) as store:
        assert {record.task["number"]: record.values["square"] for record in store.records()} == {
            number: number**2 for number in range(killed_campaign.N_TASKS)
        }
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*) FROM claims").fetchone() == (0,)
    connection.close()


def test_two_runners_share_the_work_and_the_one_left_does_what_the_killed_one_had(tmp_path):
    path = tmp_path / "a.db"
    killed, other = start(path, 0.1), start(path, 0.1)
    wait_for(lambda: len({runner for _, runner in begun(tmp_path)}) == 2 and len(rows(path)) >= 6)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert other.wait(timeout=60) == 0
    assert len(rows(path)) == killed_campaign.N_TASKS
    numbers = [number for number, _ in begun(tmp_path)]
    assert set(numbers) == set(range(killed_campaign.N_TASKS))
    assert len(numbers) <= killed_campaign.N_TASKS + 1, "only what the killed one had begun is done again"


def begun(folder):
    """(task, process) of all that was begun."""
    marks = folder / "begun.txt"
    return [tuple(map(int, line.split())) for line in marks.read_text().splitlines()] if marks.exists() else []
