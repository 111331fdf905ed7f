"""`traincast scale`, from the command line to the exit code: forecasts, measured epochs, Optimus' model."""

import json
import subprocess
import sys

import pytest

from traincast.__main__ import run

ROOFLINE = ["--method", "roofline"]
FOUR = ["resnet18", "--on", "V100-SXM2-16GB", "--gpus", "1,2,4,8", *ROOFLINE]
# ResNet-18 on CIFAR-10 with DataParallel, as in docs/measured_scaling.md.
EPOCHS = "batch,gpus,epoch_s\n" + "".join(
    f"{batch},{n},{seconds}\n"
    for batch, times in {32: (38, 67, 121), 128: (16, 18, 30), 512: (13, 9, 11), 2048: (13, 10, 11)}.items()
    for n, seconds in zip((1, 2, 4), times, strict=True)
)


@pytest.fixture(autouse=True)
def no_width(monkeypatch):
    """As in a pipe; test runners may set a width."""
    monkeypatch.delenv("COLUMNS", raising=False)


def told(capsys, *arguments):
    assert run(["scale", *arguments]) == 0
    return capsys.readouterr().out


def table(out, title):
    """Rows of the table below a title, split at two blanks or more."""
    lines = out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(title))
    found = []
    for line in lines[start + 2 :]:
        if not line or line.startswith("- "):
            break
        found.append([cell.strip() for cell in line.strip().split("  ") if cell.strip()])
    return found


def file_of(tmp_path, text):
    file = tmp_path / "table.csv"
    file.write_text(text)
    return str(file)


def test_strong_and_weak_scaling_stand_side_by_side(capsys):
    out = told(capsys, *FOUR, "--verbose")
    assert out.startswith("resnet18 on 1, 2, 4, 8 x V100-SXM2-16GB\nfp32, sgd, strategy ddp, all-reduce nccl, ")
    assert "No batch was given: weak scaling has 32 samples per GPU" in out
    rows = table(out, "Strong scaling (a batch of 256) and weak scaling (32 samples per GPU)")
    assert [row[0] for row in rows] == ["1", "2", "4", "8"]
    assert rows[0][3:6] == ["1.00", "100.0 %", "-"]
    assert "scaled speedup" in out
    assert "Inside a node: NVLink2, 150 GB/s nominal in one direction; large collectives reach 120 GB/s." in out
    assert max(len(line) for line in out.splitlines() if not line.startswith(("- ", "Fits"))) <= 120


def test_communication_and_what_fits_are_told_for_each(capsys):
    out = told(capsys, "resnet50", *FOUR[1:], "--batch", "512")
    strong, weak = (table(out, f"{kind} scaling: a step on each GPU") for kind in ("Strong", "Weak"))
    assert [row[1] for row in strong] == ["512", "256", "128", "64"]
    assert [row[-1] for row in strong] == ["NO", "NO", "yes", "yes"]
    assert {row[1] for row in weak} == {"64"}
    assert strong[1][8] == "97.5 MiB"
    assert "Warning: Strong scaling, 1 GPU: Does not fit: needs" in out
    assert "are estimated as if they did" in out


def test_runs_have_a_price(capsys):
    out = told(capsys, *FOUR, "--samples", "50000", "--epochs", "10", "--price", "0.9", "--verbose")
    rows = table(out, "Strong scaling: 10 epochs of 50,000 samples")
    assert len(rows) == 4
    assert sum(cell.startswith("$") for cell in rows[0]) == 3
    assert "$0.90 per GPU and hour" in out
    machine = told(capsys, "resnet18", "--on", "p3.8xlarge", *ROOFLINE, "--verbose", "--samples", "50000")
    assert "Cost: $12.24 per machine and hour" in machine
    assert "No cost estimate: the price per GPU and hour is unknown." in told(
        capsys, *FOUR, "--samples", "50000", "--verbose"
    )
    assert "The cost of a run needs its number of samples" in told(capsys, *FOUR, "--price", "0.9")


def test_measured_runs_stand_beside_predicted_ones(capsys, tmp_path):
    file = file_of(tmp_path, "gpus,epoch_s\n1,3600\n4,20\n")
    arguments = [*FOUR, "--samples", "50000", "--price", "0.9", "--batch-per-gpu", "64", "--compare", file]
    out = told(capsys, *arguments)
    rows = table(out, "Weak scaling: 1 epoch of 50,000 samples")
    assert rows[0][-3:-1] == ["1.00 h", "$0.90"]
    assert rows[1][-3:] == ["-", "-", "-"]
    assert rows[2][-3] == "20.0 s"
    assert "Measured runs are compared with weak scaling: mean absolute error" in out
    data = json.loads(told(capsys, *arguments, "--json"))["measured"]
    assert [point["n_devices"] for point in data["points"]] == [1, 4]


def test_the_error_of_the_throughput_has_another_base_than_that_of_the_runtime(capsys, tmp_path):
    arguments = [*FOUR, "--batch", "64"]
    predicted = json.loads(told(capsys, *arguments, "--json"))["strong"]["points"][1]["samples_per_s"]
    file = file_of(tmp_path, f"gpus,samples_per_s\n2,{predicted / 2}\n")
    out = told(capsys, *arguments, "--compare", file)
    assert table(out, "Strong scaling: throughput, predicted and measured")[0][-2:] == ["100.0 %", "-50.0 %"]
    point = json.loads(told(capsys, *arguments, "--compare", file, "--json"))["measured"]["points"][0]
    assert (point["throughput_error_fraction"], point["error_fraction"]) == pytest.approx((1.0, -0.5))


def test_options_reach_the_answer(capsys):
    options = ["--precision", "amp-fp16", "--optimizer", "adam", "--accumulate", "2", "--host", "tf2-keras"]
    options += [
        "--verbose",
        "--strategy",
        "mirrored",
        "--algorithm",
        "tree",
        "--link",
        "10GB/s",
        "--input-samples-per-s",
        "100",
    ]
    out = told(capsys, *FOUR, "--batch", "64", *options)
    assert "amp-fp16, adam, strategy mirrored, all-reduce tree, method roofline, host tf2-keras, 2 passes" in out
    assert "Inside a node: 10 GB/s" in out
    assert "input wait" in out
    data = json.loads(told(capsys, *FOUR, "--batch", "64", *options, "--json"))
    assert (data["algorithm"], data["accumulation_steps"]) == ("tree", 2)
    assert data["strong"]["points"][3]["bound_by"] == "input"
    assert data["strong"]["points"][3]["link_bytes_per_s"] == 10e9


def test_a_page_shows_throughput_runtime_cost_and_parts(capsys, tmp_path):
    page = tmp_path / "scale.html"
    told(capsys, *FOUR, "--samples", "50000", "--price", "0.9", "--html", str(page))
    text = page.read_text()
    for title in ("Throughput of", "Runtime of", "Cost of", "Strong scaling of", "Weak scaling of"):
        assert f"{title} resnet18" in text


def test_the_answer_needs_no_heavy_library():
    code = (
        "import sys; from traincast.__main__ import run; "
        f"code = run(['scale', *{FOUR!r}]); "
        "print(code, sorted({'torch', 'scipy', 'plotly'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "0 []"


def test_measured_epochs_are_divided_and_fitted(capsys, tmp_path):
    arguments = ["--measured", file_of(tmp_path, EPOCHS), "--samples", "50000", "--parameters", "11173962"]
    out = told(capsys, *arguments, "--link", "PCIe3 x16")
    split = table(out, "An epoch, divided by assumption")
    assert split[2] == ["32", "4", "2.02 min", "0.31", "7.9 %", "391.2 %", "9.50 s", "1.86 min"]
    traffic = table(out, "Bytes of an epoch in that communication")
    assert traffic[1][2:] == ["97.6 GiB", "940 MB/s", "6.0 %", "390 GiB", "3.76 GB/s", "23.9 %"]
    assert [row[-1] for row in table(out, "An epoch as the slowest of")][:3] == ["host"] * 3
    assert "Fitted link: if an additional GPU cost only the transfer of its weights" in out
    data = json.loads(told(capsys, *arguments, "--json"))
    assert data["fit"]["mean_error_fraction"] == pytest.approx(0.059, abs=0.001)
    assert data["fit"]["least_link_bytes_per_s"] == pytest.approx(5.0e9, rel=0.02)
    assert data["points"][2]["ring_bytes_per_s"] == pytest.approx(0.9398e9, rel=1e-3)


def test_few_measured_epochs_are_divided_only(capsys, tmp_path):
    file = file_of(tmp_path, "batch,gpus,epoch_s,iterations\n32,1,38,100\n32,2,20,100\n")
    page = tmp_path / "measured.html"
    out = told(capsys, "resnet18", "--measured", file, "--html", str(page))
    assert "11.7 M parameters" in out
    assert "at least four rows and two different numbers of GPUs" in out
    assert "no link was named" in out
    assert "Epochs over GPUs" in page.read_text()


def test_optimus_tells_the_time_by_workers_and_servers(capsys, tmp_path):
    page = tmp_path / "optimus.html"
    out = told(capsys, "--optimus", "paper-async", "--workers", "1-4", "--steps", "1000", "--html", str(page))
    rows = table(out, "By workers and parameter servers")
    # One worker and two servers: 2.83 + 3.92/2 + 2 x 0.11 = 5.01 s a step, so 1,000 steps take 1.39 h.
    assert rows[0][:3] == ["1", "1.39 h", "0.20"]
    assert "with 4 servers and 4 workers" in out
    assert "2 parameter servers" in page.read_text()
    data = json.loads(told(capsys, "--optimus", "paper-sync", "--batch", "128", "--servers", "3", "--json"))
    assert (data["mode"], data["batch_size"], data["curves"][0]["n_servers"]) == ("sync", 128, 3)
    assert len(data["curves"][0]["time_s"]) == 20


def test_optimus_fits_the_speeds_of_a_file(capsys, tmp_path):
    points = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 6), (4, 4), (4, 8)]
    rows = "".join(f"{p},{w},{w / (2 + 3 * w / p + 0.1 * p)}\n" for p, w in points)
    out = told(capsys, "--optimus", file_of(tmp_path, f"servers,workers,steps_per_s\n{rows}"))
    assert "asynchronous, fitted to" in out
    assert "compute and fixed 2, exchange 3," in out
    assert "Fitted to 7 points with a mean error of 0.0 %" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Scaling needs a model"),
        (["resnet18"], "Scaling needs --on, such as"),
        (["resnet18", "--on", "T5"], "No device or machine named 'T5'"),
        (["resnet18", "--on", "p3.17xlarge"], "No device or machine named 'p3.17xlarge'. Close names: p3.16xlarge"),
        (["resnet18", "--on", "4xT4", "--gpus", "1,8"], "'4xT4' holds 4 devices (one node), not 8."),
        (["resnet18", "--on", "2x4xT4"], "name the link between them after an @"),
        (["resnet18", "--on", "2x4xT4@0Gb/s"], "the rate of a link should be a number above 0"),
        (["resnet18", "--on", "T4", "--link", "0GB/s"], "the rate of a link should be a number above 0"),
        (["resnet18", "--on", "T4", "--link", "string"], "No link named 'string'"),
        (["resnet18", "--on", "this-machine"], "What joins 8 of 'generic-cpu' in a node is not known"),
        (["resnet18", "--on", "T4", "--gpus", "0"], "--gpus '0' is not a list of whole numbers from 1"),
        (["resnet18", "--on", "T4", "--gpus", "1;2"], "--gpus '1;2' is not a list of whole numbers from 1"),
        (["resnet18", "--on", "T4", "--gpus", "8-1"], "write 1,2,4,8 or 1-8"),
        (["resnet18", "--on", "T4", "--batch", "4"], "A batch of 4 leaves some of 8 devices without a sample"),
        (["resnet18", "--on", "T4", "--price", "0"], "--price cannot be 0.0: give a number above 0"),
        (["resnet18", "--on", "T4", "--strategy", "ddpp"], "No strategy named 'ddpp'"),
        (["resnet18", "--on", "T4", "--algorithm", "rign"], "No algorithm named 'rign'"),
        (["resnet18", "--on", "T4", "--compare", "none.csv"], "'none.csv' cannot be read: No such file"),
        (["resnet18", "--on", "T4", "--workers", "3"], "--workers belongs to --optimus"),
        (["--measured", "none.csv"], "'none.csv' cannot be read: No such file"),
        (["--measured", "none.csv", "--on", "T4"], "--on has no effect with --measured"),
        (["--measured", "a.csv", "--optimus", "paper-async"], "two questions"),
        (["resnet18", "--optimus", "paper-async"], "The model 'resnet18' has no effect with --optimus"),
        (["--optimus", "paper-sync"], "paper-sync needs the global batch"),
        (["--optimus", "paper-async", "--batch", "8"], "The async form has no batch size"),
        (["--optimus", "papers"], "The speeds are paper-sync, paper-async or a CSV file"),
        (["--optimus", "paper-async", "--steps", "0"], "--steps cannot be 0"),
        (["--optimus", "paper-async", "--servers", "two"], "--servers 'two' is not a list"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(capsys, arguments, words):
    method = ROOFLINE if "--on" in arguments and "--measured" not in arguments else []
    assert run(["scale", *arguments, *method]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Error: ")
    assert words in err
    assert err.count("\n") == 1


def test_measured_bytes_need_a_model(capsys, tmp_path):
    file = file_of(tmp_path, EPOCHS)
    assert run(["scale", "--measured", file, "--samples", "50000"]) == 2
    assert "Bytes need the size of the model: name the model or its number of parameters." in capsys.readouterr().err
    assert run(["scale", "--measured", file, "--samples", "50000", "--parameters", "0"]) == 2
    assert "--parameters cannot be 0" in capsys.readouterr().err


def test_a_batch_without_a_row_on_one_gpu_is_left_out_and_said(capsys, tmp_path):
    file = file_of(tmp_path, EPOCHS + "8192,2,14\n8192,4,13\n")
    out = told(capsys, "--measured", str(file), "--parameters", "11173962", "--samples", "50000")
    assert "Warning: Batch 8192 has no single-device row to compare with and is left out." in out
    assert not any(line.strip().startswith("8192 ") for line in out.splitlines())
