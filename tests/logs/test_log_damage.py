"""Files that were damaged, saved by other programs, or are no logs: read as far as they go, or refused in words."""

import bz2
import io
import lzma
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from written_logs import batched_event_file, event_file

import traincast as tc
from traincast.errors import FileFormatError, InputError
from traincast.logs.follow import LogFollower
from traincast.logs.reading import Reading
from traincast.logs.whole_lines import WholeLines

ROWS = [(step, round(1 + 5 / step, 4)) for step in range(10, 410, 10)]
TABLE = "step,loss,acc\n" + "".join(f"{step},{loss},0.5\n" for step, loss in ROWS)
LINES = "".join(f"step {step} loss {loss}\n" for step, loss in ROWS)


def saved(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        TABLE.replace("\n", "\r\n"),
        TABLE.replace("\n", "\r"),
        b"\xff\xfe" + TABLE.encode("utf-16-le"),
        b"\xfe\xff" + TABLE.encode("utf-16-be"),
        TABLE.encode("utf-16-le"),
        b"\xff\xfe" + TABLE.encode("utf-16-le") + b"4",  # half a character
        b"\xef\xbb\xbf" + TABLE.encode(),
        TABLE.replace(",", ";").replace(".", ","),
        TABLE.replace(",", "\t").replace(".", ","),
        "sep=;\n" + TABLE.replace(",", ";").replace(".", ","),
        LINES.replace("\n", "\r\n"),
    ],
)
def test_encodings_and_ends_of_lines_change_nothing(tmp_path, content):
    loss = tc.read_log(saved(tmp_path / "log", content)).find("loss")
    assert list(zip(loss.steps.tolist(), loss.values.tolist(), strict=True)) == ROWS


@pytest.mark.parametrize("last", ["410,1.", "410", "410,"])
def test_a_number_that_is_cut_off_with_its_line_is_not_believed(tmp_path, last):
    log = tc.read_log(saved(tmp_path / "log.csv", TABLE + last))
    assert log.find("loss").steps[-1] == 400
    assert "1 lines are truncated or not rows of the table." in log.remarks


def test_a_last_row_that_only_lacks_its_end_counts(tmp_path):
    assert tc.read_log(saved(tmp_path / "log.csv", TABLE + "410,1.5,0.5")).find("loss").values[-1] == 1.5


@pytest.mark.parametrize(
    ("name", "content"), [("log.csv", TABLE), ("log.txt", LINES), ("log.jsonl", '{"step": 400, "loss": 1.0125}\n')]
)
def test_holes_of_nul_bytes_are_left_out_and_told(tmp_path, name, content):
    file = saved(tmp_path / name, b"\0" * 40 + content.encode() + b"\0" * 60)
    log = tc.read_log(file)
    assert log.find("loss").steps[-1] == 400
    assert "100 NUL bytes between its lines, as after a crash, are left out." in log.remarks


def test_a_hole_in_a_log_that_is_followed(tmp_path):
    file = saved(tmp_path / "log.csv", TABLE)
    follower = LogFollower(file)
    follower.poll()
    saved(file, TABLE.encode() + b"\0" * 7 + b"410,1,0.5\n")
    log = follower.poll()
    assert log.find("loss").steps[-1] == 410
    assert any(remark.startswith("7 NUL bytes") for remark in log.remarks)


def test_a_file_with_room_but_no_rows_yet_is_waited_for(tmp_path):
    file = saved(tmp_path / "log.csv", b"\0" * 4096)
    assert LogFollower(file).poll() is None
    with pytest.raises(FileFormatError, match="is empty: nothing has been logged yet"):
        tc.read_log(file)


def test_lines_of_two_processes_in_turn_are_one_series_of_their_means(tmp_path):
    text = "".join(f"[rank0] step {step} loss {loss}\n[rank1] step {step} loss {loss + 1}\n" for step, loss in ROWS)
    loss = tc.read_log(saved(tmp_path / "log.txt", text)).find("loss")
    assert loss.values.tolist() == pytest.approx([value + 0.5 for _, value in ROWS])


def test_rows_in_which_two_processes_met_are_left_out(tmp_path):
    torn = TABLE.replace("\n100,1.05,0.5\n110,1.0455,0.5\n", "\n100,110,1.0455,0.5\n1.05,0.5\n")
    log = tc.read_log(saved(tmp_path / "log.csv", torn))
    assert log.find("loss").steps.tolist() == [step for step, _ in ROWS if step not in (100, 110)]
    assert "2 lines are truncated or not rows of the table." in log.remarks


def checkpoint():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"loss": [1, 2]}))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (checkpoint(), "is a zip archive, such as PyTorch saves checkpoints in, not a readable log"),
        (pickle.dumps({"loss": [1, 2]}, protocol=2), "is a binary file, not a readable log"),
        (bz2.compress(TABLE.encode()), "is a file compressed with bzip2 \\(unpack it first\\)"),
        (lzma.compress(TABLE.encode()), "is a file compressed with xz \\(unpack it first\\)"),
        (b"", "is empty"),
        (b"\x00\x01" * 100, "is a binary file"),
    ],
)
def test_what_is_no_log_says_what_it_is(tmp_path, content, words):
    with pytest.raises(FileFormatError, match=words):
        tc.read_log(saved(tmp_path / "log.csv", content))


def test_a_folder_without_events_names_its_files(tmp_path):
    saved(tmp_path / "metrics.csv", TABLE)
    with pytest.raises(InputError, match=r"has no event files .*: give one of its files, metrics\.csv\."):
        tc.read_log(tmp_path)


def test_a_folder_that_vanishes_beside_the_event_files_is_passed_over(tmp_path, monkeypatch):
    """A run saves a checkpoint under another name first, and moves it."""
    event_file(tmp_path / "events.out.tfevents.1", [(1.0 + step, step, "loss", 1.0) for step in range(9)])
    gone = tmp_path / "checkpoint.tmp"
    gone.mkdir()
    scandir = os.scandir

    def without(path="."):
        if Path(path).name == gone.name:
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", without)
    assert len(tc.read_log(tmp_path).find("loss")) == 9


def test_a_record_with_a_flipped_bit_is_left_out_and_counted(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    event_file(path, [(1.0 + step, step, "loss", 2.0 - step / 16) for step in range(16)])
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # in the last record's number, before its checksum of four bytes
    path.write_bytes(data)
    log = tc.read_log(path)
    assert len(log.series[0].steps) == 15
    assert any("Left out: 1 record of 'events.out.tfevents.1' with damaged data." in remark for remark in log.remarks)


def many_numbers(path):
    """Records of some 70 KB, each with the gradients of 1,700 layers beside the loss."""
    layers = {f"gradient/layer_{layer:04}": 1.0 for layer in range(1700)}
    return batched_event_file(path, [(1.7e9 + step, step, {"loss": 0.5 + 1 / step, **layers}) for step in range(1, 9)])


def test_numbers_in_long_records_are_read(tmp_path):
    assert tc.read_log(many_numbers(tmp_path / "events.out.tfevents.1")).find("loss").steps.tolist() == [*range(1, 9)]


def test_a_flipped_bit_in_a_long_record_is_seen(tmp_path):
    file = many_numbers(tmp_path / "events.out.tfevents.1")
    content = bytearray(file.read_bytes())
    content[content.index(b"loss", len(content) // 2) + 8] ^= 0x40  # in the number behind the name
    log = tc.read_log(saved(file, bytes(content)))
    assert len(log.find("loss")) == 7
    told = "Left out: 1 record of 'events.out.tfevents.1' with damaged data."
    assert told in log.remarks
    assert told in tc.converge(log).remarks


def test_numbers_beside_a_picture_in_a_record_are_read(tmp_path):
    """Pictures alone are not worth a checksum, and are no numbers."""
    picture = {"x" * 70_000: 0.0}
    rows = [(1.7e9 + step, step, {"loss": 1 / step, **picture}) for step in range(1, 9)]
    assert len(tc.read_log(batched_event_file(tmp_path / "events.out.tfevents.1", rows)).find("loss")) == 8


def test_a_line_without_an_end_is_left_out_in_bounded_memory(tmp_path):
    file = saved(tmp_path / "log.txt", LINES + 50 * "9" * 1_000_000 + "\nstep 410 loss 1.0\n")
    follower = LogFollower(file)
    tracemalloc.start()
    logs = [tc.read_log(file), follower.poll()]
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 45e6  # the line alone has 50 MB
    for log in logs:
        assert log.find("loss").steps[-1] == 410
        assert "A line is longer than 8 MiB and left out." in log.remarks


def test_a_hole_of_many_megabytes_takes_no_memory(tmp_path):
    file = saved(tmp_path / "log.csv", TABLE)
    os.truncate(file, 200_000_000)
    tracemalloc.start()
    assert LogFollower(file).poll().find("loss").steps[-1] == 400
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 30e6


def test_lines_that_end_in_a_carriage_return_alone_are_whole():
    cutter, piece = WholeLines(), b"step 10 loss 1.5\r" * 200_000
    read = b"".join(cutter.lines(piece) for _ in range(4)) + cutter.last
    assert read == 4 * piece
    assert cutter.remarks == []


def test_a_followed_log_that_a_folder_replaces_is_told(tmp_path):
    file = saved(tmp_path / "log.csv", TABLE)
    follower = LogFollower(file)
    follower.poll()
    file.unlink()
    file.mkdir()
    with pytest.raises(InputError, match=r"log\.csv' cannot be read: Is a directory\."):
        follower.poll()


@pytest.mark.parametrize("format", [None, "csv", "jsonl", "text", "trainer_state", "tensorboard"])
@pytest.mark.parametrize("read", [tc.read_log, lambda path, format: LogFollower(path, Reading(format=format)).poll()])
def test_a_device_is_no_log(format, read):
    with pytest.raises(InputError, match=r"'/dev/null' cannot be read: it is a device, not a file\."):
        read("/dev/null", format=format)
