"""Pipes and devices where a file should be: one sentence, and exit code 2."""

import os

import pytest

from traincast.__main__ import run


@pytest.mark.parametrize(
    "arguments",
    [
        ["converge", "FILE"],
        ["converge", "FILE", "--format", "csv"],
        ["watch", "FILE", "--once"],
        ["forecast", "resnet50", "--on", "T4", "--batch", "8", "--devices", "FILE.csv"],
        ["forecast", "resnet50", "--on", "T4", "--batch", "8", "--devices", "FILE.toml"],
        ["forecast", "resnet50", "--on", "FILE.toml", "--batch", "8"],
        ["records", "store.db", "--import", "FILE"],
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_not_read(tmp_path, monkeypatch, capsys, arguments, kind):
    monkeypatch.chdir(tmp_path)
    for name in ("FILE", "FILE.csv", "FILE.toml"):
        if kind == "pipe":
            os.mkfifo(name)
        else:
            (tmp_path / name).symlink_to("/dev/full")
    assert run(arguments) == 2
    told = capsys.readouterr().err
    assert f"it is a {kind}, not a file." in told
    assert told.count("\n") == 1
