"""Optimus' law through many logs: one table, grouped by what the files' names tell."""

import csv
import json

import numpy as np
import pytest

from traincast.__main__ import run
from traincast.api.loss_fits import loss_fits
from traincast.errors import TraincastError
from traincast.logs.file_facts import file_facts

LAWS = {"resnet20_V100_train.csv": (1.2e-4, 0.68, 0.036), "resnet56_Quadro_RTX_8000_train.csv": (1.8e-4, 0.6, 0.004)}


@pytest.fixture
def logs(tmp_path):
    steps = np.arange(1, 61) * 2000
    for name, (b0, b1, b2) in LAWS.items():
        rows = (f"{step},{1 / (b0 * step + b1) + b2}\n" for step in steps)
        (tmp_path / name).write_text("step,loss\n" + "".join(rows))
    return [str(tmp_path / name) for name in LAWS]


@pytest.mark.parametrize(
    ("name", "model", "device", "split"),
    [
        ("resnet18_A100-PCIe-40GB_train.csv", "resnet18", "A100-PCIe-40GB", "train"),
        ("runs/resnet56_Quadro_RTX_8000_val.csv", "resnet56", "Quadro-RTX-8000", "validation"),
        ("resnet20_Tesla_V100.jsonl.gz", "resnet20", "Tesla-V100", ""),
        ("metrics.csv", "", "", ""),
    ],
)
def test_the_name_of_a_log_tells_model_gpu_and_split(name, model, device, split):
    facts = file_facts(name)
    assert (facts.model, facts.device, facts.split) == (model, device, split)


def test_parameters_of_a_curve_without_noise_are_its_own(logs):
    found = loss_fits(logs, target=0.2)
    for one, (b0, b1, b2) in zip(found.fits, LAWS.values(), strict=True):
        values = {name: estimate.p50 for name, estimate in one.parameters.items()}
        assert values == pytest.approx({"b0": b0, "b1": b1, "b2": b2}, rel=1e-3)
        assert one.r_squared == pytest.approx(1.0)
        assert one.arrival.steps.p50 == pytest.approx((1 / (0.2 - b2) - b1) / b0, rel=0.01)
        assert all(estimate.p10 <= estimate.p50 <= estimate.p90 for estimate in one.parameters.values())


def test_the_command_shows_one_table_one_chart_and_writes_what_transfer_reads(logs, tmp_path, capsys):
    out = tmp_path / "fits.csv"
    arguments = ["converge", *logs, "--fits", "--target", "0.2", "--steps-per-epoch", "391"]
    assert run([*arguments, "--export", str(out), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["fits"]) == 2
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["model"], row["depth"], row["hardware"]) for row in rows] == [
        ("resnet20", "20", "V100"),
        ("resnet56", "56", "Quadro-RTX-8000"),
    ]
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert "2 logs, 2 combinations of model, GPU and split." in text
    assert "2 of 2 reach loss 0.2." in text
    assert run(["transfer", str(out), "--predict", "depth=44", "--total-steps", "120000", "--json"]) == 0


def test_what_means_nothing_to_fits_is_refused(logs, capsys):
    assert run(["converge", *logs, "--fits", "--price", "3"]) == 2
    assert "--price means nothing to --fits: leave it out." in capsys.readouterr().err
    assert run(["converge", logs[0], "--export", "fits.csv"]) == 2
    assert "ask for it with --fits" in capsys.readouterr().err


def test_a_table_is_written_as_csv_only(logs, tmp_path):
    from traincast.api.loss_fits import write_fits

    with pytest.raises(TraincastError, match=r"exported to a \.csv file"):
        write_fits(loss_fits(logs), tmp_path / "fits.json")
