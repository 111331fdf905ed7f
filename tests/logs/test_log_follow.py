"""A log that grows, is cut, is replaced, is half written."""

import json
import os
import time

import pytest
from written_logs import event_file

import traincast as tc
from traincast.errors import FileFormatError
from traincast.logs.follow import LogFollower
from traincast.logs.reading import Reading


def append(path, text):
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("step,loss\n", "{step},{loss}\n"),
        ("", '{{"step": {step}, "loss": {loss}}}\n'),
        ("starting\n", "step {step} loss {loss}\n"),
    ],
)
def test_what_was_appended_is_read_and_a_line_without_its_end_is_waited_for(tmp_path, header, row):
    path = tmp_path / "log"
    follower = LogFollower(path)
    assert follower.poll() is None  # not there yet
    path.write_text(header)
    assert follower.poll() is None
    append(path, row.format(step=1, loss=3) + row.format(step=2, loss=2)[:-4])
    assert follower.poll().find("loss").steps.tolist() == [1]
    assert follower.poll() is None
    append(path, row.format(step=2, loss=2)[-4:] + row.format(step=3, loss=1))
    assert follower.poll().find("loss").values.tolist() == [3, 2, 1]
    assert tc.read_log(path).find("loss").values.tolist() == [3, 2, 1]


def test_a_truncated_log_begins_anew_and_says_so(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{step},{9 - step}\n" for step in range(1, 7)))
    follower = LogFollower(path)
    assert len(follower.poll().find("loss")) == 6
    path.write_text("step,loss\n4,1\n5,0.5\n")
    log = follower.poll()
    assert log.find("loss").steps.tolist() == [1, 2, 3, 4, 5]
    assert log.find("loss").values.tolist() == [8, 7, 6, 1, 0.5]
    assert log.restarts == (4,)
    assert any("truncated or replaced once" in remark for remark in log.remarks)


def test_a_rotated_log_goes_on_in_the_new_file(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": {step}, "loss": 1}}\n' for step in range(3)))
    follower = LogFollower(path)
    follower.poll()
    path.rename(tmp_path / "log.jsonl.1")
    assert follower.poll() is None
    path.write_text("".join(f'{{"step": {step}, "loss": 0.5, "more": "text"}}\n' for step in range(3, 8)))
    log = follower.poll()
    assert log.find("loss").steps.tolist() == list(range(8))
    assert log.restarts == (3,)


def test_a_state_that_is_half_written_is_tried_again(tmp_path):
    path = tmp_path / "trainer_state.json"
    state = json.dumps({"max_steps": 9, "log_history": [{"step": 1, "epoch": 0.5, "loss": 2}]}, indent=1)
    path.write_text(state[: len(state) // 2])
    follower = LogFollower(path)
    assert follower.poll() is None
    path.write_text(state)
    assert follower.poll().total_steps == 9
    assert follower.poll() is None


def test_event_files_are_read_again_when_they_change(tmp_path):
    events = [(1.0 + step, step, "loss", 1.0) for step in range(4)]
    event_file(tmp_path / "events.out.tfevents.1", events[:2])
    follower = LogFollower(tmp_path)
    assert len(follower.poll().find("loss")) == 2
    assert follower.poll() is None
    event_file(tmp_path / "events.out.tfevents.1", events)
    assert len(follower.poll().find("loss")) == 4


def test_a_folder_was_written_when_its_files_were(tmp_path):
    assert LogFollower(tmp_path / "none").written_at_s is None
    event_file(tmp_path / "events.out.tfevents.1", [(1.0, 1, "loss", 1.0)])
    os.utime(tmp_path, (1000.0, 1000.0))
    assert time.time() - LogFollower(tmp_path).written_at_s < 600


def test_a_pattern_and_the_steps_of_an_epoch_hold_for_what_follows(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("e1 2.5\ne2 2\n")
    follower = LogFollower(path, Reading(pattern=r"e(?P<epoch>\d+) (?P<loss>\S+)", steps_per_epoch=10))
    assert follower.poll().find("loss").steps.tolist() == [10, 20]
    append(path, "e3 1.5\n")
    assert follower.poll().find("loss").steps.tolist() == [10, 20, 30]


def test_what_is_no_log_is_not_waited_for(tmp_path):
    path = tmp_path / "log.bin"
    path.write_bytes(b"\x00\x01" * 5000)
    with pytest.raises(FileFormatError, match="binary"):
        LogFollower(path).poll()


def test_an_event_file_that_begins_anew_is_read_from_its_start(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    event_file(path, [(1.0 + step, step, "loss", 1.0) for step in range(9)])
    follower = LogFollower(tmp_path)
    follower.poll()
    event_file(path, [(100.0 + step, step, "loss", 2.0) for step in range(4)])
    assert follower.poll().find("loss").values.tolist() == [2.0] * 4


def test_a_document_in_one_line_is_followed(tmp_path):
    path = tmp_path / "history.json"
    path.write_text('[{"step": 1, "loss": 2}, {"ste')
    follower = LogFollower(path)
    assert follower.poll() is None
    path.write_text('[{"step": 1, "loss": 2}, {"step": 2, "loss": 1}]')
    assert follower.poll().find("loss").steps.tolist() == [1, 2]
