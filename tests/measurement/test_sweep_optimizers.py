"""Optimizers: the cost of their steps, and what they learn."""

import pytest
import torch
from torch import nn

from sweep_samples import measured, runnable
from traincast.errors import MeasurementError, MemoryEndedError
from traincast.measurement import measure as measuring
from traincast.measurement.sweeps import optimizers
from traincast.measurement.sweeps.learning import (
    EpochScore,
    Learner,
    find_learner,
    find_problem,
    learn,
    small_cnn,
    synthetic_problem,
)
from traincast.measurement.sweeps.optimizers import OptimizerRow, OptimizerSweep, sweep_optimizers
from traincast.report.text import to_text
from traincast.views.sweep import optimizers_document

torch.set_num_threads(1)


def learner(problem=None):
    return Learner(name="cnn", module=small_cnn(), problem=problem or synthetic_problem(), remark="")


def classifier(n_classes=10):
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, n_classes))


def images(batch_size):
    return (torch.zeros(batch_size, 3, 12, 12),)


@pytest.mark.parametrize("problem", [synthetic_problem, find_problem])
def test_a_small_cnn_learns_the_problem_in_a_few_epochs(problem):
    scores = list(learn(learner(problem()), "nesterov", n_epochs=3, batch_size=32))
    assert scores[-1].loss < scores[0].loss / 3
    assert scores[-1].accuracy_fraction > 0.8


def test_learning_is_the_same_every_time_and_leaves_the_module_as_it_was():
    one = learner()
    before = [weight.clone() for weight in one.module.parameters()]
    first, second = ([score.loss for score in learn(one, "adam", n_epochs=1, batch_size=64)] for _ in range(2))
    assert first == second
    assert all(torch.equal(*pair) for pair in zip(before, one.module.parameters(), strict=True))


def test_the_model_itself_learns_where_it_maps_an_image_to_enough_classes():
    found = find_learner(runnable(classifier(), images, "net"), synthetic_problem())
    assert found.name == "net"
    assert found.problem.images.shape[1:] == (3, 12, 12)
    assert found.remark == "net learns synthetic patterns (no scikit-learn here), brought to its 3 x 12 x 12."


@pytest.mark.parametrize(
    ("module", "make_inputs"),
    [
        (classifier(n_classes=2), images),
        (nn.Linear(4, 10), lambda batch_size: (torch.zeros(batch_size, 4),)),
        (nn.Embedding(8, 10), lambda batch_size: (torch.zeros(batch_size, 5, dtype=torch.long),)),
    ],
)
def test_another_model_is_replaced_by_a_small_cnn_and_that_is_said(module, make_inputs):
    found = find_learner(runnable(module, make_inputs, "net"), synthetic_problem())
    assert found.name == "a small CNN"
    assert "net does not map an image to at least 10 classes: a small CNN learns" in found.remark


def test_a_sweep_times_every_optimizer_and_scores_every_epoch():
    sweep = sweep_optimizers(
        runnable(nn.Linear(4, 2), lambda n: (torch.zeros(n, 4),)), batch_size=256, n_epochs=1, n_steps=1
    )
    assert [one.optimizer for one in sweep.rows] == [
        "sgd",
        "momentum",
        "nesterov",
        "adagrad",
        "adadelta",
        "rmsprop",
        "adam",
        "adamw",
    ]
    assert all(one.measurement.step_s > 0 and len(one.epochs) == 1 for one in sweep.rows)
    assert "a small CNN learns" in sweep.remark
    assert len(sweep.to_dict()["rows"][0]["epochs"]) == 1


class Picky(nn.Module):
    """Fails for batches of some sizes, or where a weight has a history."""

    def __init__(self, fails_at):
        super().__init__()
        self.inner, self._fails_at = classifier(), fails_at

    def forward(self, images):
        if self._fails_at(len(images)):
            raise ValueError("not these")
        return self.inner(images)


def test_a_model_that_fails_on_images_is_one_sentence_before_anything_is_timed():
    broken = runnable(Picky(lambda n: True), images, "net")
    with pytest.raises(
        MeasurementError, match=r"Asking net for the scores of 2 images failed \(ValueError: not these\)"
    ):
        sweep_optimizers(broken, batch_size=4, n_epochs=1, n_steps=1)
    with pytest.raises(MeasurementError, match="Step 1, in its forward, failed"):
        sweep_optimizers(broken, batch_size=4, n_steps=1)


def test_learning_that_fails_leaves_the_steps_that_were_timed_and_the_reason(monkeypatch):
    monkeypatch.setattr(optimizers, "OPTIMIZERS", ("sgd", "adam"))
    picky = runnable(Picky(lambda n: n == 1437 % 256), images, "net")  # the last batch of an epoch
    sweep = sweep_optimizers(picky, batch_size=256, n_epochs=1, n_steps=1)
    assert [(one.optimizer, one.measurement is None, one.epochs) for one in sweep.rows] == [
        ("sgd", False, ()),
        ("adam", False, ()),
    ]
    assert sweep.rows[1].reason == "Learning with adam failed (ValueError: not these)."
    text = to_text(optimizers_document(sweep, {}))
    assert "adam: Learning with adam failed (ValueError: not these)." in " ".join(text.split())


def test_an_optimizer_that_cannot_be_measured_is_a_row_and_the_others_are_shown(monkeypatch):
    monkeypatch.setattr(optimizers, "OPTIMIZERS", ("sgd", "adam"))
    real = measuring.measure_step

    def no_room_for_adam(model, **settings):
        if settings["optimizer"] == "adam":
            raise MemoryEndedError("Step 1 ran out of memory.")
        return real(model, **settings)

    monkeypatch.setattr(measuring, "measure_step", no_room_for_adam)
    sweep = sweep_optimizers(runnable(nn.Linear(4, 2), lambda n: (torch.zeros(n, 4),)), batch_size=2, n_steps=1)
    assert [one.reason for one in sweep.rows] == ["", "Step 1 ran out of memory."]
    assert "The update of sgd takes longest" in sweep.verdict
    assert "adam: Step 1 ran out of memory." in to_text(optimizers_document(sweep, {}))
    assert sweep.to_dict()["rows"][1]["step_s"] is None


def test_a_last_batch_of_one_image_is_left_out_where_batch_norm_would_fail_on_it():
    normed = nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.BatchNorm1d(10))
    one = Learner(name="net", module=normed, problem=synthetic_problem(), remark="")
    (score,) = learn(one, "sgd", n_epochs=1, batch_size=4)  # 1,437 images: 359 batches, and one image
    assert score.loss > 0


def test_the_verdict_names_the_costliest_update_the_cheapest_and_who_learned_best():
    def row(name, step_s, update_s, accuracy):
        score = EpochScore(loss=1.0, accuracy_fraction=accuracy, epoch_s=1.0)
        timed = measured(step_s, update_s=update_s, optimizer=name)
        return OptimizerRow(optimizer=name, learning_rate=0.1, measurement=timed, epochs=(score, score))

    sweep = OptimizerSweep(
        model="m", batch_size=8, rows=(row("sgd", 0.010, 0.001, 0.8), row("adam", 0.012, 0.003, 0.9))
    )
    assert sweep.verdict == (
        "The update of adam takes longest (3.00 ms of a step of 12.0 ms), that of sgd is the shortest (1.00 ms). "
        "After 2 epochs adam is ahead with an accuracy of 90.0 % and a loss of 1, each at its usual learning rate and "
        "without a search."
    )


def test_without_epochs_nothing_is_said_about_learning():
    row = OptimizerRow(optimizer="sgd", learning_rate=0.1, measurement=measured(0.01))
    assert "epoch" not in OptimizerSweep(model="m", batch_size=8, rows=(row,)).verdict
