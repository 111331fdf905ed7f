"""Files are whole or not there."""

import os
import stat
from pathlib import Path

import pytest

from traincast.errors import InputError
from traincast.report.files import write_file


def test_text_and_bytes_are_written_and_the_path_given_back(tmp_path):
    assert write_file(tmp_path / "a.html", "é").read_bytes() == "é".encode()
    assert write_file(str(tmp_path / "a.png"), b"\x89").read_bytes() == b"\x89"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.png"]


def test_a_write_that_fails_leaves_the_old_file_and_no_half_one(tmp_path, monkeypatch):
    target = write_file(tmp_path / "a.html", "old")

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match=r"Cannot write '.*a\.html': No space left on device\."):
        write_file(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_and_a_folder_are_named(tmp_path):
    with pytest.raises(InputError, match=r"Cannot write '.*': the folder '.*none' does not exist\."):
        write_file(tmp_path / "none" / "a.html", "")
    with pytest.raises(InputError, match=r"Cannot write '.*': it is a folder\."):
        write_file(tmp_path, "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable_is_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="no permission to write"):
        write_file(tmp_path / "a.html", "")


def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"Cannot write '.*': File name too long"):
        write_file(tmp_path / ("a" * 300), "text")


def test_others_may_read_the_file_as_the_umask_says(tmp_path):
    previous = os.umask(0o022)
    try:
        mode = write_file(tmp_path / "a.html", "").stat().st_mode
    finally:
        os.umask(previous)
    assert stat.S_IMODE(mode) == 0o644


def test_a_link_keeps_pointing_and_a_device_stays_a_device(tmp_path):
    real = write_file(tmp_path / "real.html", "old")
    link = tmp_path / "link.html"
    link.symlink_to(real)
    write_file(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
