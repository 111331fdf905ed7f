"""What people name by mistake, at every command that reads a file: one sentence that names it, and exit code 2."""

import json

import pytest

from traincast.__main__ import run

ON_T4 = ["--on", "T4", "--batch", "8"]
TRANSFER = ["--predict", "depth=50", "--steps-per-epoch", "391"]
LINES = {
    "converge": ["converge", "FILE", "--total-steps", "800"],
    "converge --like": ["converge", "log.csv", "--like", "FILE", "--total-steps", "800"],
    "converge --relation-from": ["converge", "log.csv", "--relation-from", "FILE", "--metric", "accuracy"],
    "transfer": ["transfer", "FILE", *TRANSFER],
    "scale --optimus": ["scale", "--optimus", "FILE"],
    "scale --measured": ["scale", "--measured", "FILE", "--samples", "50000", "--parameters", "11173962"],
    "scale --compare": ["scale", "mnist_cnn", "--on", "T4", "--batch", "64", "--samples", "600", "--compare", "FILE"],
    "simulate": ["simulate", "FILE", "--cluster", "2x4xT4"],
    "schedule": ["schedule", "FILE", "--out", "runs"],
    "devices": ["devices", "--devices", "FILE"],
    "forecast": ["forecast", "FILE", *ON_T4],
    "forecast --devices": ["forecast", "mnist_cnn", *ON_T4, "--devices", "FILE"],
    "forecast --on": ["forecast", "mnist_cnn", "--on", "FILE", "--batch", "8"],
    "forecast --compare": ["forecast", "mnist_cnn", *ON_T4, "--compare", "FILE"],
    "forecast --curve": ["forecast", "mnist_cnn", *ON_T4, "--samples", "800", "--target", "0.5", "--curve", "FILE"],
    "plan --prices": ["plan", "mnist_cnn", "--samples", "600", "--batch-size", "64", "--prices", "FILE"],
    "explain --measured": ["explain", "mnist_cnn", *ON_T4, "--measured", "FILE"],
    "records": ["records", "FILE"],
    "records --import": ["records", "kept.db", "--import", "FILE"],
    "measure": ["measure", "FILE", "--batch", "8"],
    "compare --data": ["compare", "--data", "FILE"],
}
WRONG = {
    "README.md": b"# A model\n\nAfter step 120 the loss is 0.51.\n\n| a | b |\n| - | - |\n| 1, 2 | 3, 4 |\n",
    "image.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\2\0\0\0",
    "empty.csv": b"",
    "people.csv": b"name,age,city\nAda,36,London\nAlan,41,Wilmslow\n",
    "package.json": json.dumps(
        {"name": "page", "scripts": {"test": "jest"}, "dependencies": {"react": "^18"}}
    ).encode(),
    "excel.csv": "step,loss\r\n1,2.5\r\n2,2.3\r\n".encode("utf-16"),
    "folder": None,
}


@pytest.fixture
def beside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    rows = "".join(f"{step},{0.3 + 2 / step:.4f},{1 - 0.9 / step:.4f}\n" for step in range(1, 40))
    (tmp_path / "log.csv").write_text("step,loss,accuracy\n" + rows)
    for name, content in WRONG.items():
        (tmp_path / name).mkdir() if content is None else (tmp_path / name).write_bytes(content)


def refusal(line, name, capsys):
    """What a command says of a file that it cannot read."""
    assert run([word.replace("FILE", name) for word in line]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (sentence,) = [text for text in told.err.splitlines() if text.startswith("Error: ")]
    return sentence


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", LINES)
def test_a_wrong_file_is_named_in_one_sentence(beside, capsys, command, name):
    assert name in refusal(LINES[command], name, capsys)


@pytest.mark.parametrize("command", LINES)
def test_a_name_that_no_file_can_have_and_a_link_to_itself_are_told(beside, tmp_path, capsys, command):
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    for name in ("a\0b.csv", "x" * 300 + ".csv", "circle.csv"):
        refusal(LINES[command], name, capsys)


@pytest.mark.parametrize("command", ["transfer", "scale --measured", "simulate", "devices", "records --import"])
def test_a_table_in_utf_16_is_told_with_what_would_be_right(beside, capsys, command):
    sentence = refusal(LINES[command], "excel.csv", capsys)
    assert "is UTF-16 text, as Excel writes 'Unicode Text': save it as 'CSV UTF-8'" in sentence
