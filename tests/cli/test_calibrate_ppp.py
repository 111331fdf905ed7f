"""`traincast calibrate --ppp`: Paleo's platform percent of peak from a table of measured steps."""

import json

import pytest

import traincast as tc
from traincast.__main__ import run


@pytest.fixture
def runs(tmp_path):
    """Steps that Paleo itself predicts at a PPP of one half."""
    rows = ["model,gpu,batch,step_s,mode"]
    for model, batch_size, mode in (("vgg16", 16, "train"), ("resnet50", 32, "train"), ("resnet50", 1, "inference")):
        step_s = tc.forecast(model, "K80", batch_size, method="paleo", ppp=0.5, mode=mode)
        device_s = step_s.device_s
        rows.append(f"{model},K80,{batch_size},{device_s},{mode}")
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def test_what_paleo_predicts_gives_back_its_ppp(runs, capsys):
    assert run(["calibrate", "--ppp", runs, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ppp"] == pytest.approx(0.5, rel=1e-6)
    assert found["interval"] == pytest.approx([0.5, 0.5], rel=1e-6)
    assert [row["error_fraction"] for row in found["rows"]] == pytest.approx([0, 0, 0], abs=1e-6)


def test_the_answer_has_value_interval_and_residuals(runs, capsys):
    assert run(["calibrate", "--ppp", runs]) == 0
    out = capsys.readouterr().out
    assert "PPP 0.500 (p10-p90: 0.500 to 0.500). Mean absolute residual: 0.0 %." in out
    assert "PPP of this step alone" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,gpu,batch\nvgg16,K80,8\n", "no column for step_s"),
        ("model,gpu,batch,step_s\n", "holds no measured steps"),
        ("model,gpu,batch,step_s\nvgg16,,8,1\n", "device is empty"),
        ("model,gpu,batch,step_s\nvgg17,K80,8,1\n", "No model named 'vgg17'"),
        ("model,gpu,batch,step_s,mode\nvgg16,K80,8,1,eval\n", "mode 'eval' is not known"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_a_sentence(text, words, tmp_path, capsys):
    path = tmp_path / "runs.csv"
    path.write_text(text)
    assert run(["calibrate", "--ppp", str(path)]) == 2
    assert words in capsys.readouterr().err
