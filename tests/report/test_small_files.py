"""Small files that people write by hand are read whole, or refused in one sentence."""

import re

import pytest

from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.report.small_files import csv_lines, read_text, read_toml, shipped_rows


def test_a_mark_of_the_byte_order_is_no_text(tmp_path):
    (tmp_path / "own.csv").write_bytes(b"\xef\xbb\xbfname\n")
    assert read_text(tmp_path / "own.csv", "Price file") == "name\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.toml", "File none.toml cannot be read: No such file or directory."),
        (".", "File . cannot be read: Is a directory."),
        ("\0", "File \\x00 cannot be read: embedded null byte."),
        ("excel.toml", "File excel.toml is UTF-16 text, as Excel writes 'Unicode Text': save it as 'CSV UTF-8'."),
        ("binary.toml", "File binary.toml is not UTF-8 text: save it as 'CSV UTF-8', if it is a table."),
        ("broken.toml", "File broken.toml is not TOML: "),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(tmp_path, name, words):
    (tmp_path / "excel.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "binary.toml").write_bytes(b"\x80")
    (tmp_path / "broken.toml").write_text("a = = 1\n")
    with pytest.raises(TraincastError, match=f"^{re.escape(words)}"):
        read_toml(tmp_path / name, f"File {name}")


def test_a_missing_file_is_a_wrong_value_and_a_foreign_one_a_wrong_format(tmp_path):
    with pytest.raises(InputError):
        read_text(tmp_path / "none.csv", "File")
    (tmp_path / "foreign.csv").write_bytes(b"\xff")
    with pytest.raises(FileFormatError):
        read_text(tmp_path / "foreign.csv", "File")


def test_lines_keep_their_numbers_where_empty_ones_are_left_out():
    assert list(csv_lines('a,b\r\n\n , \n1,"2,\n3"\n4,5', "T")) == [
        (1, ["a", "b"]),
        (5, ["1", "2,\n3"]),
        (6, ["4", "5"]),
    ]


def test_a_table_that_is_none_is_told_with_its_line():
    with pytest.raises(FileFormatError, match=r"^Device file 'x' is not a CSV table: .* in line 2\.$"):
        list(csv_lines('a,b\n"1"2,3\n', "Device file 'x'"))


def test_a_shipped_table_has_its_cells_by_column():
    assert {"provider", "per_day"} <= shipped_rows("interruptions.csv")[0].keys()
