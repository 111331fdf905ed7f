"""A training run: its log, its folder, and what it leaves in the module."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import N_STEPS, SETTINGS, rows_of, tiny_data, tiny_net, tiny_run
from torch import nn

import traincast as tc
from traincast.errors import InputError, TrainingError
from traincast.recipes.engine.evaluate import evaluate_on
from traincast.recipes.engine.feed import Feed, evaluation_batches
from traincast.recipes.engine.folder import RunFolder
from traincast.recipes.engine.log_file import LogFile
from traincast.recipes.engine.numerics import Numerics
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.engine.train import train_on

torch.set_num_threads(1)


def test_the_log_is_read_with_every_step_in_its_place(tmp_path):
    result = tiny_run(tmp_path / "run")
    log = tc.read_log(result.log_path)
    loss, accuracy = log.find("loss", "train"), log.find("accuracy", "validation")
    assert loss.steps.tolist() == list(range(1, 3 * N_STEPS + 1))
    assert accuracy.steps.tolist() == [N_STEPS, 2 * N_STEPS, 3 * N_STEPS]
    assert accuracy.values[-1] == pytest.approx(result.test_accuracy)
    assert log.find("loss", "validation").values[-1] == pytest.approx(result.test_loss)
    assert loss.values[-1] == pytest.approx(result.final_loss)
    assert (log.steps_per_epoch, log.remarks) == (N_STEPS, ())


def test_the_learning_rate_falls_tenfold_at_each_share_of_the_run(tmp_path):
    log = tc.read_log(tiny_run(tmp_path).log_path)
    assert log.learning_rate.values.tolist() == pytest.approx([0.05] * 8 + [0.005] * 3 + [0.0005] * 4)


@given(
    n_steps=st.integers(1, 500),
    shares=st.lists(st.floats(0.01, 0.99), max_size=4).map(sorted),
    step=st.integers(0, 499),
)
def test_a_learning_rate_never_rises_and_falls_as_often_as_there_are_milestones(n_steps, shares, step):
    settings = TrainSettings(n_epochs=1, batch_size=1, learning_rate=1.0, milestones=tuple(shares))
    rates = [settings.rate_at(step, n_steps), settings.rate_at(step + 1, n_steps)]
    assert rates[0] >= rates[1]
    assert settings.rate_at(n_steps, n_steps) == pytest.approx(10.0 ** -len(shares))


def test_training_learns_and_gives_the_trained_module(tmp_path):
    net, data = tiny_net(), tiny_data()
    result = tiny_run(tmp_path, replace(SETTINGS, n_epochs=40, augmentation=None), net=net, data=data)
    found = evaluate_on(net, evaluation_batches(data.train, data, 5), Numerics("cpu", "fp32"))
    assert (found.accuracy, found.n) == (1.0, 18)
    assert result.n_steps == 40 * N_STEPS
    assert result.best_test_accuracy >= result.test_accuracy


def test_seconds_of_a_run_are_those_of_its_parts_and_the_clock_of_its_log(tmp_path):
    result = tiny_run(tmp_path)
    assert min(result.train_s, result.input_s, result.evaluate_s, result.other_s) > 0
    assert tc.read_log(result.log_path).find("loss", "train").seconds[-1] <= result.total_s


def test_a_finished_run_gives_its_result_and_its_weights_again_without_a_step(tmp_path):
    net, again = tiny_net(), tiny_net()
    first = tiny_run(tmp_path, net=net)
    told = []
    second = tiny_run(tmp_path, net=again, on_progress=lambda *steps: told.append(steps))
    assert second == first
    assert not told
    for before, after in zip(net.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(before, after)


def test_progress_is_told_after_every_step(tmp_path):
    told = []
    tiny_run(tmp_path, on_progress=lambda *steps: told.append(steps))
    assert told == [(step, 15) for step in range(1, 16)]


def test_the_same_seed_makes_the_same_run_and_another_does_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        tiny_run(tmp_path / name, replace(SETTINGS, seed=seed))
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "b")
    assert rows_of(tmp_path / "a") != rows_of(tmp_path / "c")


def test_a_run_leaves_the_random_numbers_of_its_caller_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    net = tiny_net()
    torch.manual_seed(5)
    tiny_run(tmp_path, net=net)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": replace(SETTINGS, learning_rate=0.1)}, "its learning rate is 0.05, not 0.1"),
        ({"settings": replace(SETTINGS, augmentation=None)}, "its augmentation is {"),
        ({"data": tiny_data(seed=1)}, "its data train is '18 images of side 8"),
        ({"net": tiny_net(width=5)}, "its model n parameters is"),
        ({"net": tiny_net(seed=1)}, "its model first weights is"),
        ({"weights": torch.ones(18)}, "its data sampling weights is None"),
    ],
)
def test_a_folder_never_mixes_two_runs(tmp_path, change, words):
    tiny_run(tmp_path)
    with pytest.raises(InputError) as caught:
        tiny_run(tmp_path, **change)
    assert f"'{tmp_path}' has another run ({words}" in str(caught.value)


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    with RunFolder(tmp_path).held(), pytest.raises(InputError, match="Another process trains in"):
        tiny_run(tmp_path)


def test_a_loss_that_is_no_number_stops_the_run_and_names_step_and_rate(tmp_path):
    with pytest.raises(TrainingError) as caught:
        tiny_run(tmp_path, replace(SETTINGS, learning_rate=1e30))
    assert "The loss of tiny is nan at step " in str(caught.value) or "The loss of tiny is inf" in str(caught.value)
    assert "with a learning rate of 1e+30" in str(caught.value)
    assert rows_of(tmp_path)  # the steps before are in the log


def test_tests_may_come_every_few_epochs_and_always_come_last(tmp_path):
    settings = replace(SETTINGS, n_epochs=5, evaluate_every=2)
    tiny_run(tmp_path, settings)
    assert [row["epoch"] for row in rows_of(tmp_path) if row["val_acc"]] == ["2", "4", "5"]
    assert settings.n_evaluations() == 3


def test_frozen_parts_stay_as_they_are(tmp_path):
    net = tiny_net()
    net[0].requires_grad_(False)
    net[1].requires_grad_(False).eval()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    tiny_run(tmp_path, net=net)
    changed = {name for name, tensor in net.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"5.weight", "5.bias"}
    assert [part.training for part in net] == [True, False, True, True, True, True]


def test_nothing_to_train_is_said_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match="tiny has nothing to train: all its weights are frozen"):
        tiny_run(tmp_path, net=tiny_net().requires_grad_(False))


def test_a_last_batch_of_one_that_a_norm_cannot_take_is_said_in_one_sentence(tmp_path):
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    with pytest.raises(InputError, match="a batch size of 4 the last batch of an epoch has 1 image"):
        tiny_run(tmp_path, net=net, data=tiny_data(n_train=9))


def test_anything_that_gives_batches_can_be_trained_on(tmp_path):
    data = tiny_data()
    batches = evaluation_batches(data.train, data, 6)
    result = train_on(
        tiny_net(), Feed(train=batches, test=batches, identity={"name": "mine"}), SETTINGS, tmp_path, name="own"
    )
    assert result.n_steps == 9
    assert json.loads((tmp_path / "settings.json").read_text())["data"] == {"name": "mine"}


def test_soft_labels_are_learned_and_count_by_their_largest_share(tmp_path):
    data = tiny_data()
    soft = nn.functional.one_hot(data.train.labels, 3).float() * 0.8 + 0.2 / 3
    result = tiny_run(tmp_path, data=replace(data, train=replace(data.train, labels=soft)))
    assert 0 < result.final_loss < 5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_epochs": 0}, "n_epochs cannot be 0"),
        ({"learning_rate": -1.0}, "learning_rate cannot be -1.0"),
        ({"weight_decay": float("nan")}, "weight_decay cannot be nan"),
        ({"milestones": (0.7, 0.5)}, "should be rising fractions of the run"),
        ({"optimizer": "none"}, "none"),
        ({"precision": "tf32"}, "a mode of NVIDIA GPUs"),
        ({"seed": 2**40}, "too large"),
        ({"device": "tpu"}, "Training is not possible on the device 'tpu': give cpu, cuda or cuda:1"),
        ({"device": "cuda:x"}, "Training is not possible on the device 'cuda:x'"),
        ({"n_samples": 0}, "n_samples cannot be 0"),
        ({"checkpoint_s": -1.0}, "checkpoint_s cannot be -1.0"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        replace(SETTINGS, **wrong)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_device_that_is_not_here_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"There is no CUDA device to train on \('cuda:1'\)"):
        tiny_run(tmp_path, replace(SETTINGS, device="cuda:1"))


@pytest.mark.parametrize("precision", ["amp-bf16", "bf16"])
def test_other_precisions_train_too(tmp_path, precision):
    assert tiny_run(tmp_path, replace(SETTINGS, precision=precision)).n_steps == 15


@pytest.mark.parametrize(("n_steps", "rates"), [(1, [1.0]), (2, [1.0, 0.001]), (4, [1.0, 1.0, 0.1, 0.001])])
def test_a_run_of_few_steps_begins_at_its_rate_and_has_all_of_its_drops(n_steps, rates):
    settings = replace(SETTINGS, learning_rate=1.0, milestones=(0.5, 0.75, 0.9))
    assert [settings.rate_at(step, n_steps) for step in range(n_steps)] == pytest.approx(rates)


def test_a_second_stage_in_bf16_is_found_again_after_the_first_one(tmp_path):
    def both():
        net, settings = tiny_net(), replace(SETTINGS, precision="bf16")
        tiny_run(tmp_path / "pretraining", settings, net=net)
        assert {weight.dtype for weight in net.parameters()} == {torch.bfloat16}
        return tiny_run(tmp_path / "fine-tuning", settings, net=net)

    assert both() == both()


def test_a_folder_in_which_nothing_came_of_a_run_may_be_used_by_another(tmp_path):
    with pytest.raises(TrainingError):
        tiny_run(tmp_path, replace(SETTINGS, learning_rate=1e30))
    assert tiny_run(tmp_path).n_steps == 15
    with pytest.raises(InputError, match="has another run"):
        tiny_run(tmp_path, replace(SETTINGS, learning_rate=1e30))


def test_a_run_that_diverged_is_not_made_again(tmp_path):
    ends, told = [], []
    for _ in range(2):
        with pytest.raises(TrainingError) as caught:
            tiny_run(tmp_path, replace(SETTINGS, learning_rate=1e30), on_progress=lambda *steps: told.append(steps))
        ends.append((str(caught.value), len(told)))
    assert ends[0] == ends[1]
    assert told


class OnlyTrains(nn.Module):
    """Has no numbers but while it learns."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(192, 3)

    def forward(self, images):
        return self.layer(images.flatten(1)) * (1.0 if self.training else float("nan"))


def test_a_test_loss_that_is_no_number_is_no_result(tmp_path):
    with pytest.raises(TrainingError, match="The test loss of tiny is nan after step 5 of 15"):
        tiny_run(tmp_path, net=OnlyTrains())


def test_an_epoch_may_be_shorter_than_the_data_and_goes_on_where_the_last_one_ended(tmp_path):
    result = tiny_run(tmp_path, replace(SETTINGS, n_samples=8))
    assert result.n_steps == 6  # three epochs of two batches


@pytest.mark.parametrize("name", [".lock", "log.csv"])
def test_files_that_cannot_be_written_are_said_in_one_sentence(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=r"cannot be written.*Is a directory"):
        tiny_run(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_full_disk_is_said_in_one_sentence():
    with pytest.raises(InputError, match="The log '/dev/full' cannot be written: No space left on device"):
        LogFile(Path("/dev/full"))
