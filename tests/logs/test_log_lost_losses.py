"""A Trainer that has diverged writes a loss of 0 beside a gradient norm that is not finite."""

import json
import math

import pytest
from written_logs import event_file

import traincast as tc

NORMS = [0.5, 0.4, math.nan, math.nan]
LOSSES = [2.0, 1.0, 0.0, 0.0]


def rows(norms=NORMS):
    return [
        {"loss": loss, "grad_norm": norm, "epoch": step / 40, "step": step}
        for step, (loss, norm) in enumerate(zip(LOSSES, norms, strict=True), 1)
    ]


def written(kind, tmp_path):
    if kind == "state":
        path = tmp_path / "trainer_state.json"
        path.write_text(json.dumps({"max_steps": 9, "log_history": rows()}, indent=1))
    elif kind == "text":
        path = tmp_path / "out.txt"
        path.write_text("".join(f"{ {name: f'{cell:.4g}' for name, cell in row.items()} }\n" for row in rows()))
    elif kind == "lines":
        path = tmp_path / "log.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    else:
        path = event_file(
            tmp_path / "events.out.tfevents.1",
            [
                (1e9 + row["step"], row["step"], f"train/{tag}", row[tag])
                for row in rows()
                for tag in ("loss", "grad_norm")
            ],
        )
    return path


@pytest.mark.parametrize("kind", ["state", "text", "lines", "events"])
def test_a_loss_of_0_beside_gradients_that_are_not_finite_is_a_divergence(tmp_path, kind):
    loss = tc.read_log(written(kind, tmp_path)).find("loss", "train")
    assert loss.values.tolist() == [2, 1]
    assert loss.divergence.n_rows == 2


def test_a_loss_of_0_beside_finite_gradients_is_a_loss_of_0(tmp_path):
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"max_steps": 9, "log_history": rows(norms=[0.5, 0.4, 0.1, 0.0])}))
    assert tc.read_log(path).find("loss").values.tolist() == LOSSES


def test_a_gradient_that_is_not_finite_alone_is_no_divergence(tmp_path):
    """Half precision skips such steps."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": {at}, "loss": {3 - at}, "grad_norm": Infinity}}\n' for at in range(3)))
    assert tc.read_log(path).find("loss").divergence is None
