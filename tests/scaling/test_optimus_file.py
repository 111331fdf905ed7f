"""Measured speeds in a file: what is read, and what is said about a wrong one."""

import pytest

from traincast.errors import FileFormatError, InputError
from traincast.scaling.optimus_file import read_speeds


def written(tmp_path, text):
    file = tmp_path / "speeds.csv"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text", ["servers,workers,steps/s\n2,4,0.5\n", "\ufeffN Servers, W ,Step time (s),job\n\n2,4,2,a\n"]
)
def test_speeds_are_read_however_they_are_written(tmp_path, text):
    (point,) = read_speeds(written(tmp_path, text))
    assert (point.n_servers, point.n_workers, point.steps_per_s) == (2, 4, 0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no measured speeds"),
        ("servers,workers,steps_per_s\n", "has no measured speeds"),
        ("servers,steps_per_s\n2,1\n", "line 2: one column should be workers, and there is none"),
        ("servers,workers,steps_per_s,step_s\n2,4,1,1\n", "line 2: one column should be steps_per_s or step_s"),
        ("servers,workers,steps_per_s\n2,4,0\n", "line 2: steps_per_s should be above 0, not 0"),
        ("servers,workers,steps_per_s\n2,4,nan\n", "line 2: steps_per_s should be above 0, not nan"),
        ("servers,workers,steps_per_s\n2,1.5,1\n", "line 2: workers should be a whole number, not 1.5"),
        ('servers,workers,steps_per_s\n2,"4,1\n', "is not a CSV table"),
    ],
)
def test_a_wrong_file_is_said_with_its_line(tmp_path, text, words):
    with pytest.raises(FileFormatError) as caught:
        read_speeds(written(tmp_path, text))
    assert words in str(caught.value)


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_speeds(tmp_path / "none.csv")
    binary = tmp_path / "speeds.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="is UTF-16 text"):
        read_speeds(binary)
