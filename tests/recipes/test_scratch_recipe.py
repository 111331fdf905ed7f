"""From scratch: the recipe, its models, and its forecast before it runs."""

from dataclasses import replace

import pytest
import torch
from tiny_runs import SETTINGS, rows_of, tiny_data, tiny_net

import traincast as tc
from traincast.api.recipe_forecast import forecast_stages
from traincast.errors import UnknownModelError
from traincast.frontend.models.training_step import label_loss
from traincast.recipes.data.augmentation import Augmentation
from traincast.recipes.data.images import LabeledImages
from traincast.recipes.data.load import load_dataset
from traincast.recipes.engine.feed import evaluation_batches
from traincast.recipes.engine.input_time import input_s_per_sample
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.engine.stages import example_of, inference_stage, train_stage
from traincast.recipes.models import MODELS, build_model, meta_model
from traincast.recipes.scratch import ScratchRecipe
from traincast.recipes.transfer_learning.recipe import TransferRecipe

torch.set_num_threads(1)
DATA = tiny_data()
STAGE = train_stage("train", tiny_net, DATA, SETTINGS)


@pytest.fixture(scope="module")
def on_t4():
    return forecast_stages([STAGE], "T4")


def steps_on_t4(mode, optimizer):
    trace = tc.capture(tiny_net(), example_of(DATA.train), loss=label_loss, mode=mode)
    return lambda batch: tc.forecast(trace, "T4", batch, optimizer=optimizer).step_s


def test_an_epoch_is_its_full_batches_and_a_smaller_one(on_t4):
    step_s = steps_on_t4("train", "momentum")
    assert on_t4.stages[0].train_s == pytest.approx(3 * (4 * step_s(4) + step_s(2)))
    assert on_t4.stages[0].step.step_s == pytest.approx(step_s(4))


def test_every_evaluation_is_a_pass_of_inference_over_the_test_images(on_t4):
    step_s = steps_on_t4("inference", "none")
    assert on_t4.stages[0].evaluate_s == pytest.approx(3 * (step_s(4) + step_s(3)))
    seldom = train_stage("train", tiny_net, DATA, replace(SETTINGS, evaluate_every=3))
    assert forecast_stages([seldom], "T4").stages[0].evaluate_s == pytest.approx(step_s(4) + step_s(3))


def test_reading_images_is_counted_here_and_elsewhere_it_is_said_that_it_is_not(on_t4, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    here = forecast_stages([STAGE])
    assert here.stages[0].input_s > 0
    assert here.has_input
    assert any("not calibrated" in warning for warning in here.warnings)
    assert on_t4.stages[0].input_s == 0
    assert any("Reading and augmenting images is not included" in warning for warning in on_t4.warnings)


class Counted:
    """Images that count how often they are read."""

    side = 8

    def __init__(self):
        self.n_read = 0

    def __len__(self):
        return 4

    def read(self, index):
        self.n_read += 1
        return torch.zeros(len(index), 3, 8, 8, dtype=torch.uint8)


def test_data_of_a_single_batch_are_read_again_until_caches_are_full():
    images = Counted()
    part = LabeledImages(images=images, labels=torch.zeros(4).long(), class_names=("a", "b"))
    assert input_s_per_sample(evaluation_batches(part, DATA, 4)) > 0
    assert images.n_read > 2


def test_a_run_on_a_gpu_that_is_forecast_for_a_cpu_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    on_gpu = train_stage("train", tiny_net, DATA, replace(SETTINGS, device="cuda"))
    assert any("name the GPU" in warning for warning in forecast_stages([on_gpu]).warnings)
    assert not any("name the GPU" in warning for warning in forecast_stages([on_gpu], "T4", is_here=True).warnings)


def test_stages_add_up_with_their_intervals(on_t4):
    scoring = inference_stage("score", tiny_net, DATA.train, DATA, batch_size=6)
    both = forecast_stages([STAGE, scoring], "T4", price_usd_per_hour=3600.0)
    first, second = both.stages
    assert first.total_s == pytest.approx(on_t4.total_s)
    assert (second.evaluate_s, second.stage.n_steps) == (0, 3)
    assert both.total_s == pytest.approx(first.total_s + second.total_s)
    assert both.cost_usd == pytest.approx(both.total_s)
    assert not [one for one in both.warnings if "no cost" in one]
    low, high = both.interval()
    assert low < both.total_s < high
    assert both.peak_memory_bytes == max(first.peak_memory_bytes, second.peak_memory_bytes)


def test_several_devices_share_the_smaller_batch_too():
    two = forecast_stages([train_stage("train", tiny_net, tiny_data(n_train=9), SETTINGS)], "2xT4")
    assert two.stages[0].train_s > 0


def test_stages_of_one_model_are_captured_once():
    n_made = 0

    def make():
        nonlocal n_made
        n_made += 1
        return tiny_net()

    stages = [train_stage(f"rate {rate}", make, DATA, replace(SETTINGS, learning_rate=rate)) for rate in (1.0, 0.1)]
    forecast_stages(stages, "T4")
    assert n_made == 2  # for training, and for evaluating


@pytest.mark.parametrize("model", MODELS)
def test_every_model_takes_small_images_and_any_number_of_classes(model):
    assert meta_model(model, 7)(torch.zeros(2, 3, 16, 16, device="meta")).shape == (2, 7)


def test_a_seed_gives_the_same_first_weights_and_leaves_other_random_numbers_alone():
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    first, second, other = (build_model("cifar_resnet20", 10, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(first.conv1.weight, second.conv1.weight)
    assert not torch.equal(first.conv1.weight, other.conv1.weight)


def test_an_unknown_model_is_told_what_can_be_trained():
    with pytest.raises(UnknownModelError, match=r"'resnet20'\. Close names: .*cifar_resnet20.* These can be trained"):
        build_model("resnet20", 10)


def test_digits_are_not_mirrored_unless_one_asks_for_it():
    usual = TrainSettings(n_epochs=1, batch_size=32, learning_rate=0.1)
    digits = load_dataset("digits")
    assert usual.of(digits).augmentation == Augmentation(crop_padding=2, flip_probability=0.0)
    assert train_stage("train", tiny_net, digits, usual).reads.augmentation.flip_probability == 0
    assert usual.of(tiny_data()).augmentation == Augmentation(crop_padding=4, flip_probability=0.5)
    mirrored = replace(usual, augmentation=Augmentation())
    assert mirrored.of(digits).augmentation.flip_probability == 0.5
    assert replace(usual, augmentation=None).of(digits).augmentation is None


def test_halves_of_the_digits_are_digits_too():
    recipe = TransferRecipe(data=load_dataset("digits"))
    assert all(stage.reads.augmentation.flip_probability == 0 for stage in recipe.stages()[:3])


def test_the_recipe_runs_the_stage_that_it_tells(tmp_path):
    data = load_dataset("digits", image_side=8)
    few = replace(data, train=data.train.take(torch.arange(40)), test=data.test.take(torch.arange(20)))
    recipe = ScratchRecipe(
        model="cifar_resnet20", data=few, settings=replace(SETTINGS, batch_size=16, augmentation=None, n_epochs=2)
    )
    (stage,) = recipe.stages()
    result = recipe.run(tmp_path)
    assert stage.n_steps == result.training.n_steps == 6
    assert list(result.stage_seconds) == [stage.name]
    assert len(rows_of(tmp_path)) == 6 + 2
    assert all(parameter.is_meta for parameter in stage.make_module().parameters())
