"""`traincast devices`, from the command line to the exit code."""

import json

import pytest

from traincast.__main__ import run


def test_a_part_of_a_name_lists_what_contains_it(capsys):
    assert run(["devices", "v100"]) == 0
    out = capsys.readouterr().out
    assert "5 of 86 known" in out
    assert "V100-SXM2-32GB  2018  15.7 Tflop/s  125 Tflop/s  32.0 GiB   900 GB/s" in out


def test_filters_combine(capsys):
    assert run(["devices", "--vendor", "amd", "--arch", "CDNA2", "--min-memory", "64"]) == 0
    out = capsys.readouterr().out
    assert "2 of 86 known" in out
    assert "MI210" in out
    assert "MI250-GCD" in out


def test_memory_that_is_no_number_is_one_sentence(capsys):
    assert run(["devices", "--min-memory", "much"]) == 2
    assert capsys.readouterr().err == "Error: --min-memory 'much' is not a number of GiB: write 16.\n"


def test_the_list_fits_a_terminal_of_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert len([line for line in lines if " GB/s" in line or " TB/s" in line]) == 86


def test_json_has_every_figure_in_base_units_with_its_source(capsys):
    assert run(["devices", "t4", "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert (device["name"], device["fp32_flop_per_s"], device["memory_bytes_per_s"]) == ("T4", 8.1e12, 320e9)
    assert device["memory_bytes"] == 16 * 2**30
    assert device["source"]


@pytest.mark.parametrize("command", [["devices", "v100"], ["devices", "--machines", "p3"], ["models", "vgg"]])
def test_lists_are_pages_as_well(command, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert run([*command, "--html", str(page)]) == 0
    assert "<td" in page.read_text()
    assert ("Compute and memory" in page.read_text()) == (command[1] == "v100")  # what a list can be drawn as
    capsys.readouterr()


def test_nothing_found_is_an_answer(capsys):
    assert run(["devices", "a101"]) == 0
    out = capsys.readouterr().out
    assert "0 of 86 known" in out
    assert "Nothing matches" in out
    assert run(["devices", "a101", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"devices": []}


def test_own_devices_join_the_list(capsys, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("name,fp32_tflop_per_s,memory_gib,memory_gb_per_s\nmine,10,16,500\n")
    assert run(["devices", "mine", "--devices", str(path)]) == 0
    assert "1 of 87 known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("name\nx\n", "column fp32_tflop_per_s is required"),
        (None, "cannot be read: No such file or directory."),
    ],
)
def test_a_bad_device_file_is_one_line_and_exit_code_2(capsys, tmp_path, content, words):
    path = tmp_path / "mine.csv"
    if content is not None:
        path.write_text(content)
    assert run(["devices", "--devices", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"Error: Device file '{path}'")
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_machines_are_listed_with_links_and_prices(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert run(["devices", "--machines", "p3"]) == 0
    out = capsys.readouterr().out
    assert "4 of 167 known" in out
    assert "p3.16xlarge    AWS       8xV100-SXM2-16GB  NVLink2    Ethernet 25 Gb/s    $24.48" in out
    assert run(["devices", "--machines", "lambda", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["machines"]
    assert found
    assert all(machine["provider"] == "Lambda" for machine in found)
    assert run(["devices", "--machines", "nothing-like-it"]) == 0
    assert "Nothing matches; 'traincast devices --machines' lists all." in capsys.readouterr().out


def test_filters_of_devices_hold_for_the_machines_that_have_them(capsys):
    assert run(["devices", "--machines", "--vendor", "amd", "--json"]) == 0
    assert {machine["device"] for machine in json.loads(capsys.readouterr().out)["machines"]} == {"MI300X"}
    assert run(["devices", "--machines", "p4", "--min-memory", "80", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["machines"]] == ["p4de.24xlarge"]


def test_a_file_of_devices_has_no_machines(capsys, tmp_path):
    assert run(["devices", "--machines", "--devices", str(tmp_path / "own.toml")]) == 2
    assert "A file of devices lists no machines" in capsys.readouterr().err
