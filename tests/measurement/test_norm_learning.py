"""Batch norm against none: loss and accuracy of every epoch, beside the speed."""

import pytest
import torch
from torch import nn

from traincast.errors import TraincastError
from traincast.measurement.runnable import Runnable
from traincast.measurement.sweeps.learning import synthetic_problem
from traincast.measurement.sweeps.variants import sweep_norm
from traincast.views.sweep import variants_document


@pytest.fixture
def small():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 9, 10)
    )
    return Runnable(
        name="small",
        module=module,
        make_inputs=lambda n: torch.zeros(n, 1, 8, 8),
        forward=lambda own, inputs: own(inputs),
        loss=lambda output, _: output.mean(),
    )


def test_both_variants_learn_as_many_epochs(small):
    settings = {"batch_size": 256, "n_steps": 2, "optimizer": "momentum"}
    sweep = sweep_norm(small, n_epochs=2, problem=synthetic_problem(), **settings)

    assert [len(row.epochs) for row in sweep.rows] == [2, 2]
    document = variants_document(sweep)
    (learned,) = [table for table in document.tables if table.title == "Learned"]
    assert [column.header for column in learned.columns] == [
        "epoch", "with batch norm: loss", "accuracy", "without: loss", "accuracy",
    ]  # fmt: skip
    assert len(learned.rows) == 2
    assert {"Training loss by epoch", "Test accuracy by epoch"} <= {chart.title for chart in document.charts}
    first = sweep.to_dict()["rows"][0]["epochs"][1]
    assert first["loss"] == sweep.rows[0].epochs[1].loss


def test_without_an_optimizer_nothing_is_learned(small):
    with pytest.raises(TraincastError, match="Without an optimizer nothing is learned"):
        sweep_norm(small, n_epochs=1, batch_size=8, optimizer="none")
